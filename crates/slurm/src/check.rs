//! A check of a cluster: each command is run once, and what the commands say of the same jobs is compared.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::cluster::{Columns, SHOW_NODES, SHOW_PARTITIONS, described, named};
use crate::version::{Form, Standing, forms_of};
use crate::{
    AccountedJob, Allocated, Associations, Cluster, Configuration, Detail, Job, JobState, Node, Partition,
    Slurm, SlurmError, accounted_jobs, qualities,
};

/// The time before now from which on the accounting is read.
const ACCOUNTED: SignedDuration = SignedDuration::from_mins(1);

/// The options of a job of one processor that does nothing.
const SMALLEST: [&str; 5] =
    ["--ntasks=1", "--time=1", "--job-name=miserly-check", "--output=/dev/null", "--chdir=/"];

const SCRIPT: &str = "#!/bin/sh\nexit 0\n";

/// The comment of the probe. A reader of `scontrol` would end it too early, or find other fields in it.
const COMMENT: &str = "two  blanks StdErr=/x OverSubscribe=NO Exclusive=NODE | end";

/// What a check of a cluster found.
#[derive(Debug, Default, Serialize)]
pub struct Check {
    /// The version of the controller; none if the configuration cannot be read.
    pub version: Option<String>,
    /// What is known of this version.
    pub standing: Standing,
    /// The commands, each with its answer.
    pub commands: Vec<CommandCheck>,
    /// The forms of this version that have another one in an earlier or a later version.
    pub forms: Vec<Form>,
    /// The jobs that `squeue` and `scontrol` describe.
    pub described: u64,
    /// The running jobs that `squeue` and `sacct` describe.
    pub accounted: u64,
    /// The jobs that have their nodes to themselves, of those described.
    pub exclusive: u64,
    /// What two commands do not say alike.
    pub differences: Vec<Difference>,
    /// What `sbatch --test-only` says of a job of one processor.
    pub test_only: String,
    /// The number of the probe, if one was submitted.
    pub probe: Option<u64>,
    /// The comment of jobs into which a driver of this user would write, if it is known.
    pub driver_writes: Option<&'static str>,
    /// The configuration, as far as it could be read.
    #[serde(skip)]
    pub configuration: Configuration,
}

/// A command, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommandCheck {
    /// The command.
    pub command: &'static str,
    /// The number of things that it shows.
    pub shown: usize,
    /// Why it cannot be read, if it cannot.
    pub problem: Option<String>,
    /// Whether Miserly does without it.
    pub is_optional: bool,
}

/// Two statements on a job that differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The job.
    pub job: String,
    /// Of what they speak.
    pub what: &'static str,
    /// One statement.
    pub one: String,
    /// The other one.
    pub other: String,
}

impl Difference {
    fn new(job: &str, what: &'static str, one: String, other: impl Into<String>) -> Difference {
        Difference { job: job.to_owned(), what, one, other: other.into() }
    }
}

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {}: {}: {}, but {}", self.job, self.what, self.one, self.other)
    }
}

impl Check {
    /// Checks a cluster. With `probe` it submits a held job of one processor, and cancels it.
    ///
    /// A command that fails is a finding, and no error.
    pub fn run(slurm: &Slurm, probe: bool) -> Check {
        let mut check = Check::default();
        let cluster = check.read_cluster(slurm);
        check.version = Some(cluster.configuration.version.clone()).filter(|version| !version.is_empty());
        check.standing = cluster.configuration.standing();
        check.forms = forms_of(&cluster.configuration.version).collect();
        let columns = check.read("squeue -O", Cluster::columns(slurm), BTreeMap::len);
        check.compare_descriptions(slurm, &cluster, &columns);
        check.compare_accounting(slurm, &cluster);
        check.read_optional("sshare", Associations::read(slurm), |_| 1);
        check.read_optional("sacctmgr show qos", qualities(slurm), Vec::len);
        check.read_optional("sdiag", slurm.ask("sdiag", &[]), |answer| usize::from(!answer.text.is_empty()));
        match slurm.test_only(&SMALLEST, SCRIPT) {
            Ok(Ok(said)) => said.trim_start_matches("sbatch: ").clone_into(&mut check.test_only),
            Ok(Err(refused)) => check.test_only = format!("refused: {refused}"),
            Err(error) => drop(check.read_optional::<()>("sbatch --test-only", Err(error), |()| 0)),
        }
        if probe {
            check.probe(slurm);
        }
        check.configuration = cluster.configuration;
        check
    }

    /// Returns whether all commands that are necessary answer, and agree.
    pub fn is_clean(&self) -> bool {
        let fails = |command: &CommandCheck| command.problem.is_some() && !command.is_optional;
        self.differences.is_empty() && !self.commands.iter().any(fails)
    }

    /// Takes note of the answer of a command, and returns it.
    fn note<T>(
        &mut self,
        command: &'static str,
        is_optional: bool,
        answer: Result<T, impl Display>,
        count: impl FnOnce(&T) -> usize,
    ) -> Option<T> {
        let shown = answer.as_ref().map_or(0, count);
        let problem = answer.as_ref().err().map(ToString::to_string);
        self.commands.push(CommandCheck { command, shown, problem, is_optional });
        answer.ok()
    }

    /// Takes note of the answer of a command that is necessary.
    fn read<T: Default>(
        &mut self,
        command: &'static str,
        answer: Result<T, SlurmError>,
        count: impl FnOnce(&T) -> usize,
    ) -> T {
        self.note(command, false, answer, count).unwrap_or_default()
    }

    /// Takes note of the answer of a command that a site need not have.
    fn read_optional<T>(
        &mut self,
        command: &'static str,
        answer: Result<T, SlurmError>,
        count: impl FnOnce(&T) -> usize,
    ) -> Option<T> {
        self.note(command, true, answer, count)
    }

    fn read_cluster(&mut self, slurm: &Slurm) -> Cluster {
        let configuration = Configuration::timed(slurm).map(|(read, _)| read);
        let configuration = self.read("scontrol show config", configuration, |_| 1);
        let ask = |words: &[&str]| slurm.ask("scontrol", words);
        let nodes = ask(&SHOW_NODES).and_then(|answer| named(&answer, Node::parse));
        let nodes = self.read("scontrol show node", nodes, BTreeMap::len);
        let partitions = ask(&SHOW_PARTITIONS).and_then(|answer| named(&answer, Partition::parse));
        let partitions = self.read("scontrol show partition", partitions, BTreeMap::len);
        let reservations = Cluster::reservations(slurm);
        let reservations = self.read("scontrol show reservation", reservations, BTreeMap::len);
        let jobs = Cluster::timed_jobs(slurm).map(|(jobs, _)| jobs);
        let jobs = self.read("squeue", jobs, BTreeMap::len);
        Cluster { configuration, nodes, partitions, reservations, jobs }
    }

    /// Compares what `scontrol` and `squeue` say of the same jobs.
    fn compare_descriptions(
        &mut self,
        slurm: &Slurm,
        cluster: &Cluster,
        columns: &BTreeMap<String, Columns>,
    ) {
        let read = slurm.descriptions(&[]).and_then(|answer| {
            Ok((Detail::of_answer(slurm, cluster.jobs.values(), &answer.text, columns)?, answer.text))
        });
        let (details, text) = self.read("scontrol show job", read, |(details, _)| details.len());
        let starts = description_starts(&text);
        for (id, detail) in &details {
            let Some(job) = cluster.jobs.get(id) else { continue };
            self.described += 1;
            self.exclusive += u64::from(detail.exclusive);
            self.differences.extend(of_description(cluster, job, detail));
            // A comment may have line breaks, so its description may go on.
            let description = starts.get(&job.number).map_or("", |start| &text[*start..]);
            let values = columns.get(id).map(Columns::named).into_iter().flatten();
            for (field, text) in values.filter_map(|(field, text)| Some((field, text?))) {
                if !has_field(description, field, text) {
                    let one = format!("squeue prints {text:?}");
                    self.differences.push(Difference::new(id, field, one, "scontrol does not"));
                }
            }
        }
    }

    /// Compares what `sacct` and `squeue` say of the jobs that run.
    fn compare_accounting(&mut self, slurm: &Slurm, cluster: &Cluster) {
        let since = Timestamp::now() - ACCOUNTED;
        let read = self.read_optional("sacct", accounted_jobs(slurm, since, None, false), Vec::len);
        let running = cluster.jobs.values().filter(|job| job.state == JobState::Running);
        let running: BTreeMap<u64, &Job> = running.map(|job| (job.number, job)).collect();
        for accounted in read.unwrap_or_default() {
            let number = u64::try_from(accounted.number).unwrap_or_default();
            let runs = accounted.start.is_some() && accounted.end.is_none();
            if let Some(job) = running.get(&number).filter(|_| runs) {
                self.accounted += 1;
                self.differences.extend(of_accounting(job, &accounted));
            }
        }
    }

    /// Submits a held job of one processor, looks at it, and cancels it.
    fn probe(&mut self, slurm: &Slurm) {
        let comment = format!("--comment={COMMENT}");
        let options: Vec<&str> = ["--parsable", "--hold", &comment].into_iter().chain(SMALLEST).collect();
        let submitted = slurm.submit(&options, SCRIPT.to_owned());
        self.probe = self.note("sbatch --hold", false, submitted, |_| 1);
        let Some(number) = self.probe else { return };
        let found = found_of_probe(slurm, number);
        let still_there = |error: SlurmError| format!("{error}; the held job {number} is still there");
        self.note("scancel", false, slurm.cancel(number).map_err(still_there), |()| 1);
        match found {
            Ok(differences) => self.differences.extend(differences),
            Err(error) => self.read("squeue and scontrol of the probe", Err(error), |()| 0),
        }
    }
}

/// Returns what two commands do not say alike of a job, and what cannot be.
fn of_description(cluster: &Cluster, job: &Job, detail: &Detail) -> Vec<Difference> {
    let mut found = vec![];
    let mut differ = |what, one: String, other: String| {
        found.push(Difference::new(&job.id, what, one, other));
    };
    if detail.is_unreadable {
        differ("description", "squeue shows it".to_owned(), "scontrol's line cannot be read".to_owned());
        return found;
    }
    let of = |program: &str, number: u64| format!("{program} prints {number}");
    // `squeue` shows memory by processor as memory by node, and memory by GPU not at all.
    if let Some((one, other)) = job.memory.zip(detail.memory).map(|(one, other)| (one.mebi(), other.mebi()))
        && one != other
    {
        differ("memory, MiB", of("squeue", one), of("scontrol", other));
    }
    if job.state != JobState::Running {
        if detail.least_nodes > job.nodes {
            differ("nodes", of("squeue", job.nodes), of("scontrol", detail.least_nodes));
        }
        return found;
    }
    let nodes = detail.on.len() as u64;
    if nodes != job.nodes {
        differ("nodes", of("squeue", job.nodes), of("scontrol", nodes));
    }
    let cpus: u64 = detail.on.values().map(|on| on.cpus).sum();
    if cpus != job.cpus {
        differ("processors", of("squeue", job.cpus), of("scontrol", cpus));
    }
    let lacks = |(node, on): (&String, &Allocated)| {
        cluster
            .nodes
            .get(node)
            .filter(|node| on.cpus < node.cpus)
            .map(|whole| (node.clone(), on.cpus, whole.cpus))
    };
    if let Some((node, has, whole)) = detail.on.iter().find_map(lacks).filter(|_| detail.exclusive) {
        differ(
            "whole nodes",
            "scontrol's line is read as a job with its nodes to itself".to_owned(),
            format!("it has {has} of the {whole} processors of {node}"),
        );
    }
    found
}

/// Returns where the description of each job begins in an answer, by its number.
fn description_starts(text: &str) -> BTreeMap<u64, usize> {
    let (mut starts, mut at) = (BTreeMap::new(), 0);
    for line in text.split_inclusive('\n') {
        if let Some((number, _)) = described(line) {
            starts.entry(number).or_insert(at);
        }
        at += line.len();
    }
    starts
}

/// Returns whether a description has this field. Others may follow it.
fn has_field(descriptions: &str, field: &str, value: &str) -> bool {
    let at = format!(" {field}={value}");
    descriptions
        .match_indices(&at)
        .any(|(from, _)| descriptions[from + at.len()..].chars().next().is_none_or(char::is_whitespace))
}

fn of_accounting(job: &Job, accounted: &AccountedJob) -> Vec<Difference> {
    let said = [
        ("processors", job.cpus.to_string(), accounted.cpus.to_string()),
        ("nodes", job.on.join(" "), accounted.hosts.join(" ")),
        (
            "start",
            job.start.map_or_else(String::new, |start| start.to_string()),
            accounted.start.map_or_else(String::new, |start| start.as_second().to_string()),
        ),
    ];
    let differ = said.into_iter().filter(|(_, one, other)| one != other);
    differ
        .map(|(what, one, other)| {
            Difference::new(&job.id, what, format!("squeue prints {one}"), format!("sacct prints {other}"))
        })
        .collect()
}

/// Returns what is not as it was asked for.
fn found_of_probe(slurm: &Slurm, number: u64) -> Result<Vec<Difference>, SlurmError> {
    let cluster = Cluster::read(slurm)?;
    let id = number.to_string();
    let details = Detail::read(slurm, &cluster, std::slice::from_ref(&id))?;
    let Some((job, detail)) = cluster.jobs.get(&id).zip(details.get(&id)) else {
        let one = "sbatch accepted it".to_owned();
        return Ok(vec![Difference::new(&id, "the probe", one, "squeue or scontrol does not show it")]);
    };
    Ok(of_probe(&cluster, job, detail))
}

fn of_probe(cluster: &Cluster, job: &Job, detail: &Detail) -> Vec<Difference> {
    // Partitions may give whole cores, or whole nodes only.
    let partition = job.partitions.first().and_then(|name| cluster.partitions.get(name));
    let core = cluster.nodes.values().map(|node| node.threads).max().unwrap_or(1);
    let gives_nodes = cluster.configuration.select.contains("linear")
        || partition.is_some_and(|partition| partition.shares == "exclusive");
    let comment = detail.comment.as_deref().unwrap_or_default();
    let checks = [
        ("comment", COMMENT.to_owned(), comment.to_owned(), comment == COMMENT),
        ("state", "held".to_owned(), format!("{} with the priority {}", job.state.as_str(), job.priority), {
            job.state == JobState::Pending && job.priority == 0
        }),
        ("processors", "1".to_owned(), job.cpus.to_string(), (1..=core).contains(&job.cpus) || gives_nodes),
        ("nodes", "1".to_owned(), detail.least_nodes.to_string(), detail.least_nodes == 1),
        ("time limit", "60 s".to_owned(), format!("{} s", job.limit.seconds()), job.limit.seconds() == 60),
        ("whole nodes", "no".to_owned(), "yes".to_owned(), !detail.exclusive || gives_nodes),
    ];
    let wrong = checks.into_iter().filter(|(.., is_right)| !is_right);
    wrong
        .map(|(what, asked, read, _)| {
            let one = format!("the probe asked for {asked}");
            Difference::new(&job.id, what, one, format!("it is read as {read}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Amount;

    /// Returns a cluster with one node of eight processors, and a running job with two of them.
    fn running() -> (Cluster, Job, Detail) {
        let mut cluster = Cluster::default();
        cluster.nodes.insert("n1".into(), Node { cpus: 8, threads: 1, ..Node::default() });
        let job = Job {
            id: "7".into(),
            state: JobState::Running,
            cpus: 2,
            nodes: 1,
            memory: Some(Amount::PerNode(500)),
            on: vec!["n1".into()],
            start: Some(100),
            ..Job::default()
        };
        let on = [("n1".to_owned(), Allocated { cpus: 2, memory: 500 })].into();
        let detail = Detail { on, memory: Some(Amount::PerCpu(500)), ..Detail::default() };
        (cluster, job, detail)
    }

    fn told(found: &[Difference]) -> Vec<String> {
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn commands_that_agree_differ_in_nothing() {
        let (cluster, job, detail) = running();
        assert_eq!(of_description(&cluster, &job, &detail), []);
    }

    /// What 26.05 prints of an ordinary job would be whole nodes by the words of 25.11.
    #[test]
    fn a_word_with_another_meaning_is_found_by_the_processors_of_the_job() {
        let (cluster, job, detail) = running();
        let detail = Detail { exclusive: true, ..detail };
        assert_eq!(
            told(&of_description(&cluster, &job, &detail)),
            [
                "job 7: whole nodes: scontrol's line is read as a job with its nodes to itself, but it has 2 of the 8 processors of n1"
            ]
        );
        let mut whole = detail.clone();
        whole.on.insert("n1".into(), Allocated { cpus: 8, memory: 500 });
        assert_eq!(of_description(&cluster, &Job { cpus: 8, ..job }, &whole), []);
    }

    #[test]
    fn sizes_that_differ_are_found() {
        let (cluster, job, detail) = running();
        let found = told(&of_description(&cluster, &Job { cpus: 3, nodes: 2, ..job.clone() }, &detail));
        assert_eq!(
            found,
            [
                "job 7: nodes: squeue prints 2, but scontrol prints 1",
                "job 7: processors: squeue prints 3, but scontrol prints 2"
            ]
        );
        let memory = Job { memory: Some(Amount::PerNode(501)), ..job.clone() };
        assert_eq!(
            told(&of_description(&cluster, &memory, &detail)),
            ["job 7: memory, MiB: squeue prints 501, but scontrol prints 500"]
        );
        let waits = Job { state: JobState::Pending, ..job };
        let two = Detail { least_nodes: 2, ..detail };
        assert_eq!(of_description(&cluster, &waits, &two).len(), 1);
        let unreadable = Detail { is_unreadable: true, ..Detail::default() };
        assert_eq!(of_description(&cluster, &waits, &unreadable).len(), 1);
    }

    #[test]
    fn a_comment_is_found_to_its_last_letter() {
        let text = "JobId=7 Comment=two  blanks StdErr=/x\nJobId=8 Comment=a\nb WorkDir=/\n";
        for there in ["two  blanks", "two  blanks StdErr=/x", "a\nb"] {
            assert!(has_field(text, "Comment", there), "{there}");
        }
        for cut in ["two  blank", "a\nb W", "other"] {
            assert!(!has_field(text, "Comment", cut), "{cut}");
        }
    }

    #[test]
    fn the_accounting_is_compared_with_the_queue() {
        let (_, job, _) = running();
        let same = AccountedJob {
            number: 7,
            start: Timestamp::from_second(100).ok(),
            cpus: 2,
            hosts: vec!["n1".into()],
            ..AccountedJob::default()
        };
        assert_eq!(of_accounting(&job, &same), []);
        let other = AccountedJob { cpus: 4, start: Timestamp::from_second(160).ok(), ..same };
        assert_eq!(
            told(&of_accounting(&job, &other)),
            [
                "job 7: processors: squeue prints 2, but sacct prints 4",
                "job 7: start: squeue prints 100, but sacct prints 160"
            ]
        );
    }

    #[test]
    fn a_probe_is_read_as_it_was_asked_for() {
        let (mut cluster, _, _) = running();
        let job = Job {
            id: "9".into(),
            cpus: 1,
            nodes: 1,
            limit: crate::Limit::Seconds(60),
            partitions: vec!["batch".into()],
            ..Job::default()
        };
        let detail = Detail { least_nodes: 1, comment: Some(COMMENT.to_owned()), ..Detail::default() };
        assert_eq!(of_probe(&cluster, &job, &detail), []);
        // A comment that ends too early, and a word with another meaning.
        let cut = Detail { comment: Some("two".to_owned()), exclusive: true, ..detail.clone() };
        let whats: Vec<&str> = of_probe(&cluster, &job, &cut).iter().map(|found| found.what).collect();
        assert_eq!(whats, ["comment", "whole nodes"]);
        let whole = Partition { shares: "exclusive".into(), ..Partition::default() };
        cluster.partitions.insert("batch".into(), whole);
        assert_eq!(of_probe(&cluster, &job, &Detail { exclusive: true, ..detail }), []);
    }
}
