//! Jobs and the daemon, as clients see them.

use miserly_api::model::{
    JobAllocation, JobView, LateStart, Overdue, Phase, QueueStatus, Status, WaitReason,
};
use miserly_core::{Entry, Expected, Kind, Pace, Resources, Span, State, Time};

use crate::dependency::expected_ends::{limit_end, overdue_since};
use crate::job::output_path;
use crate::view::snapshot::QueueSnapshot;
use crate::{JobState, Now, Queue, Record, Reservation, SavedEntry, Snapshot};

impl Snapshot {
    /// Returns a job as clients see it.
    pub(crate) fn view(&self, now: Now, record: &Record) -> JobView {
        let submission = &record.submission;
        let entry = record.entry.as_deref().map(SavedEntry::entry);
        let in_ledger = entry.as_ref().filter(|_| record.is_in_ledger());
        let wall = |at| now.wall_at(at);
        let waits = record.started.is_none() && !record.is_finished();
        let judged = record.promise.judged(|at| now.wall_at(at));
        let late = judged.last().and_then(|last| Some(LateStart { by: last.by?, why: last.why? }));
        JobView {
            number: record.number,
            array: record.array.map(|array| array.first),
            index: record.array.map(|array| array.index),
            name: record.name.to_string(),
            comment: submission.comment.clone(),
            uid: record.uid,
            user: (self.info.users.0)(record.uid),
            queue: record.queue.to_string(),
            cpus: submission.cpus,
            tasks: submission.tasks,
            array_limit: submission.array.as_ref().and_then(|array| array.limit),
            resizable: submission.resizable,
            wanted: submission.resizable.map(|_| record.sizes().most.get()),
            memory: record.memory.kilobytes().saturating_mul(1024),
            gpus: record.gpus(),
            gpu_type: submission.gpu_type.clone(),
            gpu_memory: submission.gpu_memory,
            gpu_share: submission.is_gpu_share(),
            has_gpus: record.run.as_ref().map(|run| run.gpus.clone()).unwrap_or_default(),
            time: record.own_limit().as_secs_f64(),
            script: submission.script.is_some(),
            command: Some(submission.command.clone()),
            directory: Some(submission.directory.clone()),
            output: Some(output_path::output(record)),
            error: Some(output_path::error(record)),
            submitted: record.submitted,
            begin: record.begin.map(wall),
            deadline: record.deadline.map(wall),
            start_by: record.start_by.filter(|_| !record.has_run() && !record.is_finished()).map(wall),
            overrun_if_idle: submission.overrun_if_idle,
            overrun: record.overrun.map(Span::as_secs_f64),
            idle_since: record.run.as_ref().and_then(|run| run.idle_since).map(wall),
            after: record.after.clone(),
            after_ok: record.after_ok.clone(),
            after_not_ok: record.after_not_ok.clone(),
            mail: submission.mail.clone(),
            restartable: submission.restartable,
            opportunistic: !submission.no_opportunistic
                && self.setup.opportunistic.is_some()
                && record.gpus() == 0,
            phase: self.phase(now, record, entry.as_ref()),
            promise: record.promise.view(waits, now.ticks, |start| record.window(now, start)),
            planned: entry.as_ref().and_then(planned_start).map(|at| now.wall_at(at)),
            forecast: None,
            reasons: self.reasons(now, record, in_ledger),
            start_reason: record.start_reason.filter(|_| record.started.is_some()),
            slots: in_ledger.and_then(|entry| self.slots(record, entry)),
            late,
            judged,
            overdue: in_ledger.and_then(|entry| overdue(now, record, entry)),
            paused: record.run.as_ref().is_some_and(|run| run.paused),
            capacity_lost: record.capacity_lost.clone(),
            epilog_failed: record.epilog_failed.clone(),
            written_out: record.is_written_out(),
            write_out_failed: record.write_out_failed.clone(),
            set_aside: record.set_aside.clone(),
            attempts: record.last_attempt(),
            runs: record.runs(),
            retried: record.retried.clone(),
            usage: record.usage.view(),
            steps: record.steps_of_last_attempt().to_vec(),
            unenforced: self.info.unenforced.iter().map(|one| one.what.clone()).collect(),
        }
    }

    /// Returns the phase of a job with a record.
    pub(crate) fn phase_of(&self, now: Now, record: &Record) -> Phase {
        let entry = record.entry.as_deref().map(SavedEntry::entry);
        self.phase(now, record, entry.as_ref())
    }

    fn phase(&self, now: Now, record: &Record, entry: Option<&Entry>) -> Phase {
        match &record.state {
            JobState::Finished(phase) => return (**phase).clone(),
            JobState::Held => return Phase::Held,
            JobState::Deferred | JobState::Queued => {}
        }
        let start = record.started.unwrap_or(now.ticks);
        let run = record.run.as_ref().filter(|run| run.counts());
        if let (true, Some(State::Suspended { until, .. })) =
            (record.is_written_out(), entry.map(|entry| &entry.state))
        {
            return self.suspended(now, record, *until);
        }
        let pace = entry.map_or(Pace::WHOLE, |entry| entry.progress.pace);
        match (run, entry.map(|entry| &entry.state)) {
            (Some(run), Some(State::Running { expected, .. })) => {
                let (Expected::At(planned) | Expected::Overdue { since: planned }) = *expected;
                let end = entry.and_then(limit_end).unwrap_or(planned);
                // The cleanup time passes at the pace of the job, too.
                let end = end - pace.time_for(record.cleanup_time(self.setup.cleanup_time));
                let start = now.wall_at(start);
                Phase::Running(JobAllocation { start, end: now.wall_at(end), cpus: run.cpus.clone() })
            }
            (Some(_), Some(State::Suspended { until, .. })) => self.suspended(now, record, *until),
            (Some(run), _) => Phase::Opportunistic { start: now.wall_at(start), parked: run.stopped },
            (None, _) => Phase::Queued,
        }
    }

    /// Returns the phase of a suspended job. If its resumption is unknown, the end is the earliest possible one.
    fn suspended(&self, now: Now, record: &Record, until: Time) -> Phase {
        let start = now.wall_at(record.started.unwrap_or(now.ticks));
        let soonest = || now.ticks + record.left(now.ticks) - self.setup.cleanup_time;
        let end = if until < Time::MAX { until } else { soonest() };
        Phase::Suspended(JobAllocation { start, end: now.wall_at(end), cpus: vec![] })
    }

    /// Returns the reasons why a job does not run.
    fn reasons(&self, now: Now, record: &Record, entry: Option<&Entry>) -> Vec<WaitReason> {
        let mut why = vec![];
        if record.state == (JobState::Held) {
            why.push(WaitReason::Held);
        }
        let state = entry.map(|entry| &entry.state);
        if record.is_finished() || matches!(state, Some(State::Running { .. })) {
            return why;
        }
        if let Some(begin) = record.begin.filter(|begin| *begin > now.ticks) {
            why.push(WaitReason::Begin { at: now.wall_at(begin) });
        }
        if !record.after.is_empty() {
            why.push(WaitReason::After { jobs: record.after.clone() });
        }
        if record.state == JobState::Deferred && why.is_empty() {
            why = self.setup.user_limits.missing_places(record, &self.taken);
        }
        if let Some(entry) = entry.filter(|entry| why.is_empty() && entry.state == State::Waiting) {
            why.extend(self.lacks(now, record, entry));
        }
        why
    }

    /// Returns the resources that a waiting job lacks, or else that the free ones are reserved.
    fn lacks(&self, now: Now, record: &Record, entry: &Entry) -> Vec<WaitReason> {
        let (Some(queue), Some(setup)) = (self.queue_state(&record.queue), self.setup.queue(&record.queue))
        else {
            return vec![];
        };
        let demand = queue.machine.amount(&entry.request);
        let held = queue.machine.capacity().less(&queue.free);
        let free = setup.pool.at(now.ticks).less(&held);
        let free = free.least(&queue.free);
        if let Some(reservation) = self.reserved(now, setup, entry, &demand, &held) {
            return vec![reservation];
        }
        // With time slices, occupied processors delay no job.
        let counts = |(kind, ..): &(Kind, &str, u64)| *kind != Kind::Cpus || queue.slots.is_none();
        let lack = |(kind, name, scale): (Kind, &str, u64)| {
            let (requested, free) = (demand.get(kind), free.get(kind));
            (requested > free).then(|| WaitReason::Resources {
                kind: name.into(),
                requested: requested * scale,
                free: free * scale,
            })
        };
        let lacks: Vec<WaitReason> =
            [(Kind::Cpus, "cpus", 1), (Kind::Memory, "memory", 1024), (Kind::Gpus, "gpus", 1)]
                .into_iter()
                .filter(counts)
                .filter_map(lack)
                .collect();
        match (lacks.is_empty(), queue.slots) {
            (false, _) => lacks,
            (true, None) => vec![WaitReason::Reserved],
            (true, Some(_)) => vec![WaitReason::Resources { kind: "slots".into(), requested: 1, free: 0 }],
        }
    }

    /// Returns the reservation without which a waiting job would start now, or which is its queue and has not begun.
    fn reserved(
        &self,
        now: Now,
        queue: &Queue,
        entry: &Entry,
        demand: &Resources,
        held: &Resources,
    ) -> Option<WaitReason> {
        let end = now.ticks + entry.request.planned();
        let is_own = |one: &&Reservation| one.name == queue.name;
        let takes = |one: &&Reservation| one.of == queue.name;
        let first = |one: &Reservation| one.times().find(|(_, to)| *to > now.ticks);
        let reason = |(one, (from, to)): (&Reservation, (Time, Time))| WaitReason::Reservation {
            name: one.name.clone(),
            from: now.wall_at(from),
            to: now.wall_at(to),
        };
        let all = &self.setup.reservations;
        if let Some(own) = all.iter().find(is_own) {
            return first(own).filter(|(from, _)| *from > now.ticks).map(|time| reason((own, time)));
        }
        let in_the_way = all.iter().filter(takes).filter_map(|one| Some((one, first(one)?)));
        let in_the_way: Vec<_> = in_the_way.filter(|(_, (from, _))| *from < end).collect();
        let fits = demand.fits_in(&queue.pool.regular_at(now.ticks).less(held));
        in_the_way.into_iter().min_by_key(|(_, (from, _))| *from).filter(|_| fits).map(reason)
    }

    /// Returns the state of the daemon.
    pub(crate) fn status(&self, now: Now) -> Status {
        let queue = |(queue, setup): (&QueueSnapshot, &Queue)| {
            let capacity = queue.machine.capacity();
            let pool = setup.pool.at(now.ticks).least(&capacity);
            let held = capacity.less(&queue.free);
            let memory = pool.get(Kind::Memory);
            QueueStatus {
                name: setup.name.clone(),
                policy: setup.policy.to_string(),
                stopped: self.stopped.mistake(&setup.name).cloned(),
                promises: setup.policy.promises().name().into(),
                cpus: pool.cpus_count().get(),
                memory: (memory > 0).then_some(memory * 1024),
                cpus_held: held.cpus_count().get(),
                memory_held: held.get(Kind::Memory) * 1024,
                gpus: pool.get(Kind::Gpus),
                gpus_held: held.get(Kind::Gpus),
                default_time: setup.terms.default_time.map(Span::as_secs_f64),
                max_time: setup.terms.most_time.map(Span::as_secs_f64),
                running: queue.running,
                waiting: queue.jobs - queue.running,
            }
        };
        let counts = self.values.promises.counts();
        let at_risk = self.jobs.iter().filter(|record| record.promise.is_at_risk(now.ticks)).count();
        Status {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: self.info.pid,
            since: self.began,
            now: now.wall,
            state: self.info.state.clone(),
            configuration: self.info.configuration.clone(),
            configuration_problem: self.configuration_problem.clone(),
            draining: self.values.is_draining(),
            cpus: self.setup.cpus.len() as u64,
            damage: self.unreadable_jobs(),
            adopted: self.adopted(now),
            set_aside: self.set_aside_jobs(),
            queues: self.queues.iter().zip(&self.setup.queues).map(queue).collect(),
            slurm: self.info.slurm.clone(),
            unenforced: self.info.unenforced.clone(),
            critical_priority: self.info.critical_priority.clone(),
            promises: counts.given,
            kept: counts.kept,
            late: counts.late,
            lost: counts.lost,
            withdrawn: counts.withdrawn,
            open: counts.open(),
            at_risk: (at_risk + self.unrecorded.unreadable_waiting().count()) as u64,
            earlier: counts.earlier,
            broken: counts.broken,
            missed: self.values.promises.missed(now),
            waiting_shims: self.jobs.iter().filter(|record| record.waits.is_some()).count() as u64,
            needs_daemon_from: self.needs_daemon.map(|at| now.wall_at(at)),
            ..Status::default()
        }
    }
}

/// Returns since when a job is overdue, and why.
fn overdue(now: Now, record: &Record, entry: &Entry) -> Option<Overdue> {
    let run = record.run.as_ref()?;
    let since = now.wall_at(overdue_since(entry)?);
    Some(Overdue { since, cause: run.overdue.clone().unwrap_or_default() })
}

/// Returns the start that the policy of a job plans, if one is known.
fn planned_start(entry: &Entry) -> Option<Time> {
    entry.planned.filter(|at| *at < Time::MAX)
}
