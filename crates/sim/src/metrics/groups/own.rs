//! Groups by ranges that the user chooses: of processors, of runtimes, of time limits, or of two of these.

use std::fmt;

use miserly_core::{Procs, Span};
use miserly_units::{duration, parse_duration};

use super::grouping::GroupingError;
use crate::finished::Finished;

/// The most bounds of one property.
pub const MOST_BOUNDS: usize = 8;

/// Ranges of one property, or of two.
///
/// Their text is `procs:1,8,64`, `runtime:1h,12h`, `time-limit:4h,1d`, or two of these with a `+`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnRanges {
    first: Bounds,
    second: Option<Bounds>,
}

/// The inclusive upper bounds of the ranges of a property, ascending. A last range is without bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Bounds {
    property: Property,
    count: usize,
    values: [u64; MOST_BOUNDS],
}

/// A property of a job that has ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Property {
    /// The requested processors.
    Procs,
    /// The actual runtime, in ticks.
    Runtime,
    /// The time limit that the policy got, in ticks.
    TimeLimit,
}

/// A range of each property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnGroup {
    first: Range,
    second: Option<Range>,
}

/// The values above `over`, up to and including `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    property: Property,
    over: u64,
    to: Option<u64>,
}

impl OwnRanges {
    /// Parses the text of ranges.
    pub(super) fn parse(text: &str) -> Result<OwnRanges, GroupingError> {
        let mut parts = text.split('+').map(Bounds::parse);
        let first = parts.next().unwrap_or_else(|| Bounds::parse(text))?;
        let second = parts.next().transpose()?;
        let twice = second.is_some_and(|second| second.property == first.property);
        if twice || parts.next().is_some() {
            let problem = "at most two properties, with one list of bounds each";
            return Err(GroupingError::Ranges(text.to_owned(), problem.to_owned()));
        }
        Ok(OwnRanges { first, second })
    }

    /// Returns the ranges of these bounds, which ascend: runtimes in ticks, then processors. Each list has 1 to [`MOST_BOUNDS`].
    pub(super) fn of_runtimes_and_procs(runtimes: &[u64], procs: &[u64]) -> OwnRanges {
        let second = Some(Bounds::new(Property::Procs, procs));
        OwnRanges { first: Bounds::new(Property::Runtime, runtimes), second }
    }

    /// Returns the ranges of these bounds of time limits, in ticks, which ascend: 1 to [`MOST_BOUNDS`].
    pub(super) fn of_time_limits(limits: &[u64]) -> OwnRanges {
        OwnRanges { first: Bounds::new(Property::TimeLimit, limits), second: None }
    }

    /// Returns the group of a job.
    pub(super) fn group(self, job: &Finished) -> OwnGroup {
        OwnGroup { first: self.first.range_of(job), second: self.second.map(|bounds| bounds.range_of(job)) }
    }

    /// Returns every group: by the first property, then by the second.
    pub(super) fn all(self) -> impl Iterator<Item = OwnGroup> {
        let seconds: Vec<Option<Range>> = match self.second {
            Some(bounds) => bounds.ranges().map(Some).collect(),
            None => vec![None],
        };
        self.first
            .ranges()
            .flat_map(move |first| seconds.clone().into_iter().map(move |second| OwnGroup { first, second }))
    }
}

impl Bounds {
    fn parse(text: &str) -> Result<Bounds, GroupingError> {
        let problem = |problem: String| GroupingError::Ranges(text.to_owned(), problem);
        let named = text.split_once(':').and_then(|(name, list)| Some((Property::named(name)?, list)));
        let Some((property, list)) = named else {
            let forms = "own ranges are procs:BOUND,..., runtime:BOUND,... or time-limit:BOUND,...";
            return Err(problem(forms.into()));
        };
        let values: Vec<u64> =
            list.split(',').map(|bound| property.bound(bound)).collect::<Result<_, _>>().map_err(problem)?;
        if values.len() > MOST_BOUNDS {
            return Err(problem(format!("{} bounds; at most {MOST_BOUNDS}", values.len())));
        }
        if !values.is_sorted_by(|one, next| one < next) {
            return Err(problem("the bounds must ascend".into()));
        }
        Ok(Bounds::new(property, &values))
    }

    fn new(property: Property, list: &[u64]) -> Bounds {
        let mut values = [0; MOST_BOUNDS];
        values[..list.len()].copy_from_slice(list);
        Bounds { property, count: list.len(), values }
    }

    fn list(&self) -> &[u64] {
        &self.values[..self.count]
    }

    fn ranges(self) -> impl Iterator<Item = Range> {
        (0..=self.count).map(move |at| self.range(at))
    }

    fn range(&self, at: usize) -> Range {
        let over = at.checked_sub(1).map_or(0, |before| self.list()[before]);
        Range { property: self.property, over, to: self.list().get(at).copied() }
    }

    fn range_of(&self, job: &Finished) -> Range {
        let value = match self.property {
            Property::Procs => job.request.procs().get(),
            Property::Runtime => job.runtime.ticks().unsigned_abs(),
            Property::TimeLimit => job.request.estimate.ticks().unsigned_abs(),
        };
        self.range(self.list().partition_point(|bound| *bound < value))
    }
}

impl Property {
    const fn name(self) -> &'static str {
        match self {
            Property::Procs => "procs",
            Property::Runtime => "runtime",
            Property::TimeLimit => "time-limit",
        }
    }

    fn named(name: &str) -> Option<Property> {
        [Property::Procs, Property::Runtime, Property::TimeLimit].into_iter().find(|one| one.name() == name)
    }

    /// Returns a bound from its text.
    fn bound(self, text: &str) -> Result<u64, String> {
        let positive = |value: u64| (value > 0).then_some(value);
        match self {
            Property::Procs => {
                let procs = text.parse::<u32>().ok().and_then(|procs| positive(procs.into()));
                procs.ok_or_else(|| format!("{text:?} is no number of processors"))
            }
            Property::Runtime | Property::TimeLimit => {
                let span = parse_duration(text).map_err(|problem| problem.to_string())?;
                positive(span.ticks().unsigned_abs()).ok_or_else(|| "a bound must be above 0".to_owned())
            }
        }
    }

    /// Returns the text of a value.
    fn text(self, value: u64) -> String {
        match self {
            Property::Procs => Procs::new(value).to_string(),
            Property::Runtime | Property::TimeLimit => {
                duration(Span::from_ticks(i64::try_from(value).unwrap_or(i64::MAX)))
            }
        }
    }
}

impl fmt::Display for OwnRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        self.second.map_or(Ok(()), |second| write!(f, "+{second}"))
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bounds: Vec<String> = self.list().iter().map(|bound| self.property.text(*bound)).collect();
        write!(f, "{}:{}", self.property.name(), bounds.join(","))
    }
}

impl fmt::Display for OwnGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        self.second.map_or(Ok(()), |second| write!(f, " {second}"))
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value| self.property.text(value);
        match (self.property, self.to) {
            (Property::Procs, None) => write!(f, ">{}p", self.over),
            (Property::Procs, Some(to)) if to == self.over + 1 => write!(f, "{to}p"),
            (Property::Procs, Some(to)) => write!(f, "{}-{to}p", self.over + 1),
            (_, None) => write!(f, ">{}", text(self.over)),
            (_, Some(to)) if self.over == 0 => write!(f, "0-{}", text(to)),
            (_, Some(to)) => write!(f, "{}-{}", text(self.over), text(to)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, written: &str, groups: &[&str]) {
        let ranges = OwnRanges::parse(text).unwrap();
        assert_eq!(ranges.to_string(), written);
        assert_eq!(OwnRanges::parse(written), Ok(ranges), "its written form is the same");
        let all: Vec<OwnGroup> = ranges.all().collect();
        assert!(all.is_sorted(), "{all:?}");
        assert_eq!(all.iter().map(ToString::to_string).collect::<Vec<_>>(), groups);
    }

    #[test]
    fn groups_and_their_names() {
        check("procs:1,8,64", "procs:1,8,64", &["1p", "2-8p", "9-64p", ">64p"]);
        check("procs:4", "procs:4", &["1-4p", ">4p"]);
        check("runtime:3600,12h", "runtime:1h,12h", &["0-1h", "1h-12h", ">12h"]);
        let both = ["1p 0-1h", "1p >1h", ">1p 0-1h", ">1p >1h"];
        check("procs:1+runtime:60min", "procs:1+runtime:1h", &both);
        check("time-limit:4h,24h", "time-limit:4h,1d", &["0-4h", "4h-1d", ">1d"]);
        check(
            "procs:1+time-limit:1h",
            "procs:1+time-limit:1h",
            &["1p 0-1h", "1p >1h", ">1p 0-1h", ">1p >1h"],
        );
        check("runtime:1h+procs:1", "runtime:1h+procs:1", &["0-1h 1p", "0-1h >1p", ">1h 1p", ">1h >1p"]);
    }

    #[test]
    fn upper_bounds_belong_to_their_ranges() {
        let bounds = Bounds::parse("procs:1,8,64").unwrap();
        let place = |value: u64| bounds.list().partition_point(|bound| *bound < value);
        assert_eq!([1, 2, 8, 9, 64, 65].map(place), [0, 1, 1, 2, 2, 3]);
    }

    #[test]
    fn ranges_that_there_are_not() {
        for (text, problem) in [
            ("size:1", "own ranges are procs:BOUND,..., runtime:BOUND,... or time-limit:BOUND,..."),
            ("procs:", "\"\" is no number of processors"),
            ("procs:1,x", "\"x\" is no number of processors"),
            ("procs:0", "\"0\" is no number of processors"),
            ("procs:8,8", "the bounds must ascend"),
            ("procs:8,1", "the bounds must ascend"),
            ("runtime:0", "a bound must be above 0"),
            ("runtime:1x", "no unit of time"),
            ("procs:1+procs:2", "one list of bounds each"),
            ("procs:1+runtime:1h+procs:2", "one list of bounds each"),
            ("procs:1,2,3,4,5,6,7,8,9", "9 bounds; at most 8"),
        ] {
            let error = OwnRanges::parse(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
