//! The rights of users: who may submit, change and read which jobs.

use std::sync::Arc;

use miserly_api::model::{JobView, Problem, ProblemCode, SlurmTables};
use miserly_marks::mark;

use crate::{Caller, DaemonInfo, Engine, Journal, Launcher, Now, Queue, QueueUsers, Record, Snapshot};

impl DaemonInfo {
    /// Returns whether a user is an operator: root, the daemon's user, or one that the configuration names.
    ///
    /// The overflow user is none. Every user of another user namespace may look like that one.
    pub(crate) fn is_operator(&self, caller: &Caller) -> bool {
        let is_named = || caller.uid == self.owner || self.operators.admits(caller);
        caller.uid == 0 || (Some(caller.uid) != self.overflow_uid && is_named())
    }

    /// Checks that a user is an operator. `action` is the rest of the sentence.
    pub(crate) fn check_operator(&self, caller: &Caller, action: &str) -> Result<(), Problem> {
        if self.is_operator(caller) {
            return Ok(());
        }
        mark!("refused: only an operator");
        Err(Problem::new(ProblemCode::Forbidden, format!("only an operator can {action}")))
    }

    /// Returns whether a user may change a job, and read its command and its paths.
    pub(crate) fn may_read(&self, caller: &Caller, record: &Record) -> bool {
        let is_own = caller.uid == record.uid && Some(caller.uid) != self.overflow_uid;
        is_own || self.is_operator(caller)
    }

    /// Checks that the caller is one user, and known to the system.
    pub(crate) fn check_identity(&self, caller: &Caller) -> Result<(), Problem> {
        let uid = caller.uid;
        let message = if Some(uid) == self.overflow_uid {
            format!("user {uid} stands for all users that the system cannot name, and cannot submit jobs")
        } else if caller.account.is_none() && !self.is_operator(caller) {
            format!("user {uid} has no account on this machine, and cannot submit jobs")
        } else {
            return Ok(());
        };
        Err(Problem::new(ProblemCode::Forbidden, message))
    }

    /// Checks that the launcher can run jobs as the caller: as every user, or as the daemon's user only.
    pub(crate) fn may_submit(&self, caller: &Caller) -> Result<(), Problem> {
        if self.runs_as_users || caller.uid == self.owner {
            return Ok(());
        }
        let message = format!(
            "this daemon runs jobs as {} only, and you are {}: have a daemon of your own",
            (self.users.0)(self.owner),
            (self.users.0)(caller.uid)
        );
        Err(Problem::new(ProblemCode::Forbidden, message))
    }

    /// Checks that the caller may use a queue. Operators may use every queue.
    pub(crate) fn may_use(&self, caller: &Caller, queue: &Queue) -> Result<(), Problem> {
        let admitted = queue.terms.users.as_ref().is_none_or(|users| users.admits(caller));
        if admitted || self.is_operator(caller) {
            return Ok(());
        }
        let message = format!("queue {} is not open to you; `miserly status` lists the queues", queue.name);
        Err(Problem { code: ProblemCode::Forbidden, ..Problem::with_field("queue", message) })
    }

    /// Checks that the caller may release a held job. A job that an operator held is released by an operator only.
    pub(crate) fn may_release(&self, caller: &Caller, record: &Record) -> Result<(), Problem> {
        // Nobody else can hold the job of another.
        let by_operator = record.held_by.is_some_and(|uid| uid != record.uid);
        if !by_operator || self.is_operator(caller) {
            return Ok(());
        }
        mark!("refused: held by an operator");
        let message = format!("job {} was held by an operator, who has to release it", record.number);
        Err(Problem { job: Some(record.number), ..Problem::new(ProblemCode::Forbidden, message) })
    }
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Sets the operators other than root and the daemon's user, and the queues for names of Slurm, from now on.
    pub fn set_names(&mut self, operators: QueueUsers, slurm: SlurmTables) {
        let info = Arc::make_mut(&mut self.info);
        (info.operators, info.slurm) = (operators, slurm);
        self.publish();
    }
}

impl Snapshot {
    /// Returns whether the rights of a caller may depend on its account, which was not looked up.
    pub fn needs_account(&self, caller: &Caller) -> bool {
        let is_known = caller.account.is_some() || self.info.is_operator(caller);
        !is_known && self.info.operators != QueueUsers::default()
    }

    /// Returns whether a user is an operator: root, the daemon's user, or one that the configuration names.
    pub fn is_operator(&self, caller: &Caller) -> bool {
        self.info.is_operator(caller)
    }

    /// Returns a job as a user may see it.
    pub(crate) fn view_for(&self, now: Now, caller: &Caller, record: &Record) -> JobView {
        let mut view = self.view(now, record);
        if !self.info.may_read(caller, record) {
            view.remove_details();
        }
        view
    }
}
