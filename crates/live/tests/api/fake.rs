//! A service without a machine behind it.

use std::sync::{Arc, Mutex};

use miserly_api::model::{Handed, Problem, ProblemCode, Quote, Submitted};
use miserly_engine::{Caller, Question, Reply};
use miserly_live::server::Service;
use tokio::sync::Notify;

use crate::samples;

/// Answers with samples, and remembers who asked what.
#[derive(Clone, Default)]
pub(crate) struct Fake {
    asked: Arc<Mutex<Vec<(Caller, Question)>>>,
    /// Lets those who wait for job 2 go on.
    pub(crate) ended: Arc<Notify>,
}

impl Fake {
    /// Everything that was asked so far.
    pub(crate) fn asked(&self) -> Vec<(Caller, Question)> {
        self.asked.lock().expect("a lock").clone()
    }
}

impl Service for Fake {
    async fn ask(&self, caller: Caller, question: Question) -> Result<Reply, Problem> {
        self.asked.lock().expect("a lock").push((caller, question.clone()));
        if question == Question::Wait(2) {
            self.ended.notified().await;
        }
        answer(&question)
    }
}

/// Job numbers from 400 on are problems, each with the status of its number.
fn answer(question: &Question) -> Result<Reply, Problem> {
    let handed = |job: i64| Ok(Reply::Handed(Handed { jobs: vec![job] }));
    match *question {
        Question::Submit(_) => Ok(Reply::Submitted(Submitted { jobs: samples::accepted() })),
        Question::Quote(_) => Ok(Reply::Quote(Quote { windows: vec![Some(samples::window()), None] })),
        Question::Cancel { job, .. }
        | Question::Hold(job)
        | Question::Release(job)
        | Question::Requeue(job) => handed(job),
        Question::Drain(_) => Ok(Reply::Handed(Handed { jobs: Vec::new() })),
        Question::Jobs(_) => Ok(Reply::Jobs(samples::jobs())),
        Question::Job(number @ 400..) => Err(problem(number)),
        Question::Job(_) | Question::Wait(_) | Question::Extend { .. } => {
            Ok(Reply::Job(Box::new(samples::jobs().remove(0))))
        }
        Question::Pools => Ok(Reply::Pools(samples::pools())),
        Question::Status => Ok(Reply::Status(Box::new(samples::status()))),
    }
}

fn problem(number: i64) -> Problem {
    let code = match number {
        400 => ProblemCode::Malformed,
        403 => ProblemCode::Forbidden,
        404 => ProblemCode::NotFound,
        409 => ProblemCode::Conflict,
        422 => ProblemCode::Refused,
        503 => ProblemCode::Unavailable,
        507 => ProblemCode::Storage,
        _ => ProblemCode::Internal,
    };
    Problem { code, message: format!("no job {number}"), field: Some("n".to_owned()), job: Some(number) }
}
