//! What happens beside a process that waits: the daemon goes on, and others do something.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::{Rc, Weak};

use super::Machine;

/// The daemon beside one of its tasks.
pub(crate) trait Beside {
    /// Returns the next instant at which it has something to do.
    fn next(&self) -> Option<i64>;

    /// Runs the due steps. Unwinds if the daemon ends.
    fn turn(&self);
}

type Event = Box<dyn FnOnce(&Machine)>;

/// What happens later.
#[derive(Default)]
pub(super) struct Later {
    daemon: RefCell<Option<Weak<dyn Beside>>>,
    /// The events by their instants, in order.
    events: RefCell<BTreeMap<i64, Vec<Event>>>,
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} instants", self.events.borrow().len())
    }
}

impl Later {
    /// Returns the daemon, if one runs.
    pub(super) fn daemon(&self) -> Option<Rc<dyn Beside>> {
        self.daemon.borrow().as_ref()?.upgrade()
    }

    pub(super) fn next(&self) -> Option<i64> {
        self.events.borrow().keys().next().copied()
    }
}

impl Machine {
    /// Sets the daemon that goes on while one of its tasks waits.
    pub(crate) fn set_daemon(&self, daemon: &Rc<impl Beside + 'static>) {
        let daemon = Rc::downgrade(daemon);
        self.later.daemon.replace(Some(daemon));
    }

    /// Lets something happen after some ticks, even if a task of the daemon is under way.
    pub(crate) fn after(&self, ticks: i64, event: impl FnOnce(&Machine) + 'static) {
        let at = self.now().saturating_add(ticks);
        self.later.events.borrow_mut().entry(at).or_default().push(Box::new(event));
    }

    /// Lets what is due happen.
    pub(super) fn run_later(&self) {
        while self.later.next().is_some_and(|at| at <= self.now()) {
            let Some((_, events)) = self.later.events.borrow_mut().pop_first() else { return };
            for event in events {
                event(self);
            }
        }
    }

    /// Forgets what was to happen later.
    pub(super) fn forget_later(&self) {
        self.later.events.borrow_mut().clear();
    }
}
