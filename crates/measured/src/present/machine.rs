//! The machine, the method, the kernels' results, and the load of other programs.

use std::fs;

use miserly_kernels::Kernel;
use miserly_report::page::{Block, Section};
use miserly_report::{decimals, page::TableCell, page::TableData};

use super::{percent, table, words};
use crate::bench::Bench;
use crate::error::MeasureError;
use crate::program::exact;
use crate::statistics::Sample;

/// What the daemon and the kernel of the machine report.
#[derive(Clone, Debug)]
pub(crate) struct Circumstances {
    /// The limits that the daemon cannot enforce, by name.
    unenforced: Vec<String>,
    /// Whether the daemon keeps its jobs in control groups.
    groups: bool,
    /// What gives its jobs a priority, in its words.
    pub(super) priority: String,
}

impl Circumstances {
    /// Asks a daemon that then ends.
    pub(crate) fn find(bench: &mut Bench<'_>) -> Result<Circumstances, MeasureError> {
        let daemon = bench.daemon(bench.site.threads())?;
        let status = daemon.status()?;
        daemon.stop()?;
        let unenforced = status.unenforced.into_iter().map(|limit| limit.what).collect();
        let priority = status.critical_priority.map(|priority| priority.sentence).unwrap_or_default();
        Ok(Circumstances { unenforced, groups: bench.options.cgroup.is_some(), priority })
    }
}

/// Returns the section of the machine and the method.
pub(super) fn machine(bench: &Bench<'_>, circumstances: &Circumstances) -> Section {
    let site = &bench.site;
    let autogroup = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    let autogroup = match autogroup.as_deref().map(str::trim) {
        Ok("1") => "yes: each session has one weight, and each run and each burner is a session",
        _ => "no",
    };
    let row = |name: &str, value: String| vec![TableCell::text(name), TableCell::text(value)];
    let rows = vec![
        row("processors", format!("{} (paper: 16)", site.all.len())),
        row("processors of the pool, threads of a kernel", format!("{} (paper: 8)", site.threads())),
        row("repetitions of each point", bench.options.repeats().to_string()),
        row("seed of the order of the runs", bench.options.seed.to_string()),
        row("kernel", release()),
        row("sessions are weighted first (autogroup)", autogroup.into()),
        row(
            "jobs in control groups",
            if circumstances.groups { "yes" } else { "no: processes alone" }.into(),
        ),
        row("priority of jobs in their windows", circumstances.priority.clone()),
        row("not enforced by the daemon here", circumstances.unenforced.join(", ")),
    ];
    let header = vec![words(&["", "here"])];
    let mut blocks =
        vec![Block::Table(TableData { caption: None, header, rows }), Block::Text(METHOD.into())];
    if site.threads() == 1 {
        blocks.push(Block::Text(ONE_THREAD.into()));
    }
    Section { heading: "Machine and method".into(), blocks }
}

const METHOD: &str = "The kernels ep, bt and cg are programs of this project of the classes that the paper used, and not the NAS programs. \
    Each repetition has every point once, in a random order, and the variants of a point follow each other. \
    The run time is what a kernel measures itself, from the start of its command. \
    The text of the paper has no numbers of its Figures 5 to 7, so its statements are compared as claims. \
    The thresholds in the claims are ours, and were set before the first run.";

const ONE_THREAD: &str = "A pool of one processor gives each kernel one thread. \
    Such a kernel never waits for another thread, so no figure here depends on the synchronisation of the kernels. \
    The paper's order of the gains in Figure 7 (cg, then bt, none for ep) needs two threads in a pool, which is four processors. \
    The runs with a thread on each processor, below Figure 5, show the sensitivity of the kernels. \
    The memory system of two processors has no distance, and interactive copies share one processor where the paper had eight.";

fn release() -> String {
    let name = rustix::system::uname();
    format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy())
}

/// Rounds of the kernels whose results every machine reproduces.
const ROUNDS: u32 = 4;

/// Returns the section of the kernels' results, which are the same on every machine.
pub(super) fn kernels() -> Section {
    let row = |kernel: Kernel| {
        let outcomes = [1, 2, 3].map(|threads| kernel.run(ROUNDS, threads));
        let [first, others @ ..] = &outcomes;
        let same = others.iter().all(|other| other == first);
        let verified = if first.verified { "yes" } else { "no" };
        let [one, two] = first.figures.map(exact);
        let same = if same { "yes" } else { "no" };
        vec![kernel.as_str().into(), one, two, verified.into(), same.into()]
    };
    let header = words(&["", "first figure", "second figure", "verified", "same on 1, 2, 3 threads"]);
    let caption = format!("{ROUNDS} rounds of each kernel. These figures do not depend on the machine.");
    Section {
        heading: "Results of the kernels".into(),
        blocks: vec![table(&caption, &header, Kernel::ALL.map(row).to_vec())],
    }
}

/// Share of the processors that other programs may use on a quiet machine.
const QUIET: f64 = 0.1;

/// Returns whether other programs used so much of the machine that times are no evidence.
pub(super) fn is_disturbed(bench: &Bench<'_>) -> bool {
    let others: Sample = bench.disturbances().iter().map(|one| one.others).collect();
    others.mean().is_some_and(|mean| mean > QUIET)
}

/// Returns the section of the load of other programs.
pub(super) fn disturbance(bench: &Bench<'_>) -> Section {
    let all = bench.disturbances();
    let others: Sample = all.iter().map(|one| one.others).collect();
    let steal: Sample = all.iter().map(|one| one.steal).collect();
    let load: Sample = all.iter().map(|one| one.load).collect();
    let share = |name: &str, sample: &Sample| {
        let figures = [sample.least(), sample.percentile(0.5), sample.mean(), sample.most()].map(percent);
        std::iter::once(name.to_owned()).chain(figures).collect::<Vec<_>>()
    };
    let loads = [load.least(), load.percentile(0.5), load.mean(), load.most()]
        .map(|value| value.map_or_else(|| "-".into(), |value| decimals(value, 2)));
    let rows = vec![
        share("processor time of other programs", &others),
        share("processor time withheld by the hypervisor", &steal),
        std::iter::once("load average, which includes earlier runs".to_owned()).chain(loads).collect(),
    ];
    let header = words(&["", "least", "median", "mean", "most"]);
    let caption = format!("0.1 s before each of {} runs; shares of all processors.", all.len());
    let verdict = if is_disturbed(bench) {
        "Other programs used more than a tenth of the machine, so claims about times are not decided. Measure again on a quiet machine."
    } else {
        "The machine was quiet."
    };
    let blocks = vec![table(&caption, &header, rows), Block::Text(verdict.into())];
    Section { heading: "Load of other programs".into(), blocks }
}

pub(super) fn provenance(bench: &Bench<'_>) -> Vec<(String, String)> {
    let rounds = Kernel::ALL.map(|kernel| format!("{} {}", kernel.as_str(), bench.options.rounds(kernel)));
    let build = if cfg!(debug_assertions) { "a build for tests" } else { "an optimised build" };
    [
        ("command", bench.options.command.clone()),
        ("program", format!("miserly {}, {build}", env!("CARGO_PKG_VERSION"))),
        ("rounds of the kernels", rounds.join(", ")),
        ("runs", "runs.csv in the folder of the results".into()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}
