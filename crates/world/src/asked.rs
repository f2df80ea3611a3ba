//! What users may read and change: their own jobs, and of others what is public.
//!
//! The command of each job has a secret of its user.

use miserly_api::model::{Filter, JobView, Problem, WhatIf};
use miserly_engine::{Account, Caller, DaemonReply, DaemonRequest, Snapshot};

use crate::step::Wish;
use crate::world::{Checked, USERS, World};

/// A user without jobs.
const STRANGER: u32 = USERS + 7;

/// Returns the secret of a user.
pub(crate) fn secret(user: u32) -> String {
    format!("secret-of-{user}")
}

/// Returns a user with the account.
pub(crate) fn caller(user: u32) -> Caller {
    let account = Account { name: format!("user{user}"), ..Account::default() };
    match user {
        0 => Caller::new(0),
        user => Caller { account: Some(account.into()), ..Caller::new(user) },
    }
}

/// A reply tells a user no secret of another one.
pub(crate) fn check_reply(user: u32, reply: &Result<DaemonReply, Problem>) -> Checked {
    let others = [0, USERS, USERS + 1].into_iter().filter(|other| *other != user && user != 0);
    let text = format!("{reply:?}");
    match others.map(secret).find(|secret| text.contains(secret)) {
        Some(secret) => {
            Err(format!("user {user} reads {secret}: {}", text.chars().take(200).collect::<String>()))
        }
        None => Ok(()),
    }
}

impl World {
    /// A user reads the latest snapshot. No request that reads may fail for a defect.
    pub(crate) fn check_reads(&self, snapshot: &Snapshot) -> Checked {
        let user = [USERS, USERS + 1, STRANGER][usize::try_from(self.now % 3).unwrap_or(0)];
        let (now, caller) = (self.moment(), caller(user));
        let answer = |question| snapshot.answer(now, &caller, &question, &self.journal, &|_, _| Ok(()));
        let list = DaemonRequest::Jobs(Filter { all: true, details: true, ..Filter::default() });
        let Ok(DaemonReply::Jobs(jobs)) = answer(list) else { return Err("a list is refused".into()) };
        if jobs.len() < self.watch.count() {
            return Err(format!("user {user} does not see all jobs"));
        }
        jobs.iter().try_for_each(|job| check_view(user, job))?;
        let mut questions = vec![
            DaemonRequest::Status,
            DaemonRequest::Pools,
            DaemonRequest::Limits,
            DaemonRequest::Reservations,
        ];
        questions.extend(jobs.iter().rev().take(3).map(|job| DaemonRequest::Job(job.number)));
        let submission = self.submission(user, 0, &Wish { cpus: 1, time: 9, ..Wish::default() });
        questions.extend(submission.clone().map(DaemonRequest::Quote));
        for question in questions {
            check_reply(user, &answer(question))?;
        }
        let what_ifs = [
            WhatIf { job: submission, ..WhatIf::default() },
            WhatIf { policy: Some("easy".into()), ..WhatIf::default() },
            WhatIf { without_uid: Some(USERS), ..WhatIf::default() },
        ];
        for question in what_ifs {
            let _ = snapshot.what_if(now, &caller, &question, &|_, _| Ok(()), &self.journal);
        }
        Ok(())
    }
}

/// A view has no private parts of another user's job, and all parts of an own one.
fn check_view(user: u32, job: &JobView) -> Checked {
    let is_hidden =
        job.command.is_none() && job.directory.is_none() && job.output.is_none() && job.error.is_none();
    match &job.command {
        _ if job.uid != user && !(is_hidden && job.mail.is_none() && job.usage.is_none()) => {
            Err(format!("user {user} reads private parts of job {}", job.number))
        }
        Some(command) if !command.contains(&secret(job.uid)) => {
            Err(format!("job {} has the command of another user", job.number))
        }
        None if job.uid == user => {
            Err(format!("user {user} does not see the own command of job {}", job.number))
        }
        _ => Ok(()),
    }
}
