//! The decayed usage of each user, for orders that share a machine fairly.

use std::collections::BTreeMap;

use super::Ledger;
use crate::{Entry, JobId, Persistent, Procs, Span, State, Time};

/// The decayed usage of every user of a ledger.
///
/// Usage is allocated processors x time. A processor-tick of the age `a` counts `2^(-a / half_life)`.
/// The usage of a running job counts at once, because a record has the processors that are allocated
/// now. All jobs without a user count as those of one more user.
///
/// A change of an allocation and a reading are O(log u) in the number u of users. Nothing is done
/// between them. A record is three numbers, and it is kept for ever.
///
/// # Arithmetic
/// The results have the same bits on every platform. Shares are rounded to [`Usage::PARTS`] parts, so
/// users with equal usage have equal shares despite errors of rounding.
///
/// # Example
/// ```
/// use miserly_core::{Ledger, Machine, Span};
///
/// let mut ledger = Ledger::new(Machine::plain(8));
/// assert!(ledger.usage().is_none());
/// ledger.count_usage(Some(Span::MAX));
/// let usage = ledger.usage().expect("it is counted");
/// assert_eq!(usage.share(Some(7), miserly_core::Time::ZERO), 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    half_life: HalfLife,
    all: Account,
    users: BTreeMap<User, Account>,
}

/// A user, or `None` for all jobs without one.
type User = Option<u32>;

/// The half-life of usage; [`Span::MAX`]: usage does not decay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HalfLife(Span);

impl Default for HalfLife {
    fn default() -> HalfLife {
        HalfLife(Span::MAX)
    }
}

/// The usage of a user, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Account {
    /// The decayed processor-ticks at the instant `at`.
    amount: f64,
    at: Time,
    /// The processors that are allocated since then.
    procs: u64,
}

impl HalfLife {
    /// Returns the factor of decay over this span, and the decayed usage of one processor in it.
    fn over(self, span: Span) -> (f64, f64) {
        let ticks = span.ticks() as f64;
        if self.0 == Span::MAX {
            return (1.0, ticks);
        }
        let mean_life = self.0.ticks() as f64 / std::f64::consts::LN_2;
        // 1 - 2^-x of a small x would lose its digits.
        let left = -libm::expm1(-ticks / mean_life);
        (libm::exp2(-ticks / self.0.ticks() as f64), mean_life * left)
    }
}

impl Account {
    /// Returns the decayed processor-ticks at an instant, which is not before the last change.
    fn amount(&self, now: Time, half_life: HalfLife) -> f64 {
        let span = now - self.at;
        if span <= Span::ZERO {
            return self.amount;
        }
        let (factor, each) = half_life.over(span);
        self.amount * factor + self.procs as f64 * each
    }

    /// Continues with other processors.
    fn change(&mut self, now: Time, half_life: HalfLife, less: u64, more: u64) {
        self.amount = self.amount(now, half_life);
        self.at = self.at.max(now);
        self.procs = self.procs.saturating_sub(less).saturating_add(more);
    }
}

impl Usage {
    /// The number of parts of a share: a billion.
    pub const PARTS: u32 = 1_000_000_000;

    /// Returns the part of a user in the usage of all at an instant, in [`Usage::PARTS`] parts of the
    /// whole. It is 0 if there is less than one processor-tick of usage.
    pub fn share(&self, user: Option<u32>, now: Time) -> u32 {
        let all = self.all.amount(now, self.half_life);
        let Some(account) = self.users.get(&user).filter(|_| all >= 1.0) else { return 0 };
        // Errors of rounding must not make a part larger than the whole.
        let part = (account.amount(now, self.half_life) / all).clamp(0.0, 1.0);
        rounded(part * f64::from(Usage::PARTS))
    }

    /// Returns the decayed usage of a user at an instant, in processor-seconds, rounded.
    pub fn processor_seconds(&self, user: Option<u32>, now: Time) -> u64 {
        const SECOND: f64 = 1e6;
        self.users.get(&user).map_or(0, |account| whole(account.amount(now, self.half_life) / SECOND))
    }

    /// Returns the half-life; `Span::MAX`: usage does not decay.
    pub fn half_life(&self) -> Span {
        self.half_life.0
    }

    /// Returns the users with any usage so far, in order. Jobs without a user come first.
    pub fn users(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        self.users.keys().copied()
    }

    /// Sets the processors that each user has since the last change. A restored ledger may have
    /// lost jobs.
    fn set_procs(&mut self, procs: &BTreeMap<User, u64>) {
        self.all.procs = procs.values().sum();
        for user in procs.keys() {
            self.users.entry(*user).or_insert(Account { at: self.all.at, ..Account::default() });
        }
        for (user, account) in &mut self.users {
            account.procs = procs.get(user).copied().unwrap_or(0);
        }
    }

    fn change(&mut self, now: Time, user: User, less: u64, more: u64) {
        self.all.change(now, self.half_life, less, more);
        self.users.entry(user).or_default().change(now, self.half_life, less, more);
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to a billion")]
fn rounded(parts: f64) -> u32 {
    parts.round() as u32
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
fn whole(seconds: f64) -> u64 {
    seconds.round() as u64
}

/// The user and the allocated processors of a job, before a change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charge {
    user: User,
    procs: u64,
}

impl Ledger {
    /// Returns the decayed usage of each user, if the policy needs it.
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_deref()
    }

    /// Counts the usage of each user with this half-life from now on, or does not count it.
    ///
    /// Usage that was counted before is kept, and decays with the new half-life from the last change
    /// of each record. Without it, the current runs of running jobs are counted. `Span::MAX`: usage
    /// does not decay.
    pub fn count_usage(&mut self, half_life: Option<Span>) {
        let Some(half_life) = half_life else {
            self.usage = None;
            return;
        };
        let mut usage = match self.usage.take() {
            Some(usage) => usage,
            None => Box::new(self.usage_of_runs(half_life)),
        };
        usage.half_life = HalfLife(half_life);
        usage.set_procs(&self.procs_of_users());
        self.usage = Some(usage);
    }

    /// Returns the processors that the jobs of each user hold.
    fn procs_of_users(&self) -> BTreeMap<User, u64> {
        let mut found: BTreeMap<User, u64> = BTreeMap::new();
        for entry in self.jobs.iter().flatten().filter(|entry| !entry.allocated().is_zero()) {
            *found.entry(entry.request.user).or_default() += entry.allocated().get();
        }
        found
    }

    /// Returns the usage of the jobs that hold processors now, since the beginning of their present runs.
    fn usage_of_runs(&self, half_life: Span) -> Usage {
        let mut usage = Usage { half_life: HalfLife(half_life), ..Usage::default() };
        let held = |job: JobId| {
            let entry = self.entry(job);
            let since = match &entry.state {
                State::Running { since, .. } => *since,
                _ => entry.progress.at,
            };
            (since, entry.admitted, job)
        };
        let mut runs: Vec<_> = self.running().chain(self.suspended()).map(held).collect();
        runs.sort_unstable();
        for (since, _, job) in runs {
            let entry = self.entry(job);
            if !entry.allocated().is_zero() {
                usage.change(since, entry.request.user, 0, entry.allocated().get());
            }
        }
        usage
    }

    /// Returns the holdings of a job before a change, if usage is counted.
    pub(super) fn charge(&self, job: JobId) -> Option<Charge> {
        self.usage.as_ref()?;
        let entry = self.get(job)?;
        Some(Charge { user: entry.request.user, procs: entry.allocated().get() })
    }

    /// Counts the usage of a job up to `now`, and continues with its holdings after a change.
    pub(super) fn recharge(&mut self, job: JobId, now: Time, before: Option<Charge>) {
        let Some(Charge { user, procs }) = before else { return };
        let after = self.get(job).map_or(0, |entry| entry.allocated().get());
        if let Some(usage) = self.usage.as_mut().filter(|_| after != procs) {
            usage.change(now, user, procs, after);
        }
    }

    /// Asserts that the allocated processors of each user follow from the jobs.
    pub(super) fn check_usage(&self, now: Time) {
        let Some(usage) = &self.usage else { return };
        let found = self.procs_of_users();
        let kept = usage.users.iter().filter(|(_, account)| account.procs > 0);
        let kept: BTreeMap<User, u64> = kept.map(|(user, account)| (*user, account.procs)).collect();
        assert_eq!(found, kept, "the processors of each user follow from the jobs at {now}");
        assert_eq!(usage.all.procs, found.values().sum::<u64>(), "and so does their sum");
    }
}

impl Entry {
    /// Returns the number of processors that the job holds now. Processors that it uses ahead of its
    /// start do not count.
    pub fn allocated(&self) -> Procs {
        match &self.state {
            State::Waiting | State::Running { released: true, .. } => Procs::ZERO,
            State::Running { placement, .. } => placement.total().cpus_count(),
            State::Suspended { placement, holds, .. } if holds.part().has_cpus() => {
                placement.total().cpus_count()
            }
            State::Suspended { .. } => Procs::ZERO,
        }
    }
}

/// The usage as the ledger stores it: the half-life, the sum of all and each user. A user has four
/// numbers: itself, the bits of its amount, the instant and the processors. So has the sum.
impl Persistent for Usage {
    const NAME: &'static str = "ledger/usage";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.push(self.half_life.0.ticks().cast_unsigned());
        let accounts = self.users.iter().map(|(user, account)| (code(*user), account));
        for (user, account) in std::iter::once((0, &self.all)).chain(accounts) {
            words.extend([user, account.amount.to_bits(), account.at.ticks().cast_unsigned(), account.procs]);
        }
    }

    fn decode(_version: u32, words: &[u64]) -> Option<Usage> {
        let (half_life, accounts) = words.split_first()?;
        let half_life = Span::from_ticks(half_life.cast_signed()).max(Span::TICK);
        let mut accounts = accounts.chunks(4).map(|chunk| {
            let [user, amount, at, procs] = *chunk else { return None };
            let amount =
                Some(f64::from_bits(amount)).filter(|amount| amount.is_finite() && *amount >= 0.0)?;
            Some((user, Account { amount, at: Time::from_ticks(at.cast_signed()), procs }))
        });
        let (_, all) = accounts.next()??;
        let user = |(user, account)| Some((decoded(user)?, account));
        let users = accounts.map(|account| account.and_then(user)).collect::<Option<_>>()?;
        Some(Usage { half_life: HalfLife(half_life), all, users })
    }
}

/// Returns a user as a number.
fn code(user: User) -> u64 {
    user.map_or(0, |user| u64::from(user) + 1)
}

fn decoded(code: u64) -> Option<User> {
    match code.checked_sub(1) {
        None => Some(None),
        Some(user) => u32::try_from(user).ok().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PolicyState;

    const HOUR: Span = Span::from_ticks(3_600_000_000);

    fn at(hours: i64) -> Time {
        Time::ZERO + Span::from_ticks(HOUR.ticks() * hours)
    }

    fn usage() -> Usage {
        let mut usage = Usage { half_life: HalfLife(HOUR), ..Usage::default() };
        usage.change(at(0), Some(1), 0, 4);
        usage.change(at(1), Some(1), 4, 0);
        usage.change(at(1), Some(2), 0, 4);
        usage.change(at(2), None, 0, 1);
        usage
    }

    #[test]
    fn an_hour_counts_half_after_a_half_life() {
        let usage = usage();
        assert_eq!(
            [Some(1), Some(2), None].map(|user| usage.share(user, at(2))),
            [333_333_333, 666_666_667, 0]
        );
        // 4 processors for an hour, each decayed by 1 / (2 ln 2), and then by a half.
        let seconds = 4.0 * 3600.0 / (2.0 * std::f64::consts::LN_2);
        assert_eq!(usage.processor_seconds(Some(2), at(2)), whole(seconds));
        assert_eq!(usage.processor_seconds(Some(1), at(2)), whole(seconds / 2.0));
        assert_eq!(usage.processor_seconds(Some(3), at(2)), 0);
    }

    #[test]
    fn old_usage_is_no_usage() {
        let mut usage = usage();
        usage.change(at(3), Some(2), 4, 0);
        usage.change(at(3), None, 1, 0);
        assert_eq!([3, 30].map(|hour| usage.share(Some(2), at(hour))), [750_000_000; 2]);
        assert_eq!(usage.share(Some(2), at(1_000_000)), 0);
    }

    #[test]
    fn it_is_read_as_it_was_stored() {
        let usage = usage();
        let mut state = PolicyState::EMPTY;
        state.set(&usage);
        let read: Usage = state.get();
        assert_eq!(read, usage);
        for words in [vec![], vec![9], vec![9, 0, 1, 2], vec![9, 0, f64::NAN.to_bits(), 0, 0], vec![9; 7]] {
            assert_eq!(Usage::decode(1, &words), None);
        }
    }

    #[test]
    fn without_decay_it_is_a_sum() {
        let mut usage = usage();
        usage.half_life = HalfLife(Span::MAX);
        assert_eq!(usage.processor_seconds(None, at(5)), 3 * 3600);
    }
}
