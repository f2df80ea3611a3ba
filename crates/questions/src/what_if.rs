//! The difference that a change makes to a log.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anyhow::{Context, bail, ensure};
use clap::Args;
use miserly_core::{Kind, Procs, Resources, Span, Time};
use miserly_forecast::{
    GroupDifference, JobDifference, SHAKE, Spread, Variant, WhatIf, added_job, coverage, what_if,
};
use miserly_machine_file::HOSTS_MOST;
use miserly_options::values::{job_time, procs, seconds};
use miserly_options::{By, groupings, machine_named};
use miserly_policies::PolicySpec;
use miserly_report::{WhatIfDoc, WhatIfGroupDoc, WhatIfJobDoc, WhatIfRunDoc, WhatIfSlowdownDoc};
use miserly_run::{RunOptions, RunSetup};
use miserly_sim::{Grouping, Job};
use miserly_units::{duration_rounded, parse_memory as memory};
use miserly_workload::{ArrivalScaling, Factor, Feedback};

/// A what-if question about a log.
pub struct Question<'a> {
    /// The policy in use, and one in its place, if any.
    pub policies: &'a [PolicySpec],
    /// The change.
    pub change: &'a ChangeArgs,
    /// How jobs follow each other.
    pub feedback: Option<Feedback>,
    /// The groups of jobs; else ranges that suit the log.
    pub by: Option<By>,
    /// The copies of the log with moved submissions.
    pub copies: u64,
}

/// The answer to a what-if question.
pub struct WhatIfAnswer {
    /// The differences.
    pub document: WhatIfDoc,
    /// The difference of each job, in the order of submission.
    pub jobs: Vec<JobDifference>,
    /// The two runs, each with its policy and the number of its jobs that started.
    pub runs: [(RunSetup, PolicySpec, u64); 2],
}

impl Question<'_> {
    /// Answers the question for a log. `progress` has the number of simulations that are done.
    ///
    /// # Errors
    /// If there is no change, or a run fails.
    pub fn answer(&self, log: RunSetup, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<WhatIfAnswer> {
        ensure!(
            log.options().jobs.shake == 0,
            "--shake: what-if moves the submissions of its copies itself (--copies)"
        );
        let (policy, new_policy) = match self.policies {
            [policy] => (policy, None),
            [policy, new] => (policy, (new != policy).then_some(new)),
            [] => bail!("--policy: a log needs the policy in use, such as --policy easy"),
            _ => bail!("--policy: three policies; give the one in use, and one in its place"),
        };
        let changes = self.change.words(new_policy)?;
        let before = log.with_feedback(self.feedback);
        let groups = match groupings(&before, self.by.as_slice())?.first() {
            Some(groups) => *groups,
            None => before.suited_ranges()?.grouping(),
        };
        let before = before.grouped(&[groups]);
        let options = self.change.options(before.options().clone(), &before)?;
        let after = before.with_options(options)?;
        let job = self.change.job(&after)?;
        let new_policy = new_policy.unwrap_or(policy);
        let variants = [
            Variant { setup: &before, policy, added: None },
            Variant { setup: &after, policy: new_policy, added: job.as_ref() },
        ];
        let [without, with] = variants;
        let result = what_if(without, with, groups, self.copies, progress)?;
        ensure!(!result.jobs.is_empty(), "{}: no job of the log is in the run", before.trace.name());
        let ended =
            [jobs_that(&result, |job| job.before.is_some()), jobs_that(&result, |job| job.after.is_some())];
        let document = document(variants, changes, (groups, self.copies), &result);
        let [jobs_before, jobs_after] = ended;
        let runs = [(before, policy.clone(), jobs_before), (after, new_policy.clone(), jobs_after)];
        Ok(WhatIfAnswer { document, jobs: result.jobs, runs })
    }
}

impl WhatIfAnswer {
    /// Writes one row per job, in the order of submission, as CSV.
    ///
    /// # Errors
    /// The output fails.
    pub fn write_jobs(&self, output: &mut dyn Write) -> io::Result<()> {
        let columns = "job_id,submission_time,procs,user,wait_without,wait_with,difference,least,largest";
        writeln!(output, "{columns}")?;
        self.jobs.iter().try_for_each(|job| writeln!(output, "{}", row(job)))
    }
}

/// What is changed; several changes act together.
#[derive(Debug, Args)]
#[command(next_help_heading = "Changes")]
pub struct ChangeArgs {
    /// Adds a job of N processors
    #[arg(long, value_name = "N", value_parser = procs(), requires = "time", allow_negative_numbers = true)]
    pub cpus: Option<Procs>,

    /// The time limit of the added job, such as 4h
    #[arg(long, value_name = "TIME", value_parser = job_time, requires = "cpus")]
    pub time: Option<Span>,

    /// The runtime of the added job [default: its time limit]
    #[arg(long, value_name = "TIME", value_parser = job_time, requires_all = ["cpus", "trace"])]
    pub runtime: Option<Span>,

    /// The memory of the added job, such as 8GiB [default: none]
    #[arg(long, value_name = "SIZE", value_parser = memory, requires = "cpus")]
    pub memory: Option<u64>,

    /// The submission of the added job, in log time: seconds, or 90min, 12h, 7d [default: that of the last job]
    #[arg(long, value_name = "T", value_parser = seconds, requires_all = ["cpus", "trace"], allow_negative_numbers = true)]
    pub at: Option<i64>,

    /// Gives the machine N processors; without a log, the queue
    #[arg(long, value_name = "N", value_parser = procs(), allow_negative_numbers = true)]
    pub new_procs: Option<Procs>,

    /// Replaces the machine: a built-in name, a number of processors, or a machine file (docs/machines.md)
    #[arg(long, requires = "trace", value_name = "MACHINE", conflicts_with_all = ["new_procs", "add_hosts", "lose"])]
    pub new_machine: Option<String>,

    /// Adds hosts to the machine: a number, or KIND=N where it has several kinds of hosts
    #[arg(long, requires = "trace", value_name = "N", value_parser = added_hosts, conflicts_with = "new_procs")]
    pub add_hosts: Option<(Option<String>, u32)>,

    /// Removes hosts from the machine, by name, separated by commas; repeatable
    #[arg(
        long,
        requires = "trace",
        value_name = "HOST",
        value_delimiter = ',',
        conflicts_with = "new_procs"
    )]
    pub lose: Vec<String>,

    /// Multiplies the load by F: divides the times between submissions
    #[arg(
        long,
        requires = "trace",
        value_name = "F",
        conflicts_with = "offline",
        allow_negative_numbers = true
    )]
    pub load: Option<Factor>,

    /// Leaves out the jobs of these users, by number or by a name in the header, separated by commas; repeatable
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_negative_numbers = true)]
    pub without_user: Vec<String>,
}

/// Returns the number of jobs for which this is so.
fn jobs_that(result: &WhatIf, is: fn(&JobDifference) -> bool) -> u64 {
    result.jobs.iter().filter(|job| is(job)).count() as u64
}

impl ChangeArgs {
    /// Returns the changes in words.
    ///
    /// # Errors
    /// If there is none.
    fn words(&self, policy: Option<&PolicySpec>) -> anyhow::Result<Vec<String>> {
        let mut words = Vec::new();
        if let (Some(cpus), Some(time)) = (self.cpus, self.time) {
            let at = self
                .at
                .and_then(Span::from_secs)
                .map(|at| format!(", submitted at {}", duration_rounded(at)));
            let (time, at) = (duration_rounded(time), at.unwrap_or_default());
            words.push(format!("a further job of {cpus} processors for {time}{at}"));
        }
        words.extend(policy.map(|policy| format!("policy {policy}")));
        words.extend(self.new_procs.map(|procs| format!("{procs} processors")));
        words.extend(self.new_machine.as_ref().map(|machine| format!("machine {machine}")));
        words.extend(self.add_hosts.as_ref().map(|(_, number)| format!("{number} hosts more")));
        words.extend((!self.lose.is_empty()).then(|| format!("without host {}", self.lose.join(", "))));
        words.extend(self.load.map(|load| format!("load x {}", load.as_f64())));
        let users = &self.without_user;
        words.extend((!users.is_empty()).then(|| format!("without user {}", users.join(", "))));
        ensure!(
            !words.is_empty(),
            "no change: give a job (--cpus and --time), a second --policy, a machine (--new-procs, --new-machine, \
             --add-hosts, --lose), a --load, or --without-user"
        );
        Ok(words)
    }

    /// Returns the options of the run with the change.
    fn options(&self, mut options: RunOptions, before: &RunSetup) -> anyhow::Result<RunOptions> {
        if let Some(procs) = self.new_procs {
            (options.machine, options.procs) = (None, Some(procs));
        }
        if let Some(word) = &self.new_machine {
            options.machine = Some(machine_named(word).context("--new-machine")?);
        }
        if let Some((kind, number)) = &self.add_hosts {
            let machine = before.machine().clone().adding(*number, kind.as_deref());
            options.machine = Some(machine.context("--add-hosts")?);
        }
        if !self.lose.is_empty() {
            let machine = options.machine.unwrap_or_else(|| before.machine().clone());
            options.machine = Some(machine.losing(&self.lose).context("--lose")?);
        }
        if let Some(load) = self.load {
            options.jobs.arrivals = ArrivalScaling::Scaled(match options.jobs.arrivals {
                ArrivalScaling::Scaled(factor) => factor.times(load),
                ArrivalScaling::Logged | ArrivalScaling::Offline => load,
            });
        }
        options.without_users.clone_from(&self.without_user);
        Ok(options)
    }

    /// Returns the added job.
    fn job(&self, after: &RunSetup) -> anyhow::Result<Option<Job>> {
        let (Some(cpus), Some(limit)) = (self.cpus, self.time) else { return Ok(None) };
        let resources = Resources::cpus(cpus).with(Kind::Memory, self.memory.unwrap_or(0).div_ceil(1024));
        let submit = match self.at {
            Some(seconds) => Time::from_secs(seconds).context("--at: the time is too large")?,
            None => last_submission(after)?,
        };
        let job = added_job(submit, resources, limit, self.runtime.unwrap_or(limit));
        ensure!(
            after.machine().machine().could_hold(&job.request),
            "--cpus {cpus}: the job can never run on the machine of {} processors; request less",
            after.procs()
        );
        Ok(Some(job))
    }
}

fn last_submission(setup: &RunSetup) -> anyhow::Result<Time> {
    let mut last = Time::ZERO;
    for job in setup.jobs()? {
        last = last.max(job?.request.submit);
    }
    Ok(last)
}

fn document(
    [before, after]: [Variant<'_>; 2],
    changes: Vec<String>,
    (groups, copies): (Grouping, u64),
    result: &WhatIf,
) -> WhatIfDoc {
    let run = |variant: Variant<'_>| WhatIfRunDoc {
        policy: variant.policy.to_string(),
        machine: variant.setup.machine().to_string(),
        procs: variant.setup.procs().get(),
    };
    let [names, user_names] = [groups, Grouping::User].map(|by| before.setup.group_names(by));
    let with_name = |names: &BTreeMap<String, String>, key: String, found: &GroupDifference| {
        let name = names.get(&key).cloned();
        group(key, name, found)
    };
    let user = |user: &Option<u32>| user.map_or_else(|| "unknown".to_owned(), |user| user.to_string());
    let mut by_user: Vec<WhatIfGroupDoc> =
        result.by_user.iter().map(|(number, found)| with_name(&user_names, user(number), found)).collect();
    let total = |group: &WhatIfGroupDoc| (group.difference * group.jobs as f64).abs();
    by_user.sort_by(|a, b| total(b).total_cmp(&total(a)));
    WhatIfDoc {
        version: env!("CARGO_PKG_VERSION"),
        trace: before.setup.name().to_owned(),
        before: run(before),
        after: run(after),
        changes,
        copies,
        moved: SHAKE.into(),
        only_before: jobs_that(result, |job| job.before.is_some() && job.after.is_none()),
        only_after: jobs_that(result, |job| job.before.is_none() && job.after.is_some()),
        coverage: (copies > 0).then(|| coverage(copies)),
        significant: result.significant,
        job: after.added.map(|job| added(job, result)),
        all: group("all".to_owned(), None, &result.all),
        bounded_slowdown: WhatIfSlowdownDoc {
            before: result.slowdown[0],
            after: result.slowdown[1],
            difference: result.slowdown_difference.value,
            median: result.slowdown_difference.median(),
            range: result.slowdown_difference.range(),
        },
        groups: groups.to_string(),
        by_group: result
            .by_group
            .iter()
            .map(|(key, found)| with_name(&names, key.to_string(), found))
            .collect(),
        by_user,
    }
}

fn added(job: &Job, result: &WhatIf) -> WhatIfJobDoc {
    let outcome = result.added.as_ref();
    WhatIfJobDoc {
        submit: (job.request.submit - Time::ZERO).as_secs_f64(),
        procs: job.request.procs().get(),
        time: job.request.estimate.as_secs_f64(),
        wait: outcome.and_then(|added| added.wait).map(Span::as_secs_f64),
        promise: outcome.and_then(|added| added.promise).map(Span::as_secs_f64),
        range: outcome.and_then(miserly_forecast::Added::range).map(|ends| ends.map(Span::as_secs_f64)),
    }
}

fn group(group: String, name: Option<String>, found: &GroupDifference) -> WhatIfGroupDoc {
    let spread: &Spread = &found.difference;
    WhatIfGroupDoc {
        group,
        name,
        jobs: found.jobs,
        longer: found.longer,
        shorter: found.shorter,
        before: found.before,
        after: found.after,
        difference: spread.value,
        median: spread.median(),
        range: spread.range(),
        signs: spread.signs(),
    }
}

/// Returns the row of a job. Unknown values are empty.
fn row(job: &JobDifference) -> String {
    let known = |span: Option<Span>| span.map(|span| span.as_secs_f64().to_string()).unwrap_or_default();
    let [before, after, difference] = [job.before, job.after, job.difference()].map(known);
    let [least, largest] = [0, 1].map(|at| known(job.range.map(|range| range[at])));
    let user = job.user.map(|user| user.to_string()).unwrap_or_default();
    let (number, submit, procs) = (job.number, (job.submit - Time::ZERO).as_secs_f64(), job.procs);
    format!("{number},{submit},{procs},{user},{before},{after},{difference},{least},{largest}")
}

/// Parses hosts to add: `N`, or `KIND=N`.
fn added_hosts(text: &str) -> Result<(Option<String>, u32), String> {
    let (kind, number) =
        text.rsplit_once('=').map_or((None, text), |(kind, number)| (Some(kind.to_owned()), number));
    let number = number.parse().ok().filter(|number| (1..=HOSTS_MOST).contains(&u64::from(*number)));
    let problem = || format!("must be a number of hosts, 1 to {HOSTS_MOST}, or KIND=N");
    Ok((kind, number.ok_or_else(problem)?))
}
