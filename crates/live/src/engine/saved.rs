//! A job of the ledger as it is written down.
//!
//! The ledger's own types know nothing of files; these are their written form, and must stay readable: the state of every
//! version that was ever released loads.

use miserly_core::{
    Broken, Entry, Expected, Holds, HostId, Kind, Memo, Pace, PeSet, Pes, Placement, Progress, Promise,
    Request, Resources, Share, SlotId, Span, State, Terms, Time,
};
use serde::{Deserialize, Serialize};

use super::{Amounts, amounts, resources};

/// A job in a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SavedEntry {
    /// What was asked for.
    pub request: SavedRequest,
    admitted: u64,
    state: SavedState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    promise: Option<SavedPromise>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    planned: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    planned_on: Option<Vec<SavedShare>>,
    memo: SavedMemo,
    done: u128,
    done_at: i64,
    working: u64,
    #[serde(default, skip_serializing_if = "SavedProgress::is_none")]
    filling: SavedProgress,
    #[serde(default, skip_serializing_if = "SavedRows::is_none")]
    rows: SavedRows,
}

/// Its part of a matrix: nothing of this is as it is by default where time is sliced.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct SavedRows {
    /// Its own row.
    slot: u32,
    /// The others in which it runs.
    also_in: Vec<u32>,
    /// Its share of the time: so many turns of so many.
    turns: u64,
    of: u64,
    /// What is done of the next processor-tick: so many parts of so many.
    rest: u64,
    parts: u64,
}

impl Default for SavedRows {
    fn default() -> SavedRows {
        SavedRows { slot: 0, also_in: vec![], turns: 1, of: 1, rest: 0, parts: 1 }
    }
}

impl SavedRows {
    fn is_none(&self) -> bool {
        *self == SavedRows::default()
    }

    fn of(entry: &Entry) -> SavedRows {
        let Progress { pace, rest, parts, .. } = entry.progress;
        SavedRows {
            slot: entry.placement().map_or(0, |placement| placement.slot.0),
            also_in: entry.also_in.iter().map(|row| row.0).collect(),
            turns: pace.turns(),
            of: pace.of(),
            rest,
            parts,
        }
    }

    /// Puts it back into an entry that has all else.
    fn restore(&self, entry: &mut Entry) {
        if let State::Running { placement, .. } | State::Suspended { placement, .. } = &mut entry.state {
            placement.slot = SlotId(self.slot);
        }
        entry.also_in = self.also_in.iter().map(|row| SlotId(*row)).collect();
        let pace = Pace::new(self.turns, self.of);
        // Parts that the pace does not divide are nobody's writing.
        if self.parts > 0 && self.parts.is_multiple_of(pace.of()) {
            entry.progress = Progress { pace, rest: self.rest, parts: self.parts, ..entry.progress };
        }
    }
}

/// Work that was done on what was idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
struct SavedProgress {
    done: u128,
    at: i64,
    procs: u64,
}

impl SavedProgress {
    fn is_none(&self) -> bool {
        *self == SavedProgress::default()
    }
}

/// What was asked for, in ticks and counts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SavedRequest {
    /// The job's number.
    pub number: i64,
    /// When it was submitted.
    pub submit: i64,
    /// For how long its resources are planned.
    pub estimate: i64,
    /// Its processors.
    pub cpus: u64,
    /// Its memory, kilobytes.
    pub memory: u64,
    /// Its GPUs.
    #[serde(default)]
    pub gpus: u64,
    /// The site's own count.
    #[serde(default)]
    pub other: u64,
    /// Its user.
    pub user: Option<u32>,
    /// Its queue, by position.
    pub queue: Option<u32>,
    /// Not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<i64>,
    /// Over by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<i64>,
    /// Not to run early.
    #[serde(default)]
    pub in_window_only: bool,
    /// Its work may be done again.
    #[serde(default)]
    pub restartable: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
enum SavedState {
    Waiting,
    Running {
        start: i64,
        since: i64,
        expected: i64,
        overdue: bool,
        on: Vec<SavedShare>,
        quantum: Option<i64>,
    },
    Suspended {
        start: i64,
        until: i64,
        by: u64,
        on: Vec<SavedShare>,
        #[serde(default, skip_serializing_if = "SavedHolds::is_usual")]
        holds: SavedHolds,
    },
}

/// What a suspended job holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum SavedHolds {
    AllUntil(i64),
    #[default]
    AllButCpus,
    Nothing,
}

impl SavedHolds {
    fn is_usual(&self) -> bool {
        *self == SavedHolds::default()
    }

    fn of(holds: Holds) -> SavedHolds {
        match holds {
            Holds::All { until } => SavedHolds::AllUntil(until.ticks()),
            Holds::AllButCpus => SavedHolds::AllButCpus,
            Holds::Nothing => SavedHolds::Nothing,
        }
    }

    fn holds(self) -> Holds {
        match self {
            SavedHolds::AllUntil(until) => Holds::All { until: Time::from_ticks(until) },
            SavedHolds::AllButCpus => Holds::AllButCpus,
            SavedHolds::Nothing => Holds::Nothing,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct SavedShare {
    host: u32,
    amount: Amounts,
    /// The processors by number, as ranges, where they are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pes: Option<Vec<(u32, u32)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct SavedPromise {
    told: i64,
    best: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    broken: Option<SavedBroken>,
}

/// Why a promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SavedBroken {
    /// A job did not end when it should have.
    Overdue,
    /// Nobody scheduled.
    Away,
    /// The machine lost capacity.
    Capacity,
    /// A request was amended.
    Amended,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
struct SavedMemo {
    served: bool,
    held: bool,
    bypassed: u32,
    pledged: Option<u32>,
    owed: u128,
    owed_at: Option<i64>,
}

impl SavedEntry {
    /// The entry as it is written down.
    pub fn of(entry: &Entry) -> SavedEntry {
        SavedEntry {
            request: SavedRequest::of(&entry.request),
            admitted: entry.admitted,
            state: SavedState::of(&entry.state),
            promise: entry.promise.as_ref().map(SavedPromise::of),
            planned: entry.planned.map(Time::ticks),
            planned_on: entry.planned_on.as_ref().map(shares),
            memo: SavedMemo::of(&entry.memo),
            done: entry.progress.done,
            done_at: entry.progress.at.ticks(),
            working: entry.progress.procs,
            filling: SavedProgress {
                done: entry.filling.done,
                at: entry.filling.at.ticks(),
                procs: entry.filling.procs,
            },
            rows: SavedRows::of(entry),
        }
    }

    /// The entry that was written down.
    pub fn entry(&self) -> Entry {
        let mut entry = Entry::waiting(self.request.request(), self.admitted);
        entry.state = self.state.state();
        entry.promise = self.promise.map(SavedPromise::promise);
        entry.planned = self.planned.map(Time::from_ticks);
        entry.planned_on = self.planned_on.as_deref().map(placement);
        entry.memo = self.memo.memo();
        let at = Time::from_ticks(self.done_at);
        entry.progress = Progress { done: self.done, at, procs: self.working, ..Progress::default() };
        let SavedProgress { done, at, procs } = self.filling;
        entry.filling = Progress { done, at: Time::from_ticks(at), procs, ..Progress::default() };
        self.rows.restore(&mut entry);
        entry
    }
}

impl SavedRequest {
    /// The request as it is written down.
    pub fn of(request: &Request) -> SavedRequest {
        let Terms { begin, deadline, in_window_only, restartable } = request.terms;
        SavedRequest {
            number: request.number,
            submit: request.submit.ticks(),
            estimate: request.estimate.ticks(),
            cpus: request.demand.cpus_count(),
            memory: request.demand.get(Kind::Memory),
            gpus: request.demand.get(Kind::Gpus),
            other: request.demand.get(Kind::Other),
            user: request.user,
            queue: request.queue,
            begin: begin.map(Time::ticks),
            deadline: deadline.map(Time::ticks),
            in_window_only,
            restartable,
        }
    }

    /// The request that was written down.
    pub fn request(&self) -> Request {
        let demand = Resources::cpus(self.cpus)
            .with(Kind::Memory, self.memory)
            .with(Kind::Gpus, self.gpus)
            .with(Kind::Other, self.other);
        let (submit, estimate) = (Time::from_ticks(self.submit), Span::from_ticks(self.estimate));
        let terms = Terms {
            begin: self.begin.map(Time::from_ticks),
            deadline: self.deadline.map(Time::from_ticks),
            in_window_only: self.in_window_only,
            restartable: self.restartable,
        };
        Request {
            user: self.user,
            queue: self.queue,
            terms,
            ..Request::new(self.number, submit, estimate, demand)
        }
    }
}

impl SavedState {
    fn of(state: &State) -> SavedState {
        match state {
            State::Waiting => SavedState::Waiting,
            State::Running { start, since, expected, placement, quantum, released: _ } => {
                let (expected, overdue) = match expected {
                    Expected::At(end) => (end, false),
                    Expected::Overdue { since } => (since, true),
                };
                SavedState::Running {
                    start: start.ticks(),
                    since: since.ticks(),
                    expected: expected.ticks(),
                    overdue,
                    on: shares(placement),
                    quantum: quantum.map(Time::ticks),
                }
            }
            State::Suspended { start, until, by, placement, holds } => SavedState::Suspended {
                start: start.ticks(),
                until: until.ticks(),
                by: *by,
                on: shares(placement),
                holds: SavedHolds::of(*holds),
            },
        }
    }

    fn state(&self) -> State {
        match self {
            SavedState::Waiting => State::Waiting,
            SavedState::Running { start, since, expected, overdue, on, quantum } => {
                let end = Time::from_ticks(*expected);
                State::Running {
                    start: Time::from_ticks(*start),
                    since: Time::from_ticks(*since),
                    expected: if *overdue { Expected::Overdue { since: end } } else { Expected::At(end) },
                    placement: placement(on),
                    // Only within an instant, and nothing is written down there.
                    released: false,
                    quantum: quantum.map(Time::from_ticks),
                }
            }
            SavedState::Suspended { start, until, by, on, holds } => State::Suspended {
                start: Time::from_ticks(*start),
                until: Time::from_ticks(*until),
                by: *by,
                placement: placement(on),
                holds: holds.holds(),
            },
        }
    }
}

impl SavedPromise {
    fn of(promise: &Promise) -> SavedPromise {
        SavedPromise {
            told: promise.told.ticks(),
            best: promise.best.ticks(),
            broken: promise.broken.map(SavedBroken::of),
        }
    }

    fn promise(self) -> Promise {
        let (told, best) = (Time::from_ticks(self.told), Time::from_ticks(self.best));
        Promise { told, best, broken: self.broken.map(SavedBroken::broken) }
    }
}

impl SavedBroken {
    /// The cause as it is written down.
    pub const fn of(broken: Broken) -> SavedBroken {
        match broken {
            Broken::Overdue => SavedBroken::Overdue,
            Broken::Away => SavedBroken::Away,
            Broken::Capacity => SavedBroken::Capacity,
            Broken::Amended => SavedBroken::Amended,
        }
    }

    /// The cause that was written down.
    pub const fn broken(self) -> Broken {
        match self {
            SavedBroken::Overdue => Broken::Overdue,
            SavedBroken::Away => Broken::Away,
            SavedBroken::Capacity => Broken::Capacity,
            SavedBroken::Amended => Broken::Amended,
        }
    }
}

impl SavedMemo {
    fn of(memo: &Memo) -> SavedMemo {
        let Memo { served, held, bypassed, pledged, owed, owed_at } = *memo;
        SavedMemo {
            served,
            held,
            bypassed,
            pledged: pledged.map(|host| host.0),
            owed,
            owed_at: owed_at.map(Time::ticks),
        }
    }

    fn memo(self) -> Memo {
        let SavedMemo { served, held, bypassed, pledged, owed, owed_at } = self;
        Memo {
            served,
            held,
            bypassed,
            pledged: pledged.map(HostId),
            owed,
            owed_at: owed_at.map(Time::from_ticks),
        }
    }
}

fn shares(placement: &Placement) -> Vec<SavedShare> {
    let saved = |share: &Share| SavedShare {
        host: share.host.0,
        amount: amounts(&share.amount),
        pes: match &share.pes {
            Pes::Count => None,
            Pes::Set(pes) => Some(pes.ranges().to_vec()),
        },
    };
    placement.shares().iter().map(saved).collect()
}

fn placement(shares: &[SavedShare]) -> Placement {
    let share = |saved: &SavedShare| {
        let pes = saved.pes.as_ref().map_or(Pes::Count, |ranges| Pes::Set(PeSet::of_ranges(ranges)));
        Share { host: HostId(saved.host), amount: resources(saved.amount), pes }
    };
    match shares {
        [one] => Placement::of(share(one)),
        many => Placement::across(SlotId(0), many.iter().map(share).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(slot: SlotId) -> Entry {
        let demand = Resources::cpus(3);
        let placement = Placement::on_pes(HostId(0), demand, PeSet::block(4, 3)).in_row(slot);
        let (start, expected) = (Time::from_ticks(5), Expected::At(Time::from_ticks(900)));
        let mut entry = Entry::waiting(Request::new(7, Time::ZERO, Span::from_ticks(60), demand), 2);
        entry.state =
            State::Running { start, since: start, expected, placement, released: false, quantum: None };
        entry
    }

    #[test]
    fn a_job_in_rows_is_read_as_it_was_written() {
        let mut entry = entry(SlotId(2));
        entry.also_in = vec![SlotId(0), SlotId(5)];
        let at = Time::from_ticks(40);
        entry.progress = Progress { done: 70, at, procs: 3, pace: Pace::new(2, 3), rest: 5, parts: 12 };
        let text = serde_json::to_string(&SavedEntry::of(&entry)).unwrap();
        assert_eq!(serde_json::from_str::<SavedEntry>(&text).unwrap().entry(), entry);
    }

    #[test]
    fn where_time_is_not_sliced_it_is_written_as_ever() {
        let entry = entry(SlotId(0));
        let text = serde_json::to_string(&SavedEntry::of(&entry)).unwrap();
        assert!(!text.contains("rows"), "{text}");
        assert_eq!(serde_json::from_str::<SavedEntry>(&text).unwrap().entry(), entry);
    }
}
