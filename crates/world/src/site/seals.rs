//! The seals of submissions, and the executor's checks of launches.

use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::rc::Rc;

use miserly_api::model::Submission;
use miserly_attempt::files::END;
use miserly_attempt::{AttemptEnd, Files as _};
use miserly_engine::Attempt;
use miserly_executor::{AttemptId, Issue, Key, LaunchChecks, LaunchFailure, LaunchRequest, UsedSeals};
use miserly_marks::mark;

use super::{Home, Machine};

/// The processors of the machine: more than any configuration has.
pub(super) const ONLINE: u32 = 64;

/// The file of the used seals, and the launches that the executor refused.
#[derive(Debug, Default)]
pub(super) struct Seals {
    written: Rc<RefCell<String>>,
    /// The part that is flushed.
    flushed: Cell<usize>,
    last: Cell<u64>,
    refused: RefCell<Vec<(i64, String)>>,
}

/// The file as the executor writes it.
#[derive(Debug)]
pub(super) struct UsedFile(Rc<RefCell<String>>);

impl Write for UsedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn key() -> Key {
    Key::new([7; 32])
}

impl Machine {
    /// Returns the checks of the executor of a new daemon.
    pub(super) fn new_checks(&self) -> LaunchChecks<UsedFile> {
        let written = self.seals.written.borrow().clone();
        self.seals.flushed.set(written.len());
        let file = UsedFile(Rc::clone(&self.seals.written));
        LaunchChecks { key: key(), used: UsedSeals::resumed(&written, self.wall().as_second(), file) }
    }

    /// Seals a submission of a user. Returns the text of the credential.
    pub(crate) fn seal(&self, uid: u32, name: &str, submission: &Submission) -> Option<String> {
        self.seals.last.update(|last| last + 1);
        let issue = Issue { at: self.wall().as_second(), serial: [0, self.seals.last.get()] };
        serde_json::to_string(&key().seal(uid, uid, name, submission, issue).ok()?).ok()
    }

    /// Loses what was not flushed with the power.
    pub(super) fn lose_seals(&self) {
        self.seals.written.borrow_mut().truncate(self.seals.flushed.get());
    }

    /// Returns the jobs whose launches the executor refused, with the reasons.
    pub(crate) fn refused(&self) -> Vec<(i64, String)> {
        self.seals.refused.borrow().clone()
    }
}

impl Home {
    /// Launches an attempt that passes the checks of the executor.
    pub(super) fn checked<T>(
        &self,
        request: &LaunchRequest,
        launch: impl FnOnce() -> Result<T, LaunchFailure>,
    ) -> Result<T, LaunchFailure> {
        let AttemptId { job, nth } = request.attempt;
        let online: Vec<u32> = (0..ONLINE).collect();
        let refused = |failure: LaunchFailure| {
            self.machine.seals.refused.borrow_mut().push((job, failure.to_string()));
            failure
        };
        let credential =
            self.checks.verified(request, &online, self.machine.wall().as_second()).map_err(refused)?;
        if nth > 1 {
            self.note_end(Attempt { job, nth: nth - 1 });
        }
        let mut is_admitted = false;
        let launched = self.checks.launch(request, &credential, || {
            is_admitted = true;
            launch()
        });
        let failed = |failure| if is_admitted { failure } else { refused(failure) };
        launched.map(|(launched, _)| launched).map_err(failed)
    }

    /// Records how an attempt has ended, if it has.
    pub(super) fn note_end(&self, attempt: Attempt) {
        let end = self.open(attempt).and_then(|folder| folder.read::<AttemptEnd>(END).ok().flatten());
        if let Some(end) = end {
            mark!("the executor records an end");
            // The file of the world can be written.
            let _ = self.checks.used.note_end(AttemptId { job: attempt.job, nth: attempt.nth }, &end);
        }
    }
}
