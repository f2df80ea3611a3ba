//! `miserly queue`: jobs and their promises.

mod columns;

mod filter;

mod rows;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use jiff::Timestamp;
use miserly_api::client::Client;
use miserly_api::model::JobView;

use self::columns::{key, shown};
pub(super) use self::filter::{Wanted, jobs};
use super::text::{Instants, local};
use super::{client, print_answer};
use crate::args::{QueueArgs, SortKey};
use crate::output::print;

pub(crate) fn run(args: &QueueArgs) -> anyhow::Result<ExitCode> {
    let watched = args.watch.map(Duration::from_secs);
    if args.slurm {
        return of_cluster(args, watched);
    }
    let client = client(&args.daemon)?;
    let wanted = Wanted::from_args(args);
    if let Some(period) = watched {
        watch(period, || Ok(text(args, &listed(&client, args, &wanted)?)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let found = listed(&client, args, &wanted)?;
    print_answer(args.json, &found, || text(args, &found))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the jobs of a Slurm cluster.
#[cfg(feature = "slurm")]
fn of_cluster(args: &QueueArgs, watched: Option<Duration>) -> anyhow::Result<ExitCode> {
    use crate::commands::slurm::{ClusterFilter, cluster_queue, cluster_queue_text};

    let wanted = ClusterFilter {
        mine: args.mine,
        user: args.user.as_deref(),
        partition: args.queue.as_deref(),
        name: args.name.as_deref(),
    };
    let slurm = miserly_slurm::Slurm::default();
    match watched {
        Some(period) => watch(period, || cluster_queue_text(&slurm, &wanted))?,
        None => cluster_queue(&slurm, &wanted, args.json)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// This build knows no clusters.
#[cfg(not(feature = "slurm"))]
fn of_cluster(_: &QueueArgs, _: Option<Duration>) -> anyhow::Result<ExitCode> {
    Err(crate::features::SLURM.absent("--slurm"))
}

/// Prints the jobs until it is interrupted. On a terminal, each list replaces the last one without a blank screen between them.
fn watch(period: Duration, jobs: impl Fn() -> anyhow::Result<String>) -> anyhow::Result<()> {
    let terminal = std::io::stdout().is_terminal();
    loop {
        let jobs = jobs()?;
        let list = format!("{}\n\n{jobs}", local(Timestamp::now()));
        // Home; each line up to its end; then all that is left of a longer list.
        let list = if terminal { format!("\x1b[H{}\x1b[J", list.replace('\n', "\x1b[K\n")) } else { list };
        print(&list)?;
        sleep(period);
    }
}

fn listed(client: &Client, args: &QueueArgs, wanted: &Wanted) -> anyhow::Result<Vec<JobView>> {
    let mut found = jobs(client, wanted)?;
    // Stable sorts, the least important column first. Without a column it is the order of the numbers.
    let now = Timestamp::now();
    for SortKey { column, descends } in args.sort.iter().rev() {
        found.sort_by(|one, other| {
            let order = key(*column, now, one).cmp(&key(*column, now, other));
            if *descends { order.reverse() } else { order }
        });
    }
    Ok(found)
}

fn text(args: &QueueArgs, jobs: &[JobView]) -> String {
    shown(jobs, &args.columns, args.each, Instants { now: Timestamp::now(), exact: args.exact })
}
