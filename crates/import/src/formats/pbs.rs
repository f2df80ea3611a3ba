//! The accounting of PBS Pro, `OpenPBS` and Torque: a record a line, with fields as `key=value`.

use std::borrow::Cow;

use miserly_workload::Trace;

use super::clock;
use crate::accounting::{Accounting, lines};
use crate::error::{FieldError, ImportError};
use crate::format::Format;
use crate::log::Imported;
use crate::options::ImportOptions;
use crate::remark::Remark;
use crate::row::{Column, Row, Schema};

/// The notation of a value.
#[derive(Clone, Copy)]
enum Notation {
    /// As the rows have it.
    Plain,
    /// Seconds, or a clock of up to four parts: days, hours, minutes and seconds.
    Clock,
    /// Bytes with a unit.
    Memory,
    /// Bytes with a unit, for each process.
    ProcessMemory,
    /// The sum of `nodes:ppn=processors`.
    NodeSpec,
    /// An exit status.
    Exit,
}

/// The keys of a record, with their columns. The first key of a column that is present applies.
const KEYS: [(&str, Column, Notation); 19] = [
    ("ctime", Column::Submit, Notation::Plain),
    ("qtime", Column::Submit, Notation::Plain),
    ("etime", Column::Eligible, Notation::Plain),
    ("start", Column::Start, Notation::Plain),
    ("end", Column::End, Notation::Plain),
    ("total_execution_slots", Column::Allocated, Notation::Plain),
    ("Resource_List.nodes", Column::Allocated, Notation::NodeSpec),
    ("Resource_List.ncpus", Column::Allocated, Notation::Plain),
    ("unique_node_count", Column::Nodes, Notation::Plain),
    ("Resource_List.nodect", Column::Nodes, Notation::Plain),
    ("resources_used.cput", Column::TotalCpu, Notation::Clock),
    ("Resource_List.mem", Column::Memory, Notation::Memory),
    ("Resource_List.pmem", Column::Memory, Notation::ProcessMemory),
    ("resources_used.mem", Column::UsedMemory, Notation::Memory),
    ("Resource_List.walltime", Column::TimeLimit, Notation::Clock),
    ("Exit_status", Column::State, Notation::Exit),
    ("user", Column::User, Notation::Plain),
    ("group", Column::Group, Notation::Plain),
    ("queue", Column::Partition, Notation::Plain),
];

/// Returns whether a line is a record: `03/01/2013 00:00:05;E;7.server;key=value ...`.
pub(crate) fn is_pbs(line: &str) -> bool {
    Record::parse(line).is_some()
}

/// Converts accounting of PBS. Only the records of ends are jobs.
///
/// # Errors
/// See [`imported`](super::imported).
pub(super) fn pbs(trace: &Trace, options: &ImportOptions) -> Result<Imported, ImportError> {
    let schema =
        Schema::new(KEYS.iter().rev().map(|&(key, column, _)| (column, key)).chain([(Column::Job, "id")]));
    let mut accounting = Accounting::new(Format::Pbs, options);
    lines(trace, &mut accounting, |accounting, text, line| {
        let row = match Record::parse(text) {
            Some(Record { kind, .. }) if kind != "E" => {
                accounting.leave_out(Remark::Event, line);
                return Ok(());
            }
            // The members of an array have records of their own.
            Some(record) if record.id.contains("[]") => {
                accounting.leave_out(Remark::WholeArray, line);
                return Ok(());
            }
            Some(record) => Ok(record.row(&schema)),
            None => Err(FieldError::Value {
                field: "record".into(),
                value: text.chars().take(40).collect(),
                expected: "MM/DD/YYYY HH:MM:SS;type;id;fields",
            }),
        };
        accounting.add(row, line).map_err(|error| error.at(trace.name(), line))
    })?;
    accounting.finish(trace.name())
}

/// A record.
struct Record<'a> {
    kind: &'a str,
    id: &'a str,
    fields: &'a str,
}

impl<'a> Record<'a> {
    fn parse(line: &'a str) -> Option<Record<'a>> {
        let mut parts = line.splitn(4, ';');
        let (time, kind, id) = (parts.next()?, parts.next()?, parts.next()?);
        let is_time = |(at, letter): (usize, u8)| match at {
            2 | 5 => letter == b'/',
            10 => letter == b' ',
            13 | 16 => letter == b':',
            _ => letter.is_ascii_digit(),
        };
        let is_record = time.len() == 19 && time.bytes().enumerate().all(is_time) && kind.len() == 1;
        is_record.then(|| Record { kind, id, fields: parts.next().unwrap_or_default() })
    }

    fn row<'s>(&self, schema: &'s Schema) -> Row<'s>
    where
        'a: 's,
    {
        let mut row = Row::new(schema);
        row.set(Column::Job, job(self.id));
        let fields: Vec<(&str, &str)> =
            self.fields.split_whitespace().filter_map(|field| field.split_once('=')).collect();
        for (key, column, notation) in KEYS {
            let found = fields.iter().find(|(name, value)| *name == key && !value.is_empty());
            if let Some((_, value)) = found
                && row.text(column).is_empty()
            {
                row.set(column, notation.converted(value));
            }
        }
        row
    }
}

/// Returns the number of a job, and for a member of an array `7_3`: of `7.server`, `7[3].server` or `7-3.server`.
fn job(id: &str) -> String {
    let number = id.split('.').next().unwrap_or_default();
    number.trim_end_matches(']').replace(['[', '-'], "_")
}

impl Notation {
    /// Returns the value as the rows have it. One that cannot be read is kept, and refused there.
    fn converted(self, value: &str) -> Cow<'_, str> {
        let converted = match self {
            Notation::Plain => None,
            Notation::Clock => seconds(value).map(clock),
            Notation::Memory => kibibytes(value).map(|kib| format!("{kib}K")),
            Notation::ProcessMemory => kibibytes(value).map(|kib| format!("{kib}Kc")),
            Notation::NodeSpec => processors(value).map(|procs| procs.to_string()),
            Notation::Exit => Some(if value == "0" { "COMPLETED" } else { "FAILED" }.to_owned()),
        };
        converted.map_or(Cow::Borrowed(value), Cow::Owned)
    }
}

/// Returns the seconds of a number of seconds, or of a clock of up to four parts.
fn seconds(text: &str) -> Option<i64> {
    const SCALES: [i64; 4] = [1, 60, 3_600, 86_400];
    let parts = text.rsplit(':').map(|part| part.parse::<u32>().ok().map(i64::from));
    let parts: Vec<i64> = parts.collect::<Option<_>>()?;
    (parts.len() <= SCALES.len()).then(|| parts.iter().zip(SCALES).map(|(part, scale)| part * scale).sum())
}

/// Returns the KiB of `18996kb`, rounded up. A word has eight bytes.
fn kibibytes(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (scale, word) = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => (1, 1),
        "w" => (1, 8),
        unit => {
            let power = "kmgtp".find(unit.chars().next()?)? + 1;
            (1_u64 << (10 * power), if unit.ends_with('w') { 8 } else { 1 })
        }
    };
    Some(number.parse::<u64>().ok()?.checked_mul(scale)?.checked_mul(word)?.div_ceil(1024))
}

/// Returns the processors of `2:ppn=8+n7:ppn=4`, where a name is one node.
fn processors(text: &str) -> Option<u64> {
    let of_part = |part: &str| {
        let mut words = part.split(':');
        let nodes = words.next()?.parse().unwrap_or(1_u64);
        let each = words.find_map(|word| word.strip_prefix("ppn=").or_else(|| word.strip_prefix("ncpus=")));
        nodes.checked_mul(each.map_or(Ok(1), str::parse).ok()?)
    };
    text.split('+').try_fold(0_u64, |sum, part| sum.checked_add(of_part(part)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notations() {
        let check = |notation: Notation, value, expect: &str| {
            assert_eq!(notation.converted(value), expect, "{value}");
        };
        check(Notation::Clock, "03:55:49", "0:0:14149");
        check(Notation::Clock, "120:00:00", "0:0:432000");
        check(Notation::Clock, "1:00:00:00", "0:0:86400");
        check(Notation::Clock, "3600", "0:0:3600");
        check(Notation::Clock, "soon", "soon");
        check(Notation::Memory, "18996kb", "18996K");
        check(Notation::Memory, "4GB", "4194304K");
        check(Notation::Memory, "1025b", "2K");
        check(Notation::Memory, "1mw", "8192K");
        check(Notation::ProcessMemory, "2gb", "2097152Kc");
        check(Notation::NodeSpec, "4:ppn=32", "128");
        check(Notation::NodeSpec, "2:ppn=8:bigmem+n7:ppn=4+n8", "21");
        check(Notation::Exit, "271", "FAILED");
    }

    #[test]
    fn ids() {
        assert_eq!(["7.bw", "7[3].bw", "7-3.bw", "7"].map(job), ["7", "7_3", "7_3", "7"]);
    }
}
