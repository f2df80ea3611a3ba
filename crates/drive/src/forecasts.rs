//! Likely starts of waiting jobs: a thread simulates ahead on copies of the ledger, so that no decision waits for it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use jiff::{SignedDuration, Timestamp};
use miserly_core::{JobNumber, Span};
use miserly_forecast::{Forecaster, LiveQueue};

use crate::scheduler::LikelyStart;

/// The least time between two forecasts.
const INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// The pause after forecasts, as a multiple of the time that they took: one hundredth of a processor.
const PAUSE: i32 = 99;

/// The longest time for the simulations. Jobs that did not start in all futures by then have no forecast.
const BUDGET: SignedDuration = SignedDuration::from_secs(2);

/// The time after which the runtimes of ended jobs are read again.
const LEARNED: SignedDuration = SignedDuration::from_hours(6);

/// Reads the runtimes of jobs that have ended. `None`: they cannot be read now.
pub type Learn = Box<dyn FnMut() -> Option<Forecaster> + Send>;

/// The likely start of a job.
pub(crate) struct Likely {
    pub(crate) job: JobNumber,
    pub(crate) start: LikelyStart,
}

/// The thread, and the time of its next work.
pub(crate) struct Forecasts {
    questions: Sender<LiveQueue>,
    answers: Receiver<(Vec<Likely>, SignedDuration)>,
    is_busy: bool,
    next: Timestamp,
}

impl Forecasts {
    /// Starts the thread, with this number of futures for each forecast. It ends with this value.
    ///
    /// # Errors
    /// If the system has no thread.
    pub(crate) fn start(mut learn: Learn, draws: u64) -> std::io::Result<Forecasts> {
        let (questions, requests) = channel::<LiveQueue>();
        let (answer, answers) = channel();
        thread::Builder::new().name("forecasts".to_owned()).spawn(move || {
            let (mut known, mut learned) = (learn().unwrap_or_default(), Timestamp::now());
            for queue in requests {
                let begin = Timestamp::now();
                let given = likely(&known, &queue, draws);
                if answer.send((given, Timestamp::now().duration_since(begin))).is_err() {
                    break;
                }
                if Timestamp::now().duration_since(learned) > LEARNED {
                    (known, learned) = (learn().unwrap_or(known), Timestamp::now());
                }
            }
        })?;
        Ok(Forecasts { questions, answers, is_busy: false, next: Timestamp::MIN })
    }

    /// Returns the answer, if there is one.
    pub(crate) fn take(&mut self) -> Option<Vec<Likely>> {
        let (likely, took) = self.answers.try_recv().ok()?;
        self.is_busy = false;
        let pause = took.checked_mul(PAUSE).unwrap_or(LEARNED).max(INTERVAL);
        self.next = Timestamp::now().saturating_add(pause).unwrap_or(Timestamp::MAX);
        Some(likely)
    }

    /// Requests forecasts on a copy of the ledger, if it is time for them.
    pub(crate) fn request(&mut self, copy: impl FnOnce() -> Option<LiveQueue>) {
        if !self.is_busy
            && Timestamp::now() >= self.next
            && let Some(queue) = copy()
        {
            self.is_busy = self.questions.send(queue).is_ok();
        }
    }
}

/// Returns the likely starts of the jobs that wait.
fn likely(known: &Forecaster, queue: &LiveQueue, draws: u64) -> Vec<Likely> {
    let begin = Timestamp::now();
    let futures = i32::try_from(draws).unwrap_or(i32::MAX - 1) + 1;
    // Each future has its part of the time, so that the first ones do not take all of it.
    let goes_on = |future: u64| {
        let part = i32::try_from(future).unwrap_or(futures).saturating_add(1);
        Timestamp::now().duration_since(begin) < BUDGET / futures * part
    };
    let at = |wait: u64| {
        queue.copy.now + Span::from_secs(i64::try_from(wait).unwrap_or(i64::MAX)).unwrap_or(Span::MAX)
    };
    let given = known.forecasts(queue, draws, &goes_on).into_iter();
    let start = |bounds: [u64; 3]| LikelyStart { median: at(bounds[0]), by_95: at(bounds[2]) };
    given.map(|one| Likely { job: one.job, start: start(one.bounds) }).collect()
}
