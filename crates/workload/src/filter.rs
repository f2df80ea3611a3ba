//! Conditions on the fields of a log, such as `runtime<=0`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::swf::{Field, Record};

/// A condition on one field as recorded in the log: without fallbacks, -1 for unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFilter {
    field: Field,
    sign: &'static str,
    /// The orderings of the field and the value that meet the condition.
    accepted: &'static [Ordering],
    value: i64,
}

/// The signs as written, their usual forms, and the orderings that they accept.
const SIGNS: [(&str, &str, &[Ordering]); 7] = [
    ("<=", "<=", &[Ordering::Less, Ordering::Equal]),
    (">=", ">=", &[Ordering::Greater, Ordering::Equal]),
    ("!=", "!=", &[Ordering::Less, Ordering::Greater]),
    ("==", "=", &[Ordering::Equal]),
    ("=", "=", &[Ordering::Equal]),
    ("<", "<", &[Ordering::Less]),
    (">", ">", &[Ordering::Greater]),
];

/// An invalid filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The comparison is missing.
    #[error("filter {0:?} has no comparison; write it like runtime<=0 (signs: <= < >= > = !=)")]
    NoComparison(String),
    /// The field does not exist in the format.
    #[error("filter {filter:?}: no field {field:?}; the fields are {}", field_names())]
    NoSuchField {
        /// Filter.
        filter: String,
        /// Field.
        field: String,
    },
    /// The value is not a whole number.
    #[error("filter {filter:?}: {value:?} is not a whole number{}", name_hint(*field))]
    NotANumber {
        /// Filter.
        filter: String,
        /// Field.
        field: Field,
        /// Text to the right of the sign.
        value: String,
    },
}

/// Returns the option that takes a name, for fields whose numbers can have names in the header.
fn name_hint(field: Field) -> &'static str {
    match field {
        Field::User => "; --user selects users by name",
        Field::Queue => "; --queue selects queues by name",
        _ => "",
    }
}

fn field_names() -> String {
    Field::ALL.map(Field::name).join(", ")
}

impl FieldFilter {
    /// Returns whether the record meets the condition.
    pub fn matches(&self, record: &Record) -> bool {
        let ordering = if self.field == Field::CpuTime {
            // The only field with decimals. Whole numbers of its range are exact in an f64.
            record.cpu_time().parse().unwrap_or(-1.0).partial_cmp(&(self.value as f64))
        } else {
            Some(record.get(self.field).cmp(&self.value))
        };
        ordering.is_some_and(|ordering| self.accepted.contains(&ordering))
    }
}

impl FieldFilter {
    /// Returns the condition that a field has this value.
    pub fn equal(field: Field, value: u32) -> FieldFilter {
        FieldFilter { field, sign: "=", accepted: &[Ordering::Equal], value: value.into() }
    }
}

impl FromStr for FieldFilter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<FieldFilter, FilterError> {
        let filter = || text.to_owned();
        // Of `<=` and `<` at one position, the longer one.
        let (position, (written, sign, accepted)) = SIGNS
            .into_iter()
            .filter_map(|sign| text.find(sign.0).map(|position| (position, sign)))
            .min_by_key(|(position, sign)| (*position, std::cmp::Reverse(sign.0.len())))
            .ok_or_else(|| FilterError::NoComparison(filter()))?;
        let (name, value) = (text[..position].trim(), text[position + written.len()..].trim());
        let field = Field::ALL
            .into_iter()
            .find(|field| field.name() == name)
            .ok_or_else(|| FilterError::NoSuchField { filter: filter(), field: name.into() })?;
        let value = value.parse().map_err(|_| FilterError::NotANumber {
            filter: filter(),
            field,
            value: value.into(),
        })?;
        Ok(FieldFilter { field, sign, accepted, value })
    }
}

impl fmt::Display for FieldFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.field.name(), self.sign, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Result<&str, &str>) {
        let got =
            text.parse::<FieldFilter>().map(|filter| filter.to_string()).map_err(|error| error.to_string());
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
        check("queue!=gpu", Err("\"gpu\" is not a whole number; --queue selects queues by name"));
    }

    #[test]
    fn decimals_count() {
        let mut record = Record::unknown();
        let tail = "-1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1";
        crate::swf::parse_line(format!("1 0 -1 1 1 0.50 {tail}").as_bytes(), &mut record).unwrap();
        let matches = |filter: &str| filter.parse::<FieldFilter>().unwrap().matches(&record);
        assert!(matches("cpu_time>0") && matches("cpu_time<1") && !matches("cpu_time<=0"));
    }

    #[test]
    fn unknown_counts_as_below_zero() {
        let record = Record::unknown();
        assert!("runtime<=0".parse::<FieldFilter>().unwrap().matches(&record));
        assert!(!"runtime>=0".parse::<FieldFilter>().unwrap().matches(&record));
    }
}
