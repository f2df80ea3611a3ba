//! The pass over the jobs for a description.

use std::collections::BTreeMap;

use miserly_core::Procs;

use super::arrivals::ArrivalCounter;
use super::by_size::{SizeCounter, buckets};
use super::estimates::EstimateCounter;
use super::extras::ExtraCounter;
use super::interest::interesting;
use super::o2k::MonthCollector;
use super::run_lengths::RunLengthCounter;
use super::spread::{Proportion, ValueCounts};
use super::{Active, COMMONEST, Description, LogSpan, OfSize, RuntimeStats, SizeStats};
use crate::jobs::ProcsField;
use crate::local_time::LocalTime;
use crate::swf::{Field, Header, Record};

/// Number of most active users, groups, queues and partitions.
const TOP: usize = 5;

#[derive(Default)]
pub(super) struct Collector {
    pub(super) jobs: u64,
    pub(super) malformed: u64,
    field: ProcsField,
    span: Option<LogSpan>,
    work: u128,
    sizes: ValueCounts,
    by_size: SizeCounter,
    run_lengths: RunLengthCounter,
    runtimes: ValueCounts,
    waits: ValueCounts,
    users: ValueCounts,
    groups: ValueCounts,
    queues: ValueCounts,
    partitions: ValueCounts,
    estimates: EstimateCounter,
    /// Created with the first job, after the header.
    arrivals: Option<ArrivalCounter>,
    /// Detected with the first job.
    month: Option<MonthCollector>,
    statuses: BTreeMap<i64, u64>,
    requested_memory: u64,
    used_memory: u64,
    extras: ExtraCounter,
    missing: [u64; 18],
}

impl Collector {
    pub(super) fn new(field: ProcsField) -> Collector {
        Collector { field, ..Collector::default() }
    }

    pub(super) fn add(&mut self, record: &Record, header: &Header) {
        if self.jobs == 0 {
            self.month = MonthCollector::from_header(header, self.field);
        }
        self.jobs += 1;
        if let Some(month) = &mut self.month {
            month.add(record);
        }
        self.add_times(record, header);
        self.add_size(record);
        self.estimates.add(record);
        self.extras.add(record);
        add_known(&mut self.runtimes, record, Field::Runtime);
        add_known(&mut self.waits, record, Field::Wait);
        add_known(&mut self.users, record, Field::User);
        add_known(&mut self.groups, record, Field::Group);
        add_known(&mut self.queues, record, Field::Queue);
        add_known(&mut self.partitions, record, Field::Partition);
        *self.statuses.entry(record.get(Field::Status)).or_default() += 1;
        self.requested_memory += u64::from(record.positive(Field::RequestedMemory).is_some());
        self.used_memory += u64::from(record.positive(Field::UsedMemory).is_some());
        for (missing, field) in self.missing.iter_mut().zip(Field::ALL) {
            *missing += u64::from(record.get(field) < 0);
        }
    }

    fn add_times(&mut self, record: &Record, header: &Header) {
        let submit = record.get(Field::Submit);
        if submit < 0 {
            return;
        }
        let end = submit + record.get(Field::Wait).max(0) + record.get(Field::Runtime).max(0);
        let only = LogSpan { first_submit: submit, last_submit: submit, last_end: end };
        let span = self.span.get_or_insert(only);
        span.first_submit = span.first_submit.min(submit);
        span.last_submit = span.last_submit.max(submit);
        span.last_end = span.last_end.max(end);
        self.arrivals.get_or_insert_with(|| ArrivalCounter::new(LocalTime::from_header(header))).add(submit);
    }

    fn add_size(&mut self, record: &Record) {
        let Some(size) = self.field.size(record) else { return };
        let runtime = record.recorded(Field::Runtime);
        self.sizes.add(size.get());
        self.by_size.add(size, runtime);
        self.run_lengths.add(record, size.get());
        self.work += u128::from(size) * u128::from(runtime.unwrap_or(0));
    }

    pub(super) fn finish(self, name: &str, procs: Option<Procs>, header: &Header) -> Description {
        let share = |count| Proportion { count, of: self.jobs };
        let value = |name| header.value(name).map(str::to_owned);
        let (estimates, study) = self.estimates.finish(&self.runtimes);
        let by_size = self.by_size.finish();
        Description {
            name: name.to_owned(),
            computer: value("Computer"),
            installation: value("Installation"),
            procs,
            jobs: self.jobs,
            malformed: self.malformed,
            span: self.span,
            work: self.work,
            runtimes: RuntimeStats {
                buckets: buckets(&by_size),
                spread: self.runtimes.spread(),
                under_a_minute: self.runtimes.share(|runtime| runtime < 60),
            },
            sizes: sizes(&self.sizes, by_size, procs),
            run_lengths: self.run_lengths.finish(),
            estimates,
            study,
            users: active(&self.users, header, Field::User),
            groups: active(&self.groups, header, Field::Group),
            arrivals: self.arrivals.map(ArrivalCounter::finish).unwrap_or_default(),
            waits: self.waits.spread(),
            statuses: self.statuses,
            requested_memory: share(self.requested_memory),
            used_memory: share(self.used_memory),
            queues: active(&self.queues, header, Field::Queue),
            partitions: active(&self.partitions, header, Field::Partition),
            extras: self.extras.finish(header, self.jobs),
            month: self.month.map(MonthCollector::finish),
            missing: Field::ALL.map(|field| (field, self.missing[field as usize])),
        }
    }
}

fn add_known(tally: &mut ValueCounts, record: &Record, field: Field) {
    if let Some(value) = record.recorded(field) {
        tally.add(value);
    }
}

fn sizes(sizes: &ValueCounts, by_size: Vec<OfSize>, procs: Option<Procs>) -> SizeStats {
    SizeStats {
        spread: sizes.spread(),
        serial: sizes.share(|size| size == 1),
        powers_of_two: sizes.share(u64::is_power_of_two),
        distinct: sizes.distinct(),
        common: sizes.common(COMMONEST),
        interesting: interesting(&by_size, procs),
        by_size,
    }
}

fn active(tally: &ValueCounts, header: &Header, field: Field) -> Active {
    Active { distinct: tally.distinct(), top: tally.common(TOP), names: header.names(field) }
}
