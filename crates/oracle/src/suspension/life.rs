//! What became of a job.

use miserly_core::Time;

/// What became of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NaiveLife {
    /// When it started.
    pub start: Option<Time>,
    /// When it ended.
    pub end: Option<Time>,
    /// When it was taken from its work.
    pub suspended: Vec<Time>,
    /// When it was let run on.
    pub resumed: Vec<Time>,
    /// Where it was when.
    pub stays: Vec<NaiveStay>,
}

/// Some time on some processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NaiveStay {
    /// When it came.
    pub from: Time,
    /// When it left; `None` while it is there.
    pub to: Option<Time>,
    /// Which processors are its own.
    pub pes: Vec<bool>,
}

impl NaiveLife {
    pub(super) fn come(&mut self, now: Time, pes: &[bool]) {
        if self.start.is_none() {
            self.start = Some(now);
        } else {
            self.resumed.push(now);
        }
        self.stays.push(NaiveStay { from: now, to: None, pes: pes.to_vec() });
    }

    pub(super) fn leave(&mut self, now: Time) {
        let last = self.stays.last_mut().expect("it was somewhere");
        last.to = last.to.or(Some(now));
    }
}
