//! Orders of the queue.

mod criterion;

mod facts;

mod job_facts;

mod priority;

mod shares;

mod weight;

mod bypassed;

mod requeued;

mod used;

use std::collections::BTreeMap;
use std::sync::Arc;

use miserly_core::{Context, Entry, JobNumber, Ledger, Span, Time};
use miserly_formula::{Direction, Formula, Line};

pub use bypassed::Bypassed;
pub use criterion::{Criterion, Draw};
pub(crate) use facts::Facts;
pub use job_facts::JobFacts;
pub use priority::Priority;
pub use requeued::{Requeued, RequeuedAt};
pub use shares::{Computations, ComputedRanks, Ranks, ShareTree, ShareTreeError};
pub use used::Keys;
pub(super) use used::Used;
pub use weight::Weight;

/// An order of the queue: by a criterion (Zotkin et al. §5, §6, §8) or by a formula.
///
/// Ties are decided by submit time, then by job number. Without a weight, a criterion without
/// random numbers uses exact integers. With a weight the order is starvation-free. It sorts by
/// `value + weight * delay`, largest first, where `value` is
///
/// | criterion | value |
/// |---|---|
/// | shortest, longest | 1/r, r |
/// | narrowest, widest | 1/p, p |
/// | smallest, largest | 1/(r * p), r * p |
/// | random, random/length | u, u/r |
/// | a formula | its value; negated if the smallest comes first |
///
/// of the estimate r in seconds, at least 1, the processors p, and a random number u in [0, 1). In
/// the order of arrival no job is overtaken, so a weight has no effect.
///
/// # No sorting again
/// All waiting jobs age alike. At any instant, `value + weight * (now - submit)` and `value -
/// weight * submit` give the same order. The second is computed, with times in seconds, and never
/// changes. The exceptions are an order that draws at every pass and a formula that uses the wait
/// ([`changes`](Order::changes)).
///
/// # Overtaking is bounded, starting is not
/// Let a queued job have a constant value v', and a later job a value of at most v. If the later
/// job is submitted after the first has waited for `(v - v') / weight`, it does not get ahead in
/// the queue. It may still start earlier, in a hole that is too small for the first job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    by: By,
    weight: Weight,
    draw: Draw,
    seed: u64,
    half_life: HalfLife,
    shares: Option<Arc<ShareTree>>,
    computations: Option<Computations>,
    /// Whether a job that was returned to the queue counts from then on.
    requeues: bool,
}

/// The basis of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum By {
    Criterion(Criterion),
    Formula(Priority),
    Values(Values),
}

/// The values of jobs by their numbers. The smallest comes first; a job without a value is the last.
#[derive(Clone, Debug)]
struct Values(Arc<BTreeMap<JobNumber, f64>>);

impl PartialEq for Values {
    fn eq(&self, other: &Values) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Values {}

/// A job's position in an order. Smaller comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    primary: i64,
    submit: Time,
    number: JobNumber,
    admitted: u64,
}

impl Order {
    /// First come, first served.
    pub const ARRIVAL: Order = Order::by(Criterion::Arrival);

    /// Returns the order by this criterion alone. Random numbers are drawn once for each job, with
    /// seed 0.
    pub const fn by(criterion: Criterion) -> Order {
        Order {
            by: By::Criterion(criterion),
            weight: Weight::NONE,
            draw: Draw::Once,
            seed: 0,
            half_life: HalfLife::WEEK,
            shares: None,
            computations: None,
            requeues: false,
        }
    }

    /// Returns the order by the value of a formula.
    pub fn by_formula(priority: Priority) -> Order {
        Order { by: By::Formula(priority), ..Order::default() }
    }

    /// Returns the order by values that were computed before, such as those of a function of a library user. The smallest
    /// comes first; a job without a value is the last.
    ///
    /// ```
    /// use miserly_policies::backfill::Fcfs;
    /// use miserly_policies::{Needs, Order, PolicySpec};
    ///
    /// let order = Order::by_values([(1, 2.0), (2, 1.0)].into());
    /// assert!(!order.changes() && !order.is_arrival());
    /// let spec = PolicySpec::from_fn("mine", Needs::NONE, move |_, _| Box::new(Fcfs::new(order.clone())));
    /// assert_eq!(spec.to_string(), "mine");
    /// ```
    pub fn by_values(values: BTreeMap<JobNumber, f64>) -> Order {
        Order { by: By::Values(Values(Arc::new(values))), ..Order::default() }
    }

    /// Returns the formula of the order, if it has one.
    pub fn formula(&self) -> Option<&Formula> {
        match &self.by {
            By::Criterion(_) | By::Values(_) => None,
            By::Formula(priority) => Some(priority.formula()),
        }
    }

    /// Returns the same order with this weight on the delay.
    #[must_use]
    pub fn with_weight(self, weight: Weight) -> Order {
        Order { weight, ..self }
    }

    /// Returns the same order with random numbers drawn in this way.
    #[must_use]
    pub fn with_draws(self, draw: Draw, seed: u64) -> Order {
        Order { draw, seed, ..self }
    }

    /// Returns the same order with usage that decays with this half-life. `Span::MAX`: it does not decay.
    #[must_use]
    pub fn with_half_life(self, half_life: Span) -> Order {
        Order { half_life: HalfLife(half_life), ..self }
    }

    /// Returns the same order with the ranks of a tree of shares, for a formula that uses them.
    #[must_use]
    pub fn with_shares(self, shares: Option<ShareTree>) -> Order {
        Order { shares: shares.map(Arc::new), ..self }
    }

    /// Returns the same order with waits and ranks that change at these instants only. Before each pass, the policy has to call
    /// [`compute`](Order::compute).
    #[must_use]
    pub fn with_computations(self, computations: Option<Computations>) -> Order {
        Order { computations, ..self }
    }

    /// Returns the same order, in which jobs with [`Requeued`] count from these instants: a policy stores them when it returns a job to
    /// the queue. `submit` of a formula stays the submission.
    #[must_use]
    pub fn with_requeues(self) -> Order {
        Order { requeues: true, ..self }
    }

    /// Stores the ranks of the tree of shares in the state of the ledger, if they have not been computed since the last instant for
    /// that.
    pub fn compute(&self, context: &mut Context<'_>) {
        let Some((computations, shares)) = self.computations.zip(self.shares.as_ref()) else { return };
        let at = computations.last(context.now());
        let last: ComputedRanks = context.ledger().policy_state();
        if !last.are_of(shares, at)
            && let Some(usage) = context.ledger().usage()
        {
            let ranks = ComputedRanks::new(shares, usage, context.now(), at);
            context.set_policy_state(&ranks);
        }
    }

    /// Returns the ranks of the tree of shares.
    fn ranks(&self, now: Time, ledger: &Ledger) -> Ranks {
        let Some((shares, usage)) = self.shares.as_ref().zip(ledger.usage()) else { return Ranks::default() };
        let last: ComputedRanks =
            if self.computations.is_some() { ledger.policy_state() } else { ComputedRanks::default() };
        last.into_ranks(shares).unwrap_or_else(|| shares.ranks(usage, now))
    }

    /// Returns whether the order depends on a tree of shares.
    pub fn uses_shares(&self) -> bool {
        matches!(&self.by, By::Formula(priority) if priority.uses_shares())
    }

    /// Returns the facts of jobs that the order uses, and that a log may lack.
    pub fn uses(&self) -> JobFacts {
        match &self.by {
            By::Formula(priority) => priority.uses(),
            By::Criterion(criterion) => {
                JobFacts { estimate: criterion.uses_estimates(), ..JobFacts::default() }
            }
            By::Values(_) => JobFacts::default(),
        }
    }

    /// Returns the half-life of usage, if the order depends on the usage of users.
    pub fn usage_half_life(&self) -> Option<Span> {
        self.uses_usage().then_some(self.half_life.0)
    }

    fn uses_usage(&self) -> bool {
        matches!(&self.by, By::Formula(priority) if priority.uses_usage())
    }

    /// Returns whether a later job never sorts before an earlier one.
    pub fn is_arrival(&self) -> bool {
        self.by == By::Criterion(Criterion::Arrival)
    }

    /// Returns whether the order draws random numbers.
    pub fn is_random(&self) -> bool {
        matches!(&self.by, By::Criterion(criterion) if criterion.is_random())
    }

    /// Returns whether keys change with time, so that a queue has to be sorted at each pass.
    pub fn changes(&self) -> bool {
        match &self.by {
            By::Criterion(criterion) => criterion.is_random() && self.draw == Draw::Pass,
            By::Formula(priority) => priority.changes(),
            By::Values(_) => false,
        }
    }

    /// Returns whether keys change with time, and at any instant follow from requests alone: the order has a formula
    /// that uses the wait, but no number of bypasses and no usage.
    pub fn ages(&self) -> bool {
        self.changes() && self.formula().is_some() && !self.counts_bypasses() && !self.uses_usage()
    }

    /// Returns whether the jobs of one owner, a user and a group, are always in the order of arrival: the order has a formula
    /// of usage and of the wait alone, and no job loses by waiting. Ranks in a tree of shares are computed for all users at
    /// once, so such an order does not count.
    pub fn ranks_owners(&self) -> bool {
        let By::Formula(priority) = &self.by else { return false };
        self.computations.is_none() && !self.requeues && !priority.uses_shares() && priority.ranks_owners()
    }

    /// Returns a bound on the rank of a job with this usage: its rank is no less.
    pub(crate) fn least_rank(&self, now: Time, entry: &Entry, used: Used) -> i64 {
        let By::Formula(priority) = &self.by else { return i64::MIN };
        Direction::Largest.rank(priority.most(now, entry, used, self.weight))
    }

    /// Returns the largest value of jobs with these facts and waits between these two; infinity if there is no limit.
    /// The largest value comes first.
    pub(crate) fn most(&self, facts: &Facts, shortest: Span, longest: Span) -> f64 {
        let By::Formula(priority) = &self.by else { return f64::INFINITY };
        if priority.uses_usage() {
            return f64::INFINITY;
        }
        let bounds = priority.aged_bounds(&facts.with_waits(shortest, longest), self.weight);
        if bounds.is_any() { f64::INFINITY } else { bounds.most() }
    }

    /// Returns whether the values of jobs change in proportion to their waits.
    pub(crate) fn is_linear(&self) -> bool {
        matches!(&self.by, By::Formula(priority) if priority.is_linear())
    }

    /// Returns a line that the value of a job with these facts is never above, by its wait in seconds.
    pub(crate) fn line(&self, facts: &Facts) -> Line {
        match &self.by {
            By::Formula(priority) if !priority.uses_usage() => {
                priority.aged_line(facts.values(), self.weight)
            }
            _ => Line::UNLIMITED,
        }
    }

    /// Returns whether the order depends on the number of bypasses of a job.
    pub fn counts_bypasses(&self) -> bool {
        matches!(&self.by, By::Formula(priority) if priority.counts_bypasses())
    }

    /// Returns the job's position in this order at `now`. Only an order that
    /// [`changes`](Order::changes) depends on `now`.
    ///
    /// For many jobs of an instant, [`Keys`] is faster.
    pub fn key(&self, now: Time, entry: &Entry, ledger: &Ledger) -> Key {
        Keys::new(self, now, ledger).key(entry)
    }

    /// Returns the job's position until the queue is sorted again, as it is at each pass if the order changes. The ranks of a tree are
    /// not computed for each job.
    pub(crate) fn first_key(&self, now: Time, entry: &Entry, ledger: &Ledger) -> Key {
        if self.uses_shares() { Key::arrival(entry) } else { self.key(now, entry, ledger) }
    }

    /// Returns the job's position in this order at `now`, with this usage of its owner.
    pub(crate) fn key_with(&self, now: Time, entry: &Entry, used: Used) -> Key {
        let requeued = self.requeues.then(|| entry.policy_state.get::<Requeued>().0).flatten();
        let first = entry.request.submit;
        let RequeuedAt { submit, eligible } =
            requeued.unwrap_or(RequeuedAt { submit: first, eligible: first });
        let computed = self.computations.map(|computations| computations.last(now).max(eligible));
        // Ranks depend on the instant by the wait since the submission only.
        let waited = computed.unwrap_or(now) - eligible;
        let primary = self.rank(first + waited, entry, used);
        Key { primary, submit, ..Key::arrival(entry) }
    }

    fn rank(&self, now: Time, entry: &Entry, used: Used) -> i64 {
        let request = &entry.request;
        let value = match &self.by {
            By::Formula(priority) => {
                return Direction::Largest.rank(priority.aged(now, entry, used, self.weight));
            }
            By::Values(Values(values)) => {
                let value = values.get(&request.number).copied().unwrap_or(f64::INFINITY);
                return Direction::Smallest.rank(value);
            }
            By::Criterion(criterion) => match criterion.rank(entry) {
                Some(rank) if self.weight == Weight::NONE || self.is_arrival() => return rank,
                Some(_) => criterion.value(entry, 0.0),
                None => criterion.value(entry, self.draw.random(self.seed, request, now)),
            },
        };
        Direction::Largest.rank(self.weight.age(value, request.submit))
    }
}

/// The half-life of usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HalfLife(Span);

impl HalfLife {
    /// The default: a week, as in Slurm.
    const WEEK: HalfLife = HalfLife(Span::from_ticks(7 * 86_400_000_000));
}

impl Default for HalfLife {
    fn default() -> HalfLife {
        HalfLife::WEEK
    }
}

impl Default for By {
    fn default() -> By {
        By::Criterion(Criterion::default())
    }
}

impl Key {
    /// Returns the part that is compared first.
    pub(crate) fn primary(&self) -> i64 {
        self.primary
    }

    /// Returns the key of a job with this position in the order of arrival, and with the first part of this key.
    pub(crate) fn with_primary_of(self, other: &Key) -> Key {
        Key { primary: other.primary, ..self }
    }

    /// Returns the job's position in the order of arrival.
    pub fn arrival(entry: &Entry) -> Key {
        let request = &entry.request;
        Key { primary: 0, submit: request.submit, number: request.number, admitted: entry.admitted }
    }
}
