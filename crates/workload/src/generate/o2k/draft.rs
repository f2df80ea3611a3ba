//! The jobs of a batch before the adjustment to the demands.

use super::super::random::{Discrete, harmonic};
use super::batch::ClassBatch;
use super::estimates::ClassEstimates;
use super::runtimes::{RuntimeCurve, RuntimeCurves};
use super::sizes::ClassSizes;
use super::stream::{Purpose, Streams};
use super::submissions::{SubmissionTime, SubmissionTimes};

/// Number of users. Decided here.
pub(super) const USERS: u32 = 200;

/// Order of the harmonic distribution of their activity. Decided here.
const USER_ORDER: f64 = 1.0;

/// A job without memory, whose runtime is adjustable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draft {
    pub(super) procs: u32,
    pub(super) submission: SubmissionTime,
    /// In seconds.
    pub(super) estimate: u64,
    pub(super) user: u32,
    pub(super) pace: RuntimeCurve,
}

/// Returns the drafts of a batch, by slot and then by submission.
///
/// Properties are therefore evenly distributed in every period of the week.
pub(super) fn drafts(batch: &ClassBatch, tilt: f64, streams: &Streams) -> Vec<Draft> {
    let mut jobs = submitted(batch, tilt, streams);
    // Stable, so that the first draw of a second comes first.
    jobs.sort_by_key(|&(_, at)| (at.slot, at.second));
    let (mut estimates, mut users) = (streams.stream(Purpose::Estimates), streams.stream(Purpose::Users));
    let (estimate, user) =
        (ClassEstimates::new(batch.class.length), Discrete::new(USERS, |user| harmonic(user, USER_ORDER)));
    let mut paces = RuntimeCurves::new(batch.class.length, streams.stream(Purpose::Runtimes));
    let draft = |(procs, submission)| {
        let estimate = estimate.draw(&mut estimates);
        let pace = paces.next(procs, estimate);
        Draft { procs, submission, estimate, user: user.draw(&mut users), pace }
    };
    jobs.into_iter().map(draft).collect()
}

/// Draws sizes and instants.
fn submitted(batch: &ClassBatch, tilt: f64, streams: &Streams) -> Vec<(u32, SubmissionTime)> {
    let (mut sizes, mut arrivals) = (streams.stream(Purpose::Sizes), streams.stream(Purpose::Arrivals));
    let size = ClassSizes::new(batch.class.size, tilt);
    let submissions = SubmissionTimes::new(batch.month, batch.from, batch.to);
    let one = |_| {
        let procs = size.draw(&mut sizes);
        (procs, submissions.draw(procs, &mut arrivals))
    };
    (0..batch.target.jobs).map(one).collect()
}
