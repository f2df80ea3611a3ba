//! Positions and labels of axis ticks.

use super::data::AxisScale;
use super::values::{number, superscript, time};

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Value at the mark.
    pub(super) at: f64,
    /// Label; `None` for minor ticks.
    pub(super) label: Option<String>,
}

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;
const DAY: f64 = 86_400.0;

/// Common time steps in seconds, from a second to two days. Longer ones are 1, 2, 5 times a power of ten in days.
const STEPS: [f64; 19] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 10_800.0,
    21_600.0, 43_200.0, 86_400.0, 172_800.0,
];

/// Durations labelled on a logarithmic axis. Beyond them, decades of days and of seconds follow.
const LENGTHS: [f64; 7] = [1.0, 10.0, MINUTE, 10.0 * MINUTE, HOUR, 6.0 * HOUR, DAY];

/// Returns the ticks from `low` to `high`, ascending, with about `count` labels.
pub(super) fn ticks(scale: &AxisScale, (low, high): (f64, f64), count: usize) -> Vec<Tick> {
    match scale {
        AxisScale::Linear => regular(low, high, decimal_step(high - low, count), number),
        AxisScale::Seconds => regular(low, high, time_step(high - low, count), |at, _| time(at)),
        AxisScale::Dates(clock) => clock.ticks((low, high), count),
        AxisScale::Log => decades(low, high, count),
        AxisScale::LogSeconds => lengths(low, high, count),
        AxisScale::Category(names) => names
            .iter()
            .enumerate()
            .map(|(n, name)| Tick { at: n as f64, label: Some(name.clone()) })
            .collect(),
    }
}

/// Returns round numbers around `low` and `high` as axis bounds.
pub(super) fn round_out(scale: &AxisScale, low: f64, high: f64) -> (f64, f64) {
    let step = match scale {
        AxisScale::Log | AxisScale::LogSeconds => return (round_below(low), round_above(high)),
        AxisScale::Seconds | AxisScale::Dates(_) => time_step(high - low, 6),
        AxisScale::Linear | AxisScale::Category(_) => decimal_step(high - low, 6),
    };
    ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step)
}

/// Returns the least of 1, 2, 5 times a power of ten that divides `span` into at most `count`
/// parts.
pub(super) fn decimal_step(span: f64, count: usize) -> f64 {
    round_above(span / count.max(1) as f64)
}

fn round_above(value: f64) -> f64 {
    let decade = decade_below(value);
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * decade >= value * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * decade
}

fn round_below(value: f64) -> f64 {
    let decade = decade_below(value);
    let factor = [5.0, 2.0].into_iter().find(|factor| factor * decade <= value * (1.0 + 1e-9));
    factor.unwrap_or(1.0) * decade
}

fn decade_below(value: f64) -> f64 {
    10_f64.powf((value.max(1e-300).log10() + 1e-12).floor())
}

pub(super) fn time_step(span: f64, count: usize) -> f64 {
    let least = span / count.max(1) as f64;
    match STEPS.into_iter().find(|&step| step >= least) {
        Some(_) if least <= 0.5 => decimal_step(span, count),
        Some(step) => step,
        None => DAY * round_above(least / DAY),
    }
}

/// Returns ticks at the multiples of `step`.
fn regular(low: f64, high: f64, step: f64, label: impl Fn(f64, f64) -> String) -> Vec<Tick> {
    let first = (low / step - 1e-9).ceil();
    // Multiplies instead of adding, because a step may be too small to change a large value.
    let ats = (0..100).map(|n| (first + f64::from(n)) * step).take_while(|&at| at <= high + step * 1e-9);
    ats.map(|at| Tick { at, label: Some(label(at, step)) }).collect()
}

/// Returns ticks at the powers of ten, with minor ticks between them if they fit.
fn decades(low: f64, high: f64, count: usize) -> Vec<Tick> {
    let exponents = exponents(low, high);
    let span = (high / low).log10();
    // Labels every power, or every second, third, ...
    let every = exponents.clone().count().div_ceil(count.max(1)).max(1);
    let within = |at: f64| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(&at);
    let mut ticks = Vec::new();
    for exponent in exponents {
        for factor in 1..=9 {
            let at = f64::from(factor) * 10_f64.powi(exponent);
            let named = match factor {
                1 => exponent.rem_euclid(i32::try_from(every).unwrap_or(1)) == 0,
                2 | 5 => span <= 2.0,
                _ => span <= 0.5,
            };
            if within(at) && (factor == 1 || span <= 12.0) {
                ticks.push(Tick { at, label: named.then(|| decade(factor, exponent)) });
            }
        }
    }
    ticks
}

/// Returns the exponents of a range, which lie between -300 and 300.
#[allow(clippy::cast_possible_truncation)]
fn exponents(low: f64, high: f64) -> std::ops::RangeInclusive<i32> {
    (low.log10() + 1e-12).floor() as i32..=(high.log10() + 1e-12).floor() as i32
}

fn decade(factor: i32, exponent: i32) -> String {
    match exponent {
        -4..=5 => {
            let at = f64::from(factor) * 10_f64.powi(exponent);
            number(at, at)
        }
        _ if factor == 1 => format!("10{}", superscript(exponent)),
        _ => format!("{factor}·10{}", superscript(exponent)),
    }
}

/// Returns ticks at common durations, with their multiples as minor ticks.
fn lengths(low: f64, high: f64, count: usize) -> Vec<Tick> {
    let long = (1..=8).map(|exponent| DAY * 10_f64.powi(exponent));
    let short = (1..=9).rev().map(|exponent| 10_f64.powi(-exponent));
    let majors: Vec<f64> = short.chain(LENGTHS).chain(long).collect();
    let within = |at: f64| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(&at);
    let shown = majors.iter().filter(|&&at| within(at)).count();
    if shown < 2 {
        return regular(low, high, time_step(high - low, count), |at, _| time(at))
            .into_iter()
            .filter(|tick| tick.at > 0.0)
            .collect();
    }
    let every = shown.div_ceil(count.max(1));
    let mut ticks = Vec::new();
    for (n, pair) in majors.windows(2).enumerate() {
        let label = (n % every == 0).then(|| time(pair[0]));
        ticks.push(Tick { at: pair[0], label });
        let multiples =
            (2..10).map(|factor| pair[0] * f64::from(factor)).filter(|&at| at < pair[1] * (1.0 - 1e-9));
        ticks.extend(multiples.map(|at| Tick { at, label: None }));
    }
    ticks.retain(|tick| within(tick.at));
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The labels, with a dot for each minor tick.
    #[track_caller]
    fn check(scale: &AxisScale, low: f64, high: f64, expect: &str) {
        let shown: Vec<String> = ticks(scale, (low, high), 6)
            .into_iter()
            .map(|tick| tick.label.unwrap_or_else(|| ".".into()))
            .collect();
        assert_eq!(shown.join("|").replace('\u{2009}', "_"), expect);
    }

    #[test]
    fn linear() {
        check(&AxisScale::Linear, 0.0, 1.0, "0.0|0.2|0.4|0.6|0.8|1.0");
        check(&AxisScale::Linear, 0.0, 20.0, "0|5|10|15|20");
        check(&AxisScale::Linear, -0.8, 0.4, "−0.8|−0.6|−0.4|−0.2|0.0|0.2|0.4");
        check(&AxisScale::Linear, 0.0, 30_000.0, "0|5000|10_000|15_000|20_000|25_000|30_000");
        check(&AxisScale::Linear, 0.0, 3e15, "0|5·10¹⁴|1·10¹⁵|1.5·10¹⁵|2·10¹⁵|2.5·10¹⁵|3·10¹⁵");
    }

    #[test]
    fn logarithmic() {
        check(
            &AxisScale::Log,
            1.0,
            10_000.0,
            "1|.|.|.|.|.|.|.|.|10|.|.|.|.|.|.|.|.|100|.|.|.|.|.|.|.|.|1000|.|.|.|.|.|.|.|.|10_000",
        );
        check(&AxisScale::Log, 1.0, 10.0, "1|2|.|.|5|.|.|.|.|10");
        check(&AxisScale::Log, 2.0, 5.0, "2|3|4|5");
        check(
            &AxisScale::Log,
            1e-12,
            1e12,
            ".|.|10⁻¹⁰|.|.|.|.|10⁻⁵|.|.|.|.|1|.|.|.|.|100_000|.|.|.|.|10¹⁰|.|.",
        );
    }

    #[test]
    fn seconds() {
        check(&AxisScale::Seconds, 0.0, 3_600.0, "0s|10m|20m|30m|40m|50m|1h");
        check(&AxisScale::Seconds, 0.0, 100_000.0, "0s|6h|12h|18h|1d");
        check(&AxisScale::Seconds, 0.0, 28.0e6, "0s|100d|200d|300d");
        check(
            &AxisScale::Seconds,
            10_368_000.0,
            10_371_600.0,
            "120d|120d10m|120d20m|120d30m|120d40m|120d50m|120d1h",
        );
        check(&AxisScale::Seconds, 0.0, 2.0, "0s|0.5s|1s|1.5s|2s");
    }

    #[test]
    fn lengths_of_time() {
        check(&AxisScale::LogSeconds, 1.0, 60.0, "1s|.|.|.|.|.|.|.|.|10s|.|.|.|.|1m");
        check(&AxisScale::LogSeconds, 60.0, 86_400.0, "1m|.|.|.|.|.|.|.|.|10m|.|.|.|.|1h|.|.|.|.|6h|.|.|1d");
        check(&AxisScale::LogSeconds, 2.0, 5.0, "2s|2.5s|3s|3.5s|4s|4.5s|5s");
    }
}
