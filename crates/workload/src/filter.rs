//! Conditions on the fields of a log: `runtime<=0`.

use std::fmt;
use std::str::FromStr;

use crate::swf::{Field, Record};

/// A condition on one field of a record, as the log has it: before any fallback, -1 where unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    field: Field,
    comparison: Comparison,
    value: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    LessOrEqual,
    GreaterOrEqual,
    NotEqual,
    Equal,
    Less,
    Greater,
}

/// Longer signs first, so that `<=` is not read as `<`.
const SIGNS: [(&str, Comparison); 7] = [
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("!=", Comparison::NotEqual),
    ("==", Comparison::Equal),
    ("=", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// A filter that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// No comparison in it.
    #[error("filter {0:?} has no comparison; write it like runtime<=0 (signs: <= < >= > = !=)")]
    NoComparison(String),
    /// A field that the format does not have.
    #[error("filter {filter:?}: no field {field:?}; the fields are {}", field_names())]
    NoSuchField {
        /// The whole filter.
        filter: String,
        /// The field in it.
        field: String,
    },
    /// Compared to something that is no whole number.
    #[error("filter {filter:?}: {value:?} is not a whole number")]
    NotANumber {
        /// The whole filter.
        filter: String,
        /// What stands right of the sign.
        value: String,
    },
}

fn field_names() -> String {
    Field::ALL.map(Field::name).join(", ")
}

impl Filter {
    /// Whether the record meets the condition.
    pub fn matches(&self, record: &Record) -> bool {
        if self.field == Field::CpuTime {
            // The one field with decimals; whole numbers of its size are exact in an f64.
            let found = record.cpu_time().parse().unwrap_or(-1.0);
            return self.comparison.holds(found, self.value as f64);
        }
        self.comparison.holds(record.get(self.field), self.value)
    }
}

impl Comparison {
    fn holds<T: PartialOrd + Copy>(self, found: T, value: T) -> bool {
        match self {
            Comparison::LessOrEqual => found <= value,
            Comparison::GreaterOrEqual => found >= value,
            Comparison::NotEqual => found != value,
            Comparison::Equal => found == value,
            Comparison::Less => found < value,
            Comparison::Greater => found > value,
        }
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Filter, FilterError> {
        let filter = || text.to_owned();
        let (position, sign, comparison) = SIGNS
            .iter()
            .filter_map(|&(sign, comparison)| text.find(sign).map(|position| (position, sign, comparison)))
            .min_by_key(|&(position, sign, _)| (position, std::cmp::Reverse(sign.len())))
            .ok_or_else(|| FilterError::NoComparison(filter()))?;
        let (name, value) = (text[..position].trim(), text[position + sign.len()..].trim());
        let field = Field::ALL
            .into_iter()
            .find(|field| field.name() == name)
            .ok_or_else(|| FilterError::NoSuchField { filter: filter(), field: name.into() })?;
        let value =
            value.parse().map_err(|_| FilterError::NotANumber { filter: filter(), value: value.into() })?;
        Ok(Filter { field, comparison, value })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The first entry of a comparison is its usual sign, but for `=`, which has two.
        let sign = match self.comparison {
            Comparison::Equal => "=",
            other => SIGNS.iter().find(|(_, comparison)| *comparison == other).map_or("", |(sign, _)| sign),
        };
        write!(f, "{}{sign}{}", self.field.name(), self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Result<&str, &str>) {
        let got = text.parse::<Filter>().map(|filter| filter.to_string()).map_err(|error| error.to_string());
        match (got, expect) {
            (Ok(got), Ok(expect)) => assert_eq!(got, expect),
            (Err(got), Err(expect)) => assert!(got.contains(expect), "{got}"),
            (got, expect) => panic!("{got:?} where {expect:?} was expected"),
        }
    }

    #[test]
    fn written_forms() {
        check("runtime<=0", Ok("runtime<=0"));
        check(" estimate  < 10 ", Ok("estimate<10"));
        check("user==3", Ok("user=3"));
        check("status!=1", Ok("status!=1"));
        check("runtime", Err("no comparison"));
        check("runtme<=0", Err("no field \"runtme\""));
        check("runtime<=x", Err("\"x\" is not a whole number"));
    }

    #[test]
    fn decimals_count() {
        let mut record = Record::unknown();
        let tail = "-1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1";
        crate::swf::parse_line(format!("1 0 -1 1 1 0.50 {tail}").as_bytes(), &mut record).unwrap();
        let matches = |filter: &str| filter.parse::<Filter>().unwrap().matches(&record);
        assert!(matches("cpu_time>0") && matches("cpu_time<1") && !matches("cpu_time<=0"));
    }

    #[test]
    fn unknown_counts_as_below_zero() {
        let record = Record::unknown();
        assert!("runtime<=0".parse::<Filter>().unwrap().matches(&record));
        assert!(!"runtime>=0".parse::<Filter>().unwrap().matches(&record));
    }
}
