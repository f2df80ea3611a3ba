//! `miserly daemon`.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use miserly_api::client::named_socket;
use miserly_engine::{AccountName, QueueUsers};
use miserly_live::config::{Configuration, InitialFacts, Machine, QueueSummary, Summary, initial};
use miserly_live::daemon::{self, Options};
use miserly_live::executor_service;
use miserly_live::separation::separate;
use miserly_live::server::Access;
use miserly_live::store::{Recovery, UsedBackup};
use miserly_units::{duration, memory, span_of_seconds};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use super::text::{local, numbers, table};
use crate::args::ServeArgs;
use crate::output::{print, print_json};

/// This program, also after its file was replaced: a daemon starts shims of its own version.
const EXE: &str = "/proc/self/exe";

/// Runs the daemon until a signal ends it.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    if let Some(file) = &args.init {
        return init(file);
    }
    if let Some(file) = &args.check {
        let args = ServeArgs { config: Some(file.clone()), ..args.clone() };
        return check(file, &configuration(&args)?, args.json);
    }
    if args.release {
        if !miserly_live::process::release().context("cannot undo the confinement of other programs")? {
            note!("jobs run on, and other programs run on their processors");
        }
        return Ok(());
    }
    if let Some(path) = &args.serve_executor {
        log();
        match executor_service::serve(path, || configuration_again(args), EXE.as_ref())? {}
    }
    let configuration = configuration(args)?;
    log();
    if args.config.is_none() {
        tracing::info!("no configuration: {}", half(&configuration.summary()));
    }
    // First of all: neither the state nor a request is read with the rights of root.
    let separated = match &args.executor {
        Some(path) => Some(executor_service::take(&configuration, path)?),
        None => separate(&configuration, EXE.as_ref())?,
    };
    if args.recover {
        recovered(miserly_live::recover::recover(&configuration.state)?);
    }
    if let Some(backup) = &args.restore {
        recovered(miserly_live::recover::restore(&configuration.state, backup)?);
    }
    let options = Options {
        configuration,
        file: args.config.clone(),
        exe: EXE.into(),
        wall: miserly_live::clock::time_of_day,
        verify: args.verify,
        sweep: args.sweep,
        share_cpus: args.share_cpus,
    };
    daemon::run(options, separated, || configuration_again(args))?;
    Ok(())
}

/// Reports the sources and the losses of a recovery.
fn recovered(recovery: Recovery) {
    let Some(aside) = recovery.aside else {
        return note!("the state is not damaged; nothing to recover");
    };
    note!("recovered {} jobs and {} lines of the journal", recovery.jobs, recovery.lines);
    if aside.exists() {
        note!("the damaged files are in {}", aside.display());
    }
    for path in recovery.damaged_backups {
        note!("damaged and not used: {}", path.display());
    }
    if let Some(UsedBackup { path, taken, .. }) = recovery.backup {
        let taken = taken.map_or_else(String::new, |taken| format!(", taken {}", local(taken)));
        note!("unreadable parts come from the backup {}{taken}", path.display());
    }
    for job in recovery.outdated {
        note!("restored from the backup and queued again: job {job}");
    }
    for lost in recovery.lost {
        note!("lost: {lost}");
    }
}

/// Writes the first configuration of this machine to a new file.
fn init(file: &Path) -> anyhow::Result<()> {
    let machine = Machine::here().context("cannot detect the resources of this machine")?;
    let text = initial(&machine, &InitialFacts::here());
    let shown = file.display();
    let mut created = match File::options().write(true).create_new(true).open(file) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("--init {shown}: the file exists and is not replaced; give another name")
        }
        created => created.with_context(|| format!("--init {shown}: cannot create the file"))?,
    };
    created.write_all(text.as_bytes()).with_context(|| format!("--init {shown}: cannot write the file"))?;
    print(&format!(
        "{shown} has a configuration for this machine. Change it as you like, then:\n  miserly daemon --check {shown}\n  \
         miserly daemon --config {shown}\n"
    ))
}

/// Prints the summary of a configuration. What the machine lacks for a start is an error.
fn check(file: &Path, configuration: &Configuration, json: bool) -> anyhow::Result<()> {
    let summary = configuration.summary();
    for warning in configuration.warnings() {
        note!("warning: {warning}");
    }
    if json { print_json(&summary) } else { print(&shown(&summary)) }?;
    let lacks = configuration.lacks();
    let name = file.display();
    ensure!(lacks.is_empty(), "{name}: {}", lacks.join(&format!("\nerror: {name}: ")));
    Ok(())
}

fn shown(summary: &Summary) -> String {
    let access = match summary.access {
        Access::Own => "the daemon's user and root",
        Access::Everybody => "everybody",
    };
    let head = format!(
        "state   {}\nsocket  {}, for {access}\ncpus    {}\n\n",
        summary.state.display(),
        summary.socket.display(),
        numbers(&summary.cpus)
    );
    let header = ["QUEUE", "POLICY", "PROMISES", "CPUS", "MEMORY", "LONGEST", "USERS"];
    head + &table(&header, &header[3..6], summary.queues.iter().map(row))
}

fn row(queue: &QueueSummary) -> Vec<String> {
    vec![
        queue.name.clone(),
        queue.policy.clone(),
        queue.promises.into(),
        between(queue.cpus, |cpus| cpus.to_string()),
        between(queue.memory, memory),
        queue.max_time.map_or("-".into(), |secs| duration(span_of_seconds(secs))),
        queue.users.as_ref().map_or_else(|| "all".into(), users),
    ]
}

/// Returns the resources that jobs may have without a configuration, in words.
fn half(summary: &Summary) -> String {
    let of = std::thread::available_parallelism().map_or_else(|_| String::new(), |all| format!(" of {all}"));
    let pool = summary.queues.first();
    let cpus = pool.map_or(0, |pool| pool.cpus[1]);
    let memory = pool.map_or_else(String::new, |pool| format!(" and {} of memory", memory(pool.memory[1])));
    format!("jobs have {cpus}{of} processors{memory}, half of the machine; --config FILE sets more")
}

/// Returns the users and the groups of a queue. A group is marked by an at sign.
fn users(users: &QueueUsers) -> String {
    let name = |name: &AccountName| match name {
        AccountName::Number(number) => number.to_string(),
        AccountName::Name(name) => name.clone(),
    };
    let groups = users.groups.iter().map(|group| format!("@{}", name(group)));
    users.users.iter().map(name).chain(groups).collect::<Vec<_>>().join(",")
}

/// Returns the least and the most amount over the week, or the only one.
fn between([least, most]: [u64; 2], shown: impl Fn(u64) -> String) -> String {
    if least == most { shown(most) } else { format!("{} to {}", shown(least), shown(most)) }
}

/// Returns the configuration of the daemon, from its file and the command line.
fn configuration(args: &ServeArgs) -> anyhow::Result<Configuration> {
    let machine = Machine::here().context("cannot detect the resources of this machine")?;
    let mut configuration = match &args.config {
        Some(file) => Configuration::read(&file.to_string_lossy(), &machine)?,
        None => Configuration::of_machine(&machine)?,
    };
    if let Some(state) = &args.state {
        configuration.state = std::path::absolute(state)?;
    }
    // Clients look for the socket in the same way.
    let named = named_socket().filter(|_| args.config.is_none());
    if let Some(socket) = args.socket.clone().or(named) {
        configuration.socket = std::path::absolute(socket)?;
    }
    Ok(configuration)
}

fn configuration_again(args: &ServeArgs) -> Result<Configuration, String> {
    configuration(args).map_err(|error| format!("{error:#}"))
}

/// The local time with its offset, before each line of the log.
struct LocalTime;

impl FormatTime for LocalTime {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        write!(
            writer,
            "{}",
            Timestamp::now().to_zoned(TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S%.6f%:z")
        )
    }
}

/// Writes the daemon's log to standard error, where systemd reads it. `MISERLY_LOG` sets the
/// levels.
fn log() {
    let set = std::env::var("MISERLY_LOG").ok().and_then(|levels| levels.parse().ok());
    let levels: Targets = set.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(terminal)
        .with_timer(LocalTime)
        .with_writer(std::io::stderr);
    tracing_subscriber::registry().with(lines.with_filter(levels)).init();
}
