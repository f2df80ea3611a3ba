//! `miserly daemon`.

use std::path::PathBuf;

use anyhow::Context;
use miserly_core::{Calendar, Kind, Resources, Span};
use miserly_live::api::Access;
use miserly_live::daemon::{self, Options};
use miserly_live::engine::{Queue, Setup};
use miserly_policies::Chosen;

use crate::args::ServeArgs;

/// Runs the daemon until it is told to end.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let state = args.state.clone().context("--state")?;
    let socket = args.socket.clone().unwrap_or_else(|| state.join("socket"));
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let options = Options {
        setup: setup()?,
        state,
        socket,
        access: Access::Own,
        configuration: args.config.clone(),
        exe: exe()?,
    };
    daemon::run(options, || setup().map_err(|error| format!("{error:#}")))?;
    Ok(())
}

fn setup() -> anyhow::Result<Setup> {
    let cpus = miserly_live::process::cpus()?;
    let half = cpus.len().div_ceil(2);
    let policy: Chosen = "miser".parse()?;
    let pool = Resources::cpus(half as u64).with(Kind::Memory, 1 << 20);
    let queue = Queue {
        name: "batch".into(),
        policy,
        pool: Calendar::constant(pool),
        default_time: None,
        most_time: None,
        default_memory: (1 << 20) / half as u64,
        users: vec![],
    };
    let secs = |secs: i64| Span::from_ticks(secs * 1_000_000);
    Ok(Setup { queues: vec![queue], cpus, grace: secs(5), handover: secs(2), alone: secs(60) })
}

/// This program, as whoever runs it is called now: the shims of jobs outlive an upgrade.
fn exe() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot tell where this program is")
}
