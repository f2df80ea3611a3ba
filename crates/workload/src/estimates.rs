//! Models of the runtime estimates given to the scheduler.

use std::fmt;
use std::str::FromStr;

use miserly_core::{Span, draw};
use miserly_units::parse_seconds;

pub(crate) mod tsafrir;

/// A factor with six exact decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor(u64);

impl Factor {
    /// The factor 1.
    pub const ONE: Factor = Factor(Factor::UNIT);
    const UNIT: u64 = 1_000_000;

    /// Returns `span` times this factor, rounded down to a tick, saturating.
    pub fn multiply(self, span: Span) -> Span {
        let product = i128::from(span.ticks()) * i128::from(self.0) / i128::from(Factor::UNIT);
        Span::from_ticks(i64::try_from(product).unwrap_or(i64::MAX))
    }

    /// Returns `span` divided by this factor, rounded down to a tick, saturating.
    pub fn divide(self, span: Span) -> Span {
        let quotient = i128::from(span.ticks()) * i128::from(Factor::UNIT) / i128::from(self.0);
        Span::from_ticks(i64::try_from(quotient).unwrap_or(i64::MAX))
    }

    /// Returns the product of two factors, rounded down to a millionth, but at least a millionth.
    #[must_use]
    pub fn times(self, other: Factor) -> Factor {
        let product = u128::from(self.0) * u128::from(other.0) / u128::from(Factor::UNIT);
        Factor(u64::try_from(product).unwrap_or(u64::MAX).max(1))
    }

    /// Returns the factor as a number.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / Factor::UNIT as f64
    }
}

impl FromStr for Factor {
    type Err = EstimatesError;

    fn from_str(text: &str) -> Result<Factor, EstimatesError> {
        let bad = || EstimatesError::BadFactor(text.to_owned());
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty()
            || whole.len() > 6
            || decimals.len() > 6
            || !all_digits(whole)
            || !all_digits(decimals)
        {
            return Err(bad());
        }
        let parts = format!("{whole}{decimals:0<6}");
        match parts.parse() {
            Ok(0) | Err(_) => Err(bad()),
            Ok(millionths) => Ok(Factor(millionths)),
        }
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, decimals) = (self.0 / Factor::UNIT, self.0 % Factor::UNIT);
        if decimals == 0 {
            return write!(f, "{whole}");
        }
        write!(f, "{whole}.{}", format!("{decimals:06}").trim_end_matches('0'))
    }
}

/// A model of the estimates. It belongs to a run, never to a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimates {
    /// The log's estimate times a factor.
    Trace(Factor),
    /// The actual runtime times a factor: the deterministic model of Zotkin et al. §4.
    Exact(Factor),
    /// Uniform between the runtime T and 2 R T: the randomised model of Zotkin et al. §4; R = 1 is
    /// exact.
    Uniform(Factor),
    /// Uniform between T and (2R - 1) T, with the mean R T.
    UniformMean(Factor),
    /// The modal estimates of users: the model of Tsafrir, Etsion and Feitelson, JSSPP 2005.
    ///
    /// It deals out the estimates of all jobs of a log, which it reads once more and holds.
    Tsafrir {
        /// Greatest estimate; `None` is that of the log.
        most: Option<Span>,
        /// Percentage of the jobs that have it; `None` is that of the log where `most` is, too.
        percent: Option<Factor>,
    },
}

impl Default for Estimates {
    fn default() -> Estimates {
        Estimates::Trace(Factor::ONE)
    }
}

impl Estimates {
    /// Returns whether the model draws random numbers.
    pub fn draws(self) -> bool {
        match self {
            Estimates::Trace(_) | Estimates::Exact(_) => false,
            Estimates::Uniform(factor) | Estimates::UniformMean(factor) => factor != Factor::ONE,
            Estimates::Tsafrir { .. } => true,
        }
    }

    /// Returns the name of the model without its factor.
    pub const fn model(self) -> &'static str {
        match self {
            Estimates::Trace(_) => "trace",
            Estimates::Exact(_) => "exact",
            Estimates::Uniform(_) => "uniform",
            Estimates::UniformMean(_) => "uniform:mean",
            Estimates::Tsafrir { .. } => "tsafrir",
        }
    }

    /// Returns the factor of the model: R or F, or 1 for a model without one.
    pub const fn factor(self) -> Factor {
        match self {
            Estimates::Trace(factor)
            | Estimates::Exact(factor)
            | Estimates::Uniform(factor)
            | Estimates::UniformMean(factor) => factor,
            Estimates::Tsafrir { .. } => Factor::ONE,
        }
    }

    /// Returns the estimate of job `number` with the log's `estimate` and the actual `runtime`.
    ///
    /// Under [`Tsafrir`](Estimates::Tsafrir) it is the log's: no job alone has one of that model.
    pub fn estimate(self, estimate: Span, runtime: Span, seed: u64, number: i64) -> Span {
        match self {
            Estimates::Trace(factor) => factor.multiply(estimate),
            Estimates::Tsafrir { .. } => estimate,
            Estimates::Exact(factor) => factor.multiply(runtime),
            Estimates::Uniform(Factor::ONE) => runtime,
            Estimates::Uniform(Factor(r)) => uniform(runtime, Factor(2 * r), seed, number),
            Estimates::UniformMean(Factor(r)) => uniform(runtime, Factor(2 * r - Factor::UNIT), seed, number),
        }
    }
}

/// Returns a draw between `runtime` and `upper` times it.
fn uniform(runtime: Span, upper: Factor, seed: u64, number: i64) -> Span {
    let width = u128::from((upper.multiply(runtime) - runtime).ticks().unsigned_abs());
    let drawn = (width * u128::from(draw(seed, number, 0))) >> 64;
    // Below `width`, which came from an i64.
    runtime + Span::from_ticks(i64::try_from(drawn).unwrap_or(i64::MAX))
}

/// An invalid model of the estimates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EstimatesError {
    /// The model does not exist.
    #[error(
        "no estimates {0:?}; they are trace, trace*F, exact, exact*R, uniform:R (drawn from T to 2RT), \
         uniform:R:mean (from T to (2R-1)T) or tsafrir"
    )]
    NoSuchModel(String),
    /// The model has no factor.
    #[error("uniform needs a factor R: write uniform:R, such as uniform:5")]
    NoFactor,
    /// The factor is not a positive number with at most six digits and six decimals.
    #[error("factor {0:?}: must be a number above 0, with at most six digits before and after the point")]
    BadFactor(String),
    /// R of a randomised model is below 1.
    #[error("uniform:{0}: R must be 1 or more")]
    BelowOne(Factor),
    /// The parameters of Tsafrir's model are invalid.
    #[error(
        "estimates {0:?}: write tsafrir, tsafrir:MAX or tsafrir:MAX:PERCENT, the greatest estimate, 1h or more, \
         and the percentage of the jobs that have it, at most 100; such as tsafrir:18h:20"
    )]
    Tsafrir(String),
}

impl FromStr for Estimates {
    type Err = EstimatesError;

    fn from_str(text: &str) -> Result<Estimates, EstimatesError> {
        if let Some(rest) = text.strip_prefix("uniform:") {
            let (factor, mean) = rest.strip_suffix(":mean").map_or((rest, false), |factor| (factor, true));
            let factor = factor.parse()?;
            return match (factor, mean) {
                (Factor(r), _) if r < Factor::UNIT => Err(EstimatesError::BelowOne(factor)),
                (_, true) => Ok(Estimates::UniformMean(factor)),
                (_, false) => Ok(Estimates::Uniform(factor)),
            };
        }
        if let Some(rest) = text.strip_prefix("tsafrir") {
            return tsafrir_from(rest).ok_or_else(|| EstimatesError::Tsafrir(text.to_owned()));
        }
        let (model, factor) = match text.split_once('*') {
            Some((model, factor)) => (model, Some(factor)),
            None => (text, None),
        };
        let build = match model.trim() {
            "trace" => Estimates::Trace,
            "exact" => Estimates::Exact,
            "uniform" => return Err(EstimatesError::NoFactor),
            _ => return Err(EstimatesError::NoSuchModel(text.to_owned())),
        };
        Ok(build(factor.map_or(Ok(Factor::ONE), |factor| factor.trim().parse())?))
    }
}

/// Parses what follows the name of Tsafrir's model.
fn tsafrir_from(rest: &str) -> Option<Estimates> {
    let none = Estimates::Tsafrir { most: None, percent: None };
    let Some(rest) = rest.strip_prefix(':') else { return rest.is_empty().then_some(none) };
    let (most, percent) = rest.split_once(':').map_or((rest, None), |(most, percent)| (most, Some(percent)));
    let least = Span::from_secs(i64::try_from(tsafrir::LEAST).ok()?)?;
    let most = Span::from_secs(parse_seconds(most, least).ok()?).filter(|&most| most >= least)?;
    let percent = percent.map(str::parse::<Factor>).transpose().ok()?;
    let possible = percent.is_none_or(|Factor(millionths)| millionths <= 100 * Factor::UNIT);
    possible.then_some(Estimates::Tsafrir { most: Some(most), percent })
}

impl fmt::Display for Estimates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Estimates::Trace(Factor::ONE) => f.write_str("trace"),
            Estimates::Trace(factor) => write!(f, "trace*{factor}"),
            Estimates::Exact(Factor::ONE) => f.write_str("exact"),
            Estimates::Exact(factor) => write!(f, "exact*{factor}"),
            Estimates::Uniform(factor) => write!(f, "uniform:{factor}"),
            Estimates::UniformMean(factor) => write!(f, "uniform:{factor}:mean"),
            Estimates::Tsafrir { most, percent } => {
                f.write_str("tsafrir")?;
                most.map_or(Ok(()), |most| write!(f, ":{}", most.secs()))?;
                percent.map_or(Ok(()), |percent| write!(f, ":{percent}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<&str>) {
        assert_eq!(text.parse::<Estimates>().ok().map(|model| model.to_string()).as_deref(), expect);
    }

    #[test]
    fn written_forms() {
        check("trace", Some("trace"));
        check("trace*1.50", Some("trace*1.5"));
        check("exact*5", Some("exact*5"));
        check("uniform:5", Some("uniform:5"));
        check("uniform:2.5:mean", Some("uniform:2.5:mean"));
        check("tsafrir", Some("tsafrir"));
        check("tsafrir:18h", Some("tsafrir:64800"));
        check("tsafrir:3600:12.50", Some("tsafrir:3600:12.5"));
        for bad in [
            "",
            "traces",
            "exact*",
            "exact*0",
            "exact*-1",
            "uniform",
            "uniform:0.5",
            "exact*1e3",
            "uniform:x",
            "tsafrir:",
            "tsafrir5",
            "tsafrir:59min",
            "tsafrir:1h:101",
            "tsafrir:1h:0",
        ] {
            check(bad, None);
        }
    }

    #[test]
    fn each_model() {
        let estimate = |model: &str, number| {
            let model: Estimates = model.parse().unwrap();
            model.estimate(Span::from_ticks(700), Span::from_ticks(100), 1, number).ticks()
        };
        assert_eq!(estimate("trace*0.5", 1), 350);
        assert_eq!(estimate("exact*15", 1), 1500);
        assert_eq!(estimate("uniform:1", 1), 100);
        assert_eq!(estimate("uniform:1:mean", 1), 100);
        let draws: Vec<i64> = (0..2000).map(|number| estimate("uniform:5", number)).collect();
        assert!(draws.iter().all(|&estimate| (100..1000).contains(&estimate)));
        let mean = draws.iter().sum::<i64>() / 2000;
        assert!((530..570).contains(&mean), "{mean}");
    }
}
