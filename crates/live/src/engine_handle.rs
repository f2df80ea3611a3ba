//! The service behind the daemon's socket.

use std::io;

use miserly_api::model::{Problem, ProblemCode};
use miserly_engine::{Caller, DaemonReply, DaemonRequest, Input, Requester};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::claim::Claim;
use crate::crash_point::CrashPoint;
use crate::request_rate::RequestRate;
use crate::server::Service;
use crate::users;

/// The service behind the daemon's socket: the engine at the other end of a channel.
#[derive(Clone, Debug)]
pub(crate) struct EngineHandle {
    pub(crate) inputs: UnboundedSender<Input>,
    pub(crate) claim: Claim,
    pub(crate) rate: RequestRate,
}

impl Service for EngineHandle {
    async fn handle(&self, caller: Caller, request: DaemonRequest) -> Result<DaemonReply, Problem> {
        self.rate.count(caller.uid)?;
        let caller = match request {
            DaemonRequest::Submit(_) | DaemonRequest::Quote(_) => with_account(caller).await?,
            _ => caller,
        };
        let (sender, reply) = oneshot::channel();
        let gone = || Problem::new(ProblemCode::Unavailable, "the daemon is going away");
        let (request, requester) = (Box::new(request), Box::new(ReplyChannel(sender)));
        self.inputs.send(Input::Request { caller, request, requester }).map_err(|_| gone())?;
        let mut reply = reply.await.map_err(|_| gone())??;
        if let DaemonReply::Status(status) = &mut reply {
            status.shared_cpus = self.claim.shared();
        }
        Ok(reply)
    }
}

/// Returns a caller with the account that the user has now. The lookup may wait for the network, so it has a thread of its own.
async fn with_account(caller: Caller) -> Result<Caller, Problem> {
    let uid = caller.uid;
    let found = tokio::task::spawn_blocking(move || users::caller(uid)).await;
    match found.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(found) => Ok(found),
        // These need no account.
        Err(_) if uid == 0 || uid == rustix::process::getuid().as_raw() => Ok(caller),
        Err(error) => {
            let message = format!("user {uid} cannot be looked up now ({error}); try again");
            Err(Problem::new(ProblemCode::Unavailable, message))
        }
    }
}

/// The requester at the server's end of a channel.
#[derive(Debug)]
struct ReplyChannel(oneshot::Sender<Result<DaemonReply, Problem>>);

impl Requester for ReplyChannel {
    fn reply(self: Box<Self>, reply: Result<DaemonReply, Problem>) {
        CrashPoint::BeforeReply.pass();
        // The requester may have gone.
        let _ = self.0.send(reply);
    }

    fn is_gone(&self) -> bool {
        self.0.is_closed()
    }
}
