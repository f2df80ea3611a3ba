//! Requests for reservations, and the end of past ones.

use miserly_api::model::{self, Problem, ProblemCode, ReservedTime};
use miserly_core::{Calendar, Kind, Ledger, Resources, Span, State, Time};
use miserly_marks::mark;
use miserly_units::{duration, memory};

use crate::request::handler::Handled;
use crate::view::pools::{Window, held, window};
use crate::{
    AccountName, Caller, DaemonReply, Engine, EngineError, Journal, Launcher, Now, RequestError, Reservation,
    Setup, Snapshot,
};

/// The most times of all reservations together: a change of the setup costs their square.
const TIMES_MOST: usize = 4_000;

/// The maximum number of instants at which a search for another beginning looks.
const INSTANTS_MOST: usize = 100_000;

/// The time after which it is tried again to remove past reservations.
const EXPIRY_EVERY: Span = Span::from_ticks(10_000_000);

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Reserves a part of a pool, unless a running or promised job needs it.
    pub(crate) fn reserve(&mut self, now: Now, caller: &Caller, written: &model::Reservation) -> Handled {
        self.check_reserves(caller)?;
        if self.setup.reservations.len() >= model::Reservation::MOST {
            let message =
                format!("there are {} reservations, the most; remove one", model::Reservation::MOST);
            return Err(Problem::new(ProblemCode::Refused, message).into());
        }
        let reservation = Reservation::new(&self.setup, now, caller.uid, written)?;
        mark!("a reservation");
        let times: usize = self.setup.reservations.iter().map(|one| one.times().count()).sum();
        if times + reservation.times().count() > TIMES_MOST {
            let message = format!("all reservations together have at most {TIMES_MOST} times");
            return Err(Problem::new(ProblemCode::Refused, message).into());
        }
        let all = [&self.setup.reservations[..], std::slice::from_ref(&reservation)].concat();
        let added = Setup::clone(&self.setup)
            .with_reservations(&all)
            .and_then(|setup| self.check_promised(now, &setup, &reservation.of).map(|()| setup))
            .map_err(RequestError::from)
            .and_then(|setup| self.replace_setup(now, setup));
        match added {
            Ok(()) => {
                tracing::info!("operator {} reserves {written:?}", (self.info.users.0)(caller.uid));
                Ok(DaemonReply::Reservations(vec![self.current().reservation(now, &reservation)]))
            }
            Err(RequestError::Refused(problem)) => Err(self.with_room(now, problem, &reservation).into()),
            Err(fatal) => Err(fatal),
        }
    }

    /// Removes a reservation without unfinished jobs.
    pub(crate) fn remove_reservation(&mut self, now: Now, caller: &Caller, name: &str) -> Handled {
        self.check_reserves(caller)?;
        let Some(reservation) = self.setup.reservations.iter().find(|one| one.name == name).cloned() else {
            let message = format!("there is no reservation {name:?}; `miserly reservation list` lists them");
            let problem = Problem::with_field("name", message);
            return Err(Problem { code: ProblemCode::NotFound, ..problem }.into());
        };
        let first = self.jobs.records().find(|record| *record.queue == *name).map(|record| record.number);
        if let Some(job) = first {
            mark!("refused: the reservation has jobs");
            let message = format!(
                "reservation {name} has unfinished jobs ({}), such as job {job}; cancel them first; \
                 `miserly queue --queue {name}` lists them",
                self.jobs.count_in(name)
            );
            return Err(Problem { job: Some(job), ..Problem::new(ProblemCode::Conflict, message) }.into());
        }
        let setup = self.setup_without(|one| one.name == name)?;
        if let Some(queue) = &reservation.give_to {
            self.check_promised(now, &setup, queue)?;
        }
        self.replace_setup(now, setup)?;
        tracing::info!("operator {} removes reservation {name}", (self.info.users.0)(caller.uid));
        Ok(DaemonReply::Reservations(vec![self.current().reservation(now, &reservation)]))
    }

    /// Removes the reservations whose last time is over and whose jobs have ended.
    pub(crate) fn remove_past_reservations(&mut self, now: Now) -> Result<(), EngineError> {
        let is_over = |one: &&Reservation| one.last() <= now.ticks && self.jobs.count_in(&one.name) == 0;
        let over: Vec<String> =
            self.setup.reservations.iter().filter(is_over).map(|one| one.name.clone()).collect();
        // A queue that is stopped gets another chance by a reload only.
        if over.is_empty() || self.stopped.first().is_some() {
            return Ok(());
        }
        if self.expiry_tried.is_some_and(|tried| now.ticks < tried + EXPIRY_EVERY) {
            return Ok(());
        }
        self.expiry_tried = Some(now.ticks);
        let setup = self.setup_without(|one| over.contains(&one.name)).map_err(RequestError::from);
        match setup.and_then(|setup| self.replace_setup(now, setup)) {
            Err(RequestError::Fatal(error)) => Err(error),
            Err(RequestError::Refused(problem)) => {
                tracing::warn!("a past reservation stays: {problem}");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Returns the setup without some of the reservations.
    fn setup_without(&self, is_dropped: impl Fn(&Reservation) -> bool) -> Result<Setup, Problem> {
        let left: Vec<Reservation> =
            self.setup.reservations.iter().filter(|one| !is_dropped(one)).cloned().collect();
        Setup::clone(&self.setup).with_reservations(&left)
    }

    fn check_reserves(&self, caller: &Caller) -> Result<(), Problem> {
        self.info.check_operator(caller, "make or remove a reservation")?;
        match self.stopped.first() {
            None => Ok(()),
            Some(queue) => {
                let message =
                    format!("queue {queue} is stopped; `miserly reload` gives it another chance first");
                Err(Problem::new(ProblemCode::Conflict, message))
            }
        }
    }

    /// Checks that running and promised jobs of a queue have their resources in a new setup.
    fn check_promised(&self, now: Now, setup: &Setup, queue: &str) -> Result<(), Problem> {
        let (Some(queue), Some(ledger)) = (setup.queue(queue), self.ledger_called(queue)) else {
            return Ok(());
        };
        let Some((at, held)) = excess(now.ticks, ledger, &queue.pool) else { return Ok(()) };
        let there = queue.pool.at(at);
        let message = format!(
            "running and promised jobs of queue {} need {} cpus and {} of memory {} from now, and {} cpus and {} would be left",
            queue.name,
            held.cpus_count(),
            shown_memory(&held),
            duration(Span::from_ticks((at - now.ticks).ticks() / 1_000_000 * 1_000_000)),
            there.cpus_count(),
            shown_memory(&there)
        );
        mark!("refused: a reservation would break a promise");
        Err(Problem::new(ProblemCode::Refused, message))
    }

    /// Adds the next time at which a refused reservation is possible, if it has one time only.
    fn with_room(&self, now: Now, problem: Problem, reservation: &Reservation) -> Problem {
        let (Some(queue), Some(ledger)) =
            (self.setup.queue(&reservation.of), self.ledger_called(&reservation.of))
        else {
            return problem;
        };
        let [(from, to)] = reservation.times().collect::<Vec<_>>()[..] else { return problem };
        let windows = certain_windows(now.ticks, ledger);
        let Some(at) = first_room(from, to - from, &reservation.resources(), windows, &queue.pool) else {
            return problem;
        };
        let window = model::Window { start: now.wall_at(at), end: now.wall_at(at + (to - from)) };
        Problem { possible: Some(model::Possible::Reservation(window)), ..problem }
    }

    pub(crate) fn ledger_called(&self, queue: &str) -> Option<&Ledger> {
        Some(self.system.queues().get(self.setup.position(queue)?)?.ledger())
    }
}

impl Snapshot {
    /// Returns the reservations, by their first time to come.
    pub(crate) fn reservations(&self, now: Now) -> Vec<model::Reservation> {
        let mut all: Vec<&Reservation> = self.setup.reservations.iter().collect();
        all.sort_by_key(|one| {
            one.times().find(|(_, to)| *to > now.ticks).map_or(one.last(), |(from, _)| from)
        });
        all.into_iter().map(|one| self.reservation(now, one)).collect()
    }

    /// Returns a reservation as clients see it.
    fn reservation(&self, now: Now, reservation: &Reservation) -> model::Reservation {
        let amount = reservation.resources();
        let time = |(from, to)| ReservedTime { from: now.wall_at(from), to: now.wall_at(to) };
        let memory = amount.get(Kind::Memory);
        model::Reservation {
            name: reservation.name.clone(),
            queue: Some(reservation.of.clone()),
            give_to: reservation.give_to.clone(),
            cpus: amount.cpus_count().get(),
            memory: (memory > 0).then_some(memory.saturating_mul(1024)),
            gpus: amount.get(Kind::Gpus),
            users: reservation.users.users.iter().map(text).collect(),
            groups: reservation.users.groups.iter().map(text).collect(),
            policy: reservation.give_to.is_none().then(|| reservation.policy.clone()),
            times: reservation.times().map(time).collect(),
            by: Some((self.info.users.0)(reservation.by)),
            jobs: self.queue_state(&reservation.name).map_or(0, |queue| queue.jobs),
        }
    }
}

fn text(name: &AccountName) -> String {
    match name {
        AccountName::Number(number) => number.to_string(),
        AccountName::Name(name) => name.clone(),
    }
}

fn shown_memory(of: &Resources) -> String {
    memory(of.get(Kind::Memory).saturating_mul(1024))
}

/// Returns the windows of the jobs that run or have a promise.
fn certain_windows(now: Time, ledger: &Ledger) -> Vec<Window> {
    let jobs = ledger.running().chain(ledger.waiting()).map(|job| ledger.entry(job));
    let certain = jobs.filter(|entry| entry.state != State::Waiting || entry.promise.is_some());
    certain.filter_map(|entry| window(now, ledger.machine(), entry)).collect()
}

/// Returns the first instant at which the jobs that run or have a promise hold more than a pool has, and how much.
pub(crate) fn excess(now: Time, ledger: &Ledger, pool: &Calendar) -> Option<(Time, Resources)> {
    let windows = certain_windows(now, ledger);
    let ends = windows.iter().map(|window| window.end).filter(|end| *end < Time::MAX);
    let last = ends.max().unwrap_or(now).max(pool.regular_from());
    let starts = windows.iter().map(|window| window.start);
    let changes = pool.changes_after(now).take_while(|at| *at < last).take(INSTANTS_MOST);
    let mut instants: Vec<Time> = starts.chain(changes).chain([now]).collect();
    instants.sort_unstable();
    instants.dedup();
    held(instants, windows).into_iter().find(|(at, held)| !held.fits_in(&pool.at(*at)))
}

/// Returns the first instant from which on resources are free in a pool beside windows, for a time.
fn first_room(
    from: Time,
    length: Span,
    amount: &Resources,
    windows: Vec<Window>,
    pool: &Calendar,
) -> Option<Time> {
    let ends = windows.iter().map(|window| window.end).filter(|end| *end < Time::MAX);
    let last = ends.max().unwrap_or(from).max(from).max(pool.regular_from());
    let laps = if pool.repeats() { pool.period() + pool.period() } else { Span::ZERO };
    let until = last + length + laps;
    let mut instants: Vec<Time> = windows.iter().flat_map(|window| [window.start, window.end]).collect();
    instants.extend(pool.changes_after(from).take_while(|at| *at < until).take(INSTANTS_MOST));
    instants.extend([from, until]);
    instants.retain(|at| (from..=until).contains(at));
    instants.sort_unstable();
    instants.dedup();
    let mut start = None;
    for (at, held) in held(instants, windows) {
        if start.is_some_and(|start| at >= start + length) {
            return start;
        }
        let is_free = amount.fits_in(&pool.at(at).less(&held));
        start = if is_free { start.or(Some(at)) } else { None };
    }
    None
}
