//! The launcher of one daemon: its loop, its tasks and its turns of slots, on one thread.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, TryRecvError};

use miserly_api::model::{Problem, Submission};
use miserly_core::{Span, draw};
use miserly_engine::{Action, Attempt, Input, Launcher, SlotSchedule};
use miserly_launcher::{
    AttemptMessage, Begin, LAUNCHERS, LoopMessage, PendingLaunch, Readiness, Rotation, STOP_PATIENCE,
    ShimLoop, Site, Supervisor, Task, check, duration, run_launch, run_task,
};

use super::home::{Home, Shim, ShimExit};
use super::ticks;
use super::wire::Inbox;

/// The longest time until a thread takes up a task.
const TASK: u64 = 400;

type Message = LoopMessage<Shim>;

/// The launcher of a check, which acts on nothing.
#[derive(Debug)]
pub(crate) struct NoLauncher;

impl Launcher for NoLauncher {
    fn check(&self, submission: &Submission, name: &str) -> Result<(), Problem> {
        check(submission, name)
    }

    fn act(&mut self, _: Attempt, _: Action) {}

    fn rotate_slots(&mut self, _: &str, _: Option<&SlotSchedule>) {}
}

/// A schedule of slots, and the attempts that began stopped.
type Turns = (SlotSchedule, BTreeSet<Attempt>);

/// The orders of the engine that the loop has not taken.
#[derive(Debug, Default)]
struct Orders {
    messages: VecDeque<Message>,
    turns: VecDeque<(String, Option<Turns>)>,
}

/// The launcher of a daemon, as its engine sees it.
pub(crate) struct Processes {
    home: Home,
    orders: Rc<RefCell<Orders>>,
    /// The attempts that were launched stopped, until the turn of their slot.
    fresh: BTreeSet<Attempt>,
}

impl Launcher for Processes {
    fn check(&self, submission: &Submission, name: &str) -> Result<(), Problem> {
        check(submission, name)
    }

    fn act(&mut self, attempt: Attempt, action: Action) {
        self.home.machine.effects.pass();
        let text = if let Action::Launch(launch) = &action {
            format!("Launch on {:?} until {:?}, planned {:?}", launch.cpus, launch.end, launch.planned_window)
        } else {
            format!("{action:?}")
        };
        self.home.machine.note(format!("-> {}.{} {text}", attempt.job, attempt.nth));
        match &action {
            Action::Launch(launch) if launch.limit.is_some() => drop(self.fresh.insert(attempt)),
            Action::Forget => drop(self.fresh.remove(&attempt)),
            _ => {}
        }
        self.orders.borrow_mut().messages.push_back(Message::act(attempt, action));
        self.home.machine.effects.pass();
    }

    fn hold_launches(&mut self, time: Span) {
        self.orders.borrow_mut().messages.push_back(Message::HoldLaunches(duration(time)));
    }

    fn rotate_slots(&mut self, queue: &str, schedule: Option<&SlotSchedule>) {
        let turns = schedule.map(|schedule| {
            let all = schedule.slots.values().flatten();
            (schedule.clone(), all.filter(|attempt| self.fresh.contains(attempt)).copied().collect())
        });
        self.orders.borrow_mut().turns.push_back((queue.to_owned(), turns));
    }
}

impl Supervisor<Shim> for Processes {
    fn supervise(&self, attempt: Attempt, begin: Begin<Shim>) {
        self.orders.borrow_mut().messages.push_back(Message::Begin(attempt, begin));
    }
}

/// A task, which begins at an instant.
#[derive(Debug)]
enum Work {
    Launch(PendingLaunch),
    Other(Task),
}

/// The threads of the pools of tasks.
const THREADS: [usize; 2] = [LAUNCHERS, 2];

impl Work {
    /// Returns the number of the pool that does it.
    fn pool(&self) -> usize {
        match self {
            Work::Launch(_) => 0,
            Work::Other(_) => 1,
        }
    }
}

/// The surroundings of the loop.
struct Surroundings {
    home: Home,
    tasks: RefCell<VecDeque<(i64, Attempt, Work)>>,
    reports: Rc<RefCell<VecDeque<Input>>>,
    exits: RefCell<BTreeMap<Attempt, (u64, ShimExit)>>,
    connections: RefCell<BTreeMap<Attempt, (u64, Inbox)>>,
}

impl Surroundings {
    fn submit(&self, attempt: Attempt, work: Work) {
        self.home.machine.effects.pass();
        let now = self.home.machine.now();
        let latency = draw(now.unsigned_abs(), attempt.job, attempt.nth.into()) % TASK;
        let mut tasks = self.tasks.borrow_mut();
        tasks.push_back((now + latency.cast_signed(), attempt, work));
        tasks.make_contiguous().sort_by_key(|(at, ..)| *at);
    }

    /// Returns the changes of watched shims.
    fn ready(&self) -> Vec<Readiness> {
        let (exits, connections) = (self.exits.borrow(), self.connections.borrow());
        let exited = exits.values().filter(|(_, shim)| shim.has_exited());
        let readable = connections.values().filter(|(_, inbox)| inbox.is_ready());
        let exited = exited.map(|(number, _)| Readiness::Exit(*number));
        exited.chain(readable.map(|(number, _)| Readiness::Connection(*number))).collect()
    }
}

impl Site for Surroundings {
    type Host = Home;
    type Partition = ();

    fn host(&self) -> &Home {
        &self.home
    }

    fn report(&self, input: Input) {
        self.reports.borrow_mut().push_back(input);
    }

    fn launch(&self, attempt: Attempt, pending: PendingLaunch) {
        self.submit(attempt, Work::Launch(pending));
    }

    fn submit(&self, attempt: Attempt, task: Task) {
        self.submit(attempt, Work::Other(task));
    }

    fn watch_exit(&self, number: u64, shim: &Shim) -> io::Result<()> {
        self.exits.borrow_mut().insert(shim.attempt, (number, shim.exit()));
        Ok(())
    }

    fn unwatch_exit(&self, shim: &Shim) {
        self.exits.borrow_mut().remove(&shim.attempt);
    }

    fn watch_connection(&self, number: u64, shim: &Shim) -> io::Result<()> {
        self.connections.borrow_mut().insert(shim.attempt, (number, shim.inbox().clone()));
        Ok(())
    }

    fn unwatch_connection(&self, shim: &Shim) {
        self.connections.borrow_mut().remove(&shim.attempt);
    }

    fn watch_partition(&self, _number: u64, _attempt: Attempt) -> Option<()> {
        None
    }

    fn partition_state(&self, _partition: &()) -> Option<String> {
        None
    }

    fn unwatch_partition(&self, _partition: ()) {}

    fn is_short_of_descriptors(&self) -> bool {
        false
    }

    fn set_waiting(&self, _launches: usize) {}

    fn note_shim(&self) {}
}

/// The turns of the slots of one queue.
#[derive(Default)]
struct Rotator {
    rotation: Rotation,
    /// The schedules that came during a switch.
    updates: VecDeque<Turns>,
    /// The switch under way: the attempts that continue when the others have stopped, and the latest instant for that.
    switch: Option<(Vec<Attempt>, Receiver<()>, i64)>,
}

/// The launcher of a daemon beside its engine: the loop that supervises all attempts, and its tasks.
pub(crate) struct Shims {
    supervision: RefCell<ShimLoop<Surroundings>>,
    orders: Rc<RefCell<Orders>>,
    rotators: RefCell<BTreeMap<String, Rotator>>,
    /// The tasks under way, by the pool of their threads.
    under_way: [Cell<usize>; 2],
}

impl Shims {
    /// Returns the launcher of a daemon. It puts its reports to the engine into `reports`.
    pub(crate) fn new(home: Home, reports: Rc<RefCell<VecDeque<Input>>>) -> (Processes, Shims) {
        let orders = Rc::<RefCell<Orders>>::default();
        let (tasks, exits, connections) = <_>::default();
        let site = Surroundings { home: home.clone(), tasks, reports, exits, connections };
        let shims = Shims {
            supervision: RefCell::new(ShimLoop::new(site)),
            orders: Rc::clone(&orders),
            rotators: RefCell::default(),
            under_way: <_>::default(),
        };
        (Processes { home, orders, fresh: BTreeSet::new() }, shims)
    }

    /// Returns the next instant at which it has something to do.
    pub(crate) fn next(&self) -> Option<i64> {
        let supervision = self.supervision.borrow();
        let site = supervision.site();
        let machine = &site.home.machine;
        let orders = self.orders.borrow();
        let is_due = !orders.messages.is_empty() || !orders.turns.is_empty() || !site.ready().is_empty();
        let of_boot = |at: i64| at.saturating_add(machine.boot_at.get());
        let rotators = self.rotators.borrow();
        let rotation = rotators.values().filter_map(|rotator| match &rotator.switch {
            Some((_, stopped, until)) => Some(if has_stopped(stopped) { machine.now() } else { *until }),
            None => rotator.rotation.ends().map(|at| of_boot(at.0)),
        });
        let tasks = site.tasks.borrow();
        let task = tasks.iter().find(|(.., work)| self.has_thread(work)).map(|(at, ..)| *at);
        let turn = supervision.next().map(|at| of_boot(at.0));
        is_due.then(|| machine.now()).into_iter().chain(task).chain(turn).chain(rotation).min()
    }

    /// Runs the due steps of the loop, and then one task. While a task waits, this is called again: the loop goes on, and other
    /// tasks begin. A task that began later ends earlier.
    pub(crate) fn turn(&self) {
        self.rotate();
        self.turn_loop();
        let Some((attempt, work)) = self.take_task() else { return };
        let home = self.supervision.borrow().site().home.clone();
        let under_way = &self.under_way[work.pool()];
        under_way.update(|count| count + 1);
        let result = match work {
            Work::Launch(pending) => Some(run_launch(&home, attempt, pending)),
            Work::Other(task) => run_task(&home, attempt, task),
        };
        under_way.update(|count| count - 1);
        if let Some(result) = result {
            self.orders.borrow_mut().messages.push_back(Message::Finished(attempt, result));
        }
    }

    fn turn_loop(&self) {
        let messages = std::mem::take(&mut self.orders.borrow_mut().messages);
        let mut supervision = self.supervision.borrow_mut();
        for message in messages {
            supervision.handle(message);
        }
        for ready in supervision.site().ready() {
            supervision.ready(ready);
        }
        supervision.advance();
    }

    /// Returns whether a thread is free for a task.
    fn has_thread(&self, work: &Work) -> bool {
        self.under_way[work.pool()].get() < THREADS[work.pool()]
    }

    /// Takes the next task that is due, if a thread is free for it.
    fn take_task(&self) -> Option<(Attempt, Work)> {
        let supervision = self.supervision.borrow();
        let site = supervision.site();
        let mut tasks = site.tasks.borrow_mut();
        let now = site.home.machine.now();
        let place = tasks.iter().position(|(at, _, work)| *at <= now && self.has_thread(work))?;
        tasks.remove(place).map(|(_, attempt, work)| (attempt, work))
    }

    fn send_turn(&self, attempt: Attempt, message: AttemptMessage) {
        self.orders.borrow_mut().messages.push_back(Message::To(attempt, message));
    }

    /// Switches between slots.
    fn rotate(&self) {
        let turns = std::mem::take(&mut self.orders.borrow_mut().turns);
        let mut rotators = self.rotators.borrow_mut();
        for (queue, turns) in turns {
            match turns {
                Some(turns) => rotators.entry(queue).or_default().updates.push_back(turns),
                None => drop(rotators.remove(&queue)),
            }
        }
        for rotator in rotators.values_mut() {
            while self.rotate_one(rotator) {}
        }
    }

    /// Takes one step of a rotator. Returns whether it took one.
    fn rotate_one(&self, rotator: &mut Rotator) -> bool {
        let machine = Rc::clone(&self.supervision.borrow().site().home.machine);
        let (now, boot_now) = (machine.now(), machine.boot_time());
        let is_over =
            |(_, stopped, until): &mut (_, Receiver<()>, i64)| has_stopped(stopped) || *until <= now;
        if let Some((resume, ..)) = rotator.switch.take_if(is_over) {
            for attempt in resume {
                self.send_turn(attempt, AttemptMessage::SetTurn { runs: true, ack: None });
            }
            rotator.rotation.begun(boot_now);
            return true;
        }
        if rotator.switch.is_some() {
            return false;
        }
        let switch = if let Some((schedule, fresh)) = rotator.updates.pop_front() {
            rotator.rotation.replace(schedule, &fresh)
        } else if rotator.rotation.ends().is_some_and(|at| at <= boot_now) {
            rotator.rotation.advance()
        } else {
            return false;
        };
        let (messages, stopped) = rotator.rotation.stop(&switch);
        for (attempt, message) in messages {
            self.send_turn(attempt, message);
        }
        rotator.switch = Some((switch.resume, stopped, now + ticks(STOP_PATIENCE)));
        true
    }
}

/// Returns whether all attempts have obeyed.
fn has_stopped(stopped: &Receiver<()>) -> bool {
    stopped.try_recv() == Err(TryRecvError::Disconnected)
}
