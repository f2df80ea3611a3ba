//! The rights of users: who may submit, change and read which jobs.

use miserly_api::model::{JobView, Problem, ProblemCode};

use crate::{Caller, Engine, Journal, Launcher, Now, Queue, Record};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Returns whether a user is an operator: root, or the daemon's user.
    ///
    /// The overflow user is none. Every user of another user namespace may look like that one.
    pub(crate) fn is_operator(&self, uid: u32) -> bool {
        uid == 0 || (uid == self.info.owner && Some(uid) != self.info.overflow_uid)
    }

    /// Returns whether a user may change a job, and read its command and its paths.
    pub(crate) fn may_read(&self, uid: u32, record: &Record) -> bool {
        self.is_operator(uid) || (uid == record.uid && Some(uid) != self.info.overflow_uid)
    }

    /// Returns a job as a user may see it.
    pub(crate) fn view_for(&self, now: Now, uid: u32, record: &Record) -> JobView {
        let mut view = self.view(now, record);
        if !self.may_read(uid, record) {
            view.remove_details();
        }
        view
    }

    /// Checks that the caller is one user, and known to the system.
    pub(crate) fn check_identity(&self, caller: &Caller) -> Result<(), Problem> {
        let uid = caller.uid;
        let message = if Some(uid) == self.info.overflow_uid {
            format!("user {uid} stands for all users that the system cannot name, and cannot submit jobs")
        } else if caller.account.is_none() && !self.is_operator(uid) {
            format!("user {uid} has no account on this machine, and cannot submit jobs")
        } else {
            return Ok(());
        };
        Err(Problem::new(ProblemCode::Forbidden, message))
    }

    /// Checks that the caller is the daemon's user: the launcher has no rights to run jobs as another user.
    pub(crate) fn may_submit(&self, caller: &Caller) -> Result<(), Problem> {
        if caller.uid == self.info.owner {
            return Ok(());
        }
        let message = format!(
            "this daemon runs jobs as {} only, and you are {}: have a daemon of your own",
            (self.info.users.0)(self.info.owner),
            (self.info.users.0)(caller.uid)
        );
        Err(Problem::new(ProblemCode::Forbidden, message))
    }

    /// Checks that the caller may use a queue. Operators may use every queue.
    pub(crate) fn may_use(&self, caller: &Caller, queue: &Queue) -> Result<(), Problem> {
        let admitted = queue.users.as_ref().is_none_or(|users| users.admits(caller));
        if admitted || self.is_operator(caller.uid) {
            return Ok(());
        }
        let message = format!("queue {} is not open to you; `miserly status` lists the queues", queue.name);
        Err(Problem { code: ProblemCode::Forbidden, ..Problem::with_field("queue", message) })
    }

    /// Checks that the caller may release a held job. A job that an operator held is released by an operator only.
    pub(crate) fn may_release(&self, caller: &Caller, record: &Record) -> Result<(), Problem> {
        let by_operator = record.held_by.is_some_and(|uid| uid != record.uid && self.is_operator(uid));
        if !by_operator || self.is_operator(caller.uid) {
            return Ok(());
        }
        let message = format!("job {} was held by an operator, who has to release it", record.number);
        Err(Problem { job: Some(record.number), ..Problem::new(ProblemCode::Forbidden, message) })
    }
}
