//! The interface between the server and the service behind it.

use std::future::Future;

use miserly_api::model::Problem;
use miserly_engine::{Caller, DaemonReply, DaemonRequest};

/// A service that replies to requests.
pub trait Service: Clone + Send + Sync + 'static {
    /// Returns the reply once its outcome is durable.
    fn handle(
        &self,
        caller: Caller,
        request: DaemonRequest,
    ) -> impl Future<Output = Result<DaemonReply, Problem>> + Send;
}
