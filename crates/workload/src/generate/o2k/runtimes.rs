//! The runtimes of the jobs.

use miserly_classes::lsf::Length;

use super::super::random::Stream;
use super::draft::Draft;
use super::share_selector::ShareSelector;
use super::solve::exponent;

/// Share of each class that runs for less than a minute. From the paper's 15 to 20 % (§3).
pub(super) const UNDER_A_MINUTE: f64 = 0.175;

/// Share of the lt jobs that run within the limit of st. From the paper's "over 50 %" (§3).
pub(super) const LONG_WITHIN_SHORT: f64 = 0.55;

/// Exponent of the size by which wider jobs run longer (§3: a positive correlation). Decided here.
///
/// The logarithm of a runtime's place between a minute and its bound is multiplied by the size to
/// minus this power.
const WIDTH_POWER: f64 = 0.25;

const MINUTE: f64 = 60.0;

/// A job's runtime as a function of the exponent of its class.
#[derive(Clone, Copy, Debug)]
pub(super) enum RuntimeCurve {
    /// Constant: under a minute, in seconds.
    Short(u64),
    /// A minute times `ratio ^ (place ^ exponent)`: a minute at place 0, the bound at place 1.
    ///
    /// Both logarithms are stored, because many exponents are tried.
    Bent { ln_ratio: f64, ln_place: f64 },
}

impl RuntimeCurve {
    /// Returns the runtime in seconds at the class's exponent.
    fn seconds(self, exponent: f64) -> f64 {
        match self {
            RuntimeCurve::Short(seconds) => seconds as f64,
            RuntimeCurve::Bent { ln_ratio, ln_place } => {
                MINUTE * (ln_ratio * (exponent * ln_place).exp()).exp()
            }
        }
    }

    pub(super) const fn is_short(self) -> bool {
        matches!(self, RuntimeCurve::Short(_))
    }
}

/// A generator of runtimes, job by job.
pub(super) struct RuntimeCurves {
    stream: Stream,
    short: ShareSelector,
    within_short: ShareSelector,
}

impl RuntimeCurves {
    pub(super) fn new(length: Length, mut stream: Stream) -> RuntimeCurves {
        // Jobs under a minute are also within the limit of st.
        let within = match length {
            Length::Long => (LONG_WITHIN_SHORT - UNDER_A_MINUTE) / (1.0 - UNDER_A_MINUTE),
            _ => 0.0,
        };
        let short = ShareSelector::new(UNDER_A_MINUTE, stream.uniform());
        let within_short = ShareSelector::new(within, stream.uniform());
        RuntimeCurves { stream, short, within_short }
    }

    pub(super) fn next(&mut self, procs: u32, estimate: u64) -> RuntimeCurve {
        let place = self.stream.uniform();
        if self.short.next() {
            return RuntimeCurve::Short(under_a_minute(place));
        }
        let within = Length::Short.limit().as_secs_f64();
        let bound = if self.within_short.next() { within.min(estimate as f64) } else { estimate as f64 };
        let width = f64::from(procs).powf(-WIDTH_POWER);
        // A place of 0 has no logarithm.
        RuntimeCurve::Bent { ln_ratio: (bound / MINUTE).ln(), ln_place: place.max(f64::EPSILON).ln() * width }
    }
}

/// Returns 1 to 59 seconds, with equal weight per decade.
fn under_a_minute(place: f64) -> u64 {
    whole(MINUTE.powf(place)).clamp(1, 59)
}

/// Returns the runtimes in seconds that meet the processor-seconds, and the exponent.
pub(super) fn bend(drafts: &[Draft], target: f64) -> (Vec<u64>, f64) {
    let work = |exponent: f64| -> f64 {
        drafts.iter().map(|draft| f64::from(draft.procs) * draft.pace.seconds(exponent)).sum()
    };
    let exponent = exponent(target, work);
    let runtime = |draft: &Draft| whole(draft.pace.seconds(exponent)).clamp(1, draft.estimate);
    (drafts.iter().map(runtime).collect(), exponent)
}

/// Rounds down.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 400 hours")]
fn whole(seconds: f64) -> u64 {
    seconds as u64
}
