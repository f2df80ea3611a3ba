//! The facts at an earlier instant.

use std::sync::Arc;

use crate::{Cause, Facts, HostFacts, Job, PoolFacts, State};
use miserly_scene::DAY;

impl Facts {
    /// Returns the facts at an earlier instant, as far as they follow from these: jobs with the states that they had then, and the
    /// resources that waiting jobs lacked.
    ///
    /// Forecasts, other reasons and the free capacity of that time are not known. Promises are the last ones, pools have their
    /// present processors, and a job has the processors of its end.
    #[must_use]
    pub fn at(&self, now: i64) -> Facts {
        let mut pools: Vec<PoolFacts> = self.pools.iter().map(PoolFacts::without_present).collect();
        // Of the jobs that had ended, those of the last day count for what is shown.
        let day_before = now.saturating_sub(DAY);
        let counts =
            |job: &&Arc<Job>| job.state != State::Ended || job.end.is_none_or(|end| end > day_before);
        let mut jobs: Vec<Arc<Job>> =
            self.jobs.iter().filter(counts).filter_map(|job| job_at(job, now)).collect();
        for job in jobs.iter().filter(|job| job.state == State::Running) {
            if let Some(pool) = pools.get_mut(job.pool) {
                pool.held += job.procs;
                pool.memory_held += job.memory;
            }
        }
        for job in jobs.iter_mut().filter(|job| job.state.is_before_start()) {
            let causes = pools.get(job.pool).map(|pool| causes(pool, job, now)).unwrap_or_default();
            Arc::make_mut(job).causes = causes;
        }
        let (clock, title) = (self.clock.clone(), self.title.clone());
        let (uid, account) = (self.uid, self.account.clone());
        Facts { now, clock, title, live: false, earlier: now < self.now, uid, pools, jobs, account }
    }
}

/// Returns why a job does not run, as far as it follows from its request and from the jobs that run.
fn causes(pool: &PoolFacts, job: &Job, now: i64) -> Vec<Cause> {
    if job.state == State::Held {
        return vec![Cause::Held];
    }
    if let Some(at) = job.begin.filter(|begin| *begin > now) {
        return vec![Cause::Begin { at }];
    }
    // Jobs that take turns have more processors than there are.
    let Some(free) = pool.cpus.checked_sub(pool.held).filter(|_| !pool.shared) else { return vec![] };
    let mut causes = vec![];
    let missing = job.procs.saturating_sub(free);
    if missing > 0 {
        causes.push(Cause::Cpus { missing, free });
    }
    let memory_free = pool.memory.saturating_sub(pool.memory_held);
    let missing = job.memory.saturating_sub(memory_free);
    if missing > 0 && pool.memory > 0 {
        causes.push(Cause::Memory { missing, free: memory_free });
    }
    if causes.is_empty() {
        causes.push(Cause::Room { free });
    }
    causes
}

impl PoolFacts {
    /// Returns the pool without what is known of the present only.
    fn without_present(&self) -> PoolFacts {
        let host = |host: &HostFacts| HostFacts {
            name: host.name.clone(),
            first: host.first,
            cpus: host.cpus,
            memory: host.memory,
            ..HostFacts::default()
        };
        PoolFacts {
            held: 0,
            memory_held: 0,
            offline: 0,
            numbers_offline: vec![],
            hosts: self.hosts.iter().map(host).collect(),
            slices: vec![],
            ..self.clone()
        }
    }
}

/// Returns the job as it was at an earlier instant; `None` before its submission.
fn job_at(job: &Arc<Job>, now: i64) -> Option<Arc<Job>> {
    if job.submitted > now {
        return None;
    }
    // An attempt before the last start ended without a result, and the job waited again.
    let attempt = || job.stays.iter().take_while(|stay| stay.from <= now).last().filter(|stay| now < stay.to);
    let started = job.start.filter(|start| *start <= now).or_else(|| Some(attempt()?.from));
    let ended = job.end.filter(|end| job.state == State::Ended && *end <= now);
    let (state, word) = match (started, ended, job.state) {
        (_, Some(_), _) => return Some(Arc::clone(job)),
        (Some(_), None, State::Ended) if !job.stays.is_empty() && attempt().is_none() => {
            (State::Suspended, "suspended")
        }
        (Some(_), None, State::Opportunistic | State::Parked) => (State::Opportunistic, "opportunistic"),
        (Some(_), None, _) => (State::Running, "running"),
        (None, None, State::Held) => (State::Held, "held"),
        (None, None, _) => (State::Waiting, "queued"),
    };
    let end = started.filter(|_| state == State::Running).map(|start| start.saturating_add(job.limit));
    let (word, start) = (word.to_owned(), started);
    let cpus = attempt().map_or_else(|| job.cpus.clone(), |stay| stay.cpus.clone());
    let cpus = if state == State::Running { cpus } else { vec![] };
    let (causes, stays) = (vec![], vec![]);
    Some(Arc::new(Job { state, word, start, end, cpus, causes, stays, likely: None, ..Job::clone(job) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Moment, Part, Stay};

    /// Returns a job that was submitted at 0, with its start and its end.
    fn job(number: i64, procs: u64, memory: u64, start: i64, end: i64) -> Job {
        Job {
            number,
            label: number.to_string(),
            procs,
            memory,
            limit: end - start,
            state: State::Ended,
            start: Some(start),
            end: Some(end),
            likely: Some([start; 3]),
            ..Job::default()
        }
    }

    fn facts() -> Facts {
        let jobs = [
            job(1, 6, 10, 0, 100),
            job(2, 4, 10, 100, 200),
            job(3, 2, 100, 100, 200),
            job(4, 1, 10, 200, 300),
        ];
        let pools = vec![PoolFacts { cpus: 8, memory: 100, ..PoolFacts::default() }];
        Facts { now: 1000, pools, ..Facts::of_jobs(0, jobs) }
    }

    #[test]
    fn the_resources_that_a_job_lacked_are_known() {
        let then = facts().at(50);
        let causes: Vec<&[Cause]> = then.jobs.iter().map(|job| &*job.causes).collect();
        let [cpus, memory] =
            [[Cause::Cpus { missing: 2, free: 2 }], [Cause::Memory { missing: 10, free: 90 }]];
        assert_eq!(causes, [&[], &cpus[..], &memory, &[Cause::Room { free: 2 }]]);
        assert!(then.earlier && then.jobs[1].likely.is_none());
        let sentences: Vec<String> =
            Moment::new(&then).waiting.into_iter().map(|line| line.sentence).collect();
        assert_eq!(
            sentences,
            [
                "no start is promised; waits for 2 processors that job 1 holds until 00:00; only 2 free",
                "no start is promised; waits for 10B of memory; only 90B free",
                "no start is promised; there is room, with 2 processors free: it waits for jobs before it, \
                 or for a condition that is not stored",
            ]
        );
    }

    #[test]
    fn a_job_is_in_the_attempt_of_the_instant() {
        let stay = |from, to, cpu| Stay { from, to, part: Part::Run, cpus: vec![(cpu, cpu)] };
        let requeued = Job {
            stays: vec![stay(100, 150, 3), stay(200, 230, 5), stay(260, 300, 6)],
            ..job(1, 1, 0, 200, 300)
        };
        let facts = Facts { now: 1000, jobs: vec![requeued.into()], ..facts() };
        let then = |now| {
            let job = facts.at(now).jobs[0].clone();
            (job.state, job.start, job.cpus.clone())
        };
        assert_eq!(then(120), (State::Running, Some(100), vec![(3, 3)]));
        assert_eq!(then(160), (State::Waiting, None, vec![]));
        assert_eq!(then(210), (State::Running, Some(200), vec![(5, 5)]));
        assert_eq!(then(240), (State::Suspended, Some(200), vec![]));
        assert_eq!(then(270), (State::Running, Some(200), vec![(6, 6)]));
    }

    #[test]
    fn an_earliest_start_is_known() {
        let wanted = Job { begin: Some(60), ..job(2, 4, 10, 100, 200) };
        let facts = Facts { now: 1000, jobs: vec![wanted.into()], ..facts() };
        let causes = |now| facts.at(now).jobs[0].causes.clone();
        assert_eq!((causes(59), causes(60)), (vec![Cause::Begin { at: 60 }], vec![Cause::Room { free: 8 }]));
    }

    #[test]
    fn the_last_instant_is_no_earlier_one() {
        assert!(!facts().at(1000).earlier && !facts().earlier);
        assert_eq!(Moment::new(&facts().at(50)).note.as_deref().map(|note| &note[..11]), Some("no forecast"));
        assert_eq!(Moment::new(&facts()).note, None);
    }

    #[test]
    fn a_pool_that_shares_its_processors_gives_no_reasons() {
        let mut facts = facts();
        facts.pools[0].shared = true;
        assert!(facts.at(50).jobs.iter().all(|job| job.causes.is_empty()));
    }

    #[test]
    fn jobs_that_take_turns_give_no_reasons() {
        let mut facts = facts();
        facts.jobs.push(job(5, 6, 0, 0, 100).into());
        assert!(facts.at(50).jobs.iter().all(|job| job.causes.is_empty()));
    }
}
