//! A line of a log with its eighteen fields.

use std::fmt;

use miserly_core::named_enum;

use super::Extras;

named_enum! {
    /// A field of the Standard Workload Format. Its value is its position from 0.
    pub enum Field {
        /// 1: job number.
        Job "job",
        /// 2: submit time, seconds from the log's start.
        Submit "submit",
        /// 3: wait time, seconds.
        Wait "wait",
        /// 4: run time, seconds.
        Runtime "runtime",
        /// 5: allocated processors.
        Allocated "allocated",
        /// 6: average CPU time used in seconds, the only field that may have decimals.
        CpuTime "cpu_time",
        /// 7: used memory, kB per processor.
        UsedMemory "used_memory",
        /// 8: requested processors.
        RequestedProcs "requested_procs",
        /// 9: requested time, seconds: the user's estimate.
        Estimate "estimate",
        /// 10: requested memory, kB per processor.
        RequestedMemory "requested_memory",
        /// 11: status.
        Status "status",
        /// 12: user.
        User "user",
        /// 13: group.
        Group "group",
        /// 14: executable.
        Executable "executable",
        /// 15: queue.
        Queue "queue",
        /// 16: partition.
        Partition "partition",
        /// 17: preceding job number.
        PrecedingJob "preceding_job",
        /// 18: think time after the preceding job, seconds.
        ThinkTime "think_time",
    }
}

impl Field {
    /// Returns the number of the field in the format, from 1.
    pub const fn number(self) -> usize {
        self as usize + 1
    }

    /// Returns whether the field is a time in seconds.
    pub const fn is_time(self) -> bool {
        use Field::{CpuTime, Estimate, Runtime, Submit, ThinkTime, Wait};
        matches!(self, Submit | Wait | Runtime | CpuTime | Estimate | ThinkTime)
    }
}

/// Maximum length of a decimal that field 6 keeps unchanged.
pub(crate) const DECIMAL_MAX: usize = 22;

/// A number with its original decimals, such as `142.00`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    len: u8,
    text: [u8; DECIMAL_MAX],
}

impl Decimal {
    /// The value of an unknown field.
    pub(crate) const UNKNOWN: Decimal = {
        let mut text = [0; DECIMAL_MAX];
        (text[0], text[1]) = (b'-', b'1');
        Decimal { len: 2, text }
    };

    /// Converts text checked by the parser: an optional sign, digits, at most one point.
    pub(crate) fn from_checked(text: &[u8]) -> Option<Decimal> {
        let mut kept = [0; DECIMAL_MAX];
        kept.get_mut(..text.len())?.copy_from_slice(text);
        Some(Decimal { len: u8::try_from(text.len()).ok()?, text: kept })
    }

    /// Returns the original text.
    pub fn as_str(&self) -> &str {
        // Only digits, a sign and a point are ever stored.
        std::str::from_utf8(&self.text[..usize::from(self.len)]).unwrap_or("-1")
    }
}

impl Default for Decimal {
    fn default() -> Decimal {
        Decimal::UNKNOWN
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A job line: eighteen fields, -1 for unknown, and extra fields. Times are in seconds, memory in kB per processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub(crate) fields: [i64; 18],
    pub(crate) cpu_time: Decimal,
    pub(super) extras: Extras,
}

impl Record {
    /// Creates a record with all fields unknown.
    pub fn unknown() -> Record {
        Record { fields: [-1; 18], cpu_time: Decimal::default(), extras: Extras::default() }
    }

    /// Returns a field; the whole part of field 6.
    pub const fn get(&self, field: Field) -> i64 {
        self.fields[field as usize]
    }

    /// Replaces a field.
    pub fn set(&mut self, field: Field, value: i64) {
        self.fields[field as usize] = value;
        if field == Field::CpuTime {
            self.cpu_time = Decimal::from_checked(value.to_string().as_bytes()).unwrap_or_default();
        }
    }

    /// Sets field 6 to an average in microseconds, rounded to hundredths of a second.
    ///
    /// ```
    /// use miserly_workload::swf::{Field, Record};
    /// let mut record = Record::unknown();
    /// record.set_cpu_time(1_499_999);
    /// assert_eq!((record.cpu_time(), record.get(Field::CpuTime)), ("1.50", 1));
    /// ```
    pub fn set_cpu_time(&mut self, micros: u64) {
        let hundredths = micros.saturating_add(5_000) / 10_000;
        let (whole, rest) = (hundredths / 100, hundredths % 100);
        self.fields[Field::CpuTime as usize] = i64::try_from(whole).unwrap_or(i64::MAX);
        self.cpu_time = Decimal::from_checked(format!("{whole}.{rest:02}").as_bytes()).unwrap_or_default();
    }

    /// Returns the extra fields.
    pub fn extras(&self) -> &Extras {
        &self.extras
    }

    /// Returns the extra fields, to be changed.
    pub fn extras_mut(&mut self) -> &mut Extras {
        &mut self.extras
    }

    /// Returns the original text of field 6.
    pub fn cpu_time(&self) -> &str {
        self.cpu_time.as_str()
    }

    /// Returns the field if the log has it: 0 or more.
    pub fn recorded(&self, field: Field) -> Option<u64> {
        u64::try_from(self.get(field)).ok()
    }

    /// Returns the field if it is positive.
    pub fn positive(&self, field: Field) -> Option<u64> {
        self.recorded(field).filter(|&value| value > 0)
    }
}
