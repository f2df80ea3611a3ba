//! The interface between the server and the service behind it.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use miserly_api::model::{OutputRequest, Problem};
use miserly_engine::{Caller, DaemonReply, DaemonRequest};
use miserly_launch::RelaySocket;

use super::event_stream::EventSource;
use super::seats::ConnectionCounts;

/// The client of a request.
#[derive(Clone, Debug)]
pub struct Client {
    /// The user.
    pub caller: Caller,
    /// The connection, for a service that needs it.
    pub connection: Option<Arc<OwnedFd>>,
}

/// A part of an output file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPart {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The length of the whole file.
    pub length: u64,
}

/// A service that replies to requests.
pub trait Service: Clone + Send + Sync + 'static {
    /// The events of a stream.
    type Events: EventSource;

    /// Returns whether requests have the connection of their client. Each connection then is one descriptor more.
    fn needs_connections(&self) -> bool {
        false
    }

    /// Returns the reply once its outcome is durable.
    fn handle(
        &self,
        client: Client,
        request: DaemonRequest,
    ) -> impl Future<Output = Result<DaemonReply, Problem>> + Send;

    /// Opens a stream of events.
    fn events(
        &self,
        client: Client,
        request: StreamRequest,
    ) -> impl Future<Output = Result<Self::Events, Problem>> + Send;

    /// Returns the relay of a running job to which its user may attach.
    fn relay(&self, client: Client, job: i64) -> impl Future<Output = Result<RelaySocket, Problem>> + Send;

    /// Returns a part of an output file of a job.
    fn output(
        &self,
        client: Client,
        job: i64,
        request: OutputRequest,
    ) -> impl Future<Output = Result<OutputPart, Problem>> + Send;

    /// Returns the metrics, as `OpenMetrics` text. The server counts the connections.
    fn metrics(
        &self,
        client: Client,
        connections: ConnectionCounts,
    ) -> impl Future<Output = Result<String, Problem>> + Send;
}

/// What a client wants of a stream of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamRequest {
    /// The number of the last event that the client has.
    pub after: Option<i64>,
    /// Whether the client sends the mails that jobs ask for.
    pub mails: bool,
}
