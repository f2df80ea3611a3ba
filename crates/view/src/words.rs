//! One sentence for each job: its start, and the reason of its wait.

use miserly_api::model::{JobRef, job_ranges};
use miserly_units::memory;

use crate::{Cause, Facts, Job, State};
use miserly_scene::{counted, span};

/// The most ranges of jobs that a sentence lists.
const RANGES_MOST: usize = 4;

/// The sentences on the jobs of a machine: promise, likely start and the reason of the wait; or the course.
///
/// It has the holders of the resources of each pool.
#[derive(Debug)]
pub struct Sentences<'a> {
    facts: &'a Facts,
    pools: Vec<Holders<'a>>,
}

/// The jobs of a pool that others wait for.
#[derive(Debug, Default)]
struct Holders<'a> {
    /// The jobs in their windows by their ends, each with the processors of all up to it.
    running: Vec<(&'a Job, u64)>,
    /// The jobs with a window to come, by its start.
    windows: Vec<(i64, &'a Job)>,
}

impl<'a> Sentences<'a> {
    /// Collects the holders. O(n log n) for n jobs.
    pub fn new(facts: &'a Facts) -> Sentences<'a> {
        let mut pools: Vec<Holders<'a>> = facts.pools.iter().map(|_| Holders::default()).collect();
        for job in &facts.jobs {
            let Some(pool) = pools.get_mut(job.pool) else { continue };
            if job.state == State::Running {
                pool.running.push((job, 0));
            } else if let Some(start) = job.window() {
                pool.windows.push((start, job));
            }
        }
        for pool in &mut pools {
            pool.running.sort_by_key(|(job, _)| (job.end.unwrap_or(i64::MAX), job.number));
            pool.windows.sort_by_key(|(start, job)| (*start, job.number));
            let mut sum = 0;
            for (job, up_to) in &mut pool.running {
                sum += job.procs;
                *up_to = sum;
            }
        }
        Sentences { facts, pools }
    }

    /// Returns the sentence on a job.
    pub fn sentence(&self, job: &Job) -> String {
        match job.state {
            State::Held | State::Waiting | State::Opportunistic | State::Parked => self.waiting(job),
            State::Running => self.running(job),
            State::Suspended => format!(
                "suspended{}{}",
                self.at(job.start).map_or_else(String::new, |start| format!("; started at {start}")),
                job.end.map_or_else(String::new, |end| format!("; ends by {}", self.latest(end)))
            ),
            State::Ended => self.ended(job),
        }
    }

    fn waiting(&self, job: &Job) -> String {
        let mut parts = vec![];
        match job.state {
            State::Opportunistic => parts.push("runs on idle processors".to_owned()),
            State::Parked => parts.push("ran on idle processors, and is stopped".to_owned()),
            _ => {}
        }
        match (job.promised, job.planned) {
            (Some(promised), _) => {
                let risk = |first| format!(", promised by {}: at risk", self.latest(first));
                let after = job.promised_first.filter(|_| job.unkept).map(risk).unwrap_or_default();
                parts.push(format!("starts by {}{after}", self.latest(promised)));
            }
            (None, Some(planned)) => parts.push(format!("planned for {}, not promised", self.text(planned))),
            (None, None) if job.state == State::Held => {}
            (None, None) => parts.push("no start is promised".to_owned()),
        }
        parts.extend(job.likely.map(|[median, ..]| format!("most likely {}", self.text(median))));
        parts.extend(job.causes.iter().map(|cause| self.cause(job, cause)));
        if parts.is_empty() { job.word.clone() } else { parts.join("; ") }
    }

    fn cause(&self, job: &Job, cause: &Cause) -> String {
        let others = match cause {
            Cause::Cpus { missing, .. } => self.holders(job, *missing),
            Cause::Reserved => self.next_window(job),
            _ => String::new(),
        };
        match cause {
            Cause::After { jobs } => after_text(jobs, RANGES_MOST),
            _ => cause_text(cause, &others, |at| self.text(at)),
        }
    }

    /// Returns which jobs hold the missing processors, and until when.
    fn holders(&self, job: &Job, missing: u64) -> String {
        let Some(pool) = self.pools.get(job.pool) else { return String::new() };
        let last = pool.running.partition_point(|(_, up_to)| *up_to < missing);
        let Some((ending, _)) = pool.running.get(last) else { return String::new() };
        let until = match ending.end {
            Some(end) if end < self.facts.now => ", and should have ended".to_owned(),
            Some(end) => format!(" until {}", self.text(end)),
            None => String::new(),
        };
        let until = until + &ahead(pool, job, ending);
        let label = |(job, _): &(&Job, u64)| job.label.clone();
        match last {
            0 => format!(" that job {} holds{until}", ending.label),
            1..3 => {
                let labels: Vec<String> = pool.running[..last].iter().map(label).collect();
                format!(" that jobs {} and {} hold{until}", labels.join(", "), ending.label)
            }
            _ => format!(" that {} jobs hold, job {} the longest{until}", last + 1, ending.label),
        }
    }

    /// Returns the first job for which processors are reserved, and its start.
    fn next_window(&self, job: &Job) -> String {
        let pool = self.pools.get(job.pool);
        let next = pool.and_then(|pool| pool.windows.iter().find(|(_, next)| next.number != job.number));
        next.map_or_else(String::new, |(start, next)| {
            format!(", first for job {} by {}", next.label, self.text(*start))
        })
    }

    fn running(&self, job: &Job) -> String {
        let end = match job.end {
            Some(end) if end < self.facts.now => format!("; overdue since {}", self.text(end)),
            Some(end) => format!("; ends by {}", self.latest(end)),
            None => String::new(),
        };
        format!("{} on {}{}{end}", self.since(job), counted(job.procs, "processor"), kept(job))
    }

    fn since(&self, job: &Job) -> String {
        self.at(job.start).map_or_else(|| "runs".to_owned(), |start| format!("runs since {start}"))
    }

    fn ended(&self, job: &Job) -> String {
        let end = job.end.unwrap_or(self.facts.now);
        match job.start {
            Some(start) => format!(
                "{}: ran from {} to {} ({}), after a wait of {}{}",
                job.word,
                self.text(start),
                self.text(end),
                span(end.saturating_sub(start)),
                span(start.saturating_sub(job.submitted)),
                kept(job)
            ),
            None => format!("{} at {}", job.word, self.text(end)),
        }
    }

    fn at(&self, at: Option<i64>) -> Option<String> {
        at.map(|at| self.text(at))
    }

    fn text(&self, at: i64) -> String {
        self.facts.clock.instant(at, self.facts.now)
    }

    fn latest(&self, at: i64) -> String {
        self.facts.clock.latest(at, self.facts.now)
    }
}

/// Returns the wait for the end of some jobs as text. It has their number, the first and the last one in place of more than
/// `most` ranges.
fn after_text(jobs: &[i64], most: usize) -> String {
    let ranges = job_ranges(jobs);
    if let [first, .., last] = jobs
        && ranges.len() > most
    {
        return format!("waits for the end of {} jobs ({first} to {last})", jobs.len());
    }
    let ranges: Vec<String> = ranges.iter().map(JobRef::to_string).collect();
    format!("waits for the end of {} {}", if jobs.len() == 1 { "job" } else { "jobs" }, ranges.join(", "))
}

/// Returns the reason of a wait as text.
///
/// `others` is a clause on the jobs that hold missing processors, or for which free ones are reserved.
/// `text` returns an instant as text.
pub fn cause_text(cause: &Cause, others: &str, text: impl Fn(i64) -> String) -> String {
    let only =
        |free: u64, shown: String| if free == 0 { String::new() } else { format!("; only {shown} free") };
    match cause {
        Cause::Held => "held until it is released".to_owned(),
        Cause::Begin { at } => format!("may not start before {}", text(*at)),
        Cause::After { jobs } => after_text(jobs, usize::MAX),
        Cause::ArrayLimit { limit } => {
            format!(
                "waits for a place in its array, of which at most {} run at the same time",
                counted(u64::from(*limit), "job")
            )
        }
        Cause::UserLimit { limit, most } => {
            format!("waits for a place that other jobs have: {limit} is {most} (miserly limits)")
        }
        Cause::Cpus { missing, free } => {
            let only = only(*free, free.to_string());
            format!("waits for {}{others}{only}", counted(*missing, "processor"))
        }
        Cause::Gpus { missing, free } => {
            format!("waits for {}{}", counted(*missing, "GPU"), only(*free, free.to_string()))
        }
        Cause::Memory { missing, free } => {
            format!("waits for {} of memory{}", memory(*missing), only(*free, memory(*free)))
        }
        Cause::Slots => "waits for a place in a slot: its processors are in use in every slot, \
                         and no slot may be added"
            .to_owned(),
        Cause::Reserved => format!("free processors are reserved for other jobs{others}"),
        Cause::Stated { by, reason } => format!("{by} gives the reason {reason}"),
        Cause::Reservation { name, from, to } => {
            format!("reservation {name} is from {} to {}", text(*from), text(*to))
        }
        Cause::Room { free } => format!(
            "there is room, with {} free: it waits for jobs before it, or for a condition that is not stored",
            counted(*free, "processor")
        ),
        Cause::MemoryShort => {
            "stopped because the memory of the machine is short; its window is not affected".to_owned()
        }
    }
}

/// Returns how many jobs get the freed processors before this one, in words.
fn ahead(pool: &Holders<'_>, job: &Job, ending: &Job) -> String {
    let start = job.window().filter(|start| ending.end.is_none_or(|end| *start > end));
    let before = start.map_or(0, |start| {
        pool.windows.partition_point(|(other, with)| (*other, with.number) < (start, job.number))
    });
    match before {
        0 => String::new(),
        1 => ", and for a job before it".to_owned(),
        jobs => format!(", and for {jobs} jobs before it"),
    }
}

/// Returns whether the promise to a job was kept; `None` before its start, and without a promise.
pub(crate) fn is_promise_kept(job: &Job) -> Option<bool> {
    let start = job.start.filter(|_| !job.state.is_before_start())?;
    Some(start <= job.promised_first.or(job.promised)? && !job.unkept)
}

/// Returns whether the promise to a started job was kept, in words.
fn kept(job: &Job) -> &'static str {
    match is_promise_kept(job) {
        Some(true) => "; its promise was kept",
        Some(false) => "; later than promised",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    fn running(number: i64, procs: u64, end: i64) -> Job {
        let (start, end) = (Some(0), Some(end * MINUTE));
        Job { number, label: number.to_string(), procs, state: State::Running, start, end, ..Job::default() }
    }

    fn waiting(causes: Vec<Cause>) -> Job {
        Job { number: 9, label: "9".into(), procs: 4, causes, ..Job::default() }
    }

    fn sentence(others: Vec<Job>, job: &Job) -> String {
        let mut jobs = others;
        jobs.push(job.clone());
        Sentences::new(&Facts::of_jobs(8, jobs)).sentence(job)
    }

    #[test]
    fn a_waiting_job_has_its_promise_and_the_holder_of_what_it_lacks() {
        let job = Job {
            promised: Some(80 * MINUTE),
            likely: Some([65 * MINUTE, 70 * MINUTE, 80 * MINUTE]),
            ..waiting(vec![Cause::Cpus { missing: 3, free: 0 }])
        };
        let text = "starts by 01:20; most likely 01:05; waits for 3 processors that job 2 holds until 00:30";
        assert_eq!(sentence(vec![running(1, 2, 40), running(2, 3, 30)], &job), text);
        let text =
            "starts by 01:20; most likely 01:05; waits for 3 processors that jobs 2 and 1 hold until 00:40";
        assert_eq!(sentence(vec![running(1, 2, 40), running(2, 1, 30)], &job), text);
        let many = (1..=4).map(|number| running(number, 1, 10 * number)).collect();
        let job = Job { causes: vec![Cause::Cpus { missing: 4, free: 0 }], ..job };
        let text = "starts by 01:20; most likely 01:05; \
                    waits for 4 processors that 4 jobs hold, job 4 the longest until 00:40";
        assert_eq!(sentence(many, &job), text);
    }

    #[test]
    fn a_promise_at_risk_is_beside_the_plan() {
        let job = |promised: i64| Job {
            promised: Some(promised),
            promised_first: Some(20 * MINUTE),
            unkept: true,
            ..waiting(vec![])
        };
        assert_eq!(sentence(vec![], &job(25 * MINUTE)), "starts by 00:25, promised by 00:20: at risk");
    }

    #[test]
    fn a_reservation_names_the_next_job() {
        let next = Job {
            number: 5,
            label: "5".into(),
            promised: Some(10 * MINUTE),
            ..waiting(vec![Cause::Cpus { missing: 1, free: 0 }])
        };
        let text =
            "no start is promised; free processors are reserved for other jobs, first for job 5 by 00:10";
        assert_eq!(sentence(vec![next], &waiting(vec![Cause::Reserved])), text);
    }

    #[test]
    fn jobs_that_start_before_are_counted() {
        let at = |number: i64, start: i64| Job {
            number,
            label: number.to_string(),
            promised: Some(start * MINUTE),
            ..waiting(vec![Cause::Cpus { missing: 1, free: 0 }])
        };
        let others = vec![running(1, 4, 10), at(2, 10), at(3, 20)];
        let text =
            "starts by 00:30; waits for 1 processor that job 1 holds until 00:10, and for 2 jobs before it";
        assert_eq!(sentence(others, &at(4, 30)), text);
        let text = "starts by 00:10; waits for 1 processor that job 1 holds until 00:10";
        assert_eq!(sentence(vec![running(1, 4, 10), at(3, 20)], &at(4, 10)), text);
    }

    #[test]
    fn the_course_of_a_job() {
        let job = Job { promised: Some(0), ..running(1, 4, 10) };
        let text = "runs since 00:00 on 4 processors; its promise was kept; ends by 00:10";
        assert_eq!(sentence(vec![], &job), text);
        let job = Job { state: State::Ended, word: "done".into(), ..running(1, 4, 10) };
        assert_eq!(sentence(vec![], &job), "done: ran from 00:00 to 00:10 (10 min), after a wait of 0 s");
        assert_eq!(
            sentence(vec![], &waiting(vec![Cause::After { jobs: vec![3, 4] }])),
            "no start is promised; waits for the end of jobs 3-4"
        );
    }
}
