//! The fields of a job that a column map can fill, and the units of their columns.

use miserly_core::{described_enum, named_enum};

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldKind {
    /// An instant.
    Time,
    /// A span of time.
    Span,
    /// A number of processors, nodes or GPUs.
    Count,
    /// An amount of memory.
    Memory,
    /// A text, or a number that is a name.
    Text,
}

described_enum! {
    /// A field of a job in a column map.
    pub enum TableField, kind: FieldKind {
        Job "job" Text "number or name of the job",
        Submit "submit" Time "submission",
        Eligible "eligible" Time "end of dependencies and holds",
        Start "start" Time "start",
        End "end" Time "end",
        Wait "wait" Span "wait, where there is no start",
        Runtime "runtime" Span "runtime",
        Suspended "suspended" Span "suspended time between start and end",
        CpuTime "cpu_time" Span "processor time of all processors",
        Estimate "estimate" Span "time limit",
        Procs "procs" Count "processors, as allocated",
        RequestedProcs "requested_procs" Count "processors, as requested",
        Nodes "nodes" Count "nodes",
        Gpus "gpus" Count "GPUs of the whole job, or parts of one",
        Memory "memory" Memory "requested memory",
        UsedMemory "used_memory" Memory "used memory",
        GpuType "gpu_type" Text "type of the GPUs",
        User "user" Text "user",
        Group "group" Text "group",
        Queue "queue" Text "queue",
        Partition "partition" Text "quality of service, or another class beside the queue",
        Name "name" Text "name of the job",
        Account "account" Text "account or project",
        Features "features" Text "required features of nodes",
        Status "status" Text "final state",
    }
}

/// Number of fields.
pub(crate) const FIELDS: usize = TableField::ALL.len();

impl TableField {
    /// Returns the field with this name.
    pub(crate) fn find(name: &str) -> Option<TableField> {
        TableField::ALL.into_iter().find(|field| field.name() == name)
    }
}

named_enum! {
    /// The unit of a column.
    pub enum Unit {
        /// A date with a time of day, a timestamp, or seconds of the Unix epoch.
        DateTime "datetime",
        /// Seconds; of a time, those of the Unix epoch.
        Seconds "s",
        /// Milliseconds.
        Millis "ms",
        /// Microseconds.
        Micros "us",
        /// Nanoseconds.
        Nanos "ns",
        /// Minutes.
        Minutes "min",
        /// Hours.
        Hours "h",
        /// Days.
        Days "d",
        /// A clock `h:m:s`.
        Clock "hms",
        /// A clock with days, `d-h:m:s` or `d:h:m:s`.
        DayClock "dhms",
        /// Bytes.
        Bytes "B",
        /// 1024 bytes.
        Kilobytes "kB",
        /// 1024 kB.
        Megabytes "MB",
        /// 1024 MB.
        Gigabytes "GB",
        /// 1024 GB.
        Terabytes "TB",
        /// Memory as Slurm writes it: `16G`, `4000Mc`, `16Gn`.
        Slurm "slurm",
    }
}

/// Other names of units. Those of memory are in steps of 1024 by any name.
const OTHER_NAMES: [(&str, Unit); 9] = [
    ("KiB", Unit::Kilobytes),
    ("MiB", Unit::Megabytes),
    ("GiB", Unit::Gigabytes),
    ("TiB", Unit::Terabytes),
    ("KB", Unit::Kilobytes),
    ("K", Unit::Kilobytes),
    ("M", Unit::Megabytes),
    ("G", Unit::Gigabytes),
    ("T", Unit::Terabytes),
];

impl Unit {
    /// Returns the units of a kind of value. The first is the default, except of memory, which has none.
    pub(crate) const fn of(kind: FieldKind) -> &'static [Unit] {
        use Unit::{
            Bytes, Clock, DateTime, DayClock, Days, Gigabytes, Hours, Kilobytes, Megabytes, Micros, Millis,
            Minutes, Nanos, Seconds, Slurm, Terabytes,
        };
        match kind {
            FieldKind::Time => &[DateTime, Seconds, Millis, Micros, Nanos],
            FieldKind::Span => &[Seconds, Millis, Micros, Nanos, Minutes, Hours, Days, Clock, DayClock],
            FieldKind::Memory => &[Bytes, Kilobytes, Megabytes, Gigabytes, Terabytes, Slurm],
            FieldKind::Count | FieldKind::Text => &[],
        }
    }

    /// Returns the unit of a kind of value with this name, or with another name of it.
    pub(crate) fn find(kind: FieldKind, name: &str) -> Option<Unit> {
        let named = Unit::of(kind).iter().find(|unit| unit.name() == name);
        let other = || OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, unit)| unit);
        named.or_else(other).copied().filter(|unit| Unit::of(kind).contains(unit))
    }

    /// Returns the seconds, or the kB, of one; of a notation 1.
    pub(crate) const fn scale(self) -> f64 {
        match self {
            Unit::DateTime | Unit::Seconds | Unit::Clock | Unit::DayClock | Unit::Kilobytes | Unit::Slurm => {
                1.0
            }
            Unit::Millis => 1e-3,
            Unit::Micros => 1e-6,
            Unit::Nanos => 1e-9,
            Unit::Minutes => 60.0,
            Unit::Hours => 3600.0,
            Unit::Days => 86_400.0,
            Unit::Bytes => 1.0 / 1024.0,
            Unit::Megabytes => 1024.0,
            Unit::Gigabytes => 1024.0 * 1024.0,
            Unit::Terabytes => 1024.0 * 1024.0 * 1024.0,
        }
    }
}

named_enum! {
    /// What an amount of memory is for.
    pub enum Per {
        /// The whole job.
        Job "job",
        /// Each node.
        Node "node",
        /// Each processor.
        Cpu "cpu",
        /// Each GPU.
        Gpu "gpu",
    }
}

named_enum! {
    /// What rows with the same job are.
    pub enum SameJob {
        /// Jobs of their own, such as the tasks of an array.
        Own "own",
        /// Runs of the same job, such as requeues; each is a job.
        Attempts "attempts",
        /// Runs of the same job, of which the last counts.
        Last "last",
        /// Parts of one job that run together: their sizes are summed.
        Gang "gang",
    }
}

named_enum! {
    /// The format of a table.
    pub enum TableFormat {
        /// Values with a separator.
        Csv "csv",
        /// Objects: one a line, or a list.
        Json "json",
        /// Parquet.
        Parquet "parquet",
        /// Values between blanks.
        Text "text",
        /// Not a table: the accounting of PBS.
        Pbs "pbs",
    }
}
