//! Jobs and the daemon itself as people see them.

use miserly_core::{Expected, Kind, Pace, Span, State, Time};

use super::saved::SavedEntry;
use super::{Engine, Hands, Record, Stands};
use crate::clock::Now;
use crate::model::{
    Holding, JobView, LateStart, Phase, PromiseView, QueueStatus, Status, Told, ToldWhy, Why,
};

impl<H: Hands> Engine<H> {
    /// A job as people see it.
    pub(super) fn view(&self, now: Now, record: &Record) -> JobView {
        let submission = &record.submission;
        let wall = |ticks: i64| now.wall_at(Time::from_ticks(ticks));
        JobView {
            number: record.number,
            array: record.array.map(|(first, _)| first),
            index: record.array.map(|(_, index)| index),
            name: record.name.clone(),
            uid: record.uid,
            user: crate::users::name(record.uid),
            queue: record.queue.clone(),
            cpus: submission.cpus,
            memory: record.memory.saturating_mul(1024),
            time: Span::from_ticks(record.time).as_secs_f64(),
            command: submission.command.clone(),
            script: submission.script.is_some(),
            directory: submission.directory.clone(),
            output: super::paths::output(record),
            error: super::paths::error(record),
            submitted: wall_of(record.submitted),
            begin: record.begin.map(wall),
            deadline: record.deadline.map(wall),
            after: record.after.clone(),
            restartable: submission.restartable,
            opportunistic: !submission.no_opportunistic && self.setup.early.is_some(),
            phase: self.phase(now, record),
            promise: record.promise(now),
            planned: record.entry.as_ref().and_then(|entry| entry.entry().planned).map(|at| now.wall_at(at)),
            reasons: self.reasons(now, record),
            slots: self.slots(record),
            late: record.late.map(|(by, why)| LateStart { by: by as f64 / 1e6, why: why.told() }),
            attempts: record.attempts,
            unenforced: self.unenforced.iter().map(|one| one.what.clone()).collect(),
        }
    }

    fn phase(&self, now: Now, record: &Record) -> Phase {
        match &record.stands {
            Stands::Over(phase) => return (**phase).clone(),
            Stands::Back { held: true } => return Phase::Held,
            Stands::Back { held: false } | Stands::In => {}
        }
        let start = record.started.map_or(now.ticks, Time::from_ticks);
        let run = record.run.as_ref().filter(|run| run.ending.is_none() || run.critical);
        let entry = record.entry.as_ref().map(SavedEntry::entry);
        let pace = entry.as_ref().map_or(Pace::WHOLE, |entry| entry.progress.pace);
        match (run, entry.map(|entry| entry.state)) {
            (Some(run), Some(State::Running { expected, .. })) => {
                let (Expected::At(end) | Expected::Overdue { since: end }) = expected;
                // At its pace, as the rest of what is planned.
                let end = end - pace.time_for(record.handover(self.setup.handover));
                let start = now.wall_at(start);
                Phase::Critical(Holding { start, end: now.wall_at(end), cpus: run.cpus.clone() })
            }
            (Some(_), Some(State::Suspended { until, .. })) => {
                let start = now.wall_at(start);
                // Where nobody knows when it goes on: as soon as it could be over.
                let soonest = || now.ticks + record.left(now.ticks) - self.setup.handover;
                let end = if until < Time::MAX { until } else { soonest() };
                Phase::Suspended(Holding { start, end: now.wall_at(end), cpus: vec![] })
            }
            (Some(run), _) => Phase::Opportunistic { start: now.wall_at(start), parked: run.stopped },
            (None, _) => Phase::Batch,
        }
    }

    /// Why it does not run.
    fn reasons(&self, now: Now, record: &Record) -> Vec<Why> {
        let mut why = vec![];
        if record.stands == (Stands::Back { held: true }) {
            why.push(Why::Held);
        }
        if record.is_over() || self.running.contains(&record.number) {
            return why;
        }
        if let Some(begin) = record.begin.map(Time::from_ticks).filter(|begin| *begin > now.ticks) {
            why.push(Why::Begin { at: now.wall_at(begin) });
        }
        if !record.after.is_empty() {
            why.push(Why::After { jobs: record.after.clone() });
        }
        if why.is_empty() && self.waits(record.number) {
            why.extend(self.lacks(record));
        }
        why
    }

    /// What there is too little of, or else that what is free is kept for others.
    fn lacks(&self, record: &Record) -> Vec<Why> {
        let Some(job) = self.handles.get(&record.number) else { return vec![] };
        let Some(ledger) = self.system.ledger_of(*job) else { return vec![] };
        let (demand, free) = (ledger.machine().demand(ledger.request(*job)), ledger.free());
        // Where time is sliced, others on the processors keep nobody waiting.
        let counts = |(kind, ..): &(Kind, &str, u64)| *kind != Kind::Cpus || ledger.matrix().is_none();
        let lack = |(kind, name, scale): (Kind, &str, u64)| {
            let (asked, free) = (demand.get(kind), free.get(kind));
            (asked > free).then(|| Why::Resources {
                kind: name.into(),
                asked: asked * scale,
                free: free * scale,
            })
        };
        let lacks: Vec<Why> = [(Kind::Cpus, "cpus", 1), (Kind::Memory, "memory", 1024)]
            .into_iter()
            .filter(counts)
            .filter_map(lack)
            .collect();
        match (lacks.is_empty(), ledger.matrix()) {
            (false, _) => lacks,
            (true, None) => vec![Why::Reserved],
            (true, Some(_)) => vec![Why::Resources { kind: "slots".into(), asked: 1, free: 0 }],
        }
    }

    /// How the daemon is.
    pub(super) fn status(&self, now: Now) -> Status {
        let queue = |(queue, setup): (&miserly_core::Driver, &super::Queue)| {
            let ledger = queue.ledger();
            let pool = setup.pool.at(now.ticks).least(&ledger.machine().capacity());
            let held = ledger.machine().capacity().less(&ledger.free());
            let memory = pool.get(Kind::Memory);
            QueueStatus {
                name: setup.name.clone(),
                policy: setup.policy.to_string(),
                promises: setup.policy.promises().as_str().into(),
                cpus: pool.cpus_count().get(),
                memory: (memory > 0).then_some(memory * 1024),
                cpus_held: held.cpus_count().get(),
                memory_held: held.get(Kind::Memory) * 1024,
                running: ledger.running_count() as u64,
                waiting: self.records.values().filter(|record| record.queue == setup.name).count() as u64
                    - ledger.running_count() as u64,
            }
        };
        Status {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: i32::try_from(std::process::id()).unwrap_or_default(),
            since: wall_of(self.began),
            now: now.wall,
            state: self.about.state.clone(),
            configuration: self.about.configuration.clone(),
            draining: self.draining,
            cpus: self.setup.cpus.len() as u64,
            queues: self.system.queues().iter().zip(&self.setup.queues).map(queue).collect(),
            unenforced: self.unenforced.clone(),
            promises: self.counts.promises,
            broken: self.counts.broken,
            late: self.counts.late,
        }
    }
}

impl Record {
    fn promise(&self, now: Now) -> Option<PromiseView> {
        let (first, last) = (self.told.first()?, self.told.last()?);
        let window = |start: i64| self.window(now, Time::from_ticks(start));
        let told = |(nth, told): (usize, &super::ToldAt)| Told {
            at: wall_of(told.at),
            start: now.wall_at(Time::from_ticks(told.start)),
            why: match told.broken {
                Some(why) => why.told(),
                None if nth == 0 => ToldWhy::Submitted,
                None => ToldWhy::Earlier,
            },
        };
        let broken = self.told.iter().find_map(|told| told.broken);
        Some(PromiseView {
            told: window(first.start),
            now: window(last.start),
            broken: broken.map(|why| why.told().as_str().into()),
            history: self.told.iter().enumerate().map(told).collect(),
        })
    }
}

impl super::SavedBroken {
    const fn told(self) -> ToldWhy {
        match self {
            super::SavedBroken::Overdue => ToldWhy::Overdue,
            super::SavedBroken::Away => ToldWhy::Away,
            super::SavedBroken::Capacity => ToldWhy::Capacity,
            super::SavedBroken::Amended => ToldWhy::Amended,
        }
    }
}

fn wall_of(micros: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}
