//! The jobs of a month, collected while a log is read.

use miserly_classes::lsf::Class;
use miserly_core::{Procs, Span};

use super::MonthStudy;
use crate::jobs::ProcsField;
use crate::local_time::LocalTime;
use crate::o2k::{MODEL, Month, WARM_UP, WeekSlot};
use crate::swf::{Field, Header, Record};

const HOUR: u64 = 3_600;

/// The hours of a week.
pub(super) const HOURS_OF_WEEK: usize = 7 * 24;

/// A job submitted during the month.
#[derive(Clone, Copy, Debug)]
pub(super) struct MonthJob {
    pub(super) class: Option<Class>,
    pub(super) slot: WeekSlot,
    /// The hour of the week of its submission, from Monday midnight, local time.
    pub(super) hour: usize,
    pub(super) procs: u64,
    /// In seconds, as the estimate.
    pub(super) runtime: u64,
    pub(super) estimate: u64,
    /// Requested memory of all processors in kB; 0 if unknown.
    pub(super) requested: u64,
    /// Maximum memory used by all processors in kB; 0 if unknown.
    pub(super) used: u64,
}

impl MonthJob {
    pub(super) fn is_short(&self) -> bool {
        self.runtime < 60
    }

    /// Returns whether the job uses less than a tenth of its requested memory.
    pub(super) fn is_light(&self) -> bool {
        self.used.saturating_mul(10) < self.requested
    }
}

/// A collector of the jobs of a log's month.
pub(crate) struct MonthCollector {
    month: Month,
    clock: LocalTime,
    field: ProcsField,
    jobs: Vec<MonthJob>,
}

impl MonthCollector {
    /// Creates the collector if the header names the model `o2k` and its month, else returns
    /// `None`.
    pub(crate) fn from_header(header: &Header, field: ProcsField) -> Option<MonthCollector> {
        let notes = || header.comments().iter().filter_map(|comment| comment.strip_prefix("; Note: "));
        let model = notes().find_map(|note| note.strip_prefix("model "))?;
        let month = notes().find_map(|note| note.strip_prefix("parameter month="))?.parse().ok()?;
        (model == MODEL).then(|| MonthCollector {
            month,
            clock: LocalTime::from_header(header),
            field,
            jobs: vec![],
        })
    }

    /// Adds a job if it was submitted during the month.
    pub(crate) fn add(&mut self, record: &Record) {
        let month = WARM_UP..WARM_UP + self.month.seconds();
        let Some(submit) = record.recorded(Field::Submit).filter(|submit| month.contains(submit)) else {
            return;
        };
        let Some(procs) = self.field.size(record).map(Procs::get) else { return };
        let seconds = |field| record.recorded(field).unwrap_or(0);
        let total = |field| record.recorded(field).unwrap_or(0).saturating_mul(procs);
        let (estimate, requested) = (seconds(Field::Estimate), total(Field::RequestedMemory));
        let span = Span::from_secs(estimate.cast_signed()).unwrap_or(Span::MAX);
        self.jobs.push(MonthJob {
            class: Class::for_request(procs.into(), requested, span),
            slot: WeekSlot::at(self.clock.since_monday(submit.cast_signed())),
            hour: self.hour(submit),
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

    /// Returns how often the month has each hour of the week.
    fn hours(&self) -> [u32; HOURS_OF_WEEK] {
        let mut hours = [0; HOURS_OF_WEEK];
        for hour in 0..self.month.seconds() / HOUR {
            hours[self.hour(WARM_UP + hour * HOUR)] += 1;
        }
        hours
    }

    /// Returns the hour of the week of a second of the log.
    fn hour(&self, second: u64) -> usize {
        let hour = self.clock.since_monday(second.cast_signed()).div_euclid(HOUR.cast_signed());
        usize::try_from(hour.rem_euclid(7 * 24)).unwrap_or_default()
    }
}
