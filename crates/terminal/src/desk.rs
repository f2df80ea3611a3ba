//! The thread that sends requests to the daemon, so that the view does not wait for answers.

use std::sync::mpsc::Receiver;

use miserly_api::client::Client;
use miserly_api::model::{JobChange, Moves};

use crate::{Action, Detail, Request, What};

/// An answer of the daemon.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The request was carried out.
    Done(String),
    /// It was not: the reason.
    Refused(String),
    /// The promises that a request would move, or why it would be refused.
    Moves(Request, Result<Box<Moves>, String>),
    /// The detail of a job.
    Detail(Detail),
}

/// Sends requests until the sender of actions is gone, and passes the answers on.
pub(crate) fn serve(client: &Client, actions: &Receiver<Action>, mut answer: impl FnMut(Answer)) {
    for action in actions {
        answer(match action {
            Action::Quit | Action::Redraw => continue,
            Action::Ask(request) => match client.change(request.job, &request.what.into()) {
                Ok(()) => Answer::Done(request.done()),
                Err(error) => Answer::Refused(error.to_string()),
            },
            Action::Preview(request) => {
                let moves = client.preview(request.job, &request.what.into());
                Answer::Moves(request, moves.map(Box::new).map_err(|error| error.to_string()))
            }
            Action::Detail(number) => match client.job(number) {
                Ok(job) => Answer::Detail(Detail::new(&job)),
                Err(error) => Answer::Refused(error.to_string()),
            },
        });
    }
}

impl From<What> for JobChange {
    fn from(what: What) -> JobChange {
        match what {
            What::Cancel => JobChange::Cancel,
            What::Hold => JobChange::Hold,
            What::Release => JobChange::Release,
            What::Extend(secs) => JobChange::Extend(secs as f64),
        }
    }
}
