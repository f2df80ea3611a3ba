//! Streams of events: the unfinished jobs, and their changes.
//!
//! Each user with an open stream has one [`Hub`]. A task waits for the engine's publications, the hub compares two
//! snapshots, and all streams of the user share the text of an event. The engine waits for none of them.

mod history;

mod hub;

mod reader;

mod text;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use miserly_api::model::{Problem, ProblemCode};
use miserly_engine::{Caller, Snapshots};
use miserly_launch::{BootTime, MachineClock as _};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use self::hub::{Hub, Sources, Stream};
use self::reader::Counted;
pub(crate) use self::reader::EventReader;
use crate::clock::BootClock;
use crate::forecasts::Forecasts;
use crate::process::LauncherNotes;
use crate::server::StreamRequest;
use crate::store::Readers;

/// The shortest time between two looks at the state. Changes within it are one event.
const PAUSE: Duration = Duration::from_millis(100);

/// The time between two looks for each open stream, of all users: so many streams get fewer events, and cost a few percent of a
/// processor.
const PAUSE_FOR_STREAM: Duration = Duration::from_micros(300);

/// The time without an event after which a comment shows that the daemon is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The time for which a hub without a stream remembers its events, for a client that connects again.
const LINGER: Duration = Duration::from_secs(10);

/// The streams of all users.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    sources: Sources,
    published: watch::Receiver<()>,
    /// The hub of each user. Locked for a few instructions.
    hubs: Arc<Mutex<BTreeMap<u32, Arc<Hub>>>>,
    /// The open streams of clients that send mails.
    mailers: Arc<AtomicUsize>,
}

/// The signs that something may have changed.
struct Signs {
    published: watch::Receiver<()>,
    forecasts: watch::Receiver<()>,
    /// Of the jobs that are parked because memory is short.
    parking: watch::Receiver<()>,
}

impl Events {
    /// Returns the streams over these snapshots.
    pub(crate) fn new(
        snapshots: Snapshots,
        ended: Readers,
        clock: BootClock,
        forecasts: Forecasts,
        notes: LauncherNotes,
    ) -> Events {
        let (publish, published) = watch::channel(());
        snapshots.listen(move || publish.send_replace(()));
        let sources = Sources { snapshots, ended, clock, forecasts, notes };
        Events { sources, published, hubs: Arc::default(), mailers: Arc::default() }
    }

    /// Opens a stream for a user.
    pub(crate) async fn open(
        &self,
        caller: Caller,
        StreamRequest { after, mails }: StreamRequest,
    ) -> Result<EventReader, Problem> {
        let failed = || Problem::new(ProblemCode::Internal, "the stream could not be opened");
        let reader = EventReader::begin(self.stream(caller), after).await.ok_or_else(failed)?;
        Ok(if mails { reader.counted(Counted::new(&self.mailers)) } else { reader })
    }

    /// Returns whether a client that sends mails has an open stream.
    pub(crate) fn has_mailer(&self) -> bool {
        self.mailers.load(Ordering::Relaxed) > 0
    }

    /// Returns a stream of the user's hub. The first one makes the hub, with the rights that the user has then.
    fn stream(&self, caller: Caller) -> Stream {
        let mut hubs = self.lock();
        let uid = caller.uid;
        let hub = hubs.entry(uid).or_insert_with(|| {
            // What changes from here on is seen, although the hub may have it already.
            let signs = self.signs();
            let hub = Arc::new(Hub::new(self.sources.clone(), caller));
            tokio::spawn(self.clone().follow(uid, Arc::clone(&hub), signs));
            hub
        });
        Stream::new(hub)
    }

    fn signs(&self) -> Signs {
        let Sources { forecasts, notes, .. } = &self.sources;
        let mut signs = Signs {
            published: self.published.clone(),
            forecasts: forecasts.made(),
            parking: notes.parking(),
        };
        signs.published.mark_changed();
        signs.forecasts.mark_changed();
        signs
    }

    /// Lets a hub look at the state after each sign, until it has no stream.
    async fn follow(self, uid: u32, hub: Arc<Hub>, mut signs: Signs) {
        let (mut spoke, mut used) = (BootTime::now(), BootTime::now());
        loop {
            let forecast = tokio::select! {
                Ok(()) = signs.published.changed() => false,
                Ok(()) = signs.parking.changed() => false,
                Ok(()) = signs.forecasts.changed() => true,
                () = tokio::time::sleep(KEEP_ALIVE.saturating_sub(BootTime::now().since(spoke)).min(LINGER)) => false,
            };
            let looking = Arc::clone(&hub);
            let sent = spawn_blocking(move || looking.advance() | (forecast && looking.forecast())).await;
            let now = BootTime::now();
            if sent.unwrap_or_default() {
                spoke = now;
            } else if now.since(spoke) >= KEEP_ALIVE {
                hub.keep_alive();
                spoke = now;
            }
            if hub.streams() > 0 {
                used = now;
            } else if now.since(used) >= LINGER && self.remove(uid, &hub) {
                return;
            }
            tokio::time::sleep(self.pause()).await;
        }
    }

    /// Returns the time until the next look.
    fn pause(&self) -> Duration {
        let streams: usize = self.lock().values().map(|hub| hub.streams()).sum();
        PAUSE.max(PAUSE_FOR_STREAM * u32::try_from(streams).unwrap_or(u32::MAX))
    }

    /// Removes a hub, unless a stream was opened meanwhile.
    fn remove(&self, uid: u32, hub: &Hub) -> bool {
        let mut hubs = self.lock();
        hub.streams() == 0 && hubs.remove(&uid).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Hub>>> {
        self.hubs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
