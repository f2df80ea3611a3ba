//! The description of the machine in the comments of a log.

use std::collections::BTreeMap;

use miserly_core::Procs;

use super::{ExtraColumns, Field, SECONDS_MAX};

/// The header comments of a log that a simulation needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    comments: Vec<String>,
}

impl Header {
    /// Adds a comment line without its line end, including the leading `;`.
    pub fn push(&mut self, comment: &str) {
        self.comments.push(comment.to_owned());
    }

    /// Returns the comment lines without line ends.
    pub fn comments(&self) -> &[String] {
        &self.comments
    }

    /// Returns the trimmed value of the first `; Name: value` line. The case of the name is
    /// ignored.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.comments.iter().find_map(|comment| value_of(comment, name))
    }

    /// Returns the [extra fields](super::Extra) of the log. Without an `; Extra:` line, there are none.
    pub fn extra_columns(&self) -> ExtraColumns {
        self.comments.iter().find_map(|comment| ExtraColumns::of_comment(comment)).unwrap_or_default()
    }

    /// Returns the names of the numbers of a field, by lines such as `; Queue: 2 batch`.
    ///
    /// The case of the first word is ignored. A description in brackets behind the name and a blank is left out.
    pub fn names(&self, field: Field) -> Names {
        named_by(field).map(|word| self.names_by(word)).unwrap_or_default()
    }

    /// Returns the names in lines that begin with this word.
    pub(crate) fn names_by(&self, word: &str) -> Names {
        let mut names = Names::default();
        for (number, name) in self.comments.iter().filter_map(|comment| named(comment, word)) {
            names.0.entry(number).or_insert(name);
        }
        names
    }

    /// Returns the machine's processors: `MaxProcs`, else the leading integer of `MaxNodes`.
    ///
    /// `338 (batch partition; 512 total)` is a real value of both.
    pub fn procs(&self) -> Option<Procs> {
        let positive = |name| self.value(name).and_then(leading_integer).filter(|&procs| procs > 0);
        let procs = positive("MaxProcs").or_else(|| positive("MaxNodes"))?;
        Some(Procs::new(procs.into()))
    }

    /// Returns `UnixStartTime`: second 0 of the log in seconds of the Unix epoch.
    pub fn unix_start(&self) -> Option<i64> {
        self.value("UnixStartTime").and_then(|value| value.parse().ok())
    }

    /// Returns `Warmup`: the second of the log from which jobs are measured, if it is positive.
    pub fn warmup(&self) -> Option<i64> {
        self.value("Warmup")
            .and_then(|value| value.parse().ok())
            .filter(|second| (1..=SECONDS_MAX).contains(second))
    }

    /// Returns `TimeZone`: seconds east of Greenwich, without summer time.
    pub fn time_zone(&self) -> Option<i64> {
        let offset = self.value("TimeZone").and_then(|value| value.parse().ok())?;
        // Offsets of more than a day are damage.
        (-86_400..=86_400).contains(&offset).then_some(offset)
    }
}

/// The names that the header of a log gives to the numbers of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(BTreeMap<u32, String>);

impl Names {
    /// The fields whose numbers have names.
    pub const FIELDS: [Field; 4] = [Field::User, Field::Group, Field::Queue, Field::Partition];

    /// Returns the name of a number.
    pub fn get(&self, number: u32) -> Option<&str> {
        self.0.get(&number).map(String::as_str)
    }

    /// Returns the number with this name. The case is ignored where no name has the same case.
    pub fn number(&self, name: &str) -> Option<u32> {
        let find = |is_it: &dyn Fn(&str) -> bool| self.iter().find(|(_, known)| is_it(known));
        let found = find(&|known| known == name).or_else(|| find(&|known| known.eq_ignore_ascii_case(name)));
        found.map(|(number, _)| number)
    }

    /// Returns the numbers and their names, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        self.0.iter().map(|(number, name)| (*number, name.as_str()))
    }

    /// Returns whether no number has a name.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a number with its name behind it, if it has one.
    pub fn with_name(&self, number: u64) -> String {
        let name = u32::try_from(number).ok().and_then(|number| self.get(number));
        name.map_or_else(|| number.to_string(), |name| format!("{number} {name}"))
    }
}

/// Returns the word of the header lines with the names of a field.
const fn named_by(field: Field) -> Option<&'static str> {
    match field {
        Field::User => Some("User"),
        Field::Group => Some("Group"),
        Field::Queue => Some("Queue"),
        Field::Partition => Some("Partition"),
        _ => None,
    }
}

/// Returns the number and the name of a line such as `; Queue: 2 batch`. Names go to terminals.
fn named(comment: &str, kind: &str) -> Option<(u32, String)> {
    let (number, name) = value_of(comment, kind)?.split_once(char::is_whitespace)?;
    let name = name.split(" (").next().unwrap_or(name).trim();
    let name = (!name.is_empty()).then(|| name.replace(char::is_control, "\u{fffd}"))?;
    Some((number.parse().ok()?, name))
}

/// Returns the trimmed value of a `; Name: value` line with this name.
pub(crate) fn value_of<'a>(comment: &'a str, name: &str) -> Option<&'a str> {
    let (key, value) = comment.trim_start().trim_start_matches(';').split_once(':')?;
    key.trim().eq_ignore_ascii_case(name).then(|| value.trim())
}

/// Returns whether a comment has the number of the jobs of its log.
pub fn is_count(comment: &str) -> bool {
    ["MaxJobs", "MaxRecords"].iter().any(|name| value_of(comment, name).is_some())
}

fn leading_integer(value: &str) -> Option<u32> {
    let digits = value.find(|c: char| !c.is_ascii_digit()).map_or(value, |end| &value[..end]);
    // `1,024` must not be read as 1: an unknown size is better than a wrong one.
    let grouped = value[digits.len()..]
        .strip_prefix(',')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if grouped { None } else { digits.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> Header {
        Header { comments: text.lines().map(str::to_owned).collect() }
    }

    #[test]
    fn machine_size_as_real_logs_give_it() {
        assert_eq!(header("; MaxNodes: 338 (batch partition; 512 total)").procs(), Some(Procs::new(338)));
        assert_eq!(header("; MaxNodes: 12\n; MaxProcs: 100").procs(), Some(Procs::new(100)));
        assert_eq!(header("; MaxProcs: -1\n; MaxNodes: 12").procs(), Some(Procs::new(12)));
        assert_eq!(header(";maxprocs:7").procs(), Some(Procs::new(7)));
        assert_eq!(header("  ; MaxProcs: 7").procs(), Some(Procs::new(7)));
        assert_eq!(header("; MaxProcs: 99999999999").procs(), None);
        assert_eq!(header("; MaxProcs: 1,024").procs(), None);
        assert_eq!(header("; Note: nothing").procs(), None);
    }

    #[test]
    fn the_warm_up_of_a_window() {
        let warmup = |value: &str| header(&format!("; Warmup: {value}")).warmup();
        assert_eq!(
            ["2", "172800", "0", "-5", "2d", "10000000001"].map(warmup),
            [Some(2), Some(172_800), None, None, None, None]
        );
    }

    #[test]
    fn names_of_queues() {
        let text = "; MaxQueues: 2\n; Queue: 1 short\n;queue:  2   batch (the rest)\n; Queue: 3\n; Queue: x y\n; Queue: 1 other\n; Queue: 4 a(1)\u{1b}[2J";
        let names = header(text).names(Field::Queue);
        let found: Vec<_> = names.iter().collect();
        assert_eq!(found, [(1, "short"), (2, "batch"), (4, "a(1)\u{fffd}[2J")]);
        assert_eq!((names.number("BATCH"), names.number("rest"), names.get(3)), (Some(2), None, None));
        assert_eq!([1, 7].map(|number| names.with_name(number)), ["1 short", "7"]);
        assert!(header(text).names(Field::User).is_empty() && header(text).names(Field::Job).is_empty());
        let cases = header("; User: 1 ANN\n; User: 2 ann").names(Field::User);
        assert_eq!([cases.number("ann"), cases.number("Ann")], [Some(2), Some(1)]);
    }
}
