//! The outcome of a job.

use miserly_core::Time;

/// The outcome of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NaiveLife {
    /// The start.
    pub start: Option<Time>,
    /// The end.
    pub end: Option<Time>,
    /// The instants of its suspensions.
    pub suspended: Vec<Time>,
    /// The instants of its resumptions.
    pub resumed: Vec<Time>,
    /// Its stays on processors.
    pub stays: Vec<NaiveStay>,
}

/// A stay on some processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NaiveStay {
    /// The beginning.
    pub from: Time,
    /// The end, or `None` while it lasts.
    pub to: Option<Time>,
    /// Its own processors.
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
