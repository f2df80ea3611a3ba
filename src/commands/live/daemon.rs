//! `miserly daemon`.

use std::path::PathBuf;

use anyhow::Context;
use miserly_core::Kind;
use miserly_live::config::{Configuration, Machine, Queue};
use miserly_live::daemon::{self, Options};
use miserly_live::store::Store;
use serde::Serialize;

use super::text::{bytes, table};
use crate::args::ServeArgs;
use crate::output::{print, print_json};

/// Runs the daemon until it is told to end.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    if let Some(file) = &args.check {
        let args = ServeArgs { config: Some(file.clone()), ..args.clone() };
        return check(&configuration(&args)?, args.json);
    }
    let configuration = configuration(args)?;
    if args.recover {
        recover(&configuration)?;
    }
    log();
    let options =
        Options { configuration, file: args.config.clone(), exe: exe()?, wall: jiff::Timestamp::now };
    daemon::run(options, || configuration_again(args))?;
    Ok(())
}

/// Goes on without what is damaged, and says what that is.
fn recover(configuration: &Configuration) -> anyhow::Result<()> {
    let recovery = Store::recover(&configuration.state)?;
    let Some(aside) = recovery.aside else {
        eprintln!("the state is not damaged; nothing was done");
        return Ok(());
    };
    eprintln!(
        "kept {} jobs and {} lines of the journal; the damaged files are in {}",
        recovery.jobs,
        recovery.lines,
        aside.display()
    );
    for lost in recovery.lost {
        eprintln!("lost, or not the latest: {lost}");
    }
    Ok(())
}

/// Shows the queues that a configuration comes to.
fn check(configuration: &Configuration, json: bool) -> anyhow::Result<()> {
    let queue = |queue: &Queue| Checked {
        name: queue.name.clone(),
        policy: queue.policy.to_string(),
        promises: queue.policy.promises().as_str(),
        cpus: queue.pool.most().cpus_count(),
        memory: queue.pool.most().get(Kind::Memory).saturating_mul(1024),
        users: queue.users.clone(),
    };
    let queues: Vec<Checked> = configuration.queues.iter().map(queue).collect();
    if json {
        return print_json(&queues);
    }
    let header = ["QUEUE", "POLICY", "PROMISES", "CPUS", "MEMORY"];
    let row = |queue: &Checked| {
        let cpus = queue.cpus.to_string();
        vec![queue.name.clone(), queue.policy.clone(), queue.promises.into(), cpus, bytes(queue.memory)]
    };
    print(&table(&header, &header[3..], queues.iter().map(row)))
}

/// A queue, as `--check` shows it: what its pool has at most.
#[derive(Debug, Serialize)]
struct Checked {
    name: String,
    policy: String,
    promises: &'static str,
    cpus: u64,
    /// Bytes.
    memory: u64,
    users: Vec<u32>,
}

/// What the daemon is to be, by its file and the command line.
fn configuration(args: &ServeArgs) -> anyhow::Result<Configuration> {
    let machine = Machine::here().context("cannot tell what this machine has")?;
    let mut configuration = match &args.config {
        Some(file) => Configuration::read(&file.to_string_lossy(), &machine)?,
        None => Configuration::of_machine(&machine)?,
    };
    if let Some(state) = &args.state {
        configuration.state = std::path::absolute(state)?;
    }
    if let Some(socket) = &args.socket {
        configuration.socket = std::path::absolute(socket)?;
    }
    Ok(configuration)
}

fn configuration_again(args: &ServeArgs) -> Result<Configuration, String> {
    configuration(args).map_err(|error| format!("{error:#}"))
}

/// What it does goes to its standard error, where systemd reads it.
fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("MISERLY_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(terminal).with_writer(std::io::stderr).init();
}

/// This program. The shims of jobs run on when it is replaced.
fn exe() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot tell where this program is")
}
