//! The rotation of the slots of one queue, without a clock or a process: instants come with the
//! calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Weak};
use std::time::Duration;

use miserly_engine::{Attempt, SlotSchedule};
use miserly_launch::BootTime;

use crate::convert;
use crate::message::AttemptMessage;

/// The longest wait for processes that do not stop. After it the next slot runs beside them.
pub const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// The rotation of the used slots, in the order of their numbers.
#[derive(Debug, Default)]
pub struct Rotation {
    schedule: SlotSchedule,
    /// The current slot, as long as it is used.
    present: u32,
    /// The next context switch; `None` if there is one slot.
    ends: Option<BootTime>,
    /// Whether each attempt runs, by the last message to it. That of other attempts is unknown.
    runs: BTreeMap<Attempt, bool>,
    /// Pending stop acknowledgements, by attempt.
    stops: BTreeMap<Attempt, Weak<Sender<()>>>,
}

/// A context switch: attempts to stop, and attempts that continue when those have stopped.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Switch {
    /// The attempts to stop.
    pub stop: Vec<Attempt>,
    /// The attempts that continue then.
    pub resume: Vec<Attempt>,
}

impl Rotation {
    /// Returns the instant of the next context switch.
    pub fn ends(&self) -> Option<BootTime> {
        self.ends
    }

    /// Replaces the schedule. The `fresh` attempts began stopped. The current slot keeps its turn
    /// if it is still used.
    pub fn replace(&mut self, schedule: SlotSchedule, fresh: &BTreeSet<Attempt>) -> Switch {
        self.schedule = schedule;
        let slots = &self.schedule.slots;
        let is_member = |attempt: &Attempt| slots.values().any(|slot| slot.contains(attempt));
        self.runs.retain(|attempt, _| is_member(attempt));
        self.stops.retain(|attempt, _| is_member(attempt));
        for attempt in slots.values().flatten().filter(|attempt| fresh.contains(attempt)) {
            self.runs.entry(*attempt).or_insert(false);
        }
        if slots.len() <= 1 {
            self.ends = None;
        }
        if slots.contains_key(&self.present) { self.switch() } else { self.advance() }
    }

    /// Switches to the next slot.
    pub fn advance(&mut self) -> Switch {
        let slots = &self.schedule.slots;
        let mut after = slots.range(self.present.saturating_add(1)..).chain(slots);
        self.present = after.next().map_or(0, |(slot, _)| *slot);
        self.ends = None;
        self.switch()
    }

    /// Returns the messages that stop attempts for a context switch, and a receiver that is disconnected when they have obeyed.
    ///
    /// It does not wait for an attempt with an unacknowledged earlier stop: its launch is being repeated, or its processes do
    /// not stop.
    pub fn stop(&mut self, switch: &Switch) -> (Vec<(Attempt, AttemptMessage)>, Receiver<()>) {
        let (ack, stopped) = mpsc::channel();
        let mut message = |attempt: &Attempt| {
            let ack = self.has_stopped(*attempt).then(|| Arc::new(ack.clone()));
            if let Some(ack) = &ack {
                self.stops.insert(*attempt, Arc::downgrade(ack));
            }
            (*attempt, AttemptMessage::SetTurn { runs: false, ack })
        };
        (switch.stop.iter().map(&mut message).collect(), stopped)
    }

    /// Returns whether the last stop of an attempt is acknowledged.
    fn has_stopped(&self, attempt: Attempt) -> bool {
        self.stops.get(&attempt).is_none_or(|held| held.strong_count() == 0)
    }

    /// Starts the turn of the current slot, if it has just become current.
    pub fn begun(&mut self, now: BootTime) {
        if self.ends.is_none() && self.schedule.slots.len() > 1 {
            self.ends = Some(now.after(convert::duration(self.schedule.quantum)));
        }
    }

    /// Returns the switch after which exactly the attempts of the current slot run.
    fn switch(&mut self) -> Switch {
        let mut switch = Switch::default();
        let Some(slot) = self.schedule.slots.get(&self.present) else { return switch };
        let all: BTreeSet<&Attempt> = self.schedule.slots.values().flatten().collect();
        for attempt in all {
            let runs = slot.contains(attempt);
            if self.runs.insert(*attempt, runs) != Some(runs) {
                if runs { &mut switch.resume } else { &mut switch.stop }.push(*attempt);
            }
        }
        switch
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::Span;

    use super::*;

    fn job(job: i64) -> Attempt {
        Attempt { job, nth: 1 }
    }

    fn turns(rows: &[(u32, &[i64])]) -> SlotSchedule {
        let row = |(slot, jobs): &(u32, &[i64])| (*slot, jobs.iter().map(|number| job(*number)).collect());
        SlotSchedule { quantum: Span::from_ticks(10), slots: rows.iter().map(row).collect() }
    }

    /// Returns a rotation of these slots from instant 0 on. All attempts began stopped.
    fn rotation(rows: &[(u32, &[i64])]) -> Rotation {
        let mut rotation = Rotation::default();
        replace(&mut rotation, rows);
        rotation.begun(BootTime(0));
        rotation
    }

    fn replace(rotation: &mut Rotation, rows: &[(u32, &[i64])]) -> (Vec<i64>, Vec<i64>) {
        let turns = turns(rows);
        let fresh = turns.slots.values().flatten().copied().collect();
        numbers(&rotation.replace(turns, &fresh))
    }

    fn numbers(switch: &Switch) -> (Vec<i64>, Vec<i64>) {
        let of = |all: &[Attempt]| all.iter().map(|attempt| attempt.job).collect();
        (of(&switch.stop), of(&switch.resume))
    }

    #[test]
    fn slots_rotate_and_a_job_in_both_continues() {
        let mut rotation = rotation(&[(0, &[1, 2]), (1, &[2, 3]), (4, &[4])]);
        assert_eq!(rotation.ends(), Some(BootTime(10)));
        assert_eq!(numbers(&rotation.advance()), (vec![1], vec![3]));
        rotation.begun(BootTime(12));
        assert_eq!(rotation.ends(), Some(BootTime(22)));
        assert_eq!(numbers(&rotation.advance()), (vec![2, 3], vec![4]));
        assert_eq!(numbers(&rotation.advance()), (vec![4], vec![1, 2]));
    }

    #[test]
    fn a_single_slot_is_not_rotated() {
        let mut rotation = rotation(&[(3, &[1, 2])]);
        assert_eq!(rotation.ends(), None);
        assert_eq!(replace(&mut rotation, &[(3, &[1, 2]), (5, &[3])]), (vec![], vec![]));
        rotation.begun(BootTime(100));
        assert_eq!(rotation.ends(), Some(BootTime(110)));
        assert_eq!(replace(&mut rotation, &[(3, &[1])]), (vec![], vec![]));
        rotation.begun(BootTime(105));
        assert_eq!(rotation.ends(), None);
    }

    #[test]
    fn changes_of_the_current_slot_take_effect_at_once() {
        let mut rotation = rotation(&[(0, &[1]), (1, &[2])]);
        assert_eq!(replace(&mut rotation, &[(0, &[2, 3]), (1, &[1])]), (vec![1], vec![2, 3]));
        rotation.begun(BootTime(5));
        assert_eq!(rotation.ends(), Some(BootTime(10)));
    }

    #[test]
    fn an_unused_slot_leaves_its_turn_to_the_next() {
        let mut rotation = rotation(&[(0, &[1]), (1, &[2]), (2, &[3])]);
        rotation.advance();
        assert_eq!(replace(&mut rotation, &[(0, &[1, 2]), (2, &[3])]), (vec![2], vec![3]));
        rotation.begun(BootTime(7));
        assert_eq!(rotation.ends(), Some(BootTime(17)));
        assert_eq!(replace(&mut rotation, &[(0, &[1, 2])]), (vec![], vec![1, 2]));
        assert_eq!(replace(&mut rotation, &[]), (vec![], vec![]));
    }

    #[test]
    fn attempts_in_an_unknown_state_all_get_a_message() {
        let mut rotation = Rotation::default();
        let switch = rotation.replace(turns(&[(0, &[1]), (1, &[2])]), &BTreeSet::new());
        assert_eq!(numbers(&switch), (vec![2], vec![1]));
    }

    #[test]
    fn an_attempt_without_an_acknowledgement_is_waited_for_once() {
        use mpsc::TryRecvError::{Disconnected, Empty};
        let mut rotation = Rotation::default();
        let switch = Switch { stop: vec![job(1)], resume: vec![] };
        let (first, stopped) = rotation.stop(&switch);
        assert_eq!(stopped.try_recv(), Err(Empty));
        for _ in 0..2 {
            let (messages, stopped) = rotation.stop(&switch);
            assert_eq!((messages.len(), stopped.try_recv()), (1, Err(Disconnected)));
        }
        drop(first);
        assert_eq!(stopped.try_recv(), Err(Disconnected));
        let (_again, stopped) = rotation.stop(&switch);
        assert_eq!(stopped.try_recv(), Err(Empty));
    }

    #[test]
    fn another_attempt_of_a_job_has_a_state_of_its_own() {
        let mut rotation = rotation(&[(0, &[1])]);
        let mut next = turns(&[]);
        let again = Attempt { job: 1, nth: 2 };
        next.slots.insert(0, [again].into());
        assert_eq!(rotation.replace(next, &[again].into()).resume, [again]);
    }
}
