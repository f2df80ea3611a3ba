//! The columns of `sacct` and their positions in a file.

use crate::error::{FieldError, ImportError};

macro_rules! columns {
    ($($variant:ident $names:expr,)*) => {
        /// A column used by the conversion.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Column {
            $($variant,)*
        }

        impl Column {
            /// All columns: first those of the command in its order, then optional ones.
            pub(super) const ALL: &[Column] = &[$(Column::$variant),*];

            /// Returns the names in `sacct`. The first name that is present applies.
            pub(super) const fn names(self) -> &'static [&'static str] {
                match self { $(Column::$variant => &$names,)* }
            }
        }
    };
}

columns! {
    Job ["JobIDRaw", "JobID"],
    Submit ["Submit"],
    Eligible ["Eligible"],
    Start ["Start"],
    End ["End"],
    Elapsed ["ElapsedRaw", "Elapsed"],
    Suspended ["Suspended"],
    Allocated ["AllocCPUS", "NCPUS"],
    Requested ["ReqCPUS"],
    Nodes ["NNodes", "AllocNodes"],
    TotalCpu ["TotalCPU"],
    Memory ["ReqMem"],
    TimeLimit ["TimelimitRaw", "Timelimit"],
    State ["State"],
    User ["UID", "User"],
    Group ["GID", "Group"],
    Partition ["Partition"],
    Qos ["QOSRAW", "QOS"],
    Resources ["AllocTRES"],
}

/// Returns whether this can be the first line of accounting: a header, or the columns of the command.
pub(crate) fn is_accounting(line: &str) -> bool {
    let fields = split(line);
    fields.iter().any(is_job_column) || fields.len() >= COMMAND_COLUMNS
}

fn is_job_column(field: &&str) -> bool {
    Column::Job.names().iter().any(|name| name.eq_ignore_ascii_case(field))
}

/// Number of columns of the command: all except `AllocTRES`, which is long.
const COMMAND_COLUMNS: usize = Column::ALL.len() - 1;

/// Required columns: one of each group.
const REQUIRED: [(&str, &[Column]); 6] = [
    ("JobIDRaw", &[Column::Job]),
    ("Submit", &[Column::Submit]),
    ("Start", &[Column::Start]),
    ("End or ElapsedRaw", &[Column::End, Column::Elapsed]),
    ("AllocCPUS or ReqCPUS", &[Column::Allocated, Column::Requested]),
    ("State", &[Column::State]),
];

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

/// The positions of the columns in a file.
#[derive(Debug)]
pub(super) struct ColumnLayout {
    places: [Option<usize>; Column::ALL.len()],
    width: usize,
    /// Header line, which is repeated in concatenated files; empty if there is none.
    header: String,
    /// Unused columns.
    pub(super) unused: Vec<String>,
}

impl ColumnLayout {
    /// Determines the positions from the first line of a file, at `line` of the input `name`.
    pub(super) fn from_first_line(first: &str, name: &str, line: u64) -> Result<ColumnLayout, ImportError> {
        let fields = split(first);
        if fields.iter().any(is_job_column) {
            return ColumnLayout::from_header(first, &fields, name, line);
        }
        match fields.len() {
            COMMAND_COLUMNS => Ok(ColumnLayout::from_command(COMMAND_COLUMNS)),
            // `sacct -p` terminates its lines with a separator.
            width if width == COMMAND_COLUMNS + 1 && fields[COMMAND_COLUMNS].is_empty() => {
                Ok(ColumnLayout::from_command(width))
            }
            width => Err(ImportError::NoHeader { name: name.into(), line, width, expected: COMMAND_COLUMNS }),
        }
    }

    fn from_command(width: usize) -> ColumnLayout {
        let places = std::array::from_fn(|place| (place < COMMAND_COLUMNS).then_some(place));
        ColumnLayout { places, width, header: String::new(), unused: vec![] }
    }

    fn from_header(
        header: &str,
        fields: &[&str],
        name: &str,
        line: u64,
    ) -> Result<ColumnLayout, ImportError> {
        let find = |name: &&str| fields.iter().position(|field| field.eq_ignore_ascii_case(name));
        let mut places = [None; Column::ALL.len()];
        for column in Column::ALL {
            places[*column as usize] = column.names().iter().find_map(find);
        }
        let lacking =
            REQUIRED.iter().find(|(_, any)| any.iter().all(|&column| places[column as usize].is_none()));
        if let Some(&(column, _)) = lacking {
            return Err(ImportError::NoColumn { name: name.into(), line, column });
        }
        let unused = (0..fields.len())
            .filter(|place| !places.contains(&Some(*place)) && !fields[*place].is_empty())
            .map(|place| fields[place].to_owned());
        Ok(ColumnLayout { unused: unused.collect(), places, width: fields.len(), header: header.to_owned() })
    }

    /// Returns whether the line is the header, at the top or repeated.
    pub(super) fn is_header(&self, line: &str) -> bool {
        line == self.header
    }

    /// Splits a line into values.
    pub(super) fn row<'a>(&'a self, line: &'a str) -> Result<AccountingRow<'a>, FieldError> {
        let fields = split(line);
        if fields.len() != self.width {
            return Err(FieldError::Width { found: fields.len(), expected: self.width });
        }
        Ok(AccountingRow { layout: self, fields })
    }

    /// Returns whether the file has the column.
    pub(super) fn has(&self, column: Column) -> bool {
        self.places[column as usize].is_some()
    }
}

fn split(line: &str) -> Vec<&str> {
    line.split('|').map(str::trim).collect()
}

/// A line of the accounting.
pub(super) struct AccountingRow<'a> {
    layout: &'a ColumnLayout,
    fields: Vec<&'a str>,
}

impl<'a> AccountingRow<'a> {
    /// Returns the text of a column; empty if the column is missing.
    pub(super) fn text(&self, column: Column) -> &'a str {
        self.layout.places[column as usize].map_or("", |place| self.fields[place])
    }

    /// Returns the value if present. Slurm prints `Unknown` for times of 0 and `None` for missing
    /// ones.
    pub(super) fn value(&self, column: Column) -> Option<&'a str> {
        const NOTHING: [&str; 5] = ["", "Unknown", "None", "INVALID", "(null)"];
        Some(self.text(column)).filter(|text| !NOTHING.contains(text))
    }

    /// Returns the value parsed by `parse`, or `None` if it is missing.
    pub(super) fn parsed<T>(
        &self,
        column: Column,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, FieldError> {
        let Some(value) = self.value(column) else { return Ok(None) };
        let wrong = || FieldError::Value { field: column.names()[0], value: value.to_owned(), expected };
        parse(value).map(Some).ok_or_else(wrong)
    }

    pub(super) fn has(&self, column: Column) -> bool {
        self.layout.has(column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(first: &str, expect: Result<&[&str], &str>) {
        let layout = ColumnLayout::from_first_line(first, "a", 1);
        match (layout, expect) {
            (Ok(layout), Ok(unused)) => assert_eq!(layout.unused, unused),
            (Err(error), Err(remark_counts)) => assert!(error.to_string().contains(remark_counts), "{error}"),
            (layout, expect) => panic!("{layout:?} where {expect:?} was expected"),
        }
    }

    #[test]
    fn headers() {
        check("JobIDRaw|Submit|Start|End|AllocCPUS|State", Ok(&[]));
        check("state|ncpus|elapsed|start|submit|jobid", Ok(&[]));
        check("JobID|JobIDRaw|Account|Submit|Start|End|ReqCPUS|State|", Ok(&["JobID", "Account"]));
        check("JobIDRaw|Submit|End|AllocCPUS|State", Err("a:1: no column Start;"));
        check("JobIDRaw|Submit|Start|AllocCPUS|State", Err("no column End or ElapsedRaw"));
        check("JobIDRaw|Submit|Start|End|State", Err("no column AllocCPUS or ReqCPUS"));
        check("1|2|3", Err("a:1: no header line with JobIDRaw;"));
    }

    #[test]
    fn without_a_header_the_columns_are_those_of_the_command() {
        let line = (1..=18).map(|field| field.to_string()).collect::<Vec<_>>().join("|");
        let layout = ColumnLayout::from_first_line(&line, "a", 1).unwrap();
        let row = layout.row(&line).unwrap();
        assert_eq!(
            (row.text(Column::Job), row.text(Column::Qos), row.text(Column::Resources)),
            ("1", "18", "")
        );
        assert!(ColumnLayout::from_first_line(&(line + "|"), "a", 1).is_ok());
        assert!(command().contains("JobIDRaw,Submit,Eligible,Start,End,ElapsedRaw,Suspended,AllocCPUS,ReqCPUS,NNodes,TotalCPU,ReqMem,TimelimitRaw,State,UID,GID,Partition,QOSRAW "));
    }
}
