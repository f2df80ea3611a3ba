//! Gang scheduling: jobs alternate on processors, all processors of a job at once (Feitelson 1996).
//!
//! A packing chooses the place of a job; unification and alternative scheduling do not depend on it. In virtual time
//! slots do not rotate: a job progresses at its pace ([`Pace`](miserly_core::Pace)).

mod packing;

mod slot_jobs;

mod job_index;

mod alternative;

mod takers;

mod pe_bits;

mod unification;

mod policy;

pub use alternative::AlternativeOrder;
pub use packing::{
    BestFit, Booking, Buddy, BySize, BySlots, FilledFromRight, FirstFit, LeastLoaded, Migration, Packing,
    SlotBlock, SlotPlacement,
};
pub use policy::GANG;

use miserly_core::{
    Context, Event, HostId, JobId, Ledger, Matrix, PeSet, Placement, Policy, Procs, Slicing, SlotId, Span,
    StartReason, Time, Violation,
};

use self::alternative::Alternative;
use self::slot_jobs::{SlotJob, SlotJobs};
use crate::shared::{Order, QueueIndex, Waiting, head_start_reason, start_job};

/// The rules of a gang scheduler besides packing.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The time slices, and the largest number of slots.
    pub slicing: Slicing,
    /// Whether the slot of a terminated job is unified with another one without a common processor.
    pub unify: bool,
    /// The order in which jobs enter alternate slots where their processors are free; `None` to
    /// disable.
    pub alternative: Option<AlternativeOrder>,
    /// Whether a job that fits in no slot blocks the jobs behind it in the queue.
    pub strict: bool,
    /// The time for which a job pauses that is moved to other processors.
    pub migrate: Span,
    /// The order of the queue of jobs that fit in no slot.
    pub order: Order,
}

/// Gang scheduling over an Ousterhout matrix: each job is placed in one slot, and the slots
/// alternate.
///
/// A pass has three steps. It unifies slots, for each job that ended. It then places the waiting
/// jobs, in the order of the queue. Finally it lets jobs run in alternate slots, slot by slot, in
/// the order of their arrival or of their own slots.
///
/// A job that the packing places in no used slot opens the lowest unused one. It waits if that
/// would exceed the largest number of slots. It also waits if other requested resources are
/// insufficient. All jobs hold those in any slot.
///
/// With n jobs in the matrix and s slots, the packing sets the cost of each job that arrives or
/// leaves. Alternate slots cost O(s), and O(k) for each changed slot, where k jobs have processors
/// near those that changed. They cost O(n) for each slot if the order is that of the slots. The jobs'
/// new paces cost O(n) in each pass that opens or closes a slot.
///
/// # Source
/// Feitelson: Packing Schemes for Gang Scheduling, JSSPP 1996.
#[derive(Debug)]
pub struct Gang {
    rules: Rules,
    packing: Box<dyn Packing>,
    queue: QueueIndex,
    slot_jobs: SlotJobs,
    alternative: Alternative,
    /// Whether any job arrived or left since the last pass.
    moved: bool,
}

impl Gang {
    /// Returns a gang scheduler with this packing.
    pub fn new(rules: Rules, packing: Box<dyn Packing>) -> Gang {
        let (queue, slot_jobs, alternative) = (QueueIndex::new(), SlotJobs::new(), Alternative::default());
        Gang { rules, packing, queue, slot_jobs, alternative, moved: false }
    }

    /// Removes the jobs that are certain to end at this instant, before their events arrive.
    ///
    /// O(1) if there are none, and otherwise O(n) in the jobs of the matrix.
    fn drop_released(&mut self, ledger: &Ledger) {
        if ledger.released_count() == 0 {
            return;
        }
        let gone = self.slot_jobs.iter().filter(|slot_job| !slot_jobs::runs(ledger, slot_job.job));
        for admitted in gone.map(|slot_job| slot_job.admitted).collect::<Vec<_>>() {
            self.remove(admitted);
        }
    }

    /// Removes a job that ended.
    fn remove(&mut self, admitted: u64) {
        if let Some(slot_job) = self.slot_jobs.remove(admitted) {
            self.packing.left(&slot_job.pes);
            if self.rules.alternative.is_some() {
                self.alternative.left(slot_job);
            }
        }
    }

    /// Places the waiting jobs.
    fn serve_queue(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        self.queue.sort_again(&self.rules.order, context.now(), context.ledger());
        let mut passed = false;
        for waiting in self.queue.iter().copied().collect::<Vec<_>>() {
            if !self.start(context, &waiting, passed)? {
                if self.rules.strict {
                    break;
                }
                passed = true;
            }
        }
        Ok(())
    }

    /// Places and starts a waiting job, if possible. `passed` if others before it in the queue
    /// still wait.
    fn start(
        &mut self,
        context: &mut Context<'_>,
        waiting: &Waiting,
        passed: bool,
    ) -> Result<bool, Violation> {
        if !has_rest(context.ledger(), waiting.job) {
            return Ok(false);
        }
        let admitted = context.ledger().entry(waiting.job).admitted;
        let Some((place, mark)) = self.find(context, admitted, Procs::new(waiting.procs.into()))? else {
            return Ok(false);
        };
        let reason = if passed { StartReason::Backfilled } else { head_start_reason(context, waiting.job) };
        start_job(context, waiting.job, placement(context.ledger(), waiting.job, &place), reason)?;
        if let Some(mark) = mark {
            context.set_slot_state(place.slot, &mark)?;
        }
        self.queue.remove(&waiting.key);
        self.packing.came(&place.pes);
        let slot_job = SlotJob::new(context.ledger(), waiting.job, place);
        if self.rules.alternative.is_some() {
            self.alternative.came(&slot_job);
        }
        self.slot_jobs.insert(slot_job);
        Ok(true)
    }

    /// Returns the placement of a job with this admission number and size, and the state to store
    /// in its slot.
    ///
    /// Moves other jobs if the packing does so.
    fn find(
        &mut self,
        context: &mut Context<'_>,
        admitted: u64,
        size: Procs,
    ) -> Result<Option<(SlotPlacement, Option<FilledFromRight>)>, Violation> {
        let Some(matrix) = context.ledger().matrix() else { return Ok(None) };
        if let Some(place) = self.packing.place(matrix, size) {
            return Ok(Some((place, None)));
        }
        if let Some((place, others)) = self.map_with(context.ledger(), admitted, size) {
            self.migrate(context, others)?;
            return Ok(Some((place, None)));
        }
        let Some(slot) = matrix.unused().filter(|_| !self.packing.moves_jobs()) else { return Ok(None) };
        let pes = self.packing.open(matrix, size);
        Ok(pes.map(|pes| (SlotPlacement { slot, pes }, self.packing.filled(matrix))))
    }

    /// Returns the placement of one more job, and those of the others.
    ///
    /// Returns `None` if the packing does not move jobs, or if it needs too many slots.
    fn map_with(
        &self,
        ledger: &Ledger,
        admitted: u64,
        size: Procs,
    ) -> Option<(SlotPlacement, Vec<SlotBlock>)> {
        // The new job sorts before jobs that arrived later. Otherwise the next mapping would move
        // it.
        let nth = self.slot_jobs.before(admitted);
        let mut sizes = self.sizes();
        sizes.insert(nth, size);
        let mut places = self.map_anew(ledger, &sizes)?;
        let place = places.remove(nth);
        let opens = places.iter().all(|other| other.slot != place.slot);
        // If other jobs already exceed the limit of slots, a job in one of these slots adds none.
        let below = |place: &SlotBlock| place.slot.0 < self.rules.slicing.most_slots;
        let fits = !opens || places.iter().chain([&place]).all(below);
        fits.then_some((place.placement(), places))
    }

    /// Returns the number of processors of each job, in the order of arrival.
    fn sizes(&self) -> Vec<Procs> {
        self.slot_jobs.iter().map(|slot_job| slot_job.size).collect()
    }

    /// Returns the placements of jobs with these sizes.
    ///
    /// Returns `None` if the packing does not move jobs, or if it needs too many slots.
    fn map_anew(&self, ledger: &Ledger, sizes: &[Procs]) -> Option<Vec<SlotBlock>> {
        let matrix = ledger.matrix()?;
        let places = self.packing.remap(matrix.all().count(), sizes)?;
        let fits = places.iter().all(|place| (place.slot.0 as usize) < matrix.most());
        fits.then_some(places)
    }

    /// Moves the jobs that are placed differently.
    fn migrate(&mut self, context: &mut Context<'_>, places: Vec<SlotBlock>) -> Result<(), Violation> {
        let mut moves: Vec<(JobId, Placement)> = vec![];
        for (nth, place) in places.into_iter().enumerate() {
            let Some(slot_job) = self.slot_jobs.nth_mut(nth) else { continue };
            if !place.is(slot_job.slot, &slot_job.pes) {
                let place = place.placement();
                moves.push((slot_job.job, placement(context.ledger(), slot_job.job, &place)));
                slot_job.move_to(place);
            }
        }
        if moves.is_empty() {
            return Ok(());
        }
        self.alternative.forget();
        context.remap(&moves, self.rules.migrate)
    }

    /// Reduces the number of slots after jobs have ended.
    fn close_up(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let vacated = context.ledger().matrix().map(Matrix::vacated).unwrap_or_default().to_vec();
        if self.packing.moves_jobs() {
            return self.map_together(context, &vacated);
        }
        for slot in vacated {
            if self.rules.unify && unification::unite(context, &mut self.slot_jobs, slot)? {
                context.count_unification();
            }
        }
        Ok(())
    }

    /// Maps all jobs again. Counts a unification if fewer slots remain, unless only because a slot
    /// became empty (§4.2, note 4).
    fn map_together(&mut self, context: &mut Context<'_>, vacated: &[SlotId]) -> Result<(), Violation> {
        let Some(places) = self.map_anew(context.ledger(), &self.sizes()) else { return Ok(()) };
        let used = |context: &Context<'_>| context.ledger().matrix().map_or(0, Matrix::used);
        let matrix = context.ledger().matrix();
        let left = vacated.iter().any(|slot| matrix.is_some_and(|matrix| matrix.slot(*slot).is_some()));
        let before = used(context);
        self.migrate(context, places)?;
        if left && used(context) < before {
            context.count_unification();
        }
        Ok(())
    }
}

/// Returns whether the requested resources other than processors are free.
fn has_rest(ledger: &Ledger, job: JobId) -> bool {
    let demand = ledger.machine().amount(ledger.request(job));
    demand.without_cpus().fits_in(&ledger.free())
}

/// Returns the placement of all resources of a job in that slot.
fn placement(ledger: &Ledger, job: JobId, place: &SlotPlacement) -> Placement {
    let demand = ledger.machine().amount(ledger.request(job));
    Placement::on_pes(HostId(0), demand, place.pes.clone()).in_slot(place.slot)
}

impl Policy for Gang {
    fn name(&self) -> &'static str {
        "gang"
    }

    fn slices_time(&self) -> Option<Slicing> {
        Some(self.rules.slicing)
    }

    fn usage_half_life(&self) -> Option<Span> {
        self.rules.order.usage_half_life()
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        self.queue.clear();
        for job in ledger.waiting() {
            self.queue.insert(Waiting::new(&self.rules.order, now, job, ledger));
        }
        self.slot_jobs = SlotJobs::in_ledger(ledger);
        // Jobs keep processors that the machine has lost.
        let ranges = self.slot_jobs.iter().filter_map(|slot_job| slot_job.pes.ranges().last());
        let highest = ranges.map(|(_, high)| u64::from(*high) + 1).max().unwrap_or(0);
        let procs = ledger.machine().capacity().cpus_count();
        self.packing.reset(procs, procs.max(Procs::new(highest)));
        self.slot_jobs.iter().for_each(|slot_job| self.packing.came(&slot_job.pes));
        self.alternative.forget();
        self.moved = false;
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => {
                self.queue.insert(Waiting::new(&self.rules.order, now, job, ledger));
            }
            Event::Ended(ended) => self.remove(ledger.entry(ended.job).admitted),
            Event::Changed(_) => self.rebuild(now, ledger),
            Event::Overdue(_) | Event::Timer => return,
            Event::EndMoved { .. } | Event::Rebuilt => {}
        }
        self.moved = true;
    }

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        if !std::mem::take(&mut self.moved) {
            return Ok(());
        }
        self.drop_released(context.ledger());
        self.close_up(context)?;
        self.serve_queue(context)?;
        if let Some(order) = self.rules.alternative {
            self.alternative.run(context, &self.slot_jobs, order)?;
        }
        Ok(())
    }
}

/// Returns the own slot of a running job, and its processors.
fn own(ledger: &Ledger, job: JobId) -> Option<(SlotId, &PeSet)> {
    let placement = ledger.get(job)?.placement()?;
    Some((placement.slot, placement.pes()?))
}
