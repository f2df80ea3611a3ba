//! The job categories of Kettimuthu et al. (their "Job Classification"): by runtime and width.

use std::fmt;

use miserly_core::{Procs, Span};

/// One of the sixteen categories: a range of actual runtimes and a range of widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Category {
    /// The index in [`LENGTHS`]; `width` is the index in [`WIDTHS`].
    length: usize,
    width: usize,
}

/// A name and the largest value of a range. The next range begins above it.
type Class = (&'static str, u64);

const MINUTE: u64 = 60_000_000;

/// The runtimes in ticks: very short, short, medium, long.
const LENGTHS: [Class; 4] =
    [("0-10min", 10 * MINUTE), ("10min-1h", 60 * MINUTE), ("1h-8h", 480 * MINUTE), (">8h", u64::MAX)];

/// The widths in processors: sequential, narrow, wide, very wide.
const WIDTHS: [Class; 4] = [("1p", 1), ("2-8p", 8), ("9-32p", 32), (">32p", u64::MAX)];

impl Category {
    /// Returns the category of a job by its runtime or estimate, and its processors.
    ///
    /// A runtime of exactly 10 minutes is very short.
    pub fn for_job(run: Span, procs: Procs) -> Category {
        Category { length: place(&LENGTHS, run.ticks().unsigned_abs()), width: place(&WIDTHS, procs.get()) }
    }

    /// The number of categories.
    pub const COUNT: usize = LENGTHS.len() * WIDTHS.len();

    /// Returns the index in the order of [`Category::all`].
    pub const fn index(self) -> usize {
        self.length * WIDTHS.len() + self.width
    }

    /// Returns all categories, by length and then by width.
    pub fn all() -> impl Iterator<Item = Category> {
        (0..LENGTHS.len()).flat_map(|length| (0..WIDTHS.len()).map(move |width| Category { length, width }))
    }
}

fn place(classes: &[Class], value: u64) -> usize {
    classes.iter().take_while(|(_, most)| value > *most).count()
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", LENGTHS[self.length].0, WIDTHS[self.width].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_belong_to_the_class_below_them() {
        let named = |ticks, procs: u64| Category::for_job(Span::from_ticks(ticks), procs.into()).to_string();
        let minute = Span::from_secs(60).unwrap().ticks();
        assert_eq!(named(0, 1), "0-10min 1p");
        assert_eq!(named(10 * minute, 2), "0-10min 2-8p");
        assert_eq!(named(10 * minute + 1, 8), "10min-1h 2-8p");
        assert_eq!(named(60 * minute, 9), "10min-1h 9-32p");
        assert_eq!(named(480 * minute, 32), "1h-8h 9-32p");
        assert_eq!(named(480 * minute + 1, 33), ">8h >32p");
    }

    #[test]
    fn sixteen_in_their_order() {
        let all: Vec<Category> = Category::all().collect();
        assert!(all.len() == Category::COUNT && all.is_sorted(), "{all:?}");
        assert!(all.iter().map(|category| category.index()).eq(0..16));
    }
}
