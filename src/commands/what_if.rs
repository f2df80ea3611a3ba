//! `miserly what-if`: the difference that a change makes to a log.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use miserly_core::{Kind, Resources, Span, Time};
use miserly_forecast::{
    GroupDifference, JobDifference, SHAKE, Spread, Variant, WhatIf, added_job, coverage, what_if,
};
use miserly_policies::PolicySpec;
use miserly_report::page::exported;
use miserly_report::{
    AtomicFile, WhatIfDoc, WhatIfGroupDoc, WhatIfJobDoc, WhatIfRunDoc, WhatIfSlowdownDoc, what_if_sections,
    what_if_table,
};
use miserly_run::{RunOptions, RunSetup};
use miserly_sim::{Grouping, Job};
use miserly_units::duration_rounded;
use miserly_workload::{ArrivalScaling, Estimates};

use crate::args::{ChangeArgs, WhatIfArgs};
use crate::commands::live::what_if as ask_daemon;
use crate::output::{print, print_json, refuse_the_input_itself};
use crate::page::Shown;
use crate::progress::Progress;
use crate::run_options::{machine_named, prepare};
use crate::warnings::warn_of_missing_facts;

pub(crate) fn run(args: &WhatIfArgs) -> anyhow::Result<()> {
    let Some(trace) = &args.trace else {
        ensure!(args.table.format().is_none(), "--markdown, --latex and --csv: give a log");
        return ask_daemon(args);
    };
    if let Some(path) = &args.jobs {
        refuse_the_input_itself(trace, "--jobs", path)?;
    }
    ensure!(args.run.shake == 0, "--shake: what-if moves the submissions of its copies itself (--copies)");
    let (policy, new_policy) = match args.policy.as_slice() {
        [policy] => (policy, None),
        [policy, new] => (policy, (new != policy).then_some(new)),
        [] => bail!("--policy: a log needs the policy in use, such as --policy easy"),
        _ => bail!("--policy: three policies; give the one in use, and one in its place"),
    };
    let changes = args.change.words(new_policy)?;
    let before = prepare(trace, &args.run, Estimates::default())?.with_feedback(args.feedback);
    let groups = Shown::new(&before, args.by.as_slice())?.pays;
    let before = before.grouped(&[groups]);
    let options = args.change.options(before.options().clone(), &before)?;
    let after = before.with_options(options)?;
    let job = args.change.job(&after)?;
    let variants = [
        Variant { setup: &before, policy, added: None },
        Variant { setup: &after, policy: new_policy.unwrap_or(policy), added: job.as_ref() },
    ];
    let progress = Progress::with_unit("simulations", 2 * (args.copies + 1));
    let [without, with] = variants;
    let result = what_if(without, with, groups, args.copies, &|runs| progress.add(runs))?;
    drop(progress);
    ensure!(!result.jobs.is_empty(), "{}: no job of the log is in the run", before.trace.name());
    let ended =
        [jobs_that(&result, |job| job.before.is_some()), jobs_that(&result, |job| job.after.is_some())];
    let runs = variants.iter().zip(ended).map(|(variant, jobs)| (variant.setup, variant.policy, jobs));
    warn_of_missing_facts(runs)?;
    if let Some(path) = &args.jobs {
        write_jobs(path, &result.jobs).with_context(|| format!("--jobs {}", path.display()))?;
    }
    let document = document(variants, changes, (groups, args.copies), &result);
    let style = args.table.style();
    match args.table.format() {
        _ if args.json => print_json(&document),
        Some(format) => print(&exported(&what_if_sections(&document, style), format)),
        None => print(&what_if_table(&document, style)),
    }
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

/// Writes one row per job, in the order of submission.
fn write_jobs(path: &Path, jobs: &[JobDifference]) -> io::Result<()> {
    AtomicFile::write(path, |output| {
        let columns = "job_id,submission_time,procs,user,wait_without,wait_with,difference,least,largest";
        writeln!(output, "{columns}")?;
        jobs.iter().try_for_each(|job| writeln!(output, "{}", row(job)))
    })
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
