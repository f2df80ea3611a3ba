//! The extra fields of the jobs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::spread::Proportion;
use crate::swf::{Extra, ExtraKind, Field, Header, Record};

/// Number of commonest values.
const TOP: usize = 5;

/// An extra field of the jobs of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtraStats {
    /// The field.
    pub extra: Extra,
    /// Jobs that have it.
    pub known: Proportion,
    /// Number of different values.
    pub distinct: u64,
    /// Commonest values with their jobs, of equals the smallest.
    pub common: Vec<(String, Proportion)>,
    /// Sum of the values, if they are numbers.
    pub total: Option<f64>,
    /// Sum of values times runtimes in hours, if they are numbers: GPU hours.
    pub hours: Option<f64>,
}

/// The counts of one field.
#[derive(Default)]
struct Counts {
    jobs: u64,
    /// Jobs of each value: its number, 0 for texts, and its text.
    values: BTreeMap<(u64, String), u64>,
    total: u128,
    /// Sum of number times seconds.
    seconds: u128,
}

#[derive(Default)]
pub(super) struct ExtraCounter([Counts; Extra::ALL.len()]);

impl ExtraCounter {
    pub(super) fn add(&mut self, record: &Record) {
        if record.extras().is_empty() {
            return;
        }
        for (extra, counts) in Extra::ALL.into_iter().zip(&mut self.0) {
            let Some(text) = record.extras().text(extra) else { continue };
            let number = record.extras().number(extra).unwrap_or_default();
            counts.jobs += 1;
            *counts.values.entry((number, text.into_owned())).or_default() += 1;
            counts.total += u128::from(number);
            let runtime = record.recorded(Field::Runtime).unwrap_or_default();
            counts.seconds += u128::from(number) * u128::from(runtime);
        }
    }

    /// Returns the fields that the header names.
    pub(super) fn finish(self, header: &Header, jobs: u64) -> Vec<ExtraStats> {
        let columns = header.extra_columns();
        let named = Extra::ALL.into_iter().zip(self.0).filter(|(extra, _)| columns.has(*extra));
        named.map(|(extra, counts)| counts.finish(extra, jobs)).collect()
    }
}

impl Counts {
    fn finish(self, extra: Extra, jobs: u64) -> ExtraStats {
        let unit = match extra.kind() {
            ExtraKind::Text => None,
            ExtraKind::Whole => Some(1.0),
            ExtraKind::Thousandths => Some(1000.0),
        };
        let distinct = self.values.len() as u64;
        let mut values: Vec<_> = self.values.into_iter().collect();
        values.sort_by_key(|(_, count)| Reverse(*count));
        values.truncate(TOP);
        let share = |count| Proportion { count, of: jobs };
        ExtraStats {
            extra,
            known: share(self.jobs),
            distinct,
            common: values.into_iter().map(|((_, text), count)| (text, share(count))).collect(),
            total: unit.map(|unit| self.total as f64 / unit),
            hours: unit.map(|unit| self.seconds as f64 / unit / 3600.0),
        }
    }
}
