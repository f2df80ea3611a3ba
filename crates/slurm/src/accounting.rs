//! The accounting of a cluster, as a job log.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};

use jiff::Timestamp;
use miserly_core::{Request, Resources, Span, Time};
use miserly_forecast::Forecaster;
use miserly_import::{ImportOptions, ImportedLog, columns, slurm};
use miserly_workload::Trace;
use miserly_workload::swf::Field;

use crate::submission::{Submission, one_of_each};
use crate::{NodeNeeds, Slurm, SlurmError, gpus, hosts};

/// Returns the jobs of the accounting that ran between two instants, with the report of the losses.
///
/// # Errors
/// If there is no accounting, or it cannot be read.
pub fn log(
    cluster: &Slurm,
    since: Timestamp,
    until: Option<Timestamp>,
    options: &ImportOptions,
) -> Result<ImportedLog, SlurmError> {
    let answer = ask(cluster, since, until, &columns(), "|")?;
    Ok(slurm(&Trace::memory("sacct", answer.into_bytes()), options)?)
}

/// A run of a job, or a job that waits, in the words of the accounting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountedJob {
    /// Its number.
    pub number: i64,
    /// The start; none while it waits.
    pub start: Option<Timestamp>,
    /// The end, if it has ended.
    pub end: Option<Timestamp>,
    /// Its processors.
    pub cpus: u64,
    /// Its GPUs, on all nodes together, if the accounting has them (`AccountingStorageTRES`).
    pub gpus: u64,
    /// The least number of nodes that it asked for.
    pub nodes: u64,
    /// The most nodes, if the line of its submission has a limit, or its script, where the accounting stores scripts.
    pub most_nodes: Option<u64>,
    /// Whether the line of its submission, or its script, asks for whole nodes.
    pub exclusive: bool,
    /// What it asked of the kind of its nodes: features and types of GPUs.
    pub needs: NodeNeeds,
    /// What a second of it costs by the weights of its partition (`TRESBillingWeights`), if it has run.
    pub billing: Option<u64>,
    /// The hosts of the run.
    pub hosts: Vec<String>,
    /// The account.
    pub account: String,
    /// The name of the user.
    pub user: String,
    /// The partition.
    pub partition: String,
    /// Whether the run ended because the job was preempted.
    pub is_preempted: bool,
}

impl AccountedJob {
    /// Returns what a second of it costs: by the weights of its partition, or else its processors.
    pub(crate) fn charge(&self) -> f64 {
        self.billing.unwrap_or(self.cpus) as f64
    }
}

/// Returns what a processor-second of these jobs costs in the mean; 1 without weights.
pub fn processor_billing<'a>(jobs: impl Iterator<Item = &'a AccountedJob>) -> f64 {
    let (mut all, mut procs) = (0.0, 0.0);
    for job in jobs {
        let Some((start, end)) = job.start.zip(job.end) else { continue };
        let seconds = end.duration_since(start).as_secs_f64().max(0.0);
        all += job.charge() * seconds;
        procs += job.cpus as f64 * seconds;
    }
    if all > 0.0 && procs > 0.0 { all / procs } else { 1.0 }
}

/// Returns the jobs of the accounting that ran or waited between two instants. `with_scripts`: the options in their scripts are read too.
///
/// # Errors
/// If there is no accounting, or it cannot be read.
pub fn accounted_jobs(
    cluster: &Slurm,
    since: Timestamp,
    until: Option<Timestamp>,
    with_scripts: bool,
) -> Result<Vec<AccountedJob>, SlurmError> {
    const COLUMNS: &str = "JobID,JobIDRaw,Start,End,AllocCPUS,ReqTRES,AllocTRES,ReqNodes,NodeList,Constraints,Account,User,Partition,\
        State,SubmitLine";
    // A user can write anything into the last column, lines like these too. This mark nobody can foresee.
    let mark = format!("|{:x}|", RandomState::new().hash_one(0));
    let answer = ask(cluster, since, until, COLUMNS, &mark)?;
    let mut jobs: Vec<Accounted> = answer.lines().filter_map(|line| Accounted::parse(line, &mark)).collect();
    if with_scripts {
        // The tasks of an array have one script.
        let with_script = jobs.iter().filter(|job| job.submission.has_script && !job.id.contains('['));
        let ids: BTreeMap<&str, &str> = with_script.map(|job| (job.array(), job.id.as_str())).collect();
        let scripts = scripts(cluster, &ids.values().copied().collect::<Vec<_>>());
        let of_array: BTreeMap<String, &String> =
            ids.into_iter().filter_map(|(array, id)| Some((array.to_owned(), scripts.get(id)?))).collect();
        for job in &mut jobs {
            if let Some(script) = of_array.get(job.array()) {
                job.submission.add_script(script);
            }
        }
    }
    Ok(jobs.into_iter().map(Accounted::with_options).collect())
}

/// The most jobs whose scripts are asked for at a time.
const SCRIPTS: usize = 500;

/// Returns the scripts of jobs, by name. Those that the accounting does not give are left out.
fn scripts(cluster: &Slurm, jobs: &[&str]) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for jobs in jobs.chunks(SCRIPTS) {
        let Ok(answer) = cluster.ask("sacct", &["-a", "-B", "-j", &jobs.join(",")]) else { continue };
        let (found, forged) = parse_scripts(&answer.text, jobs);
        all.extend(found);
        for job in forged {
            // An answer on one job begins with its own script.
            let answer = cluster.ask("sacct", &["-a", "-B", "-j", &job]);
            let text = answer.map(|answer| answer.text).unwrap_or_default();
            all.extend(text.split_once(RULE).map(|(_, script)| (job, script.to_owned())));
        }
    }
    all
}

/// What stands between the name of a job and its script.
const RULE: &str = "\n--------------------------------------------------------------------------------\n";

/// Returns the scripts in an answer on some jobs, and the jobs that have several there: a script may look like the begin of another one.
fn parse_scripts(text: &str, jobs: &[&str]) -> (BTreeMap<String, String>, BTreeSet<String>) {
    let (mut found, mut forged) = (BTreeMap::new(), BTreeSet::new());
    let mut parts = text.split(RULE).peekable();
    let mut before = parts.next().unwrap_or_default();
    while let Some(script) = parts.next() {
        let name = before.rsplit('\n').next().and_then(|line| line.strip_prefix("Batch Script for "));
        // The last line before a rule is the name of the next script.
        let end = if parts.peek().is_some() { script.rfind('\n').unwrap_or(0) } else { script.len() };
        if let Some(name) = name.filter(|name| jobs.contains(name))
            && found.insert(name.to_owned(), script[..end].to_owned()).is_some()
        {
            forged.insert(name.to_owned());
        }
        before = script;
    }
    (found, forged)
}

/// A line of the accounting.
struct Accounted {
    /// The name: its number, or those of its array and its task.
    id: String,
    job: AccountedJob,
    submission: Submission,
}

impl Accounted {
    /// Reads a line. The names of the columns are no job.
    fn parse(line: &str, mark: &str) -> Option<Accounted> {
        let [
            id,
            number,
            start,
            end,
            cpus,
            requested,
            allocated,
            nodes,
            list,
            features,
            account,
            user,
            partition,
            state,
            submission,
        ] = line.split(mark).collect::<Vec<_>>().try_into().ok()?;
        let billing = allocated.split(',').find_map(|one| one.strip_prefix("billing=")?.parse().ok());
        let job = AccountedJob {
            number: number.parse().ok()?,
            start: instant(start),
            end: instant(end),
            cpus: cpus.parse().ok()?,
            gpus: gpus(requested),
            nodes: nodes.parse().unwrap_or(1),
            most_nodes: None,
            exclusive: false,
            needs: NodeNeeds {
                features: Some(features.to_owned()).filter(|list| !list.is_empty()),
                gpu_types: one_of_each(requested),
                ..NodeNeeds::default()
            },
            billing,
            hosts: hosts(list).unwrap_or_default(),
            account: account.to_owned(),
            user: user.to_owned(),
            partition: partition.to_owned(),
            is_preempted: state == "PREEMPTED",
        };
        Some(Accounted { id: id.to_owned(), job, submission: Submission::of_line(submission) })
    }

    /// Returns the name of the array, or that of the job.
    fn array(&self) -> &str {
        self.id.split(['_', '+']).next().unwrap_or_default()
    }

    /// Returns the job with the options of its submission.
    fn with_options(self) -> AccountedJob {
        let Accounted { mut job, submission, .. } = self;
        job.most_nodes = submission.nodes.map(|(_, most)| most);
        job.exclusive = submission.exclusive;
        // Where the accounting counts no types, the options have them.
        if job.needs.gpu_types.is_empty() {
            job.needs.gpu_types = submission.gpu_types.unwrap_or_default();
        }
        job
    }
}

/// Returns the instant of a number of seconds since 1970.
pub(crate) fn instant(text: &str) -> Option<Timestamp> {
    Timestamp::from_second(text.parse().ok()?).ok()
}

/// Returns these columns of the accounting of the jobs that ran between two instants, with their names and this mark between them.
fn ask(
    cluster: &Slurm,
    since: Timestamp,
    until: Option<Timestamp>,
    columns: &str,
    mark: &str,
) -> Result<String, SlurmError> {
    let local =
        |at: Timestamp| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let (since, until) = (local(since), until.map(local));
    let mut arguments = vec!["-X", "-D", "-P", "-a", "-S", &since];
    if let Some(until) = &until {
        arguments.extend(["-E", until]);
    }
    let delimiter = format!("--delimiter={mark}");
    arguments.extend([&delimiter, "-o", columns]);
    Ok(cluster.ask("sacct", &arguments)?.text)
}

/// Adds the runtimes of the jobs of a log to the base of forecasts. Users have to have their own ids in it.
///
/// Returns the number of jobs.
pub fn learn(forecaster: &mut Forecaster, log: &ImportedLog) -> u64 {
    let mut learned = 0;
    for record in &log.records {
        let field = |field| Some(record.get(field)).filter(|value| *value > 0);
        let (Some(runtime), Some(procs)) = (field(Field::Runtime), field(Field::Allocated)) else { continue };
        let estimate = field(Field::Estimate).unwrap_or(runtime);
        let span = |seconds| Span::from_secs(seconds).unwrap_or(Span::MAX);
        let user = u32::try_from(record.get(Field::User)).ok();
        let demand = Resources::cpus(procs.unsigned_abs());
        let request = Request::new(record.get(Field::Job), Time::ZERO, span(estimate), demand);
        forecaster.learn(&Request { user, ..request }, span(runtime));
        learned += 1;
    }
    learned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_jobs_that_wait() {
        let lines = "JobID#JobIDRaw#Start#End#AllocCPUS#ReqTRES#AllocTRES#ReqNodes#NodeList#Constraints#Account#User#Partition#State#SubmitLine\n\
            7#7#100#160#4#cpu=4,gres/gpu=2#billing=9,cpu=4#2#node[1-2]#fast&ib#lab#ann#batch#PREEMPTED#sbatch a|b\n\
            9|9|1|2|4|||1|node9||lab|ann|batch|x\n\
            8_[1-2]#8#Unknown#Unknown#0###1#None assigned##lab#ann#batch#PENDING#sbatch -N1 --gres=gpu:t4:2 job.sh\n\
            7#7#300#Unknown#4#gres/gpu:a100=2,gres/gpu=2##2#node3##lab#ann#batch#RUNNING#sbatch --gpus=t4:1 x\n";
        let read: Vec<AccountedJob> = lines
            .lines()
            .filter_map(|line| Accounted::parse(line, "#"))
            .map(Accounted::with_options)
            .collect();
        let nodes: Vec<&[String]> = read.iter().map(|job| &job.hosts[..]).collect();
        assert_eq!([nodes[0], nodes[2]], [&["node1", "node2"][..], &["node3"]]);
        let times: Vec<[Option<i64>; 2]> =
            read.iter().map(|job| [job.start, job.end].map(|at| at.map(Timestamp::as_second))).collect();
        assert_eq!(times, [[Some(100), Some(160)], [None, None], [Some(300), None]]);
        assert_eq!((read[0].nodes, read[0].gpus, read[0].user.as_str()), (2, 2, "ann"));
        assert_eq!([read[0].most_nodes, read[1].most_nodes], [None, Some(1)]);
        assert_eq!((read[0].billing, read[0].needs.features.as_deref()), (Some(9), Some("fast&ib")));
        assert_eq!([0, 1, 2].map(|nth| read[nth].is_preempted), [true, false, false]);
        let types = |job: &AccountedJob| job.needs.gpu_types.keys().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!([&read[0], &read[1], &read[2]].map(types), ["", "t4", "a100"]);
    }

    #[test]
    fn a_processor_costs_what_jobs_cost_in_the_mean() {
        let job = |cpus, billing, seconds: i64| AccountedJob {
            start: Timestamp::from_second(100).ok(),
            end: Timestamp::from_second(100 + seconds).ok(),
            cpus,
            billing,
            ..AccountedJob::default()
        };
        let of = |jobs: &[AccountedJob]| processor_billing(jobs.iter());
        assert_eq!(of(&[job(3, None, 7), job(2, Some(2), 11)]).to_bits(), 1.0_f64.to_bits());
        assert_eq!(of(&[]).to_bits(), 1.0_f64.to_bits());
        let mean = of(&[job(1, Some(10), 30), job(1, Some(2), 10)]);
        assert!((mean - 8.0).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn a_script_that_looks_like_another_one_is_asked_for_again() {
        let script = |job: &str, text: &str| format!("Batch Script for {job}{RULE}{text}\n");
        let text = script("7", "#SBATCH -N1\n") + &script("8_3", "NONE\n") + &script("9", "#SBATCH -N2\n");
        let (found, forged) = parse_scripts(&text, &["7", "8_3", "9"]);
        assert_eq!((found["7"].as_str(), found["8_3"].as_str()), ("#SBATCH -N1\n", "NONE\n"));
        assert_eq!((found["9"].as_str(), forged.len()), ("#SBATCH -N2\n\n", 0));
        let forging = script("7", &script("9", "#SBATCH -N5\n")) + &script("9", "#SBATCH -N2\n");
        assert_eq!(parse_scripts(&forging, &["7", "9"]).1, ["9".to_owned()].into());
        assert_eq!(parse_scripts(&script("7", &script("5", "x")), &["7"]).0.len(), 1);
    }
}
