//! Gang scheduling as a registered policy.

use miserly_core::{Machine, Policy, Slicing, Span};

use super::{
    AlternativeOrder, BestFit, Booking, Buddy, BySize, BySlots, FirstFit, Gang, LeastLoaded, Migration,
    Packing, Rules,
};
use crate::backfill::policies::QUEUE_ORDER;
use crate::registry::{Needs, ParamReader, Params, PolicyDescriptor, PolicyError};

/// `gang`.
pub static GANG: PolicyDescriptor = PolicyDescriptor {
    name: "gang",
    title: "gang scheduling: slots alternate on the processors; all processors of a job run at the same time",
    paper: "Feitelson: Packing Schemes for Gang Scheduling, JSSPP 1996",
    promises: "nothing",
    needs: Needs {
        one_host: true,
        one_host_per_job: true,
        shared_hosts: true,
        named_processors: true,
        time_slices: true,
        ..Needs::NONE
    },
    spellings: &[],
    examples: &[],
    read,
};

#[derive(Debug)]
struct GangParams {
    rules: Rules,
    packing: Scheme,
    /// The largest of the small jobs, with [`Scheme::LeftRightBySize`].
    threshold: u64,
    load: Booking,
}

/// A packing scheme.
#[derive(Clone, Copy, Debug)]
enum Scheme {
    FirstFit,
    BestFit,
    LeftRightBySize,
    LeftRightBySlots,
    MinMaxLoad,
    MinAverageLoad,
    Buddy,
    Migration,
}

impl Scheme {
    const WORDS: [(&'static str, Scheme, &'static str); 8] = [
        ("first-fit", Scheme::FirstFit, "the first slot that can hold the job"),
        ("best-fit", Scheme::BestFit, "the slot with the fewest free processors that can hold the job"),
        (
            "left-right-by-size",
            Scheme::LeftRightBySize,
            "as best-fit; small jobs from the left, large ones from the right",
        ),
        (
            "left-right-by-slots",
            Scheme::LeftRightBySlots,
            "as best-fit; some slots from the left, others from the right",
        ),
        (
            "min-max-load",
            Scheme::MinMaxLoad,
            "least loaded processors, in the slot where the most loaded of them is loaded least",
        ),
        (
            "min-average-load",
            Scheme::MinAverageLoad,
            "least loaded processors, in the slot where they are loaded least on average",
        ),
        ("buddy", Scheme::Buddy, "the least loaded group of processors; group sizes are powers of two"),
        (
            "migration",
            Scheme::Migration,
            "all jobs are packed again, the largest first, at each arrival and end",
        ),
    ];
}

fn read(params: &mut ParamReader<'_>) -> Result<Box<dyn Params>, PolicyError> {
    let packing =
        params.choice("packing", &Scheme::WORDS, "buddy", "the slot and the processors of a job")?;
    let threshold = params.integer(
        "threshold",
        0..=u64::MAX,
        8,
        "the largest of the small jobs, with left-right-by-size",
    )?;
    let load = load(params)?;
    let unify = params.flag(
        "unify",
        true,
        "when a job ends, its slot is unified with another one if they have no processor in common; migration \
        does so by itself",
    )?;
    let alternative = alternative(params)?;
    let most_slots = params.integer_or(
        "slots",
        (1..=u64::from(u32::MAX), |slots| u32::try_from(slots).unwrap_or(u32::MAX)),
        &[("none", u32::MAX, "as many as are necessary")],
        "none",
        "the largest number of slots; a job that fits in no slot waits",
    )?;
    let order = params.order("order", "arrival", QUEUE_ORDER)?;
    let strict = params.flag("strict", true, "a waiting job blocks the jobs behind it in the queue")?;
    let quantum = params.duration(
        "quantum",
        1,
        "10s",
        "the time slice of a slot; in a simulation it matters only with switch",
    )?;
    let switch = params.number(
        "switch",
        0.0,
        "seconds of a context switch before each time slice, if there are other slots; jobs that run in all \
        slots do not pause",
    )?;
    let migrate =
        params.number("migrate", 0.0, "the pause of a job that moves to other processors, in seconds")?;
    let order = params.order_settings()?.apply(order);
    let slicing = Slicing { most_slots, quantum, switch: seconds(switch) };
    let rules = Rules { slicing, unify, alternative, strict, migrate: seconds(migrate), order };
    Ok(Box::new(GangParams { rules, packing, threshold, load }))
}

fn load(params: &mut ParamReader<'_>) -> Result<Booking, PolicyError> {
    let words = [
        (
            "own",
            Booking::Own,
            "the jobs mapped to the group, to its ancestors, and to the more loaded of its children",
        ),
        ("max", Booking::Max, "the highest load of one of its processors"),
    ];
    params.choice("load", &words, "own", "the load on a group, with buddy")
}

/// Reads whether jobs run in alternate slots, and in which order.
fn alternative(params: &mut ParamReader<'_>) -> Result<Option<AlternativeOrder>, PolicyError> {
    let words = [
        ("arrival", AlternativeOrder::Arrival, "order of arrival"),
        ("slot", AlternativeOrder::Row, "the lowest slot of their own, and of one slot in order of arrival"),
    ];
    let doc = "jobs run in alternate slots too, where all their processors are free";
    let alternative = params.flag("alternative", true, doc)?;
    let doc = "the order of the jobs that could run in an alternate slot";
    let order = params.choice("alternative_order", &words, "arrival", doc)?;
    Ok(alternative.then_some(order))
}

impl Params for GangParams {
    fn build(&self, _machine: &Machine) -> Box<dyn Policy> {
        let packing: Box<dyn Packing> = match self.packing {
            Scheme::FirstFit => Box::new(FirstFit),
            Scheme::BestFit => Box::new(BestFit),
            Scheme::LeftRightBySize => Box::new(BySize { threshold: self.threshold.into() }),
            Scheme::LeftRightBySlots => Box::new(BySlots),
            Scheme::MinMaxLoad => Box::new(LeastLoaded::by_most()),
            Scheme::MinAverageLoad => Box::new(LeastLoaded::by_mean()),
            Scheme::Buddy => Box::new(Buddy::new(self.load)),
            Scheme::Migration => Box::new(Migration),
        };
        Box::new(Gang::new(self.rules.clone(), packing))
    }
}

/// Returns a number of seconds, to the microsecond.
#[expect(clippy::cast_possible_truncation, reason = "a cast saturates")]
fn seconds(number: f64) -> Span {
    Span::from_ticks((number * 1e6).round() as i64)
}
