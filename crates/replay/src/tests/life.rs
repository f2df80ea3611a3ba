//! The life of a daemon under a clock that comes with the calls, with its journal in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use jiff::Timestamp;
use miserly_api::model::{Array, Exit, KilledBy, Modification, Problem, Submission};
use miserly_core::{Calendar, Kind, OpportunisticConfig, Resources, Span, Time};
use miserly_engine::{
    Absence, Account, Action, Attempt, AttemptOutcome, Caller, DaemonInfo, DaemonReply, DaemonRequest,
    Engine, Input, Launcher, MemoryJournal, Now, Queue, QueueTerms, Requester, Setup, SlotSchedule,
    WaitingShimLimits,
};
use miserly_test_support::Draws;

const HOUR: i64 = 3_600_000_000;
const CPUS: u32 = 6;

/// A launcher that passes on its orders.
struct Told(Sender<(Attempt, Action)>);

impl Launcher for Told {
    fn check(&self, _: &Submission, _: &str) -> Result<(), Problem> {
        Ok(())
    }

    fn act(&mut self, attempt: Attempt, action: Action) {
        self.0.send((attempt, action)).unwrap();
    }

    fn rotate_slots(&mut self, _: &str, _: Option<&SlotSchedule>) {}
}

/// A requester that ignores its reply.
#[derive(Debug)]
struct Nobody;

impl Requester for Nobody {
    fn reply(self: Box<Self>, _: Result<DaemonReply, Problem>) {}

    fn is_gone(&self) -> bool {
        false
    }
}

fn moment(ticks: i64) -> Now {
    let wall = Timestamp::from_microsecond(1_800_000_000_000_000 + ticks).unwrap();
    Now { ticks: Time::from_ticks(ticks), wall }
}

/// Returns a setup of one queue. Opportunistic jobs may use two processors more than its pool.
fn setup(policy: &str, opportunistic: bool) -> Setup {
    let pool = Resources::cpus(u64::from(CPUS)).with(Kind::Memory, 1 << 20);
    let queue = Queue {
        name: "batch".into(),
        policy: policy.parse().unwrap(),
        pool: Calendar::constant(pool),
        classes: None,
        charge: None,
        gpus: None,
        terms: QueueTerms { default_memory: 1024, ..QueueTerms::default() },
    };
    let machine = Resources::cpus(u64::from(CPUS) + 2).with(Kind::Memory, 1 << 20);
    let lead = Span::from_ticks(60_000_000);
    Setup {
        queues: vec![queue],
        cpus: (0..CPUS).collect(),
        opportunistic_cpus: (0..CPUS + 2).collect(),
        grace: Span::from_ticks(1_000_000),
        cleanup_time: Span::from_ticks(1_000_000),
        orphan_resume_delay: Span::from_ticks(1_000_000),
        opportunistic: opportunistic.then_some(OpportunisticConfig { lead, machine }),
        waiting_shims: WaitingShimLimits::NONE,
        keep_history: None,
        topology: miserly_engine::Topology::default(),
        whole_cores: false,
        gpus: 0,
        user_limits: miserly_engine::UserLimits::default(),
        reservations: vec![],
    }
}

/// A daemon that lives for some weeks.
pub(super) struct Life {
    engine: Engine<Told, MemoryJournal>,
    told: Receiver<(Attempt, Action)>,
    journal: MemoryJournal,
    setup: Setup,
    draws: Draws,
    now: i64,
    /// The attempts that run, and the instants at which they end by themselves.
    ends: BTreeMap<Attempt, i64>,
    jobs: i64,
}

impl Life {
    /// Returns the journal of some weeks.
    pub(super) fn journal(policy: &str, opportunistic: bool, seed: u64) -> Vec<String> {
        let (journal, setup) = (MemoryJournal::default(), setup(policy, opportunistic));
        let (engine, told) = Life::open(&journal, &setup, 0, &Absence::default());
        let (draws, ends) = (Draws::new(seed), BTreeMap::new());
        let mut life = Life { engine, told, journal, setup, draws, now: 0, ends, jobs: 0 };
        for _ in 0..160 {
            life.event();
        }
        life.journal.contents().lines
    }

    fn open(
        journal: &MemoryJournal,
        setup: &Setup,
        now: i64,
        absence: &Absence,
    ) -> (Engine<Told, MemoryJournal>, Receiver<(Attempt, Action)>) {
        let (sender, told) = channel();
        let info = DaemonInfo { runs_as_users: true, ..DaemonInfo::default() };
        let now = moment(now);
        let mut engine = Engine::open(setup.clone(), info, journal.clone(), Told(sender), now).unwrap();
        engine.begin(now, absence).unwrap();
        (engine, told)
    }

    /// Waits for some hours, and then does something that users do.
    fn event(&mut self) {
        let next = self.now + 1 + i64::try_from(self.draws.below(5)).unwrap() * HOUR;
        self.live_until(next);
        let job = 1 + i64::try_from(self.draws.below(self.jobs.max(1).unsigned_abs())).unwrap();
        match self.draws.below(20) {
            0 | 1 => self.ask(DaemonRequest::Cancel { job, array: false }),
            2 => self.ask(DaemonRequest::Extend { job, by: 5000.0 }),
            3 => self.ask(DaemonRequest::Hold { job, move_promises: true }),
            4 | 5 => self.ask(DaemonRequest::Release(job)),
            6 => self.ask(DaemonRequest::Requeue { job, move_promises: true }),
            7 => self.restart(),
            8 => self.reload(),
            9 => self.modify(job),
            10 => {
                self.ask(DaemonRequest::Pause { job, on: true });
                self.ask(DaemonRequest::Pause { job, on: false });
            }
            _ => self.submit(),
        }
    }

    /// Makes a job larger, smaller, later, or gives it the place of another one.
    fn modify(&mut self, job: i64) {
        let nothing = Modification::default();
        let changes = match self.draws.below(4) {
            0 => Modification { cpus: Some(1 + self.draws.below(u64::from(CPUS))), ..nothing },
            1 => Modification { time: Some(self.draws.choice(&[600.0, 20_000.0, 90_000.0])), ..nothing },
            2 => Modification { before: Some(job - 1), ..nothing },
            _ => Modification { begin: Some(moment(self.now + HOUR).wall), ..nothing },
        };
        self.ask(DaemonRequest::Modify { job, changes: Box::new(changes), move_promises: true });
    }

    fn submit(&mut self) {
        // Some are arrays, and some wait for the job before them.
        let members = if self.draws.below(8) == 0 { 3 } else { 1 };
        let after = Some(self.jobs).filter(|job| *job > 0 && self.draws.below(12) == 0);
        self.jobs += i64::from(members);
        let time = f64::from(u32::try_from(1800 + self.draws.below(90_000)).unwrap());
        let submission = Submission {
            command: vec!["true".into()],
            directory: "/".into(),
            cpus: 1 + self.draws.below(u64::from(CPUS)),
            time,
            after: after.into_iter().collect(),
            array: (members > 1).then(|| Array::range(1, members, 1)),
            restartable: self.draws.below(2) == 0,
            ..Submission::default()
        };
        // Three users in turn, of whom the first is root.
        let user = u32::try_from(self.jobs % 3).unwrap();
        self.ask_as(user, DaemonRequest::Submit(submission));
    }

    fn ask(&mut self, request: DaemonRequest) {
        self.ask_as(0, request);
    }

    fn ask_as(&mut self, uid: u32, request: DaemonRequest) {
        self.now += 1000;
        let requester = Box::new(Nobody);
        let account = Some(Arc::new(Account { name: format!("user{uid}"), groups: vec![] }));
        let caller = Caller { account, ..Caller::new(uid) };
        let input = Input::Request { caller, request: Box::new(request), requester };
        self.batch(vec![input]);
    }

    /// Another daemon follows an hour later.
    fn restart(&mut self) {
        self.now += HOUR;
        let ended = self.ended().into_iter().map(|(attempt, at)| (attempt, outcome(at, None))).collect();
        let absence = Absence { ended, ..Absence::default() };
        (self.engine, self.told) = Life::open(&self.journal, &self.setup, self.now, &absence);
        self.obey();
    }

    fn reload(&mut self) {
        self.now += 1000;
        let _ = self.engine.reconfigure(moment(self.now), self.setup.clone());
        self.obey();
    }

    /// Removes the attempts that have ended by now, with their ends.
    fn ended(&mut self) -> Vec<(Attempt, i64)> {
        let now = self.now;
        self.ends.extract_if(.., |_, at| *at <= now).collect()
    }

    fn live_until(&mut self, until: i64) {
        loop {
            let wake = self.engine.next_wakeup().map(Time::ticks);
            let next = self.ends.values().copied().chain(wake).min().filter(|at| *at <= until);
            let Some(next) = next else { break };
            self.now = next.max(self.now + 1);
            let ended = self.ended().into_iter();
            self.batch(ended.map(|(of, at)| Input::AttemptEnded(of, outcome(at, None))).collect());
        }
        self.now = until.max(self.now);
    }

    fn batch(&mut self, inputs: Vec<Input>) {
        self.engine.process_batch(moment(self.now), inputs).unwrap();
        self.obey();
    }

    /// Launches attempts, and ends those that are to end.
    fn obey(&mut self) {
        let told: Vec<_> = self.told.try_iter().collect();
        for (attempt, action) in told {
            match action {
                Action::Launch(_) => {
                    let runs = i64::try_from(self.draws.below(100_000)).unwrap() * 1_000_000;
                    self.ends.insert(attempt, self.now + 1 + runs);
                }
                Action::Kill { .. } | Action::EndOverdue { .. } if self.ends.remove(&attempt).is_some() => {
                    self.now += 1;
                    let end = outcome(self.now, Some(KilledBy::Time));
                    self.batch(vec![Input::AttemptEnded(attempt, end)]);
                }
                _ => {}
            }
        }
    }
}

fn outcome(at: i64, by: Option<KilledBy>) -> AttemptOutcome {
    AttemptOutcome::Ended { at: Time::from_ticks(at), exit: Exit::Code(0), by }
}
