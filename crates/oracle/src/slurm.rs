//! The scheduling of Slurm: a main loop after each event, and cycles at the multiples of an interval.

use miserly_core::{Kind, Request, Span, Time};

use crate::NaiveOrder;
use crate::plan::{Plan, Reservation};
use crate::world::World;

/// The settings of the cycles.
#[derive(Clone, Copy, Debug)]
pub struct NaiveCycles {
    /// The time between two cycles.
    pub interval: Span,
    /// The instant of one of them, from time 0.
    pub first: Span,
    /// The unit to which time limits are rounded up.
    pub resolution: Span,
    /// How far ahead a reservation may begin.
    pub window: Span,
    /// The number of jobs that a cycle tries.
    pub most: usize,
    /// The least time between two main loops that follow submissions, on hosts.
    pub delay: Span,
    /// The limits of running jobs.
    pub limits: NaiveLimits,
    /// The running jobs that make room for others, on hosts. A policy is copied often, and this is large.
    pub preemption: &'static NaivePreemption,
}

/// The running jobs that make room for others.
#[derive(Clone, Copy, Debug, Default)]
pub struct NaivePreemption {
    /// Those of a queue each.
    pub rules: [Option<NaiveVictims>; 3],
    /// Whether the last start comes first.
    pub youngest: bool,
    /// How often the search is made again, less one.
    pub reorder: u64,
    /// Whether the order stays.
    pub strict: bool,
    /// The time after which a job may start again.
    pub delay: Span,
    /// The time from the end of a job until its resources are free.
    pub completing: Span,
    /// The time after which a waiting job makes further room.
    pub retry: Span,
}

/// The running jobs of a queue.
#[derive(Clone, Copy, Debug)]
pub struct NaiveVictims {
    /// The queue.
    pub queue: u32,
    /// The queues of those for which they make room.
    pub by: [Option<u32>; 3],
    /// The queues of those for which they make room if their priority is higher.
    pub by_priority: [Option<u32>; 3],
    /// Whether they stay, without their processors.
    pub suspended: bool,
    /// Lower ones come first.
    pub rank: u64,
    /// The time from a start in which a job stays.
    pub exempt: Span,
    /// The time that it has before it leaves.
    pub grace: Span,
}

/// Limits of the jobs that run at the same time: their number and their resources, of all and of each user.
#[derive(Clone, Copy, Debug, Default)]
pub struct NaiveLimits {
    /// The most jobs.
    pub jobs: Option<u64>,
    /// The most processors.
    pub procs: Option<u64>,
    /// The most GPUs.
    pub gpus: Option<u64>,
    /// The most memory, MiB.
    pub memory: Option<u64>,
    /// The most jobs of a user.
    pub user_jobs: Option<u64>,
    /// The most processors of a user.
    pub user_procs: Option<u64>,
    /// The most GPUs of a user.
    pub user_gpus: Option<u64>,
    /// The most memory of a user, MiB.
    pub user_memory: Option<u64>,
}

impl NaiveLimits {
    /// Returns whether a job would be one too many beside these, and whether it would have too much of a resource.
    pub(crate) fn exceeded<'a>(
        self,
        job: &'a Request,
        running: impl Iterator<Item = &'a Request>,
    ) -> (bool, bool) {
        let all: Vec<&Request> = running.chain([job]).collect();
        let own: Vec<&Request> = all.iter().copied().filter(|other| other.user == job.user).collect();
        let too_many =
            |jobs: &[&Request], most: Option<u64>| most.is_some_and(|most| jobs.len() as u64 > most);
        let of = |request: &Request, kind| match kind {
            // A limit counts whole MiB.
            Kind::Memory => request.demand.get(kind).div_ceil(1024),
            _ => request.demand.get(kind),
        };
        let too_wide = |jobs: &[&Request], kind, most: Option<u64>| {
            let sum: u64 = jobs.iter().map(|job| of(job, kind)).sum();
            most.is_some_and(|most| of(job, kind) > 0 && sum > most)
        };
        let resources = [
            (Kind::Cpus, self.procs, self.user_procs),
            (Kind::Gpus, self.gpus, self.user_gpus),
            (Kind::Memory, self.memory, self.user_memory),
        ];
        (
            too_many(&all, self.jobs) || too_many(&own, self.user_jobs),
            resources
                .iter()
                .any(|(kind, most, of_user)| too_wide(&all, *kind, *most) || too_wide(&own, *kind, *of_user)),
        )
    }
}

impl NaiveCycles {
    /// Returns whether there is a cycle now, and notes it.
    pub(crate) fn is_due(self, now: Time, last: &mut Option<Time>) -> bool {
        let is_due = (now - self.first).ticks() % self.interval.ticks() == 0 && *last != Some(now);
        if is_due {
            *last = Some(now);
        }
        is_due
    }

    /// Returns the instant of the first cycle after this one.
    pub(crate) fn after(self, now: Time) -> Time {
        let done = (now - self.first).ticks().div_euclid(self.interval.ticks());
        Time::from_ticks((done + 1) * self.interval.ticks()) + self.first
    }
}

/// Runs the main loop, and the cycle of this instant unless it has been run.
///
/// Returns the instant of the next cycle, if jobs wait.
pub(crate) fn pass(
    world: &mut World<'_>,
    order: NaiveOrder,
    cycles: NaiveCycles,
    last: &mut Option<Time>,
) -> Option<Time> {
    main_loop(world, order, cycles.limits);
    if world.waiting.is_empty() {
        return None;
    }
    if cycles.is_due(world.now, last) {
        cycle(world, order, cycles);
    }
    Some(cycles.after(world.now))
}

/// Starts jobs in queue order, up to the first that does not fit. Those that would exceed a limit are passed.
fn main_loop(world: &mut World<'_>, order: NaiveOrder, limits: NaiveLimits) {
    for position in world.queue(order) {
        let (too_many, too_wide) = exceeded(world, limits, position);
        if too_many || too_wide {
            continue;
        }
        if !world.fits_now(position) {
            return;
        }
        world.start(position);
    }
}

fn exceeded(world: &World<'_>, limits: NaiveLimits, position: usize) -> (bool, bool) {
    let running = world.running.iter().map(|running| &world.requested[running.position].request);
    limits.exceeded(&world.requested[position].request, running)
}

fn cycle(world: &mut World<'_>, order: NaiveOrder, cycles: NaiveCycles) {
    let estimates: Vec<Span> = world.jobs.iter().map(|job| job.request.estimate).collect();
    let mut reservations: Vec<Reservation> = vec![];
    let mut tried = 0;
    for position in world.queue(order) {
        let (too_many, too_wide) = exceeded(world, cycles.limits, position);
        if too_many {
            continue;
        }
        tried += 1;
        if tried > cycles.most {
            break;
        }
        if too_wide {
            continue;
        }
        let planned = rounded(world.request(position).planned(), cycles.resolution);
        let procs = world.request(position).procs().get();
        let plan = Plan::new(world, &reservations);
        if plan.is_hole(world.now, procs, planned) {
            world.start(position);
            continue;
        }
        let start = plan.earliest_hole(world.now, procs, planned);
        assert!(start > world.now, "a reservation for now is a start");
        if start <= world.now + cycles.window {
            // The plan has the rounded limit, for this cycle only.
            world.jobs[position].request.estimate = planned;
            reservations.push(Reservation { position, start });
        }
    }
    for (job, estimate) in world.jobs.iter_mut().zip(estimates) {
        job.request.estimate = estimate;
    }
}

/// Returns the first multiple of the unit that is not shorter.
fn rounded(span: Span, unit: Span) -> Span {
    let units = span.ticks().div_euclid(unit.ticks()) + i64::from(span.ticks().rem_euclid(unit.ticks()) > 0);
    Span::from_ticks(units * unit.ticks())
}
