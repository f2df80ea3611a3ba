//! The daemon: the engine under the real clock, with a launcher of processes and a socket for
//! clients.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use miserly_api::model::{SharedCpus, number_ranges};
use miserly_core::{Kind, OpportunisticConfig, Resources, Span, Time};
use miserly_engine::{AccountNames, DaemonInfo, Engine, EngineError, Input, Queue, Setup};
use miserly_launch::{BootTime, MachineClock as _, current_boot};
use miserly_launcher::{StartError, StartOptions, UnknownAttempts, start};
use miserly_machine_file::monday;
use rustix::fs::Mode;
use rustix::process::umask;
use rustix::time::{ClockId, clock_gettime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, oneshot};

use crate::claim::{Claim, rival};
use crate::clock::{BootClock, MachineClocks, Wall};
use crate::config::{Configuration, online_cpus};
use crate::engine_handle::{EngineHandle, Sealer};
use crate::events::Events;
use crate::forecasts::ForecastThread;
use crate::hotplug::Hotplug;
use crate::job_access::JobAccess;
use crate::launcher_parts::LauncherParts;
use crate::metrics::Metrics;
use crate::process::{Executor, JobGroups, LauncherNotes, Processes};
use crate::request_rate::RequestRate;
use crate::rereading::{Readings, Rereading, log_shared, log_warnings};
use crate::separation::Separated;
use crate::server::{self, BindError};
use crate::service_manager::{self, Starting};
use crate::shadow::ShadowThread;
use crate::store::{BackupThread, Readers, StateCheck, Store, StoreError};
use crate::timer::Timer;
use crate::users;

/// The most inputs in one batch. They are committed together.
const BATCH_MOST: usize = 512;

/// The interval at which a starting daemon checks for disk space, which the system does not report
/// by itself.
const ROOM_AGAIN: Duration = Duration::from_secs(1);

/// The looks for another daemon on the processors, and the pause between them.
const RIVAL_TRIES: u32 = 20;
const RIVAL_PAUSE: Duration = Duration::from_millis(100);

/// The longest sleep of the machine that does not count as an absence.
const SLEPT: Duration = Duration::from_secs(2);

/// The options of a daemon.
#[derive(Clone, Debug)]
pub struct Options {
    /// The configuration.
    pub configuration: Configuration,
    /// The configuration file, if there is one.
    pub file: Option<PathBuf>,
    /// The program of the daemon. It acts as the shim when it is called as `PROGRAM shim FOLDER`, if there is no
    /// `miserly-shim` beside it. A separated daemon does not use it.
    pub exe: PathBuf,
    /// The source of wall time.
    pub wall: Wall,
    /// Whether the whole state is checked before the start.
    pub verify: bool,
    /// Whether attempts that the state does not have are ended.
    pub sweep: bool,
    /// Whether processors may be those of another daemon, too.
    pub share_cpus: bool,
}

/// The reason why a daemon ended.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The state failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The socket failed.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Another daemon has the processors.
    #[error(
        "the daemon of user {} (process {}) has the cpus {}, too, and jobs of both would share them; stop that daemon, give this \
         one other cpus with `taskset`, or start it with --share-cpus", .0.user, .0.pid, number_text(&.0.cpus)
    )]
    SharedCpus(SharedCpus),
    /// A signal ended the daemon before it was ready.
    #[error("{0} ended the daemon before it was ready")]
    Interrupted(&'static str),
    /// Another system call failed.
    #[error("{what}: {error}")]
    System {
        /// The failed operation.
        what: String,
        /// The error of the system.
        error: io::Error,
    },
}

/// Returns processors as ranges.
fn number_text(cpus: &[u32]) -> String {
    let range = |&(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    number_ranges(cpus).iter().map(range).collect::<Vec<_>>().join(",")
}

impl From<StartError> for DaemonError {
    fn from(error: StartError) -> DaemonError {
        match error {
            StartError::Engine(error) => DaemonError::Engine(error),
            StartError::Folders(error) => system("cannot list the folders of the attempts")(error),
        }
    }
}

pub(crate) fn system(what: &str) -> impl Fn(io::Error) -> DaemonError + '_ {
    move |error| DaemonError::System { what: what.into(), error }
}

/// Returns the OpenAPI document of the daemon's API, as JSON.
pub fn openapi() -> String {
    server::openapi_document::<EngineHandle>()
}

/// Runs a daemon until a signal ends it. `reread` reads the configuration again. A `separated` daemon has given up the rights
/// of root.
///
/// # Errors
/// The failure that stops the daemon. Jobs continue without it.
pub fn run(
    options: Options,
    separated: Option<Separated>,
    reread: impl Fn() -> Result<Configuration, String>,
) -> Result<(), DaemonError> {
    // Files belong to the daemon's user alone from their creation. Jobs have the umask of their
    // submission.
    umask(Mode::RWXG | Mode::RWXO);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(system("cannot start threads"))?;
    match runtime.block_on(daemon(options, separated, reread)) {
        Err(DaemonError::Interrupted(signal)) => {
            tracing::info!("{signal}: the daemon ends before it was ready; jobs run on");
            Ok(())
        }
        other => other,
    }
}

async fn daemon(
    options: Options,
    separated: Option<Separated>,
    reread: impl Fn() -> Result<Configuration, String>,
) -> Result<(), DaemonError> {
    // Before anything else: a signal during a long start must not end this process by default.
    let mut signals = Signals::new().map_err(system("cannot wait for signals"))?;
    let starting = Starting::begin();
    let (sender, mut inputs) = unbounded_channel();
    // The state comes first: its lock makes this process the daemon.
    let store = open_store(&options, &mut signals).await?;
    if !options.share_cpus {
        wait_for_cpus(&options.configuration).await?;
    }
    let (folder, plan) = (options.configuration.state.clone(), options.configuration.backups);
    let backups = BackupThread::start(folder, plan).map_err(system("cannot start a thread for backups"))?;
    let socket = server::bind(&options.configuration.socket, options.configuration.access)?;
    let notes = LauncherNotes::default();
    let launcher = LauncherParts::new(&options, separated, notes.clone())?;
    let sealer = launcher.executor.client().cloned().map(Sealer::new);
    let (executor, groups) = (launcher.executor.clone(), launcher.groups.clone());
    let metrics = Metrics::default();
    let (mut engine, clock) =
        engine(&options, store, sender.clone(), launcher, &metrics, &mut signals).await?;
    let state = options.configuration.state.clone();
    let check = StateCheck::start(state).map_err(system("cannot start a thread for the check"))?;
    let claim = Claim::new(&options.configuration.cpus);
    let readings = Readings::default();
    let rate = RequestRate::default();
    rate.change(options.configuration.requests_per_minute);
    let ended = Readers::new(&options.configuration.state);
    let folder = &options.configuration.state;
    let (_forecasting, forecasts) =
        ForecastThread::start(folder, engine.snapshots(), Readers::new(folder), clock.clone())
            .map_err(system("cannot start a thread for forecasts"))?;
    let plan = options.configuration.shadows();
    let (shadowing, shadows) = ShadowThread::start(folder, plan, engine.snapshots(), clock.clone())
        .map_err(system("cannot start a thread for shadows"))?;
    let events =
        Events::new(engine.snapshots(), ended.clone(), clock.clone(), forecasts.clone(), notes.clone());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server::serve(
        socket,
        EngineHandle {
            inputs: sender,
            snapshots: engine.snapshots(),
            ended,
            forecasts,
            shadows,
            events,
            metrics: metrics.clone(),
            simulating: Arc::new(Semaphore::new(1)),
            clock: clock.clone(),
            claim: claim.clone(),
            rate: rate.clone(),
            readings: readings.clone(),
            check,
            notes,
            groups: groups.clone(),
            sealer,
            access: JobAccess::new(executor.clone()),
        },
        async move {
            let _ = stopped.await;
        },
    ));
    log_warnings(&options.configuration);
    log_shared(&claim);
    drop(starting);
    service_manager::ready();
    tracing::info!("ready on {}", options.configuration.socket.display());
    let first = &options.configuration;
    let again = Rereading {
        reread,
        first,
        backups: &backups,
        shadowing: &shadowing,
        claim: &claim,
        rate: &rate,
        readings: &readings,
        groups: &groups,
        executor: &executor,
    };
    let ended = process_inputs(&mut engine, &clock, &mut inputs, signals, again, &metrics).await;
    if ended.is_err() {
        // Whether its last requests are on disk is not known. Their connections end without a reply.
        std::mem::forget(engine);
        return ended;
    }
    drop(stop);
    // Replies on their way still arrive. A client that waits for the end of a job has to ask again.
    drop(inputs);
    drop(engine);
    let _ = tokio::time::timeout(Duration::from_secs(2), serving).await;
    ended
}

/// Opens the state. Waits while the disk has no room to flush it.
async fn open_store(options: &Options, signals: &mut Signals) -> Result<Store, DaemonError> {
    let open = if options.verify { Store::open_verified } else { Store::open };
    let mut logged = false;
    loop {
        match open(&options.configuration.state) {
            Err(error @ StoreError::Full) => wait_for_room(&mut logged, &error, signals).await?,
            other => return Ok(other?),
        }
    }
}

/// Waits until no other daemon has the processors. One that ends has them for a moment.
///
/// # Errors
/// [`DaemonError::SharedCpus`] if the other daemon goes on.
async fn wait_for_cpus(configuration: &Configuration) -> Result<(), DaemonError> {
    for _ in 0..RIVAL_TRIES {
        if rival(configuration).is_none() {
            return Ok(());
        }
        tokio::time::sleep(RIVAL_PAUSE).await;
    }
    rival(configuration).map_or(Ok(()), |other| Err(DaemonError::SharedCpus(other)))
}

/// Waits a moment for room on the disk. Logs the error at the first time.
///
/// # Errors
/// [`DaemonError::Interrupted`] if a signal ends the daemon.
async fn wait_for_room(
    logged: &mut bool,
    error: &dyn std::error::Error,
    signals: &mut Signals,
) -> Result<(), DaemonError> {
    if !std::mem::replace(logged, true) {
        tracing::error!("the daemon waits until there is room for its state: {error}");
    }
    let again = tokio::time::sleep(ROOM_AGAIN);
    tokio::pin!(again);
    loop {
        tokio::select! {
            () = &mut again => return Ok(()),
            event = signals.next() => if let SignalEvent::End(signal) = event {
                return Err(DaemonError::Interrupted(signal));
            }
        }
    }
}

/// Returns the engine, with the present state of its jobs.
async fn engine(
    options: &Options,
    mut store: Store,
    reports: UnboundedSender<Input>,
    launcher: LauncherParts,
    metrics: &Metrics,
    signals: &mut Signals,
) -> Result<(Engine<Processes, Store>, BootClock), DaemonError> {
    let boot = current_boot().map_err(system("cannot read the boot's name"))?;
    let clock =
        BootClock::of_state(&mut store, boot, MachineClocks(options.wall)).map_err(EngineError::from)?;
    let LauncherParts { executor, groups, notes } = launcher;
    let info = daemon_info(options, &executor, &groups);
    let processes = Processes::new(executor, clock.clone(), reports, notes, groups)
        .map_err(system("cannot start the threads of the launcher"))?;
    let (confinement, home, starts) =
        (processes.confinement_start(), processes.home().clone(), metrics.clone());
    let start_options = StartOptions {
        setup: setup_of(&options.configuration, &clock),
        info,
        unknown: if options.sweep {
            UnknownAttempts::End(options.configuration.grace)
        } else {
            UnknownAttempts::Adopt
        },
        observer: Box::new(move |start| starts.start(&start, users::name(start.uid))),
    };
    let mut logged = false;
    let wait = async |error: &EngineError| wait_for_room(&mut logged, error, signals).await;
    let engine = start(&home, store, processes, start_options, wait).await?;
    confinement.begin();
    Ok((engine, clock))
}

/// Returns the facts about this daemon.
fn daemon_info(options: &Options, executor: &Executor, groups: &JobGroups) -> DaemonInfo {
    let runs_as_users = executor.client().is_some();
    DaemonInfo {
        state: options.configuration.state.display().to_string(),
        configuration: options.file.as_ref().map(|path| path.display().to_string()),
        pid: i32::try_from(std::process::id()).unwrap_or_default(),
        owner: rustix::process::getuid().as_raw(),
        operators: options.configuration.operators.clone(),
        slurm: options.configuration.slurm.clone(),
        runs_as_users,
        overflow_uid: Some(miserly_executor::overflow_user()),
        users: AccountNames(users::name),
        groups: AccountNames(users::group_name),
        unenforced: groups.unenforced(runs_as_users),
        critical_priority: Some(groups.critical_priority()),
        ..DaemonInfo::default()
    }
}

/// Processes batches of inputs, each when an input arrives or a wake-up is due.
async fn process_inputs(
    engine: &mut Engine<Processes, Store>,
    clock: &BootClock,
    inputs: &mut UnboundedReceiver<Input>,
    mut signals: Signals,
    again: Rereading<'_, impl Fn() -> Result<Configuration, String>>,
    metrics: &Metrics,
) -> Result<(), DaemonError> {
    let mut timer = Timer::new().map_err(system("cannot make a timer"))?;
    let mut awake = Awake::now();
    let mut online = online_cpus();
    let hotplug = Hotplug::new();
    let mut watchdog = service_manager::watchdog().map(tokio::time::interval);
    loop {
        let mut batch = vec![];
        tokio::select! {
            input = inputs.recv() => batch.extend(input),
            waited = timer.wait(clock, engine.next_wakeup()) => waited.map_err(system("cannot wait"))?,
            // Which processors are online is read below.
            () = hotplug.changed() => {}
            () = tick(&mut watchdog) => {
                // From this loop: a daemon that hangs is not alive.
                service_manager::alive();
                continue;
            }
            event = signals.next() => match event {
                SignalEvent::Reread => again.reload(engine, clock)?,
                SignalEvent::ShuttingDown => {
                    tracing::info!("SIGPWR: the machine shuts down; no job is launched");
                    batch.push(Input::ShuttingDown);
                }
                SignalEvent::End(signal) => {
                    tracing::info!("{signal}: the daemon ends; jobs run on");
                    engine.shutdown(clock.read())?;
                    return Ok(());
                }
            },
        }
        while batch.len() < BATCH_MOST
            && let Ok(input) = inputs.try_recv()
        {
            batch.push(input);
        }
        if awake.has_slept() {
            batch.push(Input::Slept);
        }
        if let Some(there) = online_cpus()
            && online.as_ref() != Some(&there)
        {
            online = Some(there.clone());
            batch.push(Input::Online(there));
        }
        let begin = BootTime::now();
        engine.process_batch(clock.read(), batch)?;
        metrics.batch(BootTime::now().since(begin));
    }
}

/// Waits for the next tick of an interval. Without one, waits for ever.
async fn tick(interval: &mut Option<tokio::time::Interval>) {
    match interval {
        Some(interval) => drop(interval.tick().await),
        None => std::future::pending().await,
    }
}

/// Returns the setup in ticks. Calendars follow the present wall time.
pub(crate) fn setup_of(configuration: &Configuration, clock: &BootClock) -> Setup {
    let now = clock.read();
    let monday = monday(Span::from_ticks(now.wall.as_microsecond()) - (now.ticks - Time::ZERO));
    let queue = |queue: &crate::config::Queue| Queue {
        name: queue.name.clone(),
        policy: queue.policy.clone(),
        pool: queue.pool.calendar(monday),
        classes: queue.classes.clone(),
        charge: configuration.charge,
        gpus: queue.gpus.clone(),
        terms: queue.terms.clone(),
    };
    let opportunistic_cpus = configuration.opportunistic_cpus.clone();
    Setup {
        queues: configuration.queues.iter().map(queue).collect(),
        cpus: configuration.cpus.clone(),
        gpus: configuration.pool.most().get(Kind::Gpus),
        topology: configuration.topology.clone(),
        whole_cores: configuration.whole_cores,
        grace: configuration.grace,
        cleanup_time: configuration.cleanup_time,
        orphan_resume_delay: configuration.orphan_resume_delay,
        opportunistic: opportunistic(configuration, opportunistic_cpus.len()),
        waiting_shims: configuration.waiting_shims,
        opportunistic_cpus,
        keep_history: configuration.keep_history,
        user_limits: configuration.user_limits.clone(),
        reservations: vec![],
    }
}

/// Returns the resources for opportunistic jobs: all processors of the machine, and the memory for
/// jobs.
///
/// Returns `None` if they are disabled. Also returns `None` if a job that ran in the idle class
/// could not have processors of its own later.
fn opportunistic(configuration: &Configuration, cpus: usize) -> Option<OpportunisticConfig> {
    let memory = configuration.pool.most().get(Kind::Memory);
    let machine = Resources::cpus(cpus as u64).with(Kind::Memory, memory);
    let may = configuration.opportunistic && miserly_launch::leaves_idle();
    may.then_some(OpportunisticConfig { lead: configuration.preempt_lead_time, machine })
}

/// The meaning of a signal.
enum SignalEvent {
    /// End the daemon.
    End(&'static str),
    /// Read the configuration again.
    Reread,
    /// Launch no job: the machine shuts down.
    ShuttingDown,
}

/// The signals that the daemon handles.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    reread: Signal,
    power: Signal,
}

impl Signals {
    fn new() -> io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            reread: signal(SignalKind::hangup())?,
            power: signal(SignalKind::from_raw(rustix::process::Signal::POWER.as_raw()))?,
        })
    }

    async fn next(&mut self) -> SignalEvent {
        tokio::select! {
            _ = self.terminate.recv() => SignalEvent::End("SIGTERM"),
            _ = self.interrupt.recv() => SignalEvent::End("SIGINT"),
            _ = self.reread.recv() => SignalEvent::Reread,
            _ = self.power.recv() => SignalEvent::ShuttingDown,
        }
    }
}

/// The difference between the clock that runs during sleep and the clock that does not.
struct Awake(Duration);

impl Awake {
    fn now() -> Awake {
        let awake = clock_gettime(ClockId::Monotonic);
        let awake = Duration::new(awake.tv_sec.unsigned_abs(), u32::try_from(awake.tv_nsec).unwrap_or(0));
        Awake(BootTime::now().since(BootTime(0)).saturating_sub(awake))
    }

    fn has_slept(&mut self) -> bool {
        let before = std::mem::replace(self, Awake::now());
        self.0.saturating_sub(before.0) > SLEPT
    }
}
