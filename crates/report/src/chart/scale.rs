//! Mapping from values to places: the bounds of an axis and positions between them.

use super::data::{Axis, AxisScale};
use super::ticks;

/// Clamp for values, so that differences stay finite.
const HUGE: f64 = 1e300;

/// The range of the values that an axis can show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Extent {
    low: f64,
    high: f64,
}

impl Extent {
    /// Returns the extent of `values`, or `None` if no value fits on the axis.
    pub(super) fn from_values(axis: &Axis, values: impl Iterator<Item = f64>) -> Option<Extent> {
        let shown = values.filter(|&value| axis.scale.has(value)).map(|value| value.clamp(-HUGE, HUGE));
        shown.fold(None, |extent: Option<Extent>, value| {
            let extent = extent.unwrap_or(Extent { low: value, high: value });
            Some(Extent { low: extent.low.min(value), high: extent.high.max(value) })
        })
    }
}

impl AxisScale {
    /// Returns whether a value fits on an axis of this scale.
    pub(super) fn has(&self, value: f64) -> bool {
        value.is_finite() && (value > 1e-300 || !self.is_log())
    }

    /// Returns the name nearest to `value` on a categorical axis.
    pub(super) fn name(&self, value: f64) -> Option<&str> {
        let AxisScale::Category(names) = self else { return None };
        let near = |&(n, _): &(usize, &String)| (n as f64 - value).abs() <= 0.5;
        names.iter().enumerate().find(near).map(|(_, name)| name.as_str())
    }

    pub(super) fn is_log(&self) -> bool {
        matches!(self, AxisScale::Log | AxisScale::LogSeconds)
    }
}

impl Axis {
    /// Returns the bounds of the axis: its own, else round numbers around the data.
    pub(super) fn bounds(&self, extent: Option<Extent>) -> (f64, f64) {
        if let AxisScale::Category(names) = &self.scale {
            return (-0.5, names.len().max(1) as f64 - 0.5);
        }
        let data = extent.unwrap_or(Extent { low: 1.0, high: 1.0 });
        let pinned =
            |end: Option<f64>| end.filter(|&end| self.scale.has(end)).map(|end| end.clamp(-HUGE, HUGE));
        let (from, to) = (pinned(self.from), pinned(self.to));
        let (low, high) = apart(from.unwrap_or(data.low), to.unwrap_or(data.high), self.scale.is_log());
        let (below, above) = ticks::round_out(&self.scale, low, high);
        (from.filter(|&from| from <= low).unwrap_or(below), to.filter(|&to| to >= high).unwrap_or(above))
    }
}

/// Returns the bounds in order and apart from each other.
fn apart(low: f64, high: f64, log: bool) -> (f64, f64) {
    let (low, high) = (low.min(high), low.max(high));
    match (log, low == 0.0) {
        _ if high - low > high.abs().max(low.abs()) * 1e-9 => (low, high),
        (true, _) => (low / 2.0, high * 2.0),
        (false, true) => (0.0, 1.0),
        (false, false) => (low - low.abs() / 2.0, high + high.abs() / 2.0),
    }
}

/// A map from the values of an axis to places on the drawing.
#[derive(Clone, Copy, Debug)]
pub(super) struct AxisMap {
    low: f64,
    high: f64,
    log: bool,
    /// Places of `low` and `high`.
    places: (f64, f64),
}

impl AxisMap {
    pub(super) fn new(scale: &AxisScale, (low, high): (f64, f64), places: (f64, f64)) -> AxisMap {
        AxisMap { low, high, log: scale.is_log(), places }
    }

    /// Returns the place of `value`, clamped to the ends, or `None` if it does not fit on the axis.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let known = value.is_finite() && (!self.log || value > 0.0);
        known.then(|| {
            let along = |value: f64| if self.log { value.ln() } else { value };
            let (low, high) = (along(self.low), along(self.high));
            let share = ((along(value) - low) / (high - low)).clamp(0.0, 1.0);
            self.places.0 + share * (self.places.1 - self.places.0)
        })
    }

    /// Returns whether `value` lies between the ends.
    pub(super) fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Returns the place of the lower end.
    pub(super) fn start(&self) -> f64 {
        self.places.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(axis: &Axis, values: &[f64], expect: (f64, f64)) {
        let (low, high) = axis.bounds(Extent::from_values(axis, values.iter().copied()));
        assert!((low - expect.0).abs() < 1e-9 && (high - expect.1).abs() < 1e-9, "{low} to {high}");
    }

    #[test]
    fn bounds_are_round_and_around_the_data() {
        check(&Axis::linear(""), &[1.3, 18.2], (0.0, 20.0));
        check(&Axis::linear(""), &[-0.7, 0.4, f64::NAN, f64::INFINITY], (-0.8, 0.4));
        check(&Axis::linear("").from_zero(), &[80.0, 97.0], (0.0, 100.0));
        check(&Axis::linear("").between(0.0, 1.0), &[0.3, 0.4], (0.0, 1.0));
        check(&Axis::linear(""), &[5.0], (2.0, 8.0));
        check(&Axis::linear(""), &[0.0], (0.0, 1.0));
        check(&Axis::linear(""), &[], (0.4, 1.6));
        check(&Axis::log(""), &[3.0, 700.0, 0.0, -4.0], (2.0, 1000.0));
        check(&Axis::log(""), &[10.0], (5.0, 20.0));
        check(&Axis::category("", vec!["a".into(), "b".into()]), &[7.0], (-0.5, 1.5));
    }

    #[test]
    fn values_beyond_the_ends_are_at_the_end() {
        let map = AxisMap::new(&AxisScale::Log, (1.0, 100.0), (0.0, 200.0));
        assert_eq!([1.0, 10.0, 1e9, 0.1].map(|value| map.place(value)), [0.0, 100.0, 200.0, 0.0].map(Some));
        assert_eq!([0.0, -1.0, f64::NAN].map(|value| map.place(value)), [None; 3]);
    }
}
