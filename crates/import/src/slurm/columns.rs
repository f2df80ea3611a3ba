//! The columns of `sacct`, and where they stand in a file.

use crate::error::{FieldError, ImportError};

macro_rules! columns {
    ($($variant:ident $names:expr,)*) => {
        /// A column that something is made of.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Column {
            $($variant,)*
        }

        impl Column {
            /// Every column: first those of the command, in its order, then those that may be there too.
            pub(super) const ALL: &[Column] = &[$(Column::$variant),*];

            /// What `sacct` calls it; where there are several names, the first one that is there counts.
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

/// How many of the columns the command asks for: all but `AllocTRES`, which is long.
const ASKED: usize = Column::ALL.len() - 1;

/// What has to be there: one column of each group.
const NEEDED: [(&str, &[Column]); 6] = [
    ("JobIDRaw", &[Column::Job]),
    ("Submit", &[Column::Submit]),
    ("Start", &[Column::Start]),
    ("End or ElapsedRaw", &[Column::End, Column::Elapsed]),
    ("AllocCPUS or ReqCPUS", &[Column::Allocated, Column::Requested]),
    ("State", &[Column::State]),
];

/// The command whose output the importer reads, with its period left to fill in.
pub fn command() -> String {
    let columns: Vec<_> = Column::ALL[..ASKED].iter().map(|column| column.names()[0]).collect();
    format!(
        "SLURM_TIME_FORMAT=%s sacct -X -D -P -a -S 2024-03-01 -E 2024-04-01 -o {} > march.sacct\n",
        columns.join(",")
    )
}

/// Where the columns of a file stand.
#[derive(Debug)]
pub(super) struct Layout {
    places: [Option<usize>; Column::ALL.len()],
    width: usize,
    /// The header line, which comes again where files were put together; empty where there is none.
    header: String,
    /// The columns that nothing is made of.
    pub(super) unused: Vec<String>,
}

impl Layout {
    /// Of a file whose first line is this, at `line` of the input `name`.
    pub(super) fn of(first: &str, name: &str, line: u64) -> Result<Layout, ImportError> {
        let fields = split(first);
        let is_job = |field: &&str| Column::Job.names().iter().any(|name| name.eq_ignore_ascii_case(field));
        if fields.iter().any(is_job) {
            return Layout::named(first, &fields, name, line);
        }
        match fields.len() {
            ASKED => Ok(Layout::of_command(ASKED)),
            // `sacct -p` ends its lines with a separator.
            width if width == ASKED + 1 && fields[ASKED].is_empty() => Ok(Layout::of_command(width)),
            width => Err(ImportError::NoHeader { name: name.into(), line, width, expected: ASKED }),
        }
    }

    fn of_command(width: usize) -> Layout {
        let places = std::array::from_fn(|place| (place < ASKED).then_some(place));
        Layout { places, width, header: String::new(), unused: vec![] }
    }

    fn named(header: &str, fields: &[&str], name: &str, line: u64) -> Result<Layout, ImportError> {
        let find = |name: &&str| fields.iter().position(|field| field.eq_ignore_ascii_case(name));
        let mut places = [None; Column::ALL.len()];
        for column in Column::ALL {
            places[*column as usize] = column.names().iter().find_map(find);
        }
        let lacking =
            NEEDED.iter().find(|(_, any)| any.iter().all(|&column| places[column as usize].is_none()));
        if let Some(&(column, _)) = lacking {
            return Err(ImportError::NoColumn { name: name.into(), line, column });
        }
        let unused = (0..fields.len())
            .filter(|place| !places.contains(&Some(*place)) && !fields[*place].is_empty())
            .map(|place| fields[place].to_owned());
        Ok(Layout { unused: unused.collect(), places, width: fields.len(), header: header.to_owned() })
    }

    /// Whether the line is the header, at the top or again.
    pub(super) fn is_header(&self, line: &str) -> bool {
        line == self.header
    }

    /// The values of a line.
    pub(super) fn row<'a>(&'a self, line: &'a str) -> Result<Row<'a>, FieldError> {
        let fields = split(line);
        if fields.len() != self.width {
            return Err(FieldError::Width { found: fields.len(), expected: self.width });
        }
        Ok(Row { layout: self, fields })
    }

    /// Whether the file has the column.
    pub(super) fn has(&self, column: Column) -> bool {
        self.places[column as usize].is_some()
    }
}

fn split(line: &str) -> Vec<&str> {
    line.split('|').map(str::trim).collect()
}

/// One line of the accounting.
pub(super) struct Row<'a> {
    layout: &'a Layout,
    fields: Vec<&'a str>,
}

impl<'a> Row<'a> {
    /// The value as it stands; empty if there is no such column.
    pub(super) fn text(&self, column: Column) -> &'a str {
        self.layout.places[column as usize].map_or("", |place| self.fields[place])
    }

    /// The value, if it is one: `Unknown` is what Slurm prints for times that are 0, `None` for those that never came.
    pub(super) fn value(&self, column: Column) -> Option<&'a str> {
        const NOTHING: [&str; 5] = ["", "Unknown", "None", "INVALID", "(null)"];
        Some(self.text(column)).filter(|text| !NOTHING.contains(text))
    }

    /// The value as `parse` understands it; none where there is none.
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
        let layout = Layout::of(first, "a", 1);
        match (layout, expect) {
            (Ok(layout), Ok(unused)) => assert_eq!(layout.unused, unused),
            (Err(error), Err(said)) => assert!(error.to_string().contains(said), "{error}"),
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
        let layout = Layout::of(&line, "a", 1).unwrap();
        let row = layout.row(&line).unwrap();
        assert_eq!(
            (row.text(Column::Job), row.text(Column::Qos), row.text(Column::Resources)),
            ("1", "18", "")
        );
        assert!(Layout::of(&(line + "|"), "a", 1).is_ok());
        assert!(command().contains("JobIDRaw,Submit,Eligible,Start,End,ElapsedRaw,Suspended,AllocCPUS,ReqCPUS,NNodes,TotalCPU,ReqMem,TimelimitRaw,State,UID,GID,Partition,QOSRAW "));
    }
}
