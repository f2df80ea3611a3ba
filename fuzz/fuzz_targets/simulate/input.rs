//! What the fuzzer makes, and the case that it stands for.

use arbitrary::Arbitrary;
use miserly_core::{EventOrder, Request, Resources, Span, Time};
use miserly_policies::{Domain, Param, PolicyDescriptor, Registry};
use miserly_sim::Job;

/// The seed of the run.
pub(crate) const SEED: u64 = 7;

/// Formulas of which there is a naive version.
const FORMULAS: [&str; 4] =
    ["'wait / estimate'", "'procs - wait'", "'if(wait > 5, wait, -estimate)'", "'0 / (procs - 2)'"];

const SECOND: Span = Span::from_ticks(1_000_000);

/// More jobs only make a run slower.
const JOBS_MOST: usize = 40;

#[derive(Arbitrary, Debug)]
pub(crate) struct Input {
    procs: u8,
    policy: u8,
    /// Which value of each parameter.
    values: [u8; 8],
    sequential: bool,
    replace_every: u8,
    /// Times are in seconds, as parameters of policies are, and not in ticks.
    in_seconds: bool,
    jobs: Vec<Small>,
}

#[derive(Arbitrary, Debug)]
struct Small {
    gap: Gap,
    runtime: u8,
    procs: u8,
    told: Told,
}

/// The time since the submission before.
#[derive(Arbitrary, Debug)]
enum Gap {
    None,
    Short(u8),
    Long(u16),
}

/// The estimate.
#[derive(Arbitrary, Debug)]
enum Told {
    Exactly,
    Longer(u8),
    /// Whatever the runtime is, which may be longer.
    Any(u8),
    /// Years.
    Years(u8),
    /// As long as an estimate can be: what an absurd factor makes of any.
    ForEver,
}

/// A run.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) procs: u64,
    pub(crate) policy: String,
    pub(crate) instants: EventOrder,
    /// Throw the policy away after so many rounds, again and again.
    pub(crate) replace_every: usize,
    pub(crate) jobs: Vec<Job>,
}

impl Input {
    pub(crate) fn case(self) -> Case {
        let procs = u64::from(self.procs % 40) + 1;
        let policies: Vec<_> = Registry::built_in().policies().collect();
        let policy = policies[usize::from(self.policy) % policies.len()];
        let unit = if self.in_seconds { SECOND } else { Span::TICK };
        let mut submit = 0;
        let job = |(number, small): (i64, Small)| {
            submit += small.gap.units() * unit.ticks();
            small.job(number, Time::from_ticks(submit), procs, unit)
        };
        Case {
            procs,
            policy: written(policy, self.values),
            instants: if self.sequential { EventOrder::Sequential } else { EventOrder::Batched },
            replace_every: usize::from(self.replace_every % 8) + 1,
            jobs: (1..).zip(self.jobs.into_iter().take(JOBS_MOST)).map(job).collect(),
        }
    }
}

/// The policy with some values of all its parameters.
fn written(policy: &'static PolicyDescriptor, values: [u8; 8]) -> String {
    let arg = |(param, byte): (&Param, u8)| {
        let value = match &param.domain {
            Domain::Number => (f64::from(byte % 8) / 1e3).to_string(),
            Domain::NumberOr(least, _) if byte % 8 > 0 => (least + f64::from(byte % 8) / 8.0).to_string(),
            Domain::Integer(least, most) => (least + u64::from(byte % 4)).min(*most).to_string(),
            Domain::Duration { least, .. } => format!("{}s", least + u64::from(byte % 4)),
            listed => {
                let names = listed.values().into_iter().map(|(name, _)| name);
                let formulas = FORMULAS.into_iter().filter(|_| matches!(listed, Domain::Order));
                let values: Vec<&str> = names.chain(formulas).collect();
                values[usize::from(byte) % values.len()].to_owned()
            }
        };
        format!("{}={value}", param.name)
    };
    let params = policy.params(&Registry::built_in()).unwrap();
    let args: Vec<String> = params.iter().zip(values.into_iter().cycle()).map(arg).collect();
    format!("{}({})", policy.name, args.join(", "))
}

impl Gap {
    fn units(&self) -> i64 {
        match self {
            Gap::None => 0,
            Gap::Short(units) => i64::from(units % 8),
            Gap::Long(units) => i64::from(*units),
        }
    }
}

impl Small {
    fn job(&self, number: i64, submit: Time, procs: u64, unit: Span) -> Job {
        let of = |units: u8| i64::from(units) * unit.ticks();
        let runtime = of(self.runtime);
        let estimate = match self.told {
            Told::Exactly => runtime,
            Told::Longer(more) => runtime + of(more),
            Told::Any(estimate) => of(estimate),
            Told::Years(years) => i64::from(years) << 45,
            Told::ForEver => i64::MAX,
        };
        // Overdue jobs are waited for by the shortest estimate: seconds of ticks would be millions of passes.
        let estimate = if unit == SECOND { estimate.max(unit.ticks()) } else { estimate };
        let demand = Resources::cpus(u64::from(self.procs) % procs + 1);
        let request = Request::new(number, submit, Span::from_ticks(estimate), demand);
        Job::new(request, Span::from_ticks(runtime))
    }
}
