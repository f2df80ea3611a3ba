//! Conditions on the fields of a log, such as `runtime<=0`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::swf::{Extra, ExtraKind, Extras, Field, Header, Record};

/// The text of a text that is missing.
const MISSING: &str = "-";

/// A condition on one field as recorded in the log: without fallbacks, -1 for an unknown number and `-` for a missing
/// text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFilter {
    test: Test,
    sign: Sign,
}

/// A field with the value of its comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Field(Field, i64),
    /// A number of an extra field, in thousandths if the field has them, and its text.
    Number(Extra, i64, String),
    Text(Extra, String),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sign {
    text: &'static str,
    /// The orderings of the field and the value that meet the condition.
    accepted: &'static [Ordering],
    opposite: &'static str,
}

const SIGNS: [Sign; 6] = [
    Sign { text: "<=", accepted: &[Ordering::Less, Ordering::Equal], opposite: ">" },
    Sign { text: ">=", accepted: &[Ordering::Greater, Ordering::Equal], opposite: "<" },
    Sign { text: "!=", accepted: &[Ordering::Less, Ordering::Greater], opposite: "=" },
    Sign { text: "=", accepted: &[Ordering::Equal], opposite: "!=" },
    Sign { text: "<", accepted: &[Ordering::Less], opposite: ">=" },
    Sign { text: ">", accepted: &[Ordering::Greater], opposite: "<=" },
];

const EQUAL: Sign = SIGNS[3];

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
    /// The value of an extra field is no number.
    #[error("filter {filter:?}: {value:?} is not {} or -1", extra.kind().wanted())]
    NotOfExtra {
        /// Filter.
        filter: String,
        /// Extra field.
        extra: Extra,
        /// Text to the right of the sign.
        value: String,
    },
    /// A text is compared by its order, or with nothing.
    #[error("filter {0:?}: the field is a text; compare it with = or != and a text, - for a missing one")]
    Text(String),
    /// The log has no such extra field.
    #[error(
        "a filter compares {0}, which the log has not; no header line ; Extra: names it (docs/formats.md)"
    )]
    NoColumn(Extra),
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
    [&Field::ALL.map(Field::name)[..], &Extra::ALL.map(Extra::name)].concat().join(", ")
}

impl FieldFilter {
    /// Returns whether the record meets the condition.
    pub fn matches(&self, record: &Record) -> bool {
        let ordering = match &self.test {
            // The only field with decimals. Whole numbers of its range are exact in an f64.
            Test::Field(Field::CpuTime, value) => {
                record.cpu_time().parse().unwrap_or(-1.0).partial_cmp(&(*value as f64))
            }
            Test::Field(field, value) => Some(record.get(*field).cmp(value)),
            Test::Number(extra, value, _) => {
                let number = record.extras().number(*extra).and_then(|number| i64::try_from(number).ok());
                Some(number.unwrap_or(-1).cmp(value))
            }
            Test::Text(extra, value) => {
                Some(record.extras().text(*extra).as_deref().unwrap_or(MISSING).cmp(value))
            }
        };
        ordering.is_some_and(|ordering| self.sign.accepted.contains(&ordering))
    }

    /// Returns the condition that a field has this value.
    pub fn equal(field: Field, value: u32) -> FieldFilter {
        FieldFilter { test: Test::Field(field, value.into()), sign: EQUAL }
    }

    /// Returns the condition that every other record meets.
    #[must_use]
    pub fn opposite(self) -> FieldFilter {
        let sign = SIGNS.into_iter().find(|sign| sign.text == self.sign.opposite).unwrap_or(self.sign);
        FieldFilter { sign, ..self }
    }

    /// Checks that a log with this header has the field.
    ///
    /// # Errors
    /// [`FilterError::NoColumn`].
    pub fn check(&self, header: &Header) -> Result<(), FilterError> {
        match self.test {
            Test::Number(extra, ..) | Test::Text(extra, _) if !header.extra_columns().has(extra) => {
                Err(FilterError::NoColumn(extra))
            }
            _ => Ok(()),
        }
    }
}

impl FromStr for FieldFilter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<FieldFilter, FilterError> {
        let filter = || text.to_owned();
        // Of `<=` and `<` at one position, the longer one.
        let (position, sign) = SIGNS
            .into_iter()
            .filter_map(|sign| text.find(sign.text).map(|position| (position, sign)))
            .min_by_key(|(position, sign)| (*position, std::cmp::Reverse(sign.text.len())))
            .ok_or_else(|| FilterError::NoComparison(filter()))?;
        let value = &text[position + sign.text.len()..];
        // `==` is another form of `=`.
        let value = if sign == EQUAL { value.strip_prefix('=').unwrap_or(value) } else { value };
        let (name, value) = (text[..position].trim(), value.trim());
        let compared = if let Some(field) = Field::ALL.into_iter().find(|field| field.name() == name) {
            let number = value.parse().map_err(|_| FilterError::NotANumber {
                filter: filter(),
                field,
                value: value.into(),
            })?;
            Test::Field(field, number)
        } else if let Some(extra) = Extra::named(name) {
            of_extra(extra, value, sign, text)?
        } else {
            return Err(FilterError::NoSuchField { filter: filter(), field: name.into() });
        };
        Ok(FieldFilter { test: compared, sign })
    }
}

/// Returns the test of an extra field.
fn of_extra(extra: Extra, value: &str, sign: Sign, filter: &str) -> Result<Test, FilterError> {
    if extra.kind() == ExtraKind::Text {
        let is_text = !value.is_empty() && [EQUAL.text, EQUAL.opposite].contains(&sign.text);
        let test = is_text.then(|| Test::Text(extra, value.to_owned()));
        return test.ok_or_else(|| FilterError::Text(filter.to_owned()));
    }
    if value == "-1" {
        return Ok(Test::Number(extra, -1, value.to_owned()));
    }
    let mut parsed = Extras::default();
    let number = parsed.set(extra, value).ok().and_then(|()| parsed.number(extra));
    let wrong = || FilterError::NotOfExtra { filter: filter.into(), extra, value: value.into() };
    let number = number.and_then(|number| i64::try_from(number).ok()).ok_or_else(wrong)?;
    Ok(Test::Number(extra, number, value.to_owned()))
}

impl fmt::Display for FieldFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = self.sign.text;
        match &self.test {
            Test::Field(field, value) => write!(f, "{field}{sign}{value}"),
            Test::Number(extra, _, text) | Test::Text(extra, text) => write!(f, "{extra}{sign}{text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        check("gpus > 0.50", Ok("gpus>0.50"));
        check("account == a = b", Ok("account=a = b"));
        check("nodes=-1", Ok("nodes=-1"));
        check("nodes=-2", Err("\"-2\" is not a whole number of at most 15 digits or -1"));
        check("gpus=0.0001", Err("\"0.0001\" is not a number of at most 12 digits and three decimals or -1"));
        check("name<x", Err("compare it with = or !="));
        check("name=", Err("compare it with = or !="));
    }

    #[test]
    fn decimals_count() {
        let mut record = Record::unknown();
        let tail = "-1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1";
        crate::swf::parse_line(format!("1 0 -1 1 1 0.50 {tail}").as_bytes(), &mut record).unwrap();
        let matches = |filter: &str| filter.parse::<FieldFilter>().unwrap().matches(&record);
        assert!(matches("cpu_time>0") && matches("cpu_time<1") && !matches("cpu_time<=0"));
    }

    fn with(extras: &[(Extra, &str)]) -> Record {
        let mut record = Record::unknown();
        for (extra, text) in extras {
            record.extras_mut().set(*extra, text).unwrap();
        }
        record
    }

    #[test]
    fn extra_fields() {
        let record = with(&[(Extra::Gpus, "1.5"), (Extra::Account, "physics"), (Extra::Nodes, "0")]);
        let meets = |filter: &str| filter.parse::<FieldFilter>().unwrap().matches(&record);
        for filter in ["gpus>1", "gpus<1.501", "gpus=1.5", "account=physics", "account!=-", "nodes<=0"] {
            assert!(meets(filter), "{filter}");
        }
        for filter in ["gpus>=2", "gpus=-1", "account!=physics", "name!=-", "nodes<0", "job_memory>=0"] {
            assert!(!meets(filter), "{filter}");
        }
        assert!(meets("name=-") && meets("job_memory=-1"));
    }

    proptest! {
        #[test]
        fn every_record_meets_a_condition_or_its_opposite(
            name in prop::sample::select(&["runtime", "cpu_time", "nodes", "gpus", "account"]),
            sign in prop::sample::select(&["<=", "<", ">=", ">", "=", "!="]),
            value in -1..3_i64,
            has in -1..3_i64,
        ) {
            let mut record = Record::unknown();
            record.set(Field::Runtime, has);
            record.set(Field::CpuTime, has);
            for extra in [Extra::Nodes, Extra::Gpus, Extra::Account] {
                if has >= 0 {
                    record.extras_mut().set(extra, &has.to_string()).unwrap();
                }
            }
            // Texts have no order, and no -1.
            let (sign, value) = if name == "account" { ("=", value.max(0)) } else { (sign, value) };
            let filter: FieldFilter = format!("{name}{sign}{value}").parse().unwrap();
            let expect = match sign {
                "<=" => has <= value,
                "<" => has < value,
                ">=" => has >= value,
                ">" => has > value,
                "=" => has == value,
                _ => has != value,
            };
            prop_assert_eq!(filter.matches(&record), expect);
            prop_assert_eq!(filter.clone().opposite().matches(&record), !expect);
            prop_assert_eq!(filter.clone().opposite().opposite(), filter);
        }
    }

    #[test]
    fn unknown_counts_as_below_zero() {
        let record = Record::unknown();
        assert!("runtime<=0".parse::<FieldFilter>().unwrap().matches(&record));
        assert!(!"runtime>=0".parse::<FieldFilter>().unwrap().matches(&record));
    }
}
