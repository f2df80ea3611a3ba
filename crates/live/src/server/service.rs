//! The interface between the server and the service behind it.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use miserly_api::model::Problem;
use miserly_engine::{Caller, DaemonReply, DaemonRequest};

/// The client of a request.
#[derive(Clone, Debug)]
pub struct Client {
    /// The user.
    pub caller: Caller,
    /// The connection, for a service that needs it.
    pub connection: Option<Arc<OwnedFd>>,
}

/// A service that replies to requests.
pub trait Service: Clone + Send + Sync + 'static {
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
}
