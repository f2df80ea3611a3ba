//! How long the jobs run.

use miserly_classes::lsf::Length;

use super::super::random::Stream;
use super::deal::Deal;
use super::draft::Draft;
use super::solve::exponent;

/// The share of each class that runs for less than a minute. From the paper's 15 to 20 % (§3).
pub(super) const UNDER_A_MINUTE: f64 = 0.175;

/// The share of the lt jobs that run no longer than st admits. From the paper's "over 50 %" (§3).
pub(super) const LONG_WITHIN_SHORT: f64 = 0.55;

/// The logarithm of a runtime's place between a minute and its bound is multiplied by the size to the power of
/// minus this: the wider the longer (§3: a positive correlation). Decided here.
const WIDTH_POWER: f64 = 0.25;

const MINUTE: f64 = 60.0;

/// How a job's runtime depends on the exponent of its class.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pace {
    /// Not at all: under a minute, in seconds.
    Short(u64),
    /// A minute times `ratio ^ (place ^ exponent)`: a minute where the place is 0, the bound where it is 1. The
    /// logarithms of both are kept, for many exponents are tried.
    Bent { ln_ratio: f64, ln_place: f64 },
}

impl Pace {
    /// In seconds, at the class's exponent.
    fn seconds(self, exponent: f64) -> f64 {
        match self {
            Pace::Short(seconds) => seconds as f64,
            Pace::Bent { ln_ratio, ln_place } => MINUTE * (ln_ratio * (exponent * ln_place).exp()).exp(),
        }
    }

    pub(super) const fn is_short(self) -> bool {
        matches!(self, Pace::Short(_))
    }
}

/// Draws paces, job by job.
pub(super) struct Paces {
    stream: Stream,
    short: Deal,
    within_short: Deal,
}

impl Paces {
    pub(super) fn new(length: Length, mut stream: Stream) -> Paces {
        // The jobs under a minute are within the limit of st, too.
        let within = match length {
            Length::Long => (LONG_WITHIN_SHORT - UNDER_A_MINUTE) / (1.0 - UNDER_A_MINUTE),
            _ => 0.0,
        };
        let short = Deal::new(UNDER_A_MINUTE, stream.uniform());
        let within_short = Deal::new(within, stream.uniform());
        Paces { stream, short, within_short }
    }

    pub(super) fn next(&mut self, procs: u32, estimate: u64) -> Pace {
        let place = self.stream.uniform();
        if self.short.next() {
            return Pace::Short(under_a_minute(place));
        }
        let within = Length::Short.limit().as_secs_f64();
        let bound = if self.within_short.next() { within.min(estimate as f64) } else { estimate as f64 };
        let width = f64::from(procs).powf(-WIDTH_POWER);
        // A place of 0 has no logarithm.
        Pace::Bent { ln_ratio: (bound / MINUTE).ln(), ln_place: place.max(f64::EPSILON).ln() * width }
    }
}

/// From 1 to 59 seconds, each decade alike.
fn under_a_minute(place: f64) -> u64 {
    whole(MINUTE.powf(place)).clamp(1, 59)
}

/// The runtimes at which the jobs demand so many processor-seconds, in seconds, and the exponent.
pub(super) fn bend(drafts: &[Draft], target: f64) -> (Vec<u64>, f64) {
    let work = |exponent: f64| -> f64 {
        drafts.iter().map(|draft| f64::from(draft.procs) * draft.pace.seconds(exponent)).sum()
    };
    let exponent = exponent(target, work);
    let runtime = |draft: &Draft| whole(draft.pace.seconds(exponent)).clamp(1, draft.estimate);
    (drafts.iter().map(runtime).collect(), exponent)
}

/// Rounded down.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 400 hours")]
fn whole(seconds: f64) -> u64 {
    seconds as u64
}
