//! The jobs of a batch as far as they are known before anything is bent to the demands.

use super::super::random::{Discrete, harmonic};
use super::batch::Batch;
use super::estimates::Estimates;
use super::runtimes::{Pace, Paces};
use super::sizes::Sizes;
use super::stream::{Purpose, Streams};
use super::submissions::{Submission, Submissions};

/// How many users there are. Decided here.
pub(super) const USERS: u32 = 200;

/// The order of the harmonic distribution of their activity. Decided here.
const USER_ORDER: f64 = 1.0;

/// A job without memory whose runtime can still be bent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draft {
    pub(super) procs: u32,
    pub(super) submission: Submission,
    /// In seconds.
    pub(super) estimate: u64,
    pub(super) user: u32,
    pub(super) pace: Pace,
}

/// The drafts of a batch, slot by slot and in each in the order of submission, so that what is dealt is dealt evenly
/// in every period of the week.
pub(super) fn drafts(batch: &Batch, tilt: f64, streams: &Streams) -> Vec<Draft> {
    let mut jobs = submitted(batch, tilt, streams);
    // Stable, so that of the same second the first drawn comes first.
    jobs.sort_by_key(|&(_, at)| (at.slot, at.second));
    let (mut estimates, mut users) = (streams.of(Purpose::Estimates), streams.of(Purpose::Users));
    let (estimate, user) =
        (Estimates::new(batch.class.length), Discrete::new(USERS, |user| harmonic(user, USER_ORDER)));
    let mut paces = Paces::new(batch.class.length, streams.of(Purpose::Runtimes));
    let draft = |(procs, submission)| {
        let estimate = estimate.draw(&mut estimates);
        let pace = paces.next(procs, estimate);
        Draft { procs, submission, estimate, user: user.draw(&mut users), pace }
    };
    jobs.into_iter().map(draft).collect()
}

/// Sizes and instants.
fn submitted(batch: &Batch, tilt: f64, streams: &Streams) -> Vec<(u32, Submission)> {
    let (mut sizes, mut arrivals) = (streams.of(Purpose::Sizes), streams.of(Purpose::Arrivals));
    let size = Sizes::new(batch.class.size, tilt);
    let submissions = Submissions::new(batch.month, batch.from, batch.to);
    let one = |_| {
        let procs = size.draw(&mut sizes);
        (procs, submissions.draw(procs, &mut arrivals))
    };
    (0..batch.target.jobs).map(one).collect()
}
