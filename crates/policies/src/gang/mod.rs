//! Gang time-slicing: jobs share processors by turns, all processors of a job at once (Feitelson 1996).

mod packing;

mod residents;

mod alternative;

mod unification;

mod policy;

pub use alternative::AlternativeOrder;
pub use packing::{
    BestFit, Booking, Buddy, BySize, BySlots, FilledFromRight, FirstFit, LeastLoaded, Migration, Packing,
    Place,
};
pub use policy::GANG;

use miserly_core::{
    Context, Event, HostId, JobId, Ledger, Matrix, PeSet, Placement, Policy, Procs, Slicing, SlotId, Span,
    StartReason, Time, Violation,
};

use self::alternative::Alternative;
use self::residents::{SlotJob, SlotJobs};
use crate::backfill::{in_turn, sort_again, start_on, waiting};
use crate::shared::{Order, QueueIndex, Waiting};

/// What a gang scheduler does besides packing.
#[derive(Clone, Debug)]
pub struct Rules {
    /// How time is sliced, and in how many rows at most.
    pub slicing: Slicing,
    /// At a termination the row of the job is united with another one, if they have no processor in common.
    pub unify: bool,
    /// Jobs run in further rows too, where their processors are free; who goes first.
    pub alternative: Option<AlternativeOrder>,
    /// Who fits in no row keeps those behind it in the queue waiting.
    pub strict: bool,
    /// How long a job does not run that is moved to other processors.
    pub migrate: Span,
    /// The order of the queue of those that fit in no row.
    pub order: Order,
}

/// Gang time-slicing over an Ousterhout matrix: each job has a place in one row, and the rows take turns.
///
/// A pass first unites rows, for each job that ended; then gives places to the waiting jobs, in the order of the queue; then lets jobs run
/// in further rows, row by row and in the order of their arrival, or of the rows of their own. A job that the packing puts in no row that is
/// used opens the lowest that is not, unless that would be one row too many: then it waits. It waits too if there is not enough free of what
/// it asks for besides processors, which all jobs hold in whatever row they are.
///
/// With n jobs in the matrix and s rows: what the packing takes for each job that comes or goes; for running in further rows, O(s), and
/// O(n) for each row that is not as it was, or for each row where the order is that of the rows; and O(n) for the jobs' new paces, in each
/// pass in which any came or went.
///
/// # Source
/// Feitelson: Packing Schemes for Gang Scheduling, JSSPP 1996.
#[derive(Debug)]
pub struct Gang {
    rules: Rules,
    packing: Box<dyn Packing>,
    queue: QueueIndex,
    residents: SlotJobs,
    alternative: Alternative,
    /// Whether any job came or went since the last pass.
    moved: bool,
}

impl Gang {
    /// Gang time-slicing with this packing.
    pub fn new(rules: Rules, packing: Box<dyn Packing>) -> Gang {
        let (queue, residents, alternative) = (QueueIndex::new(), SlotJobs::new(), Alternative::default());
        Gang { rules, packing, queue, residents, alternative, moved: false }
    }

    /// Forgets the jobs whose ends are certain already, before they are told.
    fn drop_released(&mut self, ledger: &Ledger) {
        let Gang { packing, alternative, rules, residents, .. } = self;
        residents.retain(|resident| {
            let stays = residents::runs(ledger, resident.job);
            if !stays {
                packing.left(&resident.pes);
                if rules.alternative.is_some() {
                    alternative.left(resident.admitted);
                }
            }
            stays
        });
    }

    /// Gives places to the waiting jobs.
    fn serve_queue(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        sort_again(&mut self.queue, &self.rules.order, context);
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

    /// Gives a waiting job a place, if there is one; `passed`, if others in the queue before it wait on.
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
        let reason = if passed { StartReason::Backfilled } else { in_turn(context, waiting.job) };
        start_on(context, waiting.job, placement(context.ledger(), waiting.job, &place), reason)?;
        if let Some(mark) = mark {
            context.set_slot_state(place.slot, &mark)?;
        }
        self.queue.remove(&waiting.key);
        self.packing.came(&place.pes);
        let resident = SlotJob::of(context.ledger(), waiting.job, place);
        if self.rules.alternative.is_some() {
            self.alternative.came(resident.admitted);
        }
        self.residents.insert(resident);
        Ok(true)
    }

    /// A place for a job that was admitted so and has this size, and what is to be noted of its row. The others make room for it, if the
    /// packing moves jobs.
    fn find(
        &mut self,
        context: &mut Context<'_>,
        admitted: u64,
        size: Procs,
    ) -> Result<Option<(Place, Option<FilledFromRight>)>, Violation> {
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
        Ok(pes.map(|pes| (Place { slot, pes }, self.packing.filled(matrix))))
    }

    /// Where one more job goes, and where the others; `None` if the packing does not move jobs, or there are not rows enough.
    fn map_with(&self, ledger: &Ledger, admitted: u64, size: Procs) -> Option<(Place, Vec<Place>)> {
        // Who waited goes before those that came later: else the next mapping would move him.
        let nth = self.residents.before(admitted);
        let mut sizes = self.sizes();
        sizes.insert(nth, size);
        let mut places = self.map_anew(ledger, &sizes)?;
        let place = places.remove(nth);
        let opens = places.iter().all(|other| other.slot != place.slot);
        // Where others are in more rows than there should be, one who is beside them does no harm.
        let below = |place: &Place| place.slot.0 < self.rules.slicing.most_slots;
        let fits = !opens || places.iter().chain([&place]).all(below);
        fits.then_some((place, places))
    }

    /// How many processors each job has, in the order of arrival.
    fn sizes(&self) -> Vec<Procs> {
        self.residents.iter().map(|resident| resident.size).collect()
    }

    /// Where jobs of these sizes go; `None` if the packing does not move jobs, or there are not rows enough.
    fn map_anew(&self, ledger: &Ledger, sizes: &[Procs]) -> Option<Vec<Place>> {
        let matrix = ledger.matrix()?;
        let places = self.packing.remap(matrix.all().count(), sizes)?;
        let fits = places.iter().all(|place| (place.slot.0 as usize) < matrix.most());
        fits.then_some(places)
    }

    /// Moves the jobs there that are elsewhere.
    fn migrate(&mut self, context: &mut Context<'_>, places: Vec<Place>) -> Result<(), Violation> {
        let mut moves: Vec<(JobId, Placement)> = vec![];
        for (resident, place) in self.residents.iter_mut().zip(places) {
            if (resident.slot, &resident.pes) != (place.slot, &place.pes) {
                moves.push((resident.job, placement(context.ledger(), resident.job, &place)));
                resident.move_to(place);
            }
        }
        if moves.is_empty() {
            return Ok(());
        }
        self.alternative.forget();
        context.remap(&moves, self.rules.migrate)
    }

    /// Makes the rows fewer, now that jobs have ended.
    fn close_up(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let vacated = context.ledger().matrix().map(Matrix::vacated).unwrap_or_default().to_vec();
        if self.packing.moves_jobs() {
            return self.map_together(context, &vacated);
        }
        for slot in vacated {
            if self.rules.unify && unification::unite(context, &mut self.residents, slot)? {
                context.count_unification();
            }
        }
        Ok(())
    }

    /// Has the packing map all jobs anew. It unites rows if there are fewer then, and not because a row was left empty (§4.2, note 4).
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

/// Whether there is enough free of what a job asks for besides processors.
fn has_rest(ledger: &Ledger, job: JobId) -> bool {
    let demand = ledger.machine().demand(ledger.request(job));
    demand.without_cpus().fits_in(&ledger.free())
}

/// All that a job asks for, in that place.
fn placement(ledger: &Ledger, job: JobId, place: &Place) -> Placement {
    let demand = ledger.machine().demand(ledger.request(job));
    Placement::on_pes(HostId(0), demand, place.pes.clone()).in_slot(place.slot)
}

impl Policy for Gang {
    fn name(&self) -> &'static str {
        "gang"
    }

    fn slices_time(&self) -> Option<Slicing> {
        Some(self.rules.slicing)
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        self.queue.clear();
        for job in ledger.waiting() {
            self.queue.insert(waiting(&self.rules.order, now, job, ledger.entry(job)));
        }
        self.residents = SlotJobs::in_ledger(ledger);
        // Jobs keep processors that the machine has lost.
        let ranges = self.residents.iter().filter_map(|resident| resident.pes.ranges().last());
        let highest = ranges.map(|(_, high)| u64::from(*high) + 1).max().unwrap_or(0);
        let procs = ledger.machine().capacity().cpus_count();
        self.packing.reset(procs, procs.max(Procs::new(highest)));
        self.residents.iter().for_each(|resident| self.packing.came(&resident.pes));
        self.alternative.forget();
        self.moved = false;
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => {
                self.queue.insert(waiting(&self.rules.order, now, job, ledger.entry(job)));
            }
            Event::Ended(ended) => {
                let entry = ledger.entry(ended.job);
                if let Some(resident) = self.residents.remove(entry.admitted) {
                    self.packing.left(&resident.pes);
                    if self.rules.alternative.is_some() {
                        self.alternative.left(resident.admitted);
                    }
                }
            }
            Event::Changed(_) => self.rebuild(now, ledger),
            Event::Overdue(_) | Event::Timer => return,
            Event::Rebuilt => {}
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
            self.alternative.run(context, &self.residents, order)?;
        }
        Ok(())
    }
}

/// The processors of a job that runs, where it has its own place.
fn own(ledger: &Ledger, job: JobId) -> Option<(SlotId, &PeSet)> {
    let placement = ledger.get(job)?.placement()?;
    Some((placement.slot, placement.pes()?))
}
