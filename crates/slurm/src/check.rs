//! A check of a cluster: each command is run once, and what the commands say of the same jobs is compared.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::cluster::{SHOW_NODES, SHOW_PARTITIONS, SHOW_RESERVATIONS, named};
use crate::version::{Form, Standing, forms_of};
use crate::{
    AccountedJob, Allocated, Associations, Cluster, Configuration, Detail, Job, JobState, Node, Partition,
    Reservation, Slurm, SlurmError, accounted_jobs, qualities,
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
        let comments = check.read("squeue, comments", || Cluster::comments(slurm), BTreeMap::len);
        check.compare_descriptions(slurm, &cluster, &comments);
        check.compare_accounting(slurm, &cluster);
        check.read_optional("sshare", || Associations::read(slurm), |_| 1);
        check.read_optional("sacctmgr show qos", || qualities(slurm), Vec::len);
        check.read_optional(
            "sdiag",
            || slurm.ask("sdiag", &[]),
            |answer| usize::from(!answer.text.is_empty()),
        );
        match slurm.test_only(&SMALLEST, SCRIPT) {
            Ok(Ok(said)) => check.test_only = said,
            Ok(Err(refused)) => check.test_only = format!("refused: {refused}"),
            Err(error) => check.note("sbatch --test-only", 0, Some(error.to_string()), true),
        }
        if probe {
            check.probe(slurm);
        }
        check
    }

    /// Returns whether all commands that are necessary answer, and agree.
    pub fn is_clean(&self) -> bool {
        let fails = |command: &CommandCheck| command.problem.is_some() && !command.is_optional;
        self.differences.is_empty() && !self.commands.iter().any(fails)
    }

    fn note(&mut self, command: &'static str, shown: usize, problem: Option<String>, is_optional: bool) {
        self.commands.push(CommandCheck { command, shown, problem, is_optional });
    }

    /// Reads one command.
    fn read<T: Default>(
        &mut self,
        command: &'static str,
        read: impl FnOnce() -> Result<T, SlurmError>,
        count: impl FnOnce(&T) -> usize,
    ) -> T {
        let read = read();
        let shown = read.as_ref().map_or(0, count);
        self.note(command, shown, read.as_ref().err().map(ToString::to_string), false);
        read.unwrap_or_default()
    }

    /// Reads a command that a site need not have.
    fn read_optional<T>(
        &mut self,
        command: &'static str,
        read: impl FnOnce() -> Result<T, SlurmError>,
        count: impl FnOnce(&T) -> usize,
    ) {
        let read = read();
        self.note(command, read.as_ref().map_or(0, count), read.err().map(|error| error.to_string()), true);
    }

    fn read_cluster(&mut self, slurm: &Slurm) -> Cluster {
        let configuration =
            self.read("scontrol show config", || Configuration::timed(slurm).map(|(read, _)| read), |_| 1);
        let ask = |words: &[&str]| slurm.ask("scontrol", words);
        let nodes = self.read("scontrol show node", || named(&ask(&SHOW_NODES)?, Node::parse), BTreeMap::len);
        let partitions = self.read(
            "scontrol show partition",
            || named(&ask(&SHOW_PARTITIONS)?, Partition::parse),
            BTreeMap::len,
        );
        let reservations = self.read(
            "scontrol show reservation",
            || named(&ask(&SHOW_RESERVATIONS)?, Reservation::parse),
            BTreeMap::len,
        );
        let jobs = self.read("squeue", || Cluster::timed_jobs(slurm).map(|(jobs, _)| jobs), BTreeMap::len);
        Cluster { configuration, nodes, partitions, reservations, jobs }
    }

    /// Compares what `scontrol` and `squeue` say of the same jobs.
    fn compare_descriptions(
        &mut self,
        slurm: &Slurm,
        cluster: &Cluster,
        comments: &BTreeMap<String, String>,
    ) {
        let all: Vec<String> = cluster.jobs.keys().cloned().collect();
        let details = self.read("scontrol show job", || Detail::read(slurm, cluster, &all), BTreeMap::len);
        // The whole answer: a comment may have line breaks.
        let text = slurm.descriptions(&[]).map(|answer| answer.text).unwrap_or_default();
        for (id, detail) in &details {
            let Some(job) = cluster.jobs.get(id) else { continue };
            self.described += 1;
            self.exclusive += u64::from(detail.exclusive);
            self.differences.extend(of_description(cluster, job, detail));
            if let Some(comment) = comments.get(id).filter(|comment| !has_comment(&text, comment)) {
                self.differences.push(Difference {
                    job: id.clone(),
                    what: "comment",
                    one: format!("squeue prints {comment:?}"),
                    other: "scontrol does not".to_owned(),
                });
            }
        }
    }

    /// Compares what `sacct` and `squeue` say of the jobs that run.
    fn compare_accounting(&mut self, slurm: &Slurm, cluster: &Cluster) {
        let since = Timestamp::now() - ACCOUNTED;
        let read = accounted_jobs(slurm, since, None);
        let (shown, problem) = match &read {
            Ok(jobs) => (jobs.len(), None),
            Err(error) => (0, Some(error.to_string())),
        };
        self.note("sacct", shown, problem, true);
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
        self.note(
            "sbatch --hold",
            submitted.iter().len(),
            submitted.as_ref().err().map(ToString::to_string),
            false,
        );
        let Ok(number) = submitted else { return };
        self.probe = Some(number);
        let found = found_of_probe(slurm, number);
        let cancelled = slurm.cancel(number);
        let problem = |error: SlurmError| format!("{error}; the held job {number} is still there");
        self.note("scancel", cancelled.iter().len(), cancelled.err().map(problem), false);
        match found {
            Ok(differences) => self.differences.extend(differences),
            Err(error) => self.note("squeue and scontrol of the probe", 0, Some(error.to_string()), false),
        }
    }
}

/// Returns what two commands do not say alike of a job, and what cannot be.
fn of_description(cluster: &Cluster, job: &Job, detail: &Detail) -> Vec<Difference> {
    let mut found = vec![];
    let mut differ = |what: &'static str, one: String, other: String| {
        found.push(Difference { job: job.id.clone(), what, one, other });
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

/// Returns whether a description has this comment.
fn has_comment(descriptions: &str, comment: &str) -> bool {
    let at = format!(" Comment={comment}");
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
        .map(|(what, one, other)| Difference {
            job: job.id.clone(),
            what,
            one: format!("squeue prints {one}"),
            other: format!("sacct prints {other}"),
        })
        .collect()
}

/// Returns what is not as it was asked for.
fn found_of_probe(slurm: &Slurm, number: u64) -> Result<Vec<Difference>, SlurmError> {
    let cluster = Cluster::read(slurm)?;
    let id = number.to_string();
    let details = Detail::read_with_comments(slurm, &cluster, std::slice::from_ref(&id))?;
    let Some((job, detail)) = cluster.jobs.get(&id).zip(details.get(&id)) else {
        return Ok(vec![Difference {
            job: id,
            what: "the probe",
            one: "sbatch accepted it".to_owned(),
            other: "squeue or scontrol does not show it".to_owned(),
        }]);
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
        .map(|(what, asked, read, _)| Difference {
            job: job.id.clone(),
            what,
            one: format!("the probe asked for {asked}"),
            other: format!("it is read as {read}"),
        })
        .collect()
}
