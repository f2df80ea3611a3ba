//! A job as a row of named columns, whatever the format of the input.
//!
//! Every reader fills rows, and [`job`](crate::job) makes a job of a row. The values are texts as `sacct` writes them.

use std::borrow::Cow;

use crate::error::FieldError;

macro_rules! columns {
    ($($variant:ident $names:expr,)*) => {
        /// A column used by the conversion.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Column {
            $($variant,)*
        }

        impl Column {
            /// All columns: first those of the command of `sacct` in its order, then optional ones.
            pub(crate) const ALL: &[Column] = &[$(Column::$variant),*];

            /// Returns the names in a header: those of `sacct`, then those of the UB Slurm simulator. The first name that
            /// is present applies.
            pub(crate) const fn names(self) -> &'static [&'static str] {
                match self { $(Column::$variant => &$names,)* }
            }
        }
    };
}

columns! {
    Job ["JobIDRaw", "JobID", "sim_job_id", "job_id"],
    Submit ["Submit", "sim_submit_ts", "dt"],
    Eligible ["Eligible"],
    Start ["Start"],
    End ["End"],
    Elapsed ["ElapsedRaw", "Elapsed", "sim_duration", "wall_time"],
    Suspended ["Suspended"],
    Allocated ["AllocCPUS", "NCPUS"],
    Requested ["ReqCPUS", "sim_tasks", "n_tasks"],
    Nodes ["NNodes", "AllocNodes"],
    TotalCpu ["TotalCPU"],
    Memory ["ReqMem"],
    TimeLimit ["TimelimitRaw", "Timelimit", "sim_wclimit", "wall_limit"],
    State ["State"],
    User ["UID", "User", "sim_username"],
    Group ["GID", "Group"],
    Partition ["Partition", "sim_partition"],
    Qos ["QOSRAW", "QOS", "sim_qosname"],
    AllocatedTres ["AllocTRES"],
    RequestedTres ["ReqTRES"],
    RequestedNodes ["ReqNodes"],
    // The tasks of an array are only in this one.
    Tasks ["JobID"],
    // The total of all processors, in the notation of `ReqMem`.
    UsedMemory [],
}

const COLUMNS: usize = Column::ALL.len();

/// The columns that an input has, with their names in it.
#[derive(Debug)]
pub(crate) struct Schema([Option<String>; COLUMNS]);

impl Schema {
    /// Creates a schema of columns with their names.
    pub(crate) fn new<'a>(columns: impl IntoIterator<Item = (Column, &'a str)>) -> Schema {
        let mut names = [const { None }; COLUMNS];
        for (column, name) in columns {
            names[column as usize] = Some(name.to_owned());
        }
        Schema(names)
    }

    /// Returns whether the input has the column.
    pub(crate) fn has(&self, column: Column) -> bool {
        self.0[column as usize].is_some()
    }

    /// Returns the name of the column in the input.
    fn name(&self, column: Column) -> String {
        let usual = || column.names().first().copied().unwrap_or_default().to_owned();
        self.0[column as usize].clone().unwrap_or_else(usual)
    }
}

/// A job as values by column.
pub(crate) struct Row<'a> {
    pub(crate) schema: &'a Schema,
    values: [Cow<'a, str>; COLUMNS],
}

impl<'a> Row<'a> {
    /// Creates a row without values.
    pub(crate) fn new(schema: &'a Schema) -> Row<'a> {
        Row { schema, values: [const { Cow::Borrowed("") }; COLUMNS] }
    }

    /// Sets the value of a column. A column without a value is empty.
    pub(crate) fn set(&mut self, column: Column, value: impl Into<Cow<'a, str>>) {
        self.values[column as usize] = value.into();
    }

    /// Returns the text of a column; empty if the column is missing.
    pub(crate) fn text(&self, column: Column) -> &str {
        &self.values[column as usize]
    }

    /// Returns the value if present. Slurm prints `Unknown` for times of 0 and `None` for missing ones.
    pub(crate) fn value(&self, column: Column) -> Option<&str> {
        const NOTHING: [&str; 7] = ["", "Unknown", "None", "INVALID", "(null)", "NA", "N/A"];
        Some(self.text(column)).filter(|text| !NOTHING.contains(text))
    }

    /// Returns the value parsed by `parse`, or `None` if it is missing.
    pub(crate) fn parsed<T>(
        &self,
        column: Column,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, FieldError> {
        let Some(value) = self.value(column) else { return Ok(None) };
        let wrong =
            || FieldError::Value { field: self.schema.name(column), value: value.to_owned(), expected };
        parse(value).map(Some).ok_or_else(wrong)
    }

    /// Returns whether the input has the column.
    pub(crate) fn has(&self, column: Column) -> bool {
        self.schema.has(column)
    }
}
