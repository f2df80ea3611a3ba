//! The order in which a daemon starts.

use std::io;

use miserly_engine::{
    Absence, DaemonInfo, Engine, EngineError, Journal, JournalError, Launcher, Setup, StartObserver,
    StoredJobs, highest,
};
use miserly_marks::mark;

use crate::newer::bring_up_to_date;
use crate::site::{Host, Supervisor};
use crate::sweep::{UnknownAttempts, sweep};
use crate::take_up::take_up;

/// The parts of a start that differ between daemons.
pub struct StartOptions {
    /// The configured setup.
    pub setup: Setup,
    /// The facts about the daemon. The start sets the highest job number and the mark of the clock.
    pub info: DaemonInfo,
    /// The treatment of running attempts that the state does not have.
    pub unknown: UnknownAttempts,
    /// The observer of starts of jobs.
    pub observer: StartObserver,
}

/// The failure of a start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The folders of the attempts cannot be listed.
    #[error("cannot list the folders of the attempts: {0}")]
    Folders(#[from] io::Error),
}

impl From<JournalError> for StartError {
    fn from(error: JournalError) -> StartError {
        StartError::Engine(error.into())
    }
}

/// Starts a daemon over its journal: returns its engine, which has begun.
///
/// The clock of `host` is that of the state, from [`BootClock::of_state`](crate::BootClock::of_state). `wait_for_room` waits
/// while the journal is full, or ends the start.
///
/// # Errors
/// If the state is damaged, or the attempts cannot be listed.
pub async fn start<H, L, J, E>(
    host: &H,
    journal: J,
    launcher: L,
    options: StartOptions,
    mut wait_for_room: impl AsyncFnMut(&EngineError) -> Result<(), E>,
) -> Result<Engine<L, J>, E>
where
    H: Host,
    L: Launcher + Supervisor<H::Shim>,
    J: Journal,
    E: From<StartError>,
{
    let (mut engine, absence) = open(host, journal, launcher, options)?;
    while let Err(error) = engine.begin(host.clock().read(), &absence) {
        if !matches!(error, EngineError::Journal(JournalError::Full(_))) {
            return Err(StartError::from(error).into());
        }
        mark!("a start waits for room");
        wait_for_room(&error).await?;
    }
    Ok(engine)
}

/// Returns the engine before its first round, and the events of attempts while no daemon ran.
fn open<H: Host, L: Launcher + Supervisor<H::Shim>, J: Journal>(
    host: &H,
    mut journal: J,
    launcher: L,
    StartOptions { setup, mut info, unknown, observer }: StartOptions,
) -> Result<(Engine<L, J>, Absence), StartError> {
    let attempted = bring_up_to_date(&mut journal, host)?;
    let StoredJobs { attempts: living, unreadable } = StoredJobs::load(&journal)?;
    let absence = take_up(host, &launcher, &living);
    let finished = |job| journal.job(job).is_ok_and(|row| row.is_some_and(|row| row.ended));
    let adoptions = sweep(host, &launcher, &living, (&unreadable, finished), unknown)?;
    info.highest = highest(&journal)?.max(attempted);
    mark!("a start");
    info.mark = Some(host.clock().mark());
    let mut engine = Engine::open(setup, info, journal, launcher, host.clock().read())?;
    if let Some(online) = host.online_cpus() {
        engine.set_online(&online);
    }
    engine.adopt(adoptions);
    // Before the first round, which may start jobs.
    engine.observe_starts(observer);
    Ok((engine, absence))
}
