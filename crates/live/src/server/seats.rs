//! Seats: the connections that are open at once, the requests that wait for the end of a job, the
//! streams of events, and the turns of each user for requests that take long.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::serve::Limits;

/// The open connections and the waiting requests of all users.
#[derive(Clone, Debug)]
pub(super) struct Seats {
    limits: Limits,
    taken: Arc<Mutex<BTreeMap<u32, Taken>>>,
}

/// What one user has.
#[derive(Debug)]
struct Taken {
    connections: usize,
    waiting: usize,
    streams: usize,
    turns: Turns,
}

/// The numbers of connections of all users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// The connections of requests that are short, and the idle ones.
    pub open: usize,
    /// The requests that wait for the ends of jobs.
    pub waiting: usize,
    /// The streams of events.
    pub streams: usize,
}

/// The turns of one user. Those of other users are not waited for.
#[derive(Clone, Debug)]
struct Turns {
    long: Arc<Semaphore>,
    quotes: Arc<Semaphore>,
}

/// The right to process a request that takes long. Dropping it lets the next one begin.
#[derive(Debug)]
pub(super) struct Turn {
    /// Held until it is dropped.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Taken {
    fn new(limits: &Limits) -> Taken {
        let turns = Turns {
            long: Arc::new(Semaphore::new(limits.long_of_user)),
            quotes: Arc::new(Semaphore::new(1)),
        };
        Taken { connections: 0, waiting: 0, streams: 0, turns }
    }

    fn is_empty(&self) -> bool {
        self.connections == 0 && self.waiting == 0 && self.streams == 0
    }
}

/// The right to one connection. Dropping the last clone returns it.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    /// Held until the last clone is dropped.
    owned: Arc<OwnedSeat>,
}

#[derive(Debug)]
struct OwnedSeat {
    uid: u32,
    seats: Seats,
    turns: Turns,
}

/// A connection that needs no seat: it waits for the end of a job, or it is a stream of events.
#[derive(Debug)]
pub(super) struct Away {
    seat: Arc<OwnedSeat>,
    count: fn(&mut Taken) -> &mut usize,
}

impl Seats {
    pub(super) fn new(limits: Limits) -> Seats {
        Seats { limits, taken: Arc::default() }
    }

    /// Returns a seat for a user. Some are left for root and the daemon's user.
    pub(super) fn take(&self, uid: u32) -> Option<Seat> {
        let mut taken = self.lock();
        let count = |of: &dyn Fn(u32) -> bool| -> usize {
            taken.iter().filter(|(uid, _)| of(**uid)).map(|(_, taken)| taken.connections).sum()
        };
        let (all, others) = (count(&|_| true), count(&|uid| !is_operator(uid)));
        let own = taken.entry(uid).or_insert_with(|| Taken::new(&self.limits));
        let Limits { connections, connections_of_user, reserved, .. } = self.limits;
        let free = if is_operator(uid) {
            all < connections
        } else {
            all < connections
                && others < connections.saturating_sub(reserved)
                && own.connections < connections_of_user
        };
        if free {
            own.connections += 1;
        }
        let turns = own.turns.clone();
        free.then(|| Seat { owned: Arc::new(OwnedSeat { uid, seats: self.clone(), turns }) })
    }

    /// Moves a connection from `from` to `to`. Forgets users without any.
    fn count(&self, uid: u32, change: impl Fn(&mut Taken)) {
        let mut taken = self.lock();
        let own = taken.entry(uid).or_insert_with(|| Taken::new(&self.limits));
        change(own);
        if own.is_empty() {
            taken.remove(&uid);
        }
    }

    /// Returns the numbers of connections.
    fn counts(&self) -> ConnectionCounts {
        let taken = self.lock();
        let sum = |of: fn(&Taken) -> usize| taken.values().map(of).sum();
        ConnectionCounts {
            open: sum(|taken| taken.connections),
            waiting: sum(|taken| taken.waiting),
            streams: sum(|taken| taken.streams),
        }
    }

    /// The tasks of the connections lock it for a few instructions.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Taken>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Waits for the turn of a request that takes long. The requests of a user take their turns as they came.
    pub(super) async fn turn(&self) -> Turn {
        Turn::of(&self.owned.turns.long).await
    }

    /// Waits for the turn of a quote. One user has one quote at a time.
    pub(super) async fn quote_turn(&self) -> Turn {
        Turn::of(&self.owned.turns.quotes).await
    }

    /// Leaves the seat until the result is dropped. Returns `None` if too many requests of the user wait.
    pub(super) fn wait(&self) -> Option<Away> {
        self.leave(|own| &mut own.waiting, self.owned.seats.limits.waiting_of_user)
    }

    /// Leaves the seat until the result is dropped. Returns `None` if the user has too many streams.
    pub(super) fn stream(&self) -> Option<Away> {
        self.leave(|own| &mut own.streams, self.owned.seats.limits.streams_of_user)
    }

    fn leave(&self, count: fn(&mut Taken) -> &mut usize, most: usize) -> Option<Away> {
        let OwnedSeat { uid, seats, .. } = &*self.owned;
        let mut taken = seats.lock();
        let own = taken.entry(*uid).or_insert_with(|| Taken::new(&seats.limits));
        if *count(own) >= most {
            return None;
        }
        own.connections = own.connections.saturating_sub(1);
        *count(own) += 1;
        Some(Away { seat: Arc::clone(&self.owned), count })
    }

    /// Returns the numbers of connections of all users.
    pub(super) fn counts(&self) -> ConnectionCounts {
        self.owned.seats.counts()
    }
}

impl Turn {
    async fn of(turns: &Arc<Semaphore>) -> Turn {
        // Nobody closes the semaphores.
        Turn { _permit: Arc::clone(turns).acquire_owned().await.ok() }
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        // It has its seat again, even if there are none left: it is about to reply, or to end.
        self.seat.seats.count(self.seat.uid, |own| {
            *(self.count)(own) -= 1;
            own.connections += 1;
        });
    }
}

impl Drop for OwnedSeat {
    fn drop(&mut self) {
        self.seats.count(self.uid, |own| own.connections = own.connections.saturating_sub(1));
    }
}

fn is_operator(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ANN: u32 = 4_000_001;
    const BOB: u32 = 4_000_002;

    fn seats() -> Seats {
        let limits = Limits {
            connections: 5,
            connections_of_user: 2,
            reserved: 2,
            waiting_of_user: 1,
            streams_of_user: 1,
            long_of_user: 1,
            ..Limits::default()
        };
        Seats::new(limits)
    }

    #[test]
    fn operators_have_seats_when_others_have_none() {
        let seats = seats();
        let ann: Vec<Seat> = (0..2).filter_map(|_| seats.take(ANN)).collect();
        assert!(ann.len() == 2 && seats.take(ANN).is_none());
        let _bob = seats.take(BOB).expect("a seat");
        assert!(seats.take(BOB).is_none(), "the rest is reserved");
        let _root = [seats.take(0).expect("a seat"), seats.take(0).expect("a seat")];
        assert!(seats.take(0).is_none());
        drop(ann);
        assert!(seats.take(BOB).is_some() && seats.take(0).is_some());
    }

    #[tokio::test]
    async fn a_user_waits_for_own_turns_only() {
        let seats = seats();
        let [first, second] = [seats.take(ANN), seats.take(ANN)].map(|seat| seat.expect("a seat"));
        let bob = seats.take(BOB).expect("a seat");
        let turn = first.turn().await;
        let next = second.turn();
        tokio::pin!(next);
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut next).await.is_err());
        drop((bob.turn().await, first.quote_turn().await));
        drop(turn);
        drop(next.await);
    }

    #[test]
    fn a_stream_has_no_seat() {
        let seats = seats();
        let (first, second) = (seats.take(ANN).expect("a seat"), seats.take(ANN).expect("a seat"));
        let stream = first.stream().expect("the first stream");
        assert!(second.stream().is_none(), "one stream at a time");
        assert!(second.wait().is_some(), "waiting requests have another limit");
        assert_eq!(first.counts(), ConnectionCounts { open: 1, waiting: 0, streams: 1 });
        drop(stream);
        drop((first, second));
        assert!(seats.lock().is_empty());
    }

    #[test]
    fn a_waiting_request_has_no_seat() {
        let seats = seats();
        let (first, second) = (seats.take(ANN).expect("a seat"), seats.take(ANN).expect("a seat"));
        let waiting = first.wait().expect("the first one waits");
        assert!(second.wait().is_none(), "one waits at a time");
        let third = seats.take(ANN).expect("the seat of the first one");
        assert!(seats.take(ANN).is_none());
        drop(waiting);
        assert!(second.wait().is_some());
        drop((first, second, third));
        assert!(seats.lock().is_empty());
    }
}
