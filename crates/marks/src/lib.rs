//! Marks in the code: a simulation counts what it reaches, and knows what it never reached.
//!
//! Without the feature `count` a mark is nothing. With it, a mark is one relaxed addition. No program reads a mark except the one
//! that lists [`all()`].

/// A place in the code.
#[cfg(feature = "count")]
#[derive(Debug)]
pub struct Mark {
    file: &'static str,
    name: &'static str,
    count: std::sync::atomic::AtomicU64,
}

#[cfg(feature = "count")]
impl Mark {
    #[doc(hidden)]
    pub const fn new(file: &'static str, name: &'static str) -> Mark {
        Mark { file, name, count: std::sync::atomic::AtomicU64::new(0) }
    }

    #[doc(hidden)]
    pub fn pass(&self) {
        self.count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    /// Returns the source file, such as `crates/engine/src/effects.rs`.
    pub const fn file(&self) -> &'static str {
        self.file
    }

    /// Returns the name, which is unique in its file.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns how often it was passed in this process.
    pub fn count(&self) -> u64 {
        self.count.load(std::sync::atomic::Ordering::Relaxed)
    }
}

#[cfg(feature = "count")]
#[doc(hidden)]
pub mod hidden {
    pub use linkme;

    #[allow(unsafe_code, reason = "linkme places all marks in one section of the program")]
    #[linkme::distributed_slice]
    pub static MARKS: [crate::Mark];
}

/// Returns the marks of all crates of this program, in no order.
#[cfg(feature = "count")]
pub fn all() -> impl Iterator<Item = &'static Mark> {
    hidden::MARKS.iter()
}

/// Counts that this place is passed, under a name that is unique in its file.
#[cfg(feature = "count")]
#[macro_export]
macro_rules! mark {
    ($($name:tt)+) => {{
        #[allow(unsafe_code, reason = "linkme places it beside the others, in a section of the program")]
        #[$crate::hidden::linkme::distributed_slice($crate::hidden::MARKS)]
        #[linkme(crate = $crate::hidden::linkme)]
        static MARK: $crate::Mark = $crate::Mark::new(file!(), concat!($($name)+));
        MARK.pass();
    }};
}

/// Counts that this place is passed, under a name that is unique in its file.
#[cfg(not(feature = "count"))]
#[macro_export]
macro_rules! mark {
    ($($name:tt)+) => {{}};
}

/// Counts the variant of a value: `mark_variant!(&outcome, Outcome { Ended, Lost })`. It lists all variants of the enum.
#[cfg(feature = "count")]
#[macro_export]
macro_rules! mark_variant {
    ($value:expr, $Enum:ident { $($Variant:ident),+ $(,)? }) => {
        match $value {
            $($Enum::$Variant { .. } => $crate::mark!(stringify!($Enum), " ", stringify!($Variant)),)+
        }
    };
}

/// Counts the variant of a value: `mark_variant!(&outcome, Outcome { Ended, Lost })`. It lists all variants of the enum.
#[cfg(not(feature = "count"))]
#[macro_export]
macro_rules! mark_variant {
    ($value:expr, $Enum:ident { $($Variant:ident),+ $(,)? }) => {{
        let _ = &$value;
    }};
}

#[cfg(all(test, feature = "count"))]
mod tests {
    use super::*;

    enum Shape {
        Point,
        Line { _length: u32 },
        Circle(()),
    }

    fn count(name: &str) -> Option<u64> {
        all().find(|mark| mark.name() == name).map(Mark::count)
    }

    #[test]
    fn a_mark_is_known_before_it_is_passed() {
        let pass = |shape: &Shape| mark_variant!(shape, Shape { Point, Line, Circle });
        assert_eq!(count("Shape Line"), Some(0));
        pass(&Shape::Line { _length: 3 });
        pass(&Shape::Line { _length: 4 });
        pass(&Shape::Point);
        assert_eq!(
            [count("Shape Point"), count("Shape Line"), count("Shape Circle")],
            [Some(1), Some(2), Some(0)]
        );
        assert_eq!(all().find(|mark| mark.name() == "Shape Line").map(Mark::file), Some(file!()));
        assert!(matches!(Shape::Circle(()), Shape::Circle(())));
    }
}
