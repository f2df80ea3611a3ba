//! Jobs in the slots of a matrix, where processors are sliced in time.

use super::changes::PartialAllocation;
use super::{Entry, Expected, Holds, Ledger, Matrix, Slicing, State};
use crate::violation::Rule;
use crate::{Effect, JobId, PeSet, Persistent, Placement, PolicyState, Procs, SlotId, Span, Time};

impl Ledger {
    /// Slices the time of the processors of the first host from now on.
    ///
    /// The ledger then keeps a matrix of slots, in which every place names its processors. Running
    /// jobs stay in place.
    ///
    /// From then on the processors in [`free`](Ledger::free) are the mean number of idle processors
    /// over the used slots. The mean is updated at each pass. All other kinds are accounted as
    /// before: the holdings of a job count once, regardless of the number of slots.
    pub fn slice_time(&mut self, slicing: Slicing) {
        if let Some(matrix) = &mut self.matrix {
            return matrix.slice(slicing);
        }
        self.name_pes();
        self.pes = None;
        self.matrix = Some(Matrix::new(slicing, PeSet::empty()));
        self.rebuild_slots();
    }

    /// Slices time, if it is not sliced yet. The policy sets the parameters later.
    pub(super) fn ensure_time_slicing(&mut self) {
        if self.matrix.is_none() {
            self.slice_time(Slicing::FREE);
        }
    }

    /// Returns the matrix, if time is sliced.
    pub fn matrix(&self) -> Option<&Matrix> {
        self.matrix.as_ref()
    }

    /// Derives the matrix again from the placements. Returns whether all jobs could keep all their
    /// slots.
    pub(super) fn rebuild_slots(&mut self) -> bool {
        let Some(old) = self.matrix.take() else { return true };
        let cpus = self.machine.hosts().first().map_or(Procs::ZERO, |host| host.capacity.cpus_count());
        let mut new = old.emptied(PeSet::first(u32::try_from(cpus).unwrap_or(u32::MAX)));
        for (slot, pes) in self.jobs.iter().flatten().filter_map(place) {
            new.take(slot, pes);
        }
        for (slot, row) in old.slots() {
            // The state of a slot without jobs is dropped.
            let _ = new.restore_state(slot, row.state().clone());
        }
        let mut all = true;
        for (job, entry) in (0..).map(JobId).zip(&mut self.jobs) {
            let Some(entry) = entry else { continue };
            let Some(pes) = place(entry).map(|(_, pes)| pes.clone()) else { continue };
            let before = entry.alternate_slots.len();
            entry.alternate_slots.retain(|slot| new.add_alternate(job, *slot, &pes).is_ok());
            all &= entry.alternate_slots.len() == before;
        }
        self.matrix = Some(new);
        all
    }

    /// Checks that the placement is in an existing slot.
    pub(super) fn check_slot(&self, placement: &Placement) -> Result<(), Rule> {
        self.check_slot_within(placement, self.most_slots())
    }

    /// Returns the maximum number of slots, which is 1 without a matrix.
    fn most_slots(&self) -> usize {
        self.matrix.as_ref().map_or(1, Matrix::most)
    }

    /// Checks that the placement is in an existing slot, given the maximum number of slots.
    fn check_slot_within(&self, placement: &Placement, most: usize) -> Result<(), Rule> {
        match (&self.matrix, placement.pes()) {
            (Some(matrix), Some(pes)) => {
                let amount = placement.total().cpus_count();
                if pes.count() != amount {
                    return Err(Rule::WrongPes);
                }
                matrix.check(placement.slot, pes, most)
            }
            (Some(_), None) => Err(Rule::WrongPes),
            (None, _) if placement.slot == SlotId(0) => Ok(()),
            (None, _) => Err(Rule::NoSuchHost),
        }
    }

    /// Gives a job its own place in a slot and evicts alternate jobs there.
    pub(super) fn take_in_slot(&mut self, placement: &Placement) {
        let Some((matrix, pes)) = self.matrix.as_mut().zip(placement.pes()) else { return };
        let evicted = matrix.take(placement.slot, pes);
        self.evict(evicted, placement.slot);
    }

    pub(super) fn give_in_slot(&mut self, placement: &Placement) {
        let Some((matrix, pes)) = self.matrix.as_mut().zip(placement.pes()) else { return };
        let evicted = matrix.give(placement.slot, pes);
        self.evict(evicted, placement.slot);
    }

    /// Records the end of a job that had its own place in the slot.
    pub(super) fn note_vacated_slot(&mut self, slot: SlotId) {
        self.matrix.iter_mut().for_each(|matrix| matrix.vacated_mut().push(slot));
    }

    fn evict(&mut self, jobs: Vec<JobId>, slot: SlotId) {
        for job in jobs {
            self.entry_mut(job).alternate_slots.retain(|other| *other != slot);
            self.matrix.iter_mut().for_each(|matrix| matrix.touch(job));
        }
    }

    /// Removes a job from its alternate slots.
    pub(super) fn leave_alternate_slots(&mut self, job: JobId) {
        let Some(matrix) = &mut self.matrix else { return };
        let Some(entry) = self.jobs.get_mut(job.index()).and_then(Option::as_mut) else { return };
        entry.alternate_slots.drain(..).for_each(|slot| matrix.remove_alternate(job, slot));
        matrix.touch(job);
    }

    /// Sets the alternate slots of a running job.
    pub(crate) fn set_alternate_slots(&mut self, job: JobId, slots: &[SlotId]) -> Result<(), Rule> {
        let entry = self.get(job).ok_or(Rule::UnknownJob)?;
        let Some((own, pes)) = running_place(entry) else { return Err(Rule::NotRunning) };
        if !slots.is_sorted_by(|a, b| a < b) || slots.contains(&own) {
            return Err(Rule::NoSuchSlot);
        }
        let (pes, old) = (pes.clone(), entry.alternate_slots.clone());
        let matrix = self.matrix.as_mut().ok_or(Rule::NoSuchSlot)?;
        // The other slots stay unchanged.
        let entered: Vec<SlotId> =
            slots.iter().copied().filter(|slot| old.binary_search(slot).is_err()).collect();
        for (done, slot) in entered.iter().enumerate() {
            if let Err(rule) = matrix.add_alternate(job, *slot, &pes) {
                entered[..done].iter().for_each(|slot| matrix.remove_alternate(job, *slot));
                return Err(rule);
            }
        }
        for slot in old.iter().filter(|slot| slots.binary_search(slot).is_err()) {
            matrix.remove_alternate(job, *slot);
        }
        matrix.touch(job);
        self.entry_mut(job).alternate_slots = slots.to_vec();
        Ok(())
    }

    /// Moves running jobs to other places of their own, all at once. A job whose processors change
    /// continues after `cost`.
    pub(crate) fn remap(
        &mut self,
        moves: &[(JobId, Placement)],
        now: Time,
        cost: Span,
    ) -> Result<(), (JobId, Rule)> {
        let mut old = Vec::with_capacity(moves.len());
        for (job, to) in moves {
            old.push((*job, self.may_move(*job, to).map_err(|rule| (*job, rule))?));
        }
        // The limit before the move, because all moved jobs leave their slots in between.
        let most = self.most_slots();
        self.leave_places(&old);
        for (done, (job, to)) in moves.iter().enumerate() {
            if let Err(rule) = self.check_slot_within(to, most) {
                self.leave_places(&moves[..done]);
                // The old places were free a moment ago.
                for (_, from) in &old {
                    self.take_in_slot(from);
                }
                return Err((*job, rule));
            }
            self.take_in_slot(to);
        }
        for ((job, to), (_, from)) in moves.iter().zip(&old) {
            let cost = if to.pes() == from.pes() { Span::ZERO } else { cost };
            self.arrive(*job, to, now, cost);
        }
        Ok(())
    }

    /// Returns the placement of a job that may move to `to`, as far as that depends on the job.
    fn may_move(&self, job: JobId, to: &Placement) -> Result<Placement, Rule> {
        let entry = self.get(job).ok_or(Rule::UnknownJob)?;
        let State::Running { placement, released: false, .. } = &entry.state else {
            return Err(Rule::NotRunning);
        };
        self.working_with(&entry.request, to, PartialAllocation::Nothing)?;
        if to.total() == placement.total() { Ok(placement.clone()) } else { Err(Rule::WrongAmount) }
    }

    /// Frees the places and the alternate slots of these jobs.
    fn leave_places(&mut self, places: &[(JobId, Placement)]) {
        for (job, from) in places {
            self.leave_alternate_slots(*job);
            self.give_in_slot(from);
        }
    }

    /// Records the new place of a job, which continues after `cost`.
    fn arrive(&mut self, job: JobId, at: &Placement, now: Time, cost: Span) {
        let entry = self.entry_mut(job);
        let State::Running { placement, .. } = &mut entry.state else { return };
        placement.clone_from(at);
        if cost > Span::ZERO {
            let progress = &mut entry.progress;
            progress.go_on(now.max(progress.at), progress.procs);
            progress.at = progress.at.max(now + cost);
            expect_anew(entry, now);
        }
        self.matrix.iter_mut().for_each(|matrix| matrix.touch(job));
    }

    /// Stores a value of a slot while the slot is used.
    pub(crate) fn set_slot_state<T: Persistent>(&mut self, slot: SlotId, value: &T) -> Result<(), Rule> {
        self.matrix.as_mut().ok_or(Rule::NoSuchSlot)?.set_state(slot, value)
    }

    pub(super) fn restore_slot_state(&mut self, slot: SlotId, state: PolicyState) -> Result<(), Rule> {
        self.matrix.as_mut().ok_or(Rule::NoSuchSlot)?.restore_state(slot, state)
    }

    pub(crate) fn count_unification(&mut self) {
        self.matrix.iter_mut().for_each(Matrix::count_unification);
    }

    /// Updates the paces of the jobs after a pass.
    ///
    /// O(1) if nothing changed. O(jobs in the system) if a slot was opened or closed. Otherwise
    /// O(slots), and O(r) in the number of idle ranges.
    pub(crate) fn settle(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let Some(matrix) = &mut self.matrix else { return };
        matrix.vacated_mut().clear();
        if matrix.settle() {
            return;
        }
        let jobs = match matrix.take_stale() {
            None => (0..).map(JobId).take(self.jobs.len()).collect(),
            Some(jobs) => jobs,
        };
        let mut paced: Vec<JobId> = jobs.into_iter().filter(|job| self.set_pace(*job, now)).collect();
        // The handle of a job depends on the reuse of earlier handles. Its admission number does
        // not.
        paced.sort_unstable_by_key(|job| self.entry(*job).admitted);
        effects.extend(paced.into_iter().map(|job| Effect::PaceChanged { job }));
        let Ledger { matrix: Some(matrix), free, machine, .. } = self else { return };
        if let Some(only) = machine.hosts().first() {
            let idle = matrix.idle_count().min(only.capacity.cpus_count());
            let host = crate::HostId(0);
            free.set(machine, host, free.on(host).with_cpus(idle));
        }
    }

    /// Gives a running job the pace of its slots. Returns whether the pace changed.
    fn set_pace(&mut self, job: JobId, now: Time) -> bool {
        let Some(matrix) = &self.matrix else { return false };
        let Some(entry) = self.jobs.get_mut(job.index()).and_then(Option::as_mut) else { return false };
        let pace = matrix.pace(1 + entry.alternate_slots.len());
        if running_place(entry).is_none() || entry.progress.pace == pace {
            return false;
        }
        entry.progress.go_on_at(now, pace);
        expect_anew(entry, now);
        self.touch(job);
        true
    }

    /// Asserts that the matrix follows from the placements, and that each job has the pace of its
    /// slots. O(jobs x slots).
    ///
    /// # Panics
    /// If an assertion fails.
    pub(super) fn check_slots(&self) {
        let Some(matrix) = &self.matrix else { return };
        let mut again = Ledger { touched: None, ..self.clone() };
        assert!(again.rebuild_slots(), "all jobs keep their slots");
        let derived = again.matrix().map(|matrix| matrix.slots().collect::<Vec<_>>()).unwrap_or_default();
        let used: Vec<_> = matrix.slots().collect();
        assert_eq!(used.len(), derived.len(), "the used slots are those in which jobs are");
        for ((slot, row), (other, from_jobs)) in used.into_iter().zip(derived) {
            assert_eq!(
                (slot, row.open()),
                (other, from_jobs.open()),
                "the open processors follow from the places"
            );
            assert_eq!(row.idle(), from_jobs.idle(), "the idle ones follow from the alternate slots");
            assert_eq!(row.open_count(), row.open().count(), "open processors are counted");
            assert_eq!(row.lost_count(), from_jobs.lost_count(), "lost processors are counted");
        }
        let own: Procs =
            self.jobs.iter().flatten().filter_map(running_place).map(|(_, pes)| pes.count()).sum();
        let taken = |(_, row): (SlotId, &super::Slot)| matrix.all().count() - row.open_count();
        assert!(matrix.slots().map(taken).sum::<Procs>() <= own, "no processor is in two jobs of a slot");
        for entry in self.jobs.iter().flatten().filter(|entry| running_place(entry).is_some()) {
            let pace = matrix.pace(1 + entry.alternate_slots.len());
            assert_eq!(entry.progress.pace, pace, "the pace of job {}", entry.request.number);
        }
    }
}

/// Returns the slot and the processors that a job holds.
fn place(entry: &Entry) -> Option<(SlotId, &PeSet)> {
    match &entry.state {
        State::Running { placement, released: false, .. }
        | State::Suspended { placement, holds: Holds::All { .. }, .. } => {
            Some((placement.slot, placement.pes()?))
        }
        _ => None,
    }
}

/// Returns the slot and the processors of a job that runs and whose end is not certain.
fn running_place(entry: &Entry) -> Option<(SlotId, &PeSet)> {
    place(entry).filter(|_| matches!(entry.state, State::Running { .. }))
}

/// Updates the expected end of a running job.
fn expect_anew(entry: &mut Entry, now: Time) {
    let left = entry.planned_left(now, entry.working());
    if let State::Running { expected: expected @ Expected::At(_), quantum, .. } = &mut entry.state {
        let end = now + left;
        *expected = Expected::At(quantum.map_or(end, |until| end.min(until)));
    }
}
