//! Conditions on the fields of a log, such as `runtime<=0`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::swf::{Extra, ExtraKind, Extras, Field, Header, Names, Record};

/// The text of a text that is missing.
const MISSING: &str = "-";

/// The limit of listed names in a message.
const LISTED: usize = 20;

/// A condition on one field as recorded in the log: without fallbacks, -1 for an unknown number and `-` for a missing
/// text. Users, groups, queues and partitions may be given by their names, after [`resolve`](FieldFilter::resolve).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFilter {
    test: Test,
    sign: Sign,
}

/// A field with the value of its comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Field(Field, i64),
    /// A name of a number, which the header of the log has.
    Name {
        field: Field,
        name: String,
        number: Option<u32>,
    },
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
    #[error("filter {filter:?}: {value:?} is not a whole number")]
    NotANumber {
        /// Filter.
        filter: String,
        /// Text to the right of the sign.
        value: String,
    },
    /// A name is compared by its order.
    #[error("filter {0:?}: a name is compared with = or !=")]
    Name(String),
    /// The header of the log has no such name.
    #[error("a filter compares {field} with {name:?}, but {known}")]
    NoName {
        /// Field.
        field: Field,
        /// Name.
        name: String,
        /// The names that there are, in words.
        known: String,
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
            // A name that no number has equals none.
            Test::Name { field, number, .. } => {
                Some(number.map_or(Ordering::Less, |number| record.get(*field).cmp(&number.into())))
            }
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

    /// Checks that a log with this header has the field, and finds the number of a name.
    ///
    /// # Errors
    /// [`FilterError::NoColumn`] and [`FilterError::NoName`].
    pub fn resolve(&mut self, header: &Header) -> Result<(), FilterError> {
        match &mut self.test {
            Test::Number(extra, ..) | Test::Text(extra, _) if !header.extra_columns().has(*extra) => {
                Err(FilterError::NoColumn(*extra))
            }
            Test::Name { field, name, number } => {
                let names = header.names(*field);
                *number = names.number(name);
                let missing =
                    || FilterError::NoName { field: *field, name: name.clone(), known: known(&names) };
                number.map(drop).ok_or_else(missing)
            }
            _ => Ok(()),
        }
    }
}

/// Returns the names in words.
fn known(names: &Names) -> String {
    if names.is_empty() {
        return "the header of the log has no names for it; give a number".into();
    }
    let listed: Vec<&str> = names.iter().map(|(_, name)| name).take(LISTED).collect();
    let more = names.iter().count() - listed.len();
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("the names in the header of the log are {}{more}", listed.join(", "))
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
            of_field(field, value, sign, text)?
        } else if let Some(extra) = Extra::named(name) {
            of_extra(extra, value, sign, text)?
        } else {
            return Err(FilterError::NoSuchField { filter: filter(), field: name.into() });
        };
        Ok(FieldFilter { test: compared, sign })
    }
}

/// Returns the test of a field of the format.
fn of_field(field: Field, value: &str, sign: Sign, filter: &str) -> Result<Test, FilterError> {
    if let Ok(number) = value.parse() {
        return Ok(Test::Field(field, number));
    }
    if value.is_empty() || !Names::FIELDS.contains(&field) {
        return Err(FilterError::NotANumber { filter: filter.into(), value: value.into() });
    }
    let test = Test::Name { field, name: value.into(), number: None };
    let is_possible = [EQUAL.text, EQUAL.opposite].contains(&sign.text);
    if is_possible { Ok(test) } else { Err(FilterError::Name(filter.into())) }
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
            Test::Name { field, name, .. } => write!(f, "{field}{sign}{name}"),
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
        check("queue!=gpu", Ok("queue!=gpu"));
        check("user == ann b", Ok("user=ann b"));
        check("user>ann", Err("filter \"user>ann\": a name is compared with = or !="));
        check("user=", Err("\"\" is not a whole number"));
        check("procs=x", Err("no field \"procs\""));
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

    #[test]
    fn names_are_those_of_the_header() {
        let mut header = Header::default();
        for line in ["; User: 3 ann", "; User: 4 bob", "; Queue: 3 gpu"] {
            header.push(line);
        }
        let mut record = Record::unknown();
        record.set(Field::User, 3);
        let meets = |filter: &str| {
            let mut filter: FieldFilter = filter.parse().unwrap();
            filter.resolve(&header).map(|()| filter.matches(&record)).map_err(|error| error.to_string())
        };
        let found = ["user=ann", "user=ANN", "user!=ann", "user=bob", "queue=gpu", "queue!=gpu"].map(meets);
        assert_eq!(found, [true, true, false, false, false, true].map(Ok));
        assert_eq!(
            meets("user=eve").unwrap_err(),
            "a filter compares user with \"eve\", but the names in the header of the log are ann, bob"
        );
        assert_eq!(
            meets("group!=eve").unwrap_err(),
            "a filter compares group with \"eve\", but the header of the log has no names for it; give a number"
        );
        let unresolved = |filter: &str| filter.parse::<FieldFilter>().unwrap().matches(&record);
        assert!(!unresolved("user=ann") && unresolved("user!=ann"));
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
