//! Rows of jobs that take turns: a thread for each queue that has any, which stops the jobs of one row and then lets those of the next go.
//!
//! What a turn takes is on nobody's way: no disk is written and no policy asked. All shims are told at once, and the next row goes when the last
//! process of the one before has stopped. While there is one row, nothing wakes the thread.

mod rotation;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use miserly_engine::{Attempt, Turns};
use miserly_launch::BootTime;

use self::rotation::{Rotation, Switch};
use super::word::{Orders, Turn, Word};

/// The next row waits so long for processes that do not stop; they run on beside it then.
const PATIENCE: Duration = Duration::from_secs(1);

/// Who takes turns with whom from now on.
#[derive(Debug)]
pub(super) struct News {
    pub(super) turns: Turns,
    /// How each of them is told.
    pub(super) orders: BTreeMap<Attempt, Orders>,
    /// Those that began stopped.
    pub(super) fresh: BTreeSet<Attempt>,
}

/// A queue's thread.
#[derive(Debug)]
pub(super) struct Rotator(Sender<News>);

impl Rotator {
    /// Begins the thread of a queue.
    ///
    /// # Errors
    /// If the machine has no room for one.
    pub(super) fn begin(queue: &str) -> io::Result<Rotator> {
        let (sender, news) = mpsc::channel();
        let name = format!("turns {queue}");
        thread::Builder::new().name(name).stack_size(256 * 1024).spawn(move || rotate(&news))?;
        Ok(Rotator(sender))
    }

    pub(super) fn tell(&self, news: News) {
        // It ends when this is dropped, and not before.
        let _ = self.0.send(news);
    }
}

/// Lets all go at once: there is nobody to have them take turns.
pub(super) fn let_go(news: &News) {
    news.orders.values().for_each(|orders| orders.give(Word::Turn(Turn { runs: true, heard: None })));
}

fn rotate(news: &Receiver<News>) {
    let mut rotation = Rotation::default();
    let mut told = Told::default();
    loop {
        let switch = match wait(news, rotation.ends()) {
            Ok(news) => {
                told.take(news.orders);
                rotation.take(news.turns, &news.fresh)
            }
            Err(RecvTimeoutError::Timeout) => rotation.next(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        told.carry_out(&switch);
        rotation.begun(BootTime::now());
    }
}

/// The next news, if there are any before that instant.
fn wait(news: &Receiver<News>, until: Option<BootTime>) -> Result<News, RecvTimeoutError> {
    match until {
        None => Ok(news.recv()?),
        Some(until) => news.recv_timeout(until.since(BootTime::now())),
    }
}

/// Those whose turns these are, and how each is told.
#[derive(Debug, Default)]
struct Told {
    orders: BTreeMap<Attempt, Orders>,
    /// What each holds as long as it has not seen to its last stop.
    stops: BTreeMap<Attempt, Weak<Sender<()>>>,
}

impl Told {
    fn take(&mut self, orders: BTreeMap<Attempt, Orders>) {
        self.stops.retain(|attempt, _| orders.contains_key(attempt));
        self.orders = orders;
    }

    /// Stops some, and lets the others go when they have stopped. Nobody waits for one that has not seen to its last stop yet: it is launched
    /// again and again, perhaps, or its processes do not stop.
    fn carry_out(&mut self, switch: &Switch) {
        let (heard, all) = mpsc::channel::<()>();
        for attempt in &switch.stop {
            let heard = self.has_stopped(*attempt).then(|| Arc::new(heard.clone()));
            if let Some(heard) = &heard {
                self.stops.insert(*attempt, Arc::downgrade(heard));
            }
            self.tell(attempt, Turn { runs: false, heard });
        }
        drop(heard);
        // Nobody says anything: whoever has done it lets go of its end.
        if all.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("of {:?} not all processes stop; the next jobs go on beside them", switch.stop);
        }
        for attempt in &switch.go {
            self.tell(attempt, Turn { runs: true, heard: None });
        }
    }

    /// Whether it has seen to its last stop.
    fn has_stopped(&self, attempt: Attempt) -> bool {
        self.stops.get(&attempt).is_none_or(|held| held.strong_count() == 0)
    }

    fn tell(&self, attempt: &Attempt, turn: Turn) {
        if let Some(orders) = self.orders.get(attempt) {
            orders.give(Word::Turn(turn));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::super::word::Waker;
    use super::*;

    #[test]
    fn who_has_not_seen_to_its_last_stop_is_not_waited_for_again() {
        let attempt = Attempt { job: 1, nth: 1 };
        let (sender, words) = channel();
        let mut told = Told::default();
        told.take([(attempt, Orders::new(sender, Waker::new().unwrap()))].into());
        let mut waits = || {
            let began = BootTime::now();
            told.carry_out(&Switch { stop: vec![attempt], go: vec![] });
            BootTime::now().since(began) >= PATIENCE
        };
        assert!(waits());
        assert!(!waits() && !waits());
        assert_eq!(words.try_iter().count(), 3, "but it is told each time");
        assert!(waits());
    }
}
