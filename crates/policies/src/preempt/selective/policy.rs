//! Selective suspension (Kettimuthu et al.) as registered policies.

use miserly_core::{Machine, Policy, Span};

use super::{Criterion, Limits, Moving, PeChoice, Selective, Slices, Suspension, Transfer};
use crate::registry::{Needs, ParamReader, Params, PolicyDescriptor, PolicyError, Spelling};

const KETTIMUTHU: &str = "Kettimuthu, Subramani, Srinivasan, Gopalasamy, Panda, Sadayappan 2002";

/// `ss`: suspension by xfactor, or by the remaining time.
pub static SS: PolicyDescriptor = PolicyDescriptor {
    name: "ss",
    title: "selective suspension: a job may suspend jobs with an expansion factor that is smaller by the suspension factor",
    paper: KETTIMUTHU,
    promises: "nothing",
    needs: Needs {
        one_host: true,
        one_host_per_job: true,
        shared_hosts: true,
        named_processors: true,
        suspension: true,
        ..Needs::NONE
    },
    spellings: &[Spelling {
        name: "srt",
        means: "criterion=remaining, half_width=false, period=none",
        title: "shortest remaining time: a job suspends jobs with more remaining time; long jobs may starve",
    }],
    examples: &[],
    read: |params| {
        let criterion = criterion(params)?;
        let half_width =
            params.flag("half_width", true, "a job may suspend only jobs of up to twice its width")?;
        let period = period(params)?;
        let rules = Suspension { criterion, half_width, limits: None, period, moving: moving(params)? };
        Ok(Box::new(SelectiveParams { name: "ss", rules }))
    },
};

/// `tss`: suspension by xfactor, with limits.
pub static TSS: PolicyDescriptor = PolicyDescriptor {
    name: "tss",
    title: "tunable selective suspension: like ss, but a job above the slowdown limit of its category is not suspended",
    spellings: &[],
    examples: &[],
    read: |params| {
        let criterion = Criterion::Xfactor { factor: suspension_factor(params)? };
        let limits = Some(limits(params)?);
        let period = period(params)?;
        let rules = Suspension { criterion, half_width: true, limits, period, moving: moving(params)? };
        Ok(Box::new(SelectiveParams { name: "tss", rules }))
    },
    ..SS
};

/// `is`: a time slice at once for every job.
pub static IS: PolicyDescriptor = PolicyDescriptor {
    name: "is",
    title: "immediate service: each new job runs for a time slice at once, by suspending others; EASY resumes them",
    spellings: &[],
    examples: &[],
    read: |params| {
        let doc = "the time that a job runs before it can be suspended";
        let slice = params.duration("slice", 1, "10m", doc)?;
        Ok(Box::new(SlicesParams { slice, moving: moving(params)? }))
    },
    ..SS
};

#[derive(Debug)]
struct SelectiveParams {
    name: &'static str,
    rules: Suspension,
}

#[derive(Debug)]
struct SlicesParams {
    slice: Span,
    moving: Moving,
}

impl Params for SelectiveParams {
    fn build(&self, _machine: &Machine) -> Box<dyn Policy> {
        Box::new(Selective::new(self.name, self.rules.clone()))
    }

    fn needs(&self, needs: Needs) -> Needs {
        Needs { swapping: self.rules.moving.transfer != Transfer::None, ..needs }
    }
}

impl Params for SlicesParams {
    fn build(&self, _machine: &Machine) -> Box<dyn Policy> {
        Box::new(Slices::new("is", self.slice, self.moving))
    }

    fn needs(&self, needs: Needs) -> Needs {
        Needs { swapping: self.moving.transfer != Transfer::None, ..needs }
    }
}

fn criterion(params: &mut ParamReader<'_>) -> Result<Criterion, PolicyError> {
    let words = [
        (
            "xfactor",
            false,
            "a job may suspend jobs with an expansion factor that is smaller by the suspension factor",
        ),
        ("remaining", true, "a job may suspend jobs with more remaining time"),
    ];
    let by_remaining = params.choice("criterion", &words, "xfactor", "the jobs that a job may suspend")?;
    let factor = suspension_factor(params)?;
    Ok(if by_remaining { Criterion::Remaining } else { Criterion::Xfactor { factor } })
}

fn suspension_factor(params: &mut ParamReader<'_>) -> Result<Option<u64>, PolicyError> {
    params.number_or(
        "sf",
        (1.0, |factor| Some(millionths(factor))),
        &[("inf", None, "no job is suspended")],
        "2",
        "the suspension factor: a job may suspend one of up to twice its width whose xfactor, \
        (time not running + estimate) / estimate, is smaller by at least this factor; smaller at all with 1",
    )
}

fn limits(params: &mut ParamReader<'_>) -> Result<Limits, PolicyError> {
    let doc = "a job is not suspended if its expansion factor exceeds this multiple of the mean slowdown of its category";
    let factor = millionths(params.number("limit", 1.5, doc)?);
    let learned = ("learned", "from the jobs that ended before");
    let doc = "the mean slowdowns of the sixteen categories, by length and then by width";
    let means = params.numbers_or("means", learned, doc)?;
    Ok(Limits::new(factor, means.map(|means| means.map(millionths))))
}

fn period(params: &mut ParamReader<'_>) -> Result<Option<Span>, PolicyError> {
    let doc = "jobs are suspended at events, and at the multiples of this period; \
        a longer one makes suspensions later and fewer";
    params.duration_or_none("period", 1, "60s", doc)
}

fn moving(params: &mut ParamReader<'_>) -> Result<Moving, PolicyError> {
    let swaps = [
        ("none", None, "suspended jobs keep their memory; suspension takes no time"),
        (
            "write",
            Some(false),
            "suspended jobs are swapped out and keep their processors until that has ended",
        ),
        ("write+read", Some(true), "as above, and they are swapped in before they resume"),
    ];
    let overhead = params.choice("overhead", &swaps, "none", "the cost of suspending a job")?;
    let rate = params.integer(
        "rate",
        1..=u64::MAX,
        2000,
        "the swap rate in kB per second, with overhead; unknown memory is drawn from 100 MB to 1 GB",
    )?;
    let migrates = params.flag("migrate", false, "suspended jobs may resume on other processors")?;
    let places = [
        (
            "spare",
            PeChoice::Spare,
            "processors to which no suspended job must return first, then those of the least urgent job",
        ),
        ("lowest", PeChoice::Lowest, "the lowest"),
    ];
    let place = params.choice(
        "place",
        &places,
        "spare",
        "the choice of processors for a job without fixed processors",
    )?;
    let seed = params.seed("seed of the draws of memory")?;
    let transfer = overhead.map_or(Transfer::None, |read| Transfer::Disk { rate, read, seed });
    Ok(Moving { transfer, migrates, place })
}

/// Returns a number in millionths. More than six decimals are rounded.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the parameters admit no negative number, and a cast saturates"
)]
fn millionths(number: f64) -> u64 {
    (number * 1e6).round() as u64
}
