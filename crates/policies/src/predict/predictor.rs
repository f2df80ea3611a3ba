//! Predictors: the runtime of a job, as of its submission.

use miserly_core::{Context, Ledger, Request, Span};

use super::history::LastRuntimes;
use super::similar::EndedJobs;
use super::{Lengths, similar};

/// The shortest prediction, unless the estimate is shorter.
const SHORTEST: Span = Span::from_ticks(1_000_000);

/// The source of the first prediction of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Predictor {
    /// The estimate.
    Request,
    /// The mean of the runtimes of the user's last two jobs, in the order of their ends, in whole
    /// seconds and at most the estimate. A user with fewer ended jobs, or an unknown user, has the
    /// estimate.
    ///
    /// Tsafrir, Etsion, Feitelson §3.
    LastTwo,
    /// Three [lengths](super::Lengths), from the newest runtimes of similar jobs of the user: those of
    /// the same size and estimate, else of the same estimate, else all, where there are at least two. An
    /// unknown user has the estimate.
    Similar,
    /// The actual runtime. Only a simulation discloses it ([`Request::known_runtime`]). Otherwise
    /// the estimate.
    Exact,
    /// The estimate, multiplied by this number of thousandths.
    Scale(u64),
}

impl Predictor {
    /// Returns the scale with this factor. More than three decimals are rounded.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the factor is not negative, and a cast saturates"
    )]
    pub fn scale(factor: f64) -> Predictor {
        Predictor::Scale((factor * 1e3).round() as u64)
    }

    /// Returns whether it learns from ended jobs.
    pub(super) fn learns(self) -> bool {
        matches!(self, Predictor::LastTwo | Predictor::Similar)
    }

    /// Returns whether no prediction is longer than the estimate.
    pub(super) fn heeds_estimates(self) -> bool {
        !matches!(self, Predictor::Scale(_) | Predictor::Exact)
    }

    /// Learns the runtime of a job of this user that ended.
    pub(super) fn learn(self, context: &mut Context<'_>, user: u32, job: &Request, runtime: Span) {
        match self {
            Predictor::LastTwo => {
                let mut last: LastRuntimes = context.ledger().user_state(user);
                last.add(runtime);
                context.set_user_state(user, &last);
            }
            Predictor::Similar => {
                let mut ended: EndedJobs = context.ledger().user_state(user);
                ended.add(job, runtime);
                context.set_user_state(user, &ended);
            }
            Predictor::Request | Predictor::Exact | Predictor::Scale(_) => {}
        }
    }

    /// Returns the predicted lengths of a job that was just submitted.
    ///
    /// Each is at least one second, or the estimate if that is shorter. While a job is overdue, jobs with kept
    /// reservations are planned again after each span of the shortest one.
    pub(super) fn predict(self, request: &Request, ledger: &Ledger) -> Lengths {
        self.unbounded(request, ledger).at_least(SHORTEST.min(request.estimate))
    }

    fn unbounded(self, request: &Request, ledger: &Ledger) -> Lengths {
        let length = match self {
            Predictor::Similar => return similar::lengths(request, ledger),
            Predictor::Request => request.estimate,
            Predictor::LastTwo => {
                let mean = request.user.and_then(|user| ledger.user_state::<LastRuntimes>(user).mean());
                mean.map_or(request.estimate, |mean| mean.min(request.estimate))
            }
            Predictor::Exact => request.known_runtime.unwrap_or(request.estimate),
            Predictor::Scale(thousandths) => scaled(request.estimate, thousandths),
        };
        Lengths::one(length)
    }
}

/// Returns a span times a number of thousandths. It saturates.
fn scaled(span: Span, thousandths: u64) -> Span {
    let ticks = i128::from(span.ticks()) * i128::from(thousandths) / 1000;
    Span::from_ticks(i64::try_from(ticks).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_has_three_decimals() {
        let scale = |factor| match Predictor::scale(factor) {
            Predictor::Scale(thousandths) => scaled(Span::from_ticks(2_000_000), thousandths).ticks(),
            _ => 0,
        };
        assert_eq!(scale(2.0), 4_000_000);
        assert_eq!(scale(0.0004), 0);
        assert_eq!(scale(0.5), 1_000_000);
        assert_eq!(scaled(Span::MAX, 2000), Span::MAX);
    }
}
