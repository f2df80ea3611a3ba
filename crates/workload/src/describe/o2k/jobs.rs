//! The jobs of a month, kept while a log is read.

use miserly_core::Span;
use miserly_core::lsf::Class;

use super::MonthStudy;
use crate::jobs::ProcsField;
use crate::local_time::LocalTime;
use crate::o2k::{MODEL, Month, Slot, WARM_UP};
use crate::swf::{Field, Header, Record};

/// A job submitted during the month.
#[derive(Clone, Copy, Debug)]
pub(super) struct MonthJob {
    pub(super) class: Option<Class>,
    pub(super) slot: Slot,
    pub(super) procs: u64,
    /// In seconds, as the estimate.
    pub(super) runtime: u64,
    pub(super) estimate: u64,
    /// The memory asked for, all processors together, kB; 0 if unknown.
    pub(super) requested: u64,
    /// The most memory used, all processors together, kB; 0 if unknown.
    pub(super) used: u64,
}

impl MonthJob {
    pub(super) fn is_short(&self) -> bool {
        self.runtime < 60
    }

    /// Whether it uses less than a tenth of the memory that it asks for.
    pub(super) fn is_light(&self) -> bool {
        self.used.saturating_mul(10) < self.requested
    }
}

/// Collects the jobs of a log's month.
pub(crate) struct MonthCollector {
    month: Month,
    clock: LocalTime,
    field: ProcsField,
    jobs: Vec<MonthJob>,
}

impl MonthCollector {
    /// For a log whose header says that the model `o2k` made it, and of which month; `None` for any other.
    pub(crate) fn of(header: &Header, field: ProcsField) -> Option<MonthCollector> {
        let notes = || header.comments().iter().filter_map(|comment| comment.strip_prefix("; Note: "));
        let model = notes().find_map(|note| note.strip_prefix("model "))?;
        let month = notes().find_map(|note| note.strip_prefix("parameter month="))?.parse().ok()?;
        (model == MODEL).then(|| MonthCollector { month, clock: LocalTime::of(header), field, jobs: vec![] })
    }

    /// Keeps a job if it was submitted during the month.
    pub(crate) fn add(&mut self, record: &Record) {
        let month = WARM_UP..WARM_UP + self.month.seconds();
        let Some(submit) = record.known(Field::Submit).filter(|submit| month.contains(submit)) else {
            return;
        };
        let Some(procs) = self.field.size(record) else { return };
        let seconds = |field| record.known(field).unwrap_or(0);
        let total = |field| record.known(field).unwrap_or(0).saturating_mul(procs);
        let (estimate, requested) = (seconds(Field::Estimate), total(Field::RequestedMemory));
        let span = Span::from_secs(estimate.cast_signed()).unwrap_or(Span::MAX);
        self.jobs.push(MonthJob {
            class: Class::of(procs.into(), requested, span),
            slot: Slot::of(self.clock.since_monday(submit.cast_signed())),
            procs,
            runtime: seconds(Field::Runtime),
            estimate,
            requested,
            used: total(Field::UsedMemory),
        });
    }

    pub(crate) fn finish(self) -> MonthStudy {
        MonthStudy::new(self.month, &self.hours(), &self.jobs)
    }

    /// How many hours of the month are of each slot.
    fn hours(&self) -> [u32; Slot::COUNT] {
        const HOUR: u64 = 3_600;
        let mut hours = [0; Slot::COUNT];
        for hour in 0..self.month.seconds() / HOUR {
            let second = WARM_UP + hour * HOUR;
            hours[Slot::of(self.clock.since_monday(second.cast_signed())).index()] += 1;
        }
        hours
    }
}
