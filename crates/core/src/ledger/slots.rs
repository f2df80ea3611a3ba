//! Jobs in the rows of a matrix, where processors are sliced in time.

use super::changes::PartialAllocation;
use super::{Entry, Expected, Holds, Ledger, Matrix, Slicing, State};
use crate::violation::Rule;
use crate::{Effect, JobId, PeSet, Persistent, Placement, PolicyState, Procs, SlotId, Span, Time};

impl Ledger {
    /// Slices the time of the processors of the first host from now on: a matrix of rows, in which every place names its processors. Jobs
    /// that run stay where they are.
    ///
    /// From then on [`free`](Ledger::free) tells of processors how many nobody uses as a mean over the rows that are used, as of the last
    /// pass; all else is accounted as ever: what a job holds of it is counted once, however many rows there are.
    pub fn slice_time(&mut self, slicing: Slicing) {
        if let Some(matrix) = &mut self.matrix {
            return matrix.slice(slicing);
        }
        self.name_pes();
        self.pes = None;
        self.matrix = Some(Matrix::new(slicing, PeSet::empty()));
        self.rebuild_slots();
    }

    /// Slices time, if it is not sliced yet: how, the policy says when it comes.
    pub(super) fn ensure_time_slicing(&mut self) {
        if self.matrix.is_none() {
            self.slice_time(Slicing::FREE);
        }
    }

    /// The rows, if time is sliced.
    pub fn matrix(&self) -> Option<&Matrix> {
        self.matrix.as_ref()
    }

    /// Makes the matrix again from where the jobs are. Says whether all of them could stay in all the rows in which they were.
    pub(super) fn rebuild_slots(&mut self) -> bool {
        let Some(old) = self.matrix.take() else { return true };
        let cpus = self.machine.hosts().first().map_or(Procs::ZERO, |host| host.capacity.cpus_count());
        let mut new = old.emptied(PeSet::first(u32::try_from(cpus).unwrap_or(u32::MAX)));
        for (slot, pes) in self.jobs.iter().flatten().filter_map(place) {
            new.take(slot, pes);
        }
        for (slot, row) in old.slots() {
            // A row in which nobody is left is not remembered.
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

    /// Whether the placement is in a row that exists.
    pub(super) fn check_slot(&self, placement: &Placement) -> Result<(), Rule> {
        self.check_row_of(placement, self.most_rows())
    }

    /// How many rows there may be by now, if there are any.
    fn most_rows(&self) -> usize {
        self.matrix.as_ref().map_or(1, Matrix::most)
    }

    /// Whether the placement is in a row that exists, if there may be so many.
    fn check_row_of(&self, placement: &Placement, most: usize) -> Result<(), Rule> {
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

    /// Gives a job its own place in a row; tentative jobs give way.
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

    /// Notes that a job has ended that had its own place there.
    pub(super) fn note_vacated_slot(&mut self, slot: SlotId) {
        self.matrix.iter_mut().for_each(|matrix| matrix.vacated_mut().push(slot));
    }

    fn evict(&mut self, jobs: Vec<JobId>, slot: SlotId) {
        for job in jobs {
            self.entry_mut(job).alternate_slots.retain(|row| *row != slot);
            self.matrix.iter_mut().for_each(|matrix| matrix.touch(job));
        }
    }

    /// Takes a job out of the rows besides its own.
    pub(super) fn leave_alternate_slots(&mut self, job: JobId) {
        let Some(matrix) = &mut self.matrix else { return };
        let Some(entry) = self.jobs.get_mut(job.index()).and_then(Option::as_mut) else { return };
        entry.alternate_slots.drain(..).for_each(|slot| matrix.remove_alternate(job, slot));
        matrix.touch(job);
    }

    /// Lets a running job run in these rows besides its own, and in no others.
    pub(crate) fn set_alternate_slots(&mut self, job: JobId, rows: &[SlotId]) -> Result<(), Rule> {
        let entry = self.get(job).ok_or(Rule::UnknownJob)?;
        let Some((own, pes)) = running_place(entry) else { return Err(Rule::NotRunning) };
        if !rows.is_sorted_by(|a, b| a < b) || rows.contains(&own) {
            return Err(Rule::NoSuchRow);
        }
        let (pes, old) = (pes.clone(), entry.alternate_slots.clone());
        let matrix = self.matrix.as_mut().ok_or(Rule::NoSuchRow)?;
        // The other rows are as they were.
        let entered: Vec<SlotId> = rows.iter().copied().filter(|row| !old.contains(row)).collect();
        for (done, row) in entered.iter().enumerate() {
            if let Err(rule) = matrix.add_alternate(job, *row, &pes) {
                entered[..done].iter().for_each(|row| matrix.remove_alternate(job, *row));
                return Err(rule);
            }
        }
        for row in old.iter().filter(|row| rows.binary_search(row).is_err()) {
            matrix.remove_alternate(job, *row);
        }
        matrix.touch(job);
        self.entry_mut(job).alternate_slots = rows.to_vec();
        Ok(())
    }

    /// Moves running jobs to other places of their own, all at once. One whose processors are others goes on after `cost`.
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
        // As many as before, not as are left while nobody of them is anywhere.
        let most = self.most_rows();
        self.leave_places(&old);
        for (done, (job, to)) in moves.iter().enumerate() {
            if let Err(rule) = self.check_row_of(to, most) {
                self.leave_places(&moves[..done]);
                // They were there a moment ago.
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

    /// Where a job is that could be there instead, as far as that depends on itself.
    fn may_move(&self, job: JobId, to: &Placement) -> Result<Placement, Rule> {
        let entry = self.get(job).ok_or(Rule::UnknownJob)?;
        let State::Running { placement, released: false, .. } = &entry.state else {
            return Err(Rule::NotRunning);
        };
        self.working_with(&entry.request, to, PartialAllocation::Nothing)?;
        if to.total() == placement.total() { Ok(placement.clone()) } else { Err(Rule::WrongAmount) }
    }

    /// Frees the places of these jobs, and all that is tentative of theirs.
    fn leave_places(&mut self, places: &[(JobId, Placement)]) {
        for (job, from) in places {
            self.leave_alternate_slots(*job);
            self.give_in_slot(from);
        }
    }

    /// Notes that a job is there now, to go on after so long.
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

    /// Keeps a value of a slot, as long as the slot is used.
    pub(crate) fn set_slot_state<T: Persistent>(&mut self, slot: SlotId, value: &T) -> Result<(), Rule> {
        self.matrix.as_mut().ok_or(Rule::NoSuchRow)?.set_state(slot, value)
    }

    pub(super) fn restore_slot_state(&mut self, slot: SlotId, state: PolicyState) -> Result<(), Rule> {
        self.matrix.as_mut().ok_or(Rule::NoSuchRow)?.restore_state(slot, state)
    }

    pub(crate) fn count_unification(&mut self) {
        self.matrix.iter_mut().for_each(Matrix::count_unification);
    }

    /// Brings the jobs' paces to what they are by now, after a pass has moved what it wanted: O(1) if nothing changed, O(jobs in the system)
    /// if a row was opened or closed; else O(rows), and O(r) in the ranges of what is idle there.
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
        // Which handle a job has depends on when others were let go of; when it was admitted does not.
        paced.sort_unstable_by_key(|job| self.entry(*job).admitted);
        effects.extend(paced.into_iter().map(|job| Effect::PaceChanged { job }));
        let Ledger { matrix: Some(matrix), free, machine, .. } = self else { return };
        if let Some(only) = machine.hosts().first() {
            let idle = matrix.idle_count().min(only.capacity.cpus_count());
            let host = crate::HostId(0);
            free.set(machine, host, free.on(host).with_cpus(idle));
        }
    }

    /// Gives a running job the pace of its rows; says whether that is another one.
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

    /// That the matrix is what follows from where the jobs are, and that each has the pace of its rows. O(jobs x rows).
    ///
    /// # Panics
    /// If it is not.
    pub(super) fn check_slots(&self) {
        let Some(matrix) = &self.matrix else { return };
        let mut again = Ledger { touched: None, ..self.clone() };
        assert!(again.rebuild_slots(), "all jobs are where they may be");
        let derived = again.matrix().map(|matrix| matrix.slots().collect::<Vec<_>>()).unwrap_or_default();
        let rows: Vec<_> = matrix.slots().collect();
        assert_eq!(rows.len(), derived.len(), "the rows that are used are those in which jobs are");
        for ((slot, row), (other, from_jobs)) in rows.into_iter().zip(derived) {
            assert_eq!((slot, row.open()), (other, from_jobs.open()), "what is open follows from the places");
            assert_eq!(row.idle(), from_jobs.idle(), "and what is idle from the tentative ones");
            assert_eq!(row.open_count(), row.open().count(), "open processors are counted");
            assert_eq!(row.lost_count(), from_jobs.lost_count(), "and so are those that are lost");
        }
        let own: Procs =
            self.jobs.iter().flatten().filter_map(running_place).map(|(_, pes)| pes.count()).sum();
        let taken = |(_, row): (SlotId, &super::Slot)| matrix.all().count() - row.open_count();
        assert!(matrix.slots().map(taken).sum::<Procs>() <= own, "no processor is in two jobs of a row");
        for entry in self.jobs.iter().flatten().filter(|entry| running_place(entry).is_some()) {
            let pace = matrix.pace(1 + entry.alternate_slots.len());
            assert_eq!(entry.progress.pace, pace, "the pace of job {}", entry.request.number);
        }
    }
}

/// The row and the processors that a job holds.
fn place(entry: &Entry) -> Option<(SlotId, &PeSet)> {
    match &entry.state {
        State::Running { placement, released: false, .. }
        | State::Suspended { placement, holds: Holds::All { .. }, .. } => {
            Some((placement.slot, placement.pes()?))
        }
        _ => None,
    }
}

/// The row and the processors of a job that runs, and whose end is not certain.
fn running_place(entry: &Entry) -> Option<(SlotId, &PeSet)> {
    place(entry).filter(|_| matches!(entry.state, State::Running { .. }))
}

/// Counts anew when a running job should end.
fn expect_anew(entry: &mut Entry, now: Time) {
    let left = entry.left(now, entry.working());
    if let State::Running { expected: expected @ Expected::At(_), quantum, .. } = &mut entry.state {
        let end = now + left;
        *expected = Expected::At(quantum.map_or(end, |until| end.min(until)));
    }
}
