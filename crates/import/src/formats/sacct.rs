//! The output of `sacct`: lines of values with a separator, below a header.

use std::borrow::Cow;

use miserly_workload::Trace;

use crate::accounting::{Accounting, lines};
use crate::error::{FieldError, ImportError};
use crate::format::Format;
use crate::log::Imported;
use crate::options::ImportOptions;
use crate::row::{Column, Row, Schema};

/// Number of columns of the command: up to `QOSRAW`.
const COMMAND_COLUMNS: usize = Column::Qos as usize + 1;

/// Separator of `sacct -P` without `--delimiter`.
const BAR: &str = "|";

/// Fewest known names in a line that is a header.
const FEWEST_NAMES: usize = 3;

/// Returns the command that prints the input. Its period must be adjusted.
pub fn command() -> String {
    format!(
        "SLURM_TIME_FORMAT=%s sacct -X -D -P -a -S 2024-03-01 -E 2024-04-01 -o {} > march.sacct\n",
        columns()
    )
}

/// Returns the columns of [`command`], for `sacct -o`.
pub fn columns() -> String {
    let columns: Vec<_> = Column::ALL[..COMMAND_COLUMNS].iter().map(|column| column.names()[0]).collect();
    columns.join(",")
}

/// Converts the output of `sacct -P`, with its header line, or without it in the columns of
/// [`command`].
///
/// Reads line by line, and sorts the jobs in bounded memory.
///
/// # Errors
/// The input is unreadable, lacks columns, or has no finished job. Without `lenient`, also if a
/// line is invalid.
pub(super) fn slurm(trace: &Trace, options: &ImportOptions) -> Result<Imported, ImportError> {
    let mut accounting = Accounting::new(Format::Slurm, options);
    let mut layout: Option<Layout> = None;
    lines(trace, &mut accounting, |accounting, text, line| {
        let layout = match &mut layout {
            Some(layout) => layout,
            none => none.insert(Layout::from_first_line(text, options, trace.name(), line)?),
        };
        if layout.is_header(text) {
            return Ok(());
        }
        accounting.add(layout.row(text), line).map_err(|error| error.at(trace.name(), line))
    })?;
    accounting.unused = layout.map(|layout| layout.unused).unwrap_or_default();
    accounting.finish(trace.name())
}

/// Returns whether this can be the first line of accounting: a header, or the columns of the command.
pub(crate) fn is_accounting(line: &str) -> bool {
    is_header(line) || split(line, BAR).len() >= COMMAND_COLUMNS
}

/// Returns whether a line has names of columns, with any separator.
fn is_header(line: &str) -> bool {
    let words = line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| is_name(word)).count() >= FEWEST_NAMES
}

fn is_name(word: &str) -> bool {
    let names = |column: &Column| column.names().iter().any(|name| name.eq_ignore_ascii_case(word));
    Column::ALL.iter().any(names)
}

/// Returns the separator of a header: what is between its first two names.
fn separator(header: &str) -> &str {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let behind_name = match header.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').map_or("", |(_, rest)| rest),
        None => header.trim_start_matches(is_name),
    };
    let length = behind_name.find(|letter: char| is_name(letter) || letter == '"');
    &behind_name[..length.unwrap_or(behind_name.len())]
}

/// Splits a line into values. A value in quotes may contain the separator, except where it is that of `sacct -P`.
pub(super) fn split<'a>(line: &'a str, separator: &str) -> Vec<Cow<'a, str>> {
    if separator == BAR || !line.contains('"') {
        return line.split(separator).map(|value| Cow::Borrowed(value.trim())).collect();
    }
    let (mut values, mut rest) = (Vec::new(), line);
    loop {
        let (value, more) = first_value(rest, separator);
        values.push(value);
        match more {
            Some(more) => rest = more,
            None => return values,
        }
    }
}

/// Returns the first value of a line, and what is behind its separator. A quote in a quoted value is doubled.
fn first_value<'a>(line: &'a str, separator: &str) -> (Cow<'a, str>, Option<&'a str>) {
    let Some(mut rest) = line.strip_prefix('"') else {
        let (value, more) =
            line.split_once(separator).map_or((line, None), |(value, more)| (value, Some(more)));
        return (Cow::Borrowed(value.trim()), more);
    };
    let mut value = String::new();
    while let Some((part, behind)) = rest.split_once('"') {
        value.push_str(part);
        match behind.strip_prefix('"') {
            Some(behind) => {
                value.push('"');
                rest = behind;
            }
            None => return (Cow::Owned(value), behind.split_once(separator).map(|(_, more)| more)),
        }
    }
    // A quote that is not closed takes the rest of the line.
    (Cow::Owned(value + rest), None)
}

/// The positions of the columns in a file.
#[derive(Debug)]
struct Layout {
    schema: Schema,
    places: Vec<(Column, usize)>,
    width: usize,
    separator: String,
    /// Header line, which is repeated in concatenated files; empty if there is none.
    header: String,
    /// Unused columns.
    unused: Vec<String>,
}

impl Layout {
    /// Determines the positions from the first line of a file, at `line` of the input `name`.
    fn from_first_line(
        first: &str,
        options: &ImportOptions,
        name: &str,
        line: u64,
    ) -> Result<Layout, ImportError> {
        if is_header(first) {
            return Layout::from_header(first, options, name, line);
        }
        let separator = options.delimiter.as_deref().unwrap_or(BAR);
        let fields = split(first, separator);
        // `sacct -p` terminates its lines with a separator.
        let ends = fields.len() == COMMAND_COLUMNS + 1 && fields[COMMAND_COLUMNS].is_empty();
        if fields.len() != COMMAND_COLUMNS && !ends {
            let (name, width) = (name.into(), fields.len());
            return Err(ImportError::NoHeader { name, line, width, expected: COMMAND_COLUMNS });
        }
        let columns = &Column::ALL[..COMMAND_COLUMNS];
        Ok(Layout {
            schema: Schema::new(columns.iter().map(|column| (*column, column.names()[0]))),
            places: columns.iter().copied().zip(0..).collect(),
            width: fields.len(),
            separator: separator.to_owned(),
            header: String::new(),
            unused: vec![],
        })
    }

    fn from_header(
        header: &str,
        options: &ImportOptions,
        name: &str,
        line: u64,
    ) -> Result<Layout, ImportError> {
        let separator = options.delimiter.as_deref().unwrap_or_else(|| separator(header));
        let is_blank = separator.trim_matches(' ').is_empty();
        if options.delimiter.is_none() && is_blank && (separator.len() > 1 || header.contains("  ")) {
            return Err(ImportError::FixedWidth { name: name.into(), line });
        }
        let fields = split(header, separator);
        let place = |column: &Column| {
            let find = |name: &&str| fields.iter().position(|field| field.eq_ignore_ascii_case(name));
            column.names().iter().find_map(find).map(|place| (*column, place))
        };
        let places: Vec<_> = Column::ALL.iter().filter_map(place).collect();
        let schema = Schema::new(places.iter().map(|(column, place)| (*column, &*fields[*place])));
        let missing = missing(&schema, options);
        if !missing.is_empty() {
            return Err(ImportError::NoColumn { name: name.into(), line, missing: missing.join("; ") });
        }
        let is_unused =
            |place: &usize| !fields[*place].is_empty() && places.iter().all(|(_, used)| used != place);
        let unused = (0..fields.len()).filter(is_unused).map(|place| fields[place].to_string()).collect();
        let (width, separator) = (fields.len(), separator.to_owned());
        Ok(Layout { schema, width, separator, header: header.to_owned(), unused, places })
    }

    /// Returns whether the line is the header, at the top or repeated.
    fn is_header(&self, line: &str) -> bool {
        line == self.header
    }

    /// Splits a line into a row.
    fn row<'a>(&'a self, line: &'a str) -> Result<Row<'a>, FieldError> {
        let fields = split(line, &self.separator);
        if fields.len() != self.width {
            return Err(FieldError::Width { found: fields.len(), expected: self.width });
        }
        let mut row = Row::new(&self.schema);
        for (column, place) in &self.places {
            row.set(*column, fields[*place].clone());
        }
        Ok(row)
    }
}

/// Returns the columns without which there are no jobs: of each group, one set is enough.
fn missing(schema: &Schema, options: &ImportOptions) -> Vec<&'static str> {
    use Column::{
        Allocated, AllocatedTres, Elapsed, End, Nodes, Requested, RequestedNodes, RequestedTres, Start,
        Submit,
    };
    const SIZES: &[Column] = &[Allocated, Requested, AllocatedTres, RequestedTres];
    let has_any = |columns: &[Column]| columns.iter().any(|column| schema.has(*column));
    let by_nodes = options.cpus_per_node.is_some() && has_any(&[Nodes, RequestedNodes]);
    let groups = [
        (schema.has(Submit), "Submit"),
        (schema.has(Elapsed) || schema.has(Start) && schema.has(End), "ElapsedRaw, or Start and End"),
        (
            has_any(SIZES) || by_nodes,
            "AllocCPUS, ReqCPUS, AllocTRES or ReqTRES, or NNodes with --cpus-per-node",
        ),
    ];
    groups.into_iter().filter(|(there, _)| !there).map(|(_, columns)| columns).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(first: &str, expect: Result<&[&str], &str>) {
        let layout = Layout::from_first_line(first, &ImportOptions::default(), "a", 1);
        match (layout, expect) {
            (Ok(layout), Ok(unused)) => assert_eq!(layout.unused, unused),
            (Err(error), Err(expect)) => assert!(error.to_string().contains(expect), "{error}"),
            (layout, expect) => panic!("{layout:?} where {expect:?} was expected"),
        }
    }

    #[test]
    fn headers() {
        check("JobIDRaw|Submit|Start|End|AllocCPUS|State", Ok(&[]));
        check("state|ncpus|elapsed|start|submit|jobid", Ok(&[]));
        check("Submit,ElapsedRaw,ReqTRES", Ok(&[]));
        check("\"Submit\";\"ElapsedRaw\";\"ReqTRES\";\"a;b\"", Ok(&["a;b"]));
        check("Submit::ElapsedRaw::ReqTRES", Ok(&[]));
        check("JobID|JobIDRaw|Account|Submit|Start|End|ReqCPUS|State|", Ok(&["Account"]));
        check(
            "JobIDRaw|Submit|End|AllocCPUS|State",
            Err("a:1: missing columns: ElapsedRaw, or Start and End;"),
        );
        check("JobIDRaw|Submit|Start|End|NNodes", Err("missing columns: AllocCPUS, ReqCPUS, AllocTRES or"));
        check("1|2|3", Err("a:1: no header line with names of columns;"));
        check(
            "JobID      Submit    Start",
            Err("a:1: columns of fixed width, as sacct prints them without -P"),
        );
        // A public log of 2024 without times and sizes.
        check(
            "ConsumedEnergyRaw|CPUTimeRAW|ReqMem|ReqNodes|Submit|Timelimit|Partition|QOS|State",
            Err("a:1: missing columns: ElapsedRaw, or Start and End; AllocCPUS, ReqCPUS,"),
        );
    }

    #[test]
    fn without_a_header_the_columns_are_those_of_the_command() {
        let line = (1..=18).map(|field| field.to_string()).collect::<Vec<_>>().join("|");
        let layout = Layout::from_first_line(&line, &ImportOptions::default(), "a", 1).unwrap();
        let row = layout.row(&line).unwrap();
        assert_eq!(
            (row.text(Column::Job), row.text(Column::Qos), row.text(Column::AllocatedTres)),
            ("1", "18", "")
        );
        assert!(Layout::from_first_line(&(line + "|"), &ImportOptions::default(), "a", 1).is_ok());
        assert!(command().contains("JobIDRaw,Submit,Eligible,Start,End,ElapsedRaw,Suspended,AllocCPUS,ReqCPUS,NNodes,TotalCPU,ReqMem,TimelimitRaw,State,UID,GID,Partition,QOSRAW "));
    }

    #[test]
    fn values_in_quotes() {
        assert_eq!(split("a,\"b,c\",\"d\"\"e\",", ","), ["a", "b,c", "d\"e", ""]);
        assert_eq!(split("\"a\" \"\" 3 \"b c\"", " "), ["a", "", "3", "b c"]);
        assert_eq!(split("a|\"b|c", "|"), ["a", "\"b", "c"]);
        assert_eq!(split("\"a,b", ","), ["a,b"]);
    }
}
