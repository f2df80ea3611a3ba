//! The lines that jobs write.

use std::collections::BTreeMap;
use std::fs;

use crate::support::Daemon;

/// A function of the shell that writes a line: `b` at the beginning and `e` at the end of a job, the job, its attempt, the
/// instant, and its processors. Short lines that are appended do not mix.
pub(super) const SIGNS: &str = "signs() { echo $1 $MISERLY_JOB_ID $MISERLY_ATTEMPT $(date +%s.%N) \
    $(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status) $MISERLY_JOB_NAME >> ran; };";

/// A run of an attempt, as the job saw it. Instants are real, in seconds since 1970.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) attempt: u32,
    pub(super) began: f64,
    /// None if it did not come to its last command.
    pub(super) ended: Option<f64>,
    /// The processors at the beginning, and at the end.
    cpus: [String; 2],
    name: String,
}

/// The runs of each job, in the order in which they began.
pub(super) struct Runs(pub(super) BTreeMap<i64, Vec<Run>>);

impl Runs {
    #[track_caller]
    pub(super) fn read(daemon: &Daemon) -> Runs {
        let mut runs: BTreeMap<i64, Vec<Run>> = BTreeMap::new();
        for line in fs::read_to_string(daemon.path("ran")).unwrap_or_default().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [kind, job, attempt, at, cpus, name] = words[..] else { panic!("a line of a job: {line}") };
            let (job, at) = (job.parse::<i64>().expect("a number"), at.parse().expect("an instant"));
            let attempt: u32 = attempt.parse().expect("a number");
            let of_job = runs.entry(job).or_default();
            if kind == "b" {
                let [cpus, name] = [cpus, name].map(str::to_owned);
                of_job.push(Run { attempt, began: at, ended: None, cpus: [cpus.clone(), cpus], name });
                continue;
            }
            let run = of_job.last_mut().filter(|run| run.attempt == attempt && run.ended.is_none());
            let run =
                run.unwrap_or_else(|| panic!("job {job} ended an attempt that it did not begin: {line}"));
            (run.ended, run.cpus[1]) = (Some(at), cpus.to_owned());
        }
        Runs(runs)
    }

    pub(super) fn of(&self, job: i64) -> &[Run] {
        self.0.get(&job).map_or(&[], Vec::as_slice)
    }

    /// No attempt runs twice, and a number is that of one job.
    #[track_caller]
    pub(super) fn check_attempts(&self) {
        for (job, runs) in &self.0 {
            assert!(
                runs.is_sorted_by(|one, next| one.attempt < next.attempt),
                "job {job} ran twice: {runs:?}"
            );
            assert!(runs.iter().all(|run| run.name == runs[0].name), "number {job} was used again: {runs:?}");
        }
    }

    /// No two runs of these jobs have a processor at one time.
    ///
    /// The jobs run in windows only. A run that moved to other processors is left out.
    #[track_caller]
    pub(super) fn check_processors(&self, jobs: impl Fn(i64) -> bool) {
        let of_jobs = self.0.iter().filter(|(job, _)| jobs(**job));
        let mut spans: Vec<(f64, f64, &str, i64)> = vec![];
        for (job, runs) in of_jobs {
            for run in runs.iter().filter(|run| run.cpus[0] == run.cpus[1]) {
                spans.push((run.began, run.ended.unwrap_or(run.began), &run.cpus[0], *job));
            }
        }
        spans.sort_by(|one, other| one.0.total_cmp(&other.0));
        for (nth, one) in spans.iter().enumerate() {
            for other in spans[nth + 1..].iter().take_while(|other| other.0 < one.1) {
                let shared = list(one.2).into_iter().find(|cpu| list(other.2).contains(cpu));
                let [first, second] = [one.3, other.3].map(|job| (job, &self.0[&job]));
                assert!(shared.is_none(), "two jobs ran on a processor: {first:#?} {second:#?}");
            }
        }
    }
}

/// Parses a list of processors as the kernel writes it.
fn list(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.parse::<u32>().expect("a processor");
        number(first)..=number(last)
    };
    text.split(',').flat_map(range).collect()
}
