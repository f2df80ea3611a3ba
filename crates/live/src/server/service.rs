//! The interface between the server and the service behind it.

use std::future::Future;

use miserly_api::model::Problem;
use miserly_engine::{Caller, Question, Reply};

/// A service that replies to requests.
pub trait Service: Clone + Send + Sync + 'static {
    /// Returns the reply once its outcome is durable.
    fn ask(&self, caller: Caller, question: Question) -> impl Future<Output = Result<Reply, Problem>> + Send;
}
