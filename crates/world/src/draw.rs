//! Scripts from seeds.
//!
//! Each seed has a machine and a subset of the kinds of steps ("swarm testing"): rare combinations come only if most kinds are
//! left out most of the time.

use miserly_core::draw;
use miserly_policies::PolicySpec;

use crate::step::{
    Condition, Event, Habit, MachineSetup, MainSignal, ProgramHabit, Request, SECOND, Script, Step, Wish,
};
use crate::world::{RESERVED, USERS};

/// The policies of queues.
const POLICIES: [&str; 10] = [
    "miser",
    "conservative",
    "easy",
    "fcfs",
    "easy(order=sjf)",
    "conservative(order=lxf)",
    "ss",
    "immediate(policy=fcfs-backfill, quantum=30s, after=0s)",
    "selective-backfill",
    "slurm",
];

/// The policies of time-sliced queues. A round takes 20 s at most.
const GANG: [&str; 5] = [
    "gang(quantum=1s, slots=3)",
    "gang(quantum=5s, slots=4)",
    "gang(quantum=2s, slots=4, packing=migration, migrate=1)",
    "gang(quantum=3s, slots=2, packing=first-fit, alternative=false)",
    "gang(quantum=1s, slots=4, packing=best-fit, unify=false, strict=false, switch=0.5)",
];
/// The policies of queues whose jobs are resized.
const EQUAL: [&str; 4] = [
    "eqspatial(quantum=0)",
    "eqspatial(quantum=0, min_interval=3s)",
    "eqspatial(quantum=0, long_job_after=10s)",
    "eqspatial(quantum=5s, quantum_memory=4096)",
];
/// The policies of queues whose suspended jobs are written out.
const WRITING: [&str; 4] = [
    "ss(criterion=remaining, half_width=false, period=none, overhead=write, rate=100000)",
    "ss(sf=1.2, period=5s, overhead=write+read, rate=200000)",
    "tss(period=5s, overhead=write, rate=50000, migrate=true)",
    "is(slice=10s, overhead=write, rate=100000)",
];
/// The memory of the jobs of such queues, bytes. No two of the largest fit beside each other.
const WRITTEN: [u64; 3] = [50 << 20, 300 << 20, 700 << 20];
/// The memory of a job beside which no other such job fits, bytes.
const MUCH: u64 = 700 << 20;
/// One in so many seeds has a store.
const STORED: u64 = 8;

/// A sequence of numbers from a seed.
struct Draws {
    seed: u64,
    /// Each sequence of a seed has a number. What comes from another one is the same with and without this one.
    sequence: i64,
    nth: u64,
}

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.nth += 1;
        draw(self.seed, self.sequence, self.nth) % bound.max(1)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap_or(0)]
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn small(&mut self, bound: u32) -> u32 {
        u32::try_from(self.below(bound.into())).unwrap_or(0)
    }

    fn ticks(&mut self, bound: i64) -> i64 {
        i64::try_from(self.below(bound.unsigned_abs())).unwrap_or(0)
    }
}

/// The kinds of steps, each of which a seed has or has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Kill,
    KillWithin,
    Stop,
    Stall,
    Reboot,
    SetWall,
    Full,
    FailCommit,
    KillShim,
    Reload,
    Cancel,
    Hold,
    Requeue,
    Extend,
    Pause,
    Modify,
    Reserve,
    Ask,
    Resize,
    StopShim,
    SignalMain,
    Soon,
    ShutDown,
    TearCommit,
    FailOpen,
    Restore,
}

const KINDS: [Kind; 18] = [
    Kind::Kill,
    Kind::KillWithin,
    Kind::Stop,
    Kind::Stall,
    Kind::Reboot,
    Kind::SetWall,
    Kind::Full,
    Kind::FailCommit,
    Kind::KillShim,
    Kind::Reload,
    Kind::Cancel,
    Kind::Hold,
    Kind::Requeue,
    Kind::Extend,
    Kind::Pause,
    Kind::Modify,
    Kind::Reserve,
    Kind::Ask,
];

/// The kinds of steps that fewer seeds have.
const RARE: [Kind; 4] = [Kind::StopShim, Kind::SignalMain, Kind::Soon, Kind::ShutDown];

/// The kinds of steps that only wide scripts have: not all of their rules hold in all seeds yet.
const WIDE: [Kind; 3] = [Kind::TearCommit, Kind::FailOpen, Kind::Restore];

/// The features of jobs that a seed has.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a feature")]
struct Features {
    arrays: bool,
    conditions: bool,
    retries: bool,
    restarts: bool,
    begins: bool,
    deadlines: bool,
    early: bool,
    holds: bool,
    stubborn: bool,
    over: bool,
    moves: bool,
    signals: bool,
    leftovers: bool,
    prologs: bool,
    epilogs: bool,
    earlier: bool,
    blocks: bool,
    sizes: bool,
    latest_starts: bool,
    overruns: bool,
}

/// Returns the script of a seed, with this number of steps. A `wide` one has more kinds of steps and features.
pub fn script(seed: u64, steps: usize, wide: bool) -> Script {
    let [mut draws, mut more, mut sizes] = [0, 1, 2].map(|sequence| Draws { seed, sequence, nth: 0 });
    let mut bounds = Draws { seed, sequence: 6, nth: 0 };
    let mut machine = machine(&mut draws);
    if wide {
        machine.user_jobs = more.one_in(6).then(|| 1 + more.below(3));
        machine.user_cpus = more.one_in(6).then(|| 1 + more.below(4));
    }
    let slices = more.one_in(8);
    if slices {
        slice(&mut machine, &mut more);
    }
    let equal = wide && !slices && sizes.one_in(4);
    if equal {
        divide(&mut machine, &mut sizes);
        machine.queues[0].1 = 2 + sizes.below(5);
    }
    machine.waits = Draws { seed, sequence: 3, nth: 0 }.one_in(3);
    let mut kinds: Vec<Kind> = KINDS.into_iter().filter(|_| draws.one_in(3)).collect();
    kinds.extend(RARE.into_iter().filter(|_| more.one_in(8)));
    if wide {
        kinds.extend(WIDE.into_iter().filter(|_| more.one_in(3)));
    }
    kinds.extend(equal.then_some(Kind::Resize));
    let mut has = |bound| draws.one_in(bound);
    let features = Features {
        arrays: has(3),
        conditions: has(3),
        retries: has(2),
        restarts: has(2),
        begins: has(3),
        deadlines: has(4),
        early: has(2),
        holds: has(4),
        stubborn: has(3),
        over: has(2),
        moves: has(3),
        signals: more.one_in(6),
        leftovers: more.one_in(6),
        prologs: more.one_in(8),
        epilogs: more.one_in(8),
        earlier: more.one_in(8),
        blocks: wide && more.one_in(6),
        sizes: equal,
        latest_starts: bounds.one_in(4),
        overruns: bounds.one_in(4),
    };
    if bounds.one_in(4) {
        machine.idle = Some((SECOND + bounds.ticks(20 * SECOND), bounds.one_in(2)));
    }
    if features.epilogs {
        machine.cleanup = machine.cleanup.max(3 * SECOND);
    }
    let mut maker = Maker {
        draws,
        more,
        sizes,
        bounds,
        machine: machine.clone(),
        kinds,
        features,
        tags: 0,
        awaited: 0,
        full: false,
    };
    let steps = (0..steps).flat_map(|_| maker.steps()).take(steps).collect();
    let groups = Draws { seed, sequence: 4, nth: 0 }.one_in(4);
    let mut script = Script { machine, stored: wide && seed % STORED == 1, groups, wide, steps };
    give_types(&mut Draws { seed, sequence: 6, nth: 0 }, &mut script);
    script
}

/// Gives the GPUs of a script types and shares, if its first queue plans devices.
fn give_types(draws: &mut Draws, script: &mut Script) {
    let plans = |policy: &str| policy.parse().is_ok_and(|policy: PolicySpec| policy.needs().devices);
    if script.machine.gpus == 0 || !plans(&script.machine.queues[0].0) {
        return;
    }
    let classes = |machine: &mut MachineSetup| {
        if machine.gpus > 0 {
            (machine.gpus, machine.gpu_types) = (3, true);
        }
    };
    classes(&mut script.machine);
    for step in &mut script.steps {
        match step {
            Step::Reload { machine } if !draws.one_in(8) => classes(machine),
            Step::Submit { wish, .. } if wish.queue == 0 => {
                let kind = draws.below(6);
                match kind {
                    0 | 1 => (wish.gpus, wish.gpu_share) = (0, 1 + draws.below(16)),
                    2 => (wish.gpus, wish.gpu_type) = (1, Some("t4".to_owned())),
                    3 => (wish.gpus, wish.gpu_type) = (1, Some("a100".to_owned())),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// Lets the first queue of a script of a seed write suspended jobs out, by commands that may fail or be late.
///
/// Nothing else of the script changes but what no such queue can have.
pub fn write_out(seed: u64, script: &mut Script) {
    let mut draws = Draws { seed, sequence: 5, nth: 0 };
    let write = |machine: &mut MachineSetup, draws: &mut Draws| {
        draws.of(&WRITING).clone_into(&mut machine.queues[0].0);
        machine.gpus = 0;
    };
    write(&mut script.machine, &mut draws);
    let fails = draws.one_in(2);
    for step in &mut script.steps {
        match step {
            Step::Reload { machine } if !draws.one_in(4) => write(machine, &mut draws),
            Step::Submit { wish, .. } => {
                (wish.gpus, wish.gpu_type, wish.gpu_share) = (0, None, 0);
                wish.restartable |= !draws.one_in(8);
                wish.memory = Some(draws.of(&WRITTEN));
                for habit in &mut wish.runs {
                    let most = if fails && draws.one_in(4) { 20 * SECOND } else { SECOND };
                    let code = i32::from(fails && draws.one_in(4));
                    habit.epilog = None;
                    habit.checkpoint = Some(ProgramHabit { ticks: draws.ticks(most), code });
                }
            }
            _ => {}
        }
    }
}

fn machine(draws: &mut Draws) -> MachineSetup {
    let count = if draws.one_in(4) { 2 } else { 1 };
    let queues = (0..count).map(|_| {
        let policy = POLICIES[usize::try_from(draws.below(POLICIES.len() as u64)).unwrap_or(0)];
        (policy.to_owned(), 1 + draws.below(4))
    });
    let queues = queues.collect();
    let slack = [0, 0, 2 * SECOND][usize::try_from(draws.below(3)).unwrap_or(0)];
    MachineSetup {
        queues,
        gpus: if draws.one_in(4) { 2 } else { 0 },
        gpu_types: false,
        opportunistic: draws.one_in(2),
        cleanup: draws.ticks(3) * SECOND,
        grace: draws.ticks(3) * SECOND,
        slack,
        user_jobs: None,
        user_cpus: None,
        waits: false,
        idle: None,
    }
}

/// Lets the jobs of the first queue take turns.
fn slice(machine: &mut MachineSetup, draws: &mut Draws) {
    draws.of(&GANG).clone_into(&mut machine.queues[0].0);
    // GPUs are not given by turns.
    machine.gpus = 0;
}

/// Lets the jobs of the first queue divide its processors.
fn divide(machine: &mut MachineSetup, draws: &mut Draws) {
    draws.of(&EQUAL).clone_into(&mut machine.queues[0].0);
    // GPUs are not given to jobs that are requeued.
    machine.gpus = 0;
}

struct Maker {
    draws: Draws,
    /// The draws of what not all seeds have.
    more: Draws,
    /// The draws of resizable jobs.
    sizes: Draws,
    /// The draws of latest starts and of runs past a limit.
    bounds: Draws,
    machine: MachineSetup,
    kinds: Vec<Kind>,
    features: Features,
    tags: u32,
    /// The last submission for which another one waits.
    awaited: u32,
    full: bool,
}

impl Maker {
    /// Returns the next steps: some belong together.
    fn steps(&mut self) -> Vec<Step> {
        match self.draws.below(8) {
            0..3 => vec![self.submit()],
            3..6 => vec![self.wait()],
            _ if self.kinds.is_empty() => vec![self.wait()],
            _ => {
                let nth = self.draws.below(self.kinds.len() as u64);
                let kind = self.kinds[usize::try_from(nth).unwrap_or(0)];
                self.special(kind)
            }
        }
    }

    fn wait(&mut self) -> Step {
        let bound = [20_000, SECOND, 5 * SECOND, 30 * SECOND, 120 * SECOND];
        let bound = bound[usize::try_from(self.draws.below(5)).unwrap_or(0)];
        Step::Wait { ticks: 1 + self.draws.ticks(bound) }
    }

    fn tag(&mut self) -> u32 {
        // Mostly a late one: early ones have ended.
        let back =
            if self.draws.one_in(4) { self.draws.small(self.tags.max(1)) } else { self.draws.small(6) };
        self.tags.saturating_sub(back).max(1)
    }

    fn user(&mut self) -> u32 {
        if self.draws.one_in(6) { 0 } else { USERS + self.draws.small(2) }
    }

    fn submit(&mut self) -> Step {
        self.tags += 1;
        let queue = usize::try_from(self.draws.below(self.machine.queues.len() as u64)).unwrap_or(0);
        let most = self.machine.queues[queue].1;
        let time = 1 + self.draws.small(60);
        let features = self.features;
        let mut after = vec![];
        if features.conditions && self.tags > 1 && self.draws.one_in(3) {
            let condition = [Condition::Any, Condition::Ok, Condition::NotOk];
            let condition = condition[usize::try_from(self.draws.below(3)).unwrap_or(0)];
            let other = self.tag().min(self.tags - 1);
            after.push((condition, other));
            self.awaited = other;
        }
        let members = if features.arrays && self.draws.one_in(4) { 1 + self.draws.small(5) } else { 0 };
        let runs = (0..=self.draws.below(3)).map(|_| self.habit(time)).collect();
        let reserves = self.kinds.contains(&Kind::Reserve);
        let draws = &mut self.draws;
        let of_reservation = reserves && draws.one_in(6);
        let mut wish = Wish {
            queue: if of_reservation { RESERVED + usize::from(draws.one_in(2)) } else { queue },
            cpus: 1 + draws.below(most),
            gpus: u64::from(queue == 0 && self.machine.gpus > 0 && draws.one_in(3)),
            time,
            begin: (features.begins && draws.one_in(3)).then(|| draws.ticks(100 * SECOND)),
            deadline: (features.deadlines && draws.one_in(3)).then(|| draws.ticks(300 * SECOND)),
            after,
            members,
            at_a_time: (members > 0 && draws.one_in(2)).then(|| 1 + draws.small(2)),
            restartable: features.restarts && draws.one_in(2),
            retry: if features.retries && draws.one_in(2) { 1 + draws.small(2) } else { 0 },
            early: features.early && draws.one_in(2),
            hold: features.holds && draws.one_in(3),
            runs,
            ..Wish::default()
        };
        if features.sizes {
            self.size(&mut wish, most);
        }
        self.bound(&mut wish);
        let user = self.user();
        Step::Submit { tag: self.tags, user, wish: Box::new(wish) }
    }

    /// Gives some jobs a longest wait, and lets some run on past their limits.
    fn bound(&mut self, wish: &mut Wish) {
        let Features { latest_starts, overruns, .. } = self.features;
        let bounds = &mut self.bounds;
        if latest_starts && bounds.one_in(2) {
            let most = if bounds.one_in(6) { 1 } else { 60 * SECOND };
            wish.start_within = Some(bounds.ticks(most));
        }
        let of_queue = self.machine.queues.get(wish.queue).map_or("", |(policy, _)| policy.as_str());
        let takes = ["gang", "eqspatial", "immediate", "ss", "tss", "is(", "selective"];
        let takes = takes.iter().any(|policy| of_queue.starts_with(policy));
        wish.overrun = overruns && !takes && bounds.one_in(2);
    }

    /// Makes most jobs resizable, with at most `most` processors.
    fn size(&mut self, wish: &mut Wish, most: u64) {
        let draws = &mut self.sizes;
        if !draws.one_in(4) {
            wish.cpus = 1 + draws.below(most);
            wish.resizable = Some(1 + draws.below(wish.cpus));
            wish.resize_signal = draws.one_in(2);
        }
        wish.memory = draws.one_in(4).then_some(MUCH);
    }

    fn resize(&mut self, tag: u32) -> Request {
        Request::Resize { tag, cpus: 1 + self.sizes.below(5) }
    }

    fn habit(&mut self, time: u32) -> Habit {
        let limit = i64::from(time) * SECOND;
        let over = self.features.over && self.draws.one_in(4);
        let ticks = if over { limit + self.draws.ticks(20 * SECOND) } else { self.draws.ticks(limit) };
        let code = i32::from(self.draws.one_in(3));
        let stubborn = self.features.stubborn && self.draws.one_in(4);
        let more = &mut self.more;
        let signal = if self.features.signals && more.one_in(4) { more.of(&[6, 9, 11, 15]) } else { 0 };
        let leaves = if self.features.leftovers && more.one_in(3) { 1 + more.ticks(10 * SECOND) } else { 0 };
        let prolog = self.features.prologs.then(|| self.program());
        let epilog = self.features.epilogs.then(|| self.program());
        let is_earlier = self.features.earlier && self.more.one_in(3);
        let version = is_earlier.then(|| self.more.small(2));
        let blocks = self.features.blocks && self.more.one_in(6);
        let lazy = self.machine.idle.is_some() && self.bounds.one_in(2);
        Habit {
            ticks,
            code,
            stubborn,
            signal,
            leaves,
            version,
            prolog,
            epilog,
            blocks,
            checkpoint: None,
            lazy,
        }
    }

    /// Returns a prolog or an epilog: mostly a short one that succeeds. Some take longer than they may.
    fn program(&mut self) -> ProgramHabit {
        let more = &mut self.more;
        let most = if more.one_in(4) { 5 * SECOND } else { SECOND / 10 };
        ProgramHabit { ticks: more.ticks(most), code: i32::from(more.one_in(4)) }
    }

    fn special(&mut self, kind: Kind) -> Vec<Step> {
        let user = self.user();
        let tag = self.tag();
        let move_promises = self.features.moves && self.draws.one_in(2);
        let request = |request| vec![Step::Request { user, request }];
        match kind {
            Kind::Kill => vec![Step::Kill { after: 0 }, self.away(), Step::Start],
            Kind::KillWithin => {
                let after = 1 + self.draws.small(12);
                vec![Step::Kill { after }, self.submit(), self.wait(), self.away(), Step::Start]
            }
            Kind::Stop => vec![Step::Stop, self.away(), Step::Start],
            Kind::Stall => vec![Step::Stall { ticks: self.draws.ticks(30 * SECOND) }],
            Kind::Reboot => vec![Step::Reboot { ticks: SECOND + self.draws.ticks(120 * SECOND) }],
            Kind::SetWall => {
                let most = if self.draws.one_in(3) { 86_400 * SECOND } else { 5 * SECOND };
                vec![Step::SetWall { by: self.draws.ticks(2 * most) - most }]
            }
            Kind::Full => {
                self.full = !self.full;
                vec![Step::Full { on: self.full, only_attempts: self.draws.one_in(2) }]
            }
            Kind::FailCommit => {
                let stored = self.draws.one_in(2);
                vec![Step::FailCommit { stored }, self.submit(), self.away(), Step::Start]
            }
            Kind::KillShim => vec![Step::KillShim { tag }],
            Kind::Reload => {
                let machine = self.reload();
                vec![Step::Reload { machine: Box::new(machine) }]
            }
            Kind::Cancel => {
                let array = self.draws.one_in(3);
                request(Request::Cancel { tag, array })
            }
            Kind::Hold if self.draws.one_in(2) => request(Request::Release { tag }),
            Kind::Hold => {
                let tag = if self.awaited > 0 && self.draws.one_in(2) { self.awaited } else { tag };
                request(Request::Hold { tag, move_promises })
            }
            Kind::Requeue => request(Request::Requeue { tag, move_promises }),
            Kind::Extend => {
                let seconds = 1 + self.draws.small(60);
                request(Request::Extend { tag, seconds })
            }
            Kind::Pause => {
                let on = self.draws.one_in(2);
                request(Request::Pause { tag, on })
            }
            Kind::Modify => {
                let time = self.draws.one_in(2).then(|| 1 + self.draws.small(60));
                let cpus = self.draws.one_in(3).then(|| 1 + self.draws.below(4));
                let before = self.draws.one_in(3).then(|| self.tag());
                request(Request::Modify { tag, time, cpus, before, move_promises })
            }
            Kind::Resize => {
                let resize = self.resize(tag);
                request(resize)
            }
            Kind::Reserve => self.reserve(),
            Kind::TearCommit => {
                let part = u16::try_from(self.draws.below(1000)).unwrap_or(0);
                vec![Step::TearCommit { part }, self.submit(), self.away(), Step::Start]
            }
            Kind::FailOpen => {
                vec![Step::FailOpen, Step::Kill { after: 0 }, Step::Start, self.away(), Step::Start]
            }
            Kind::Restore if self.draws.one_in(2) => vec![Step::BackUp],
            Kind::Restore => vec![Step::Restore { sweep: self.draws.one_in(4) }],
            Kind::Ask => {
                let (cpus, time) = (1 + self.draws.below(4), 1 + self.draws.small(60));
                let asked = match self.draws.below(6) {
                    5 => return self.drain(user),
                    0 => Request::Quote { cpus, time },
                    1 => Request::Preview { tag },
                    2 if tag.is_multiple_of(2) => Request::Step { tag, ends: Some(0) },
                    2 => Request::Pools,
                    3 if tag.is_multiple_of(2) => Request::Step { tag, ends: None },
                    3 => Request::Limits,
                    _ => Request::Signal { tag },
                };
                request(asked)
            }
            Kind::StopShim if self.more.one_in(3) => vec![Step::StopShim { tag, on: true }],
            Kind::StopShim => {
                let [stop, go] = [true, false].map(|on| Step::StopShim { tag, on });
                vec![stop, self.wait(), go]
            }
            Kind::SignalMain => vec![Step::SignalMain { tag, signal: self.signal() }],
            Kind::Soon => self.soon(),
            Kind::ShutDown => {
                let more = &mut self.more;
                let (patience, daemon_first) = (more.ticks(6 * SECOND), more.one_in(3));
                vec![Step::ShutDown { patience, daemon_first, ticks: SECOND + more.ticks(60 * SECOND) }]
            }
        }
    }

    fn signal(&mut self) -> MainSignal {
        use MainSignal::{Continue, Kill, Stop, Terminate};
        self.more.of(&[Stop, Stop, Continue, Terminate, Kill])
    }

    /// A job or two, and what happens while they are launched.
    fn soon(&mut self) -> Vec<Step> {
        let mut steps = vec![self.submit()];
        if self.more.one_in(2) {
            steps.push(self.submit());
        }
        for _ in 0..=self.more.below(3) {
            let most = if self.more.one_in(4) { SECOND } else { 9_000 };
            let ticks = self.more.ticks(most);
            steps.push(Step::Soon { ticks, event: self.event() });
        }
        if self.more.one_in(4) {
            steps.push(Step::Kill { after: 1 + self.more.small(40) });
            steps.extend([self.wait(), self.away(), Step::Start]);
        } else {
            steps.push(self.wait());
        }
        steps
    }

    fn event(&mut self) -> Event {
        let tag = if self.more.one_in(3) { self.tag() } else { self.tags };
        let user = self.user();
        let move_promises = self.features.moves && self.more.one_in(2);
        let nth = self.more.below(9);
        let request = match nth {
            _ if self.features.sizes && self.sizes.one_in(3) => self.resize(tag),
            0 => return Event::KillShim { tag },
            1 => return Event::StopShim { tag, on: self.more.one_in(2) },
            2 => return Event::SignalMain { tag, signal: self.signal() },
            3 => Request::Hold { tag, move_promises },
            4 => Request::Requeue { tag, move_promises },
            5 => Request::Extend { tag, seconds: 1 + self.more.small(60) },
            6 => Request::Pause { tag, on: self.more.one_in(2) },
            7 => Request::Signal { tag },
            _ => Request::Cancel { tag, array: false },
        };
        Event::Request { user, request }
    }

    /// A user drains the daemon, and an operator ends that.
    fn drain(&mut self, user: u32) -> Vec<Step> {
        let [on, off] = [true, false].map(|on| Request::Drain { on });
        let steps = [(user, on), (0, off)].map(|(user, request)| Step::Request { user, request });
        let [on, off] = steps;
        vec![on, self.submit(), off]
    }

    /// Time passes without a daemon: often less than the jobs need, at times more.
    fn away(&mut self) -> Step {
        let bound = [SECOND, 10 * SECOND, 100 * SECOND][usize::try_from(self.draws.below(3)).unwrap_or(0)];
        Step::Wait { ticks: self.draws.ticks(bound) }
    }

    fn reserve(&mut self) -> Vec<Step> {
        let name = u8::try_from(self.draws.below(3)).unwrap_or(0);
        let request = if self.draws.one_in(3) {
            Request::RemoveReservation { name }
        } else {
            let from = self.draws.ticks(200 * SECOND);
            let to = from + SECOND + self.draws.ticks(100 * SECOND);
            Request::Reserve { name, cpus: 1 + self.draws.below(2), from, to }
        };
        vec![Step::Request { user: 0, request }]
    }

    fn reload(&mut self) -> MachineSetup {
        let mut machine = machine(&mut self.draws);
        // Queues keep their pools mostly: a smaller pool is refused as long as jobs need the larger one.
        if !self.draws.one_in(4) {
            machine.queues.resize(self.machine.queues.len(), ("easy".into(), 1));
            for (queue, before) in machine.queues.iter_mut().zip(&self.machine.queues) {
                queue.1 = before.1;
            }
            machine.gpus = self.machine.gpus;
        }
        if self.machine.queues[0].0.starts_with("gang") && !self.more.one_in(4) {
            slice(&mut machine, &mut self.more);
        }
        if self.features.sizes && !self.sizes.one_in(4) {
            divide(&mut machine, &mut self.sizes);
        }
        if self.features.epilogs {
            machine.cleanup = machine.cleanup.max(3 * SECOND);
        }
        if machine.queues.len() < self.machine.queues.len() {
            machine.queues.clone_from(&self.machine.queues);
        }
        machine
    }
}
