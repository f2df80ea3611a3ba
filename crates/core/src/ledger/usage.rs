//! The decayed usage of users and groups, for orders that share a machine fairly.

use std::collections::BTreeMap;
use std::num::TryFromIntError;

use crate::{Persistent, Request, Span, Time};

/// The decayed usage of every user and every group of a ledger.
///
/// Usage is allocated processors x time. A processor-tick of the age `a` counts `2^(-a / half_life)`.
/// The usage of a running job counts at once, because a record has the processors that are allocated
/// now. All jobs without a user count as those of one more user, and all jobs without a group as those
/// of one more group.
///
/// A change of an allocation and a reading are O(log u) in the number u of users and groups. Nothing is done
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
    pub(super) all: Account,
    pub(super) users: Accounts,
    pub(super) groups: Accounts,
}

/// The accounts of users or of groups; `None` for all jobs without one.
type Accounts = BTreeMap<Option<u32>, Account>;

/// The user and the group of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    pub(super) user: Option<u32>,
    pub(super) group: Option<u32>,
}

impl Owner {
    pub(super) const fn from_request(request: &Request) -> Owner {
        Owner { user: request.user, group: request.group }
    }
}

/// The half-life of usage; [`Span::MAX`]: usage does not decay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HalfLife(Span);

impl Default for HalfLife {
    fn default() -> HalfLife {
        HalfLife(Span::MAX)
    }
}

/// The usage of a user, of a group, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Account {
    /// The decayed processor-ticks at the instant `at`.
    amount: f64,
    at: Time,
    /// The processors that are allocated since then.
    pub(super) procs: u64,
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
        self.part(self.users.get(&user), now)
    }

    /// Returns the part of a group in the usage of all at an instant, as [`share`](Usage::share).
    pub fn group_share(&self, group: Option<u32>, now: Time) -> u32 {
        self.part(self.groups.get(&group), now)
    }

    /// Returns the decayed usage of a user at an instant, in processor-seconds, rounded.
    pub fn processor_seconds(&self, user: Option<u32>, now: Time) -> u64 {
        self.seconds(self.users.get(&user), now)
    }

    /// Returns the decayed usage of a group at an instant, in processor-seconds, rounded.
    pub fn group_processor_seconds(&self, group: Option<u32>, now: Time) -> u64 {
        self.seconds(self.groups.get(&group), now)
    }

    fn part(&self, account: Option<&Account>, now: Time) -> u32 {
        let all = self.all.amount(now, self.half_life);
        let Some(account) = account.filter(|_| all >= 1.0) else { return 0 };
        // Errors of rounding must not make a part larger than the whole.
        let part = (account.amount(now, self.half_life) / all).clamp(0.0, 1.0);
        rounded(part * f64::from(Usage::PARTS))
    }

    fn seconds(&self, account: Option<&Account>, now: Time) -> u64 {
        const SECOND: f64 = 1e6;
        account.map_or(0, |account| whole(account.amount(now, self.half_life) / SECOND))
    }

    /// Returns the usage of users and groups at an instant, each with its decayed processor-ticks, for a ledger that begins there
    /// ([`LedgerState`](crate::LedgerState)).
    ///
    /// Amounts that are negative or not finite are left out.
    ///
    /// # Example
    /// ```
    /// use miserly_core::{Ledger, LedgerState, Machine, PolicyState, Span, Time, Usage};
    ///
    /// let at = Time::from_secs(60).expect("a minute");
    /// let mut state = LedgerState::default();
    /// state.policy.set(&Usage::until(at, Span::MAX, [(None, Some(3), 8e6)]));
    /// let ledger = Ledger::new(Machine::plain(8)).with_state(state);
    /// assert_eq!(ledger.usage().map(|usage| usage.group_processor_seconds(Some(3), at)), Some(8));
    /// ```
    pub fn until(
        at: Time,
        half_life: Span,
        owners: impl IntoIterator<Item = (Option<u32>, Option<u32>, f64)>,
    ) -> Usage {
        let mut usage = Usage::none(half_life);
        usage.all.at = at;
        for (user, group, amount) in
            owners.into_iter().filter(|(.., amount)| amount.is_finite() && *amount >= 0.0)
        {
            usage.all.amount += amount;
            for account in usage.accounts_of(Owner { user, group }, at) {
                account.amount += amount;
            }
        }
        usage
    }

    /// Returns no usage, with this half-life.
    pub(super) fn none(half_life: Span) -> Usage {
        Usage { half_life: HalfLife(half_life), ..Usage::default() }
    }

    pub(super) fn set_half_life(&mut self, half_life: Span) {
        self.half_life = HalfLife(half_life);
    }

    /// Returns the half-life; `Span::MAX`: usage does not decay.
    pub fn half_life(&self) -> Span {
        self.half_life.0
    }

    /// Returns the users with any usage so far, in order. Jobs without a user come first.
    pub fn users(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        self.users.keys().copied()
    }

    /// Returns the groups with any usage so far, in order. Jobs without a group come first.
    pub fn groups(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        self.groups.keys().copied()
    }

    /// Sets the processors that the jobs of each user and group have since the last change. A restored
    /// ledger may have lost jobs.
    pub(super) fn set_procs(&mut self, procs: &BTreeMap<Owner, u64>) {
        self.all.procs = procs.values().sum();
        let at = self.all.at;
        for accounts in [&mut self.users, &mut self.groups] {
            for account in accounts.values_mut() {
                account.procs = 0;
            }
        }
        for (owner, procs) in procs {
            for account in self.accounts_of(*owner, at) {
                account.procs += procs;
            }
        }
    }

    pub(super) fn change(&mut self, now: Time, owner: Owner, less: u64, more: u64) {
        let half_life = self.half_life;
        self.all.change(now, half_life, less, more);
        for account in self.accounts_of(owner, Time::ZERO) {
            account.change(now, half_life, less, more);
        }
    }

    /// Returns the accounts of a user and of a group, which begin at an instant if they are new.
    fn accounts_of(&mut self, owner: Owner, at: Time) -> [&mut Account; 2] {
        let new = || Account { at, ..Account::default() };
        let user = self.users.entry(owner.user).or_insert_with(new);
        [user, self.groups.entry(owner.group).or_insert_with(new)]
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

/// The usage as the ledger stores it: the half-life, the number of users, the sum of all, each user and
/// each group. A user has four numbers: itself, the bits of its amount, the instant and the processors.
/// So have a group and the sum. Version 1 has neither groups nor the number of users.
impl Persistent for Usage {
    const NAME: &'static str = "ledger/usage";
    const VERSION: u32 = 2;

    fn encode(&self, words: &mut Vec<u64>) {
        words.extend([self.half_life.0.ticks().cast_unsigned(), self.users.len() as u64]);
        let accounts = self.users.iter().chain(&self.groups).map(|(owner, account)| (code(*owner), account));
        for (owner, account) in std::iter::once((0, &self.all)).chain(accounts) {
            words.extend([
                owner,
                account.amount.to_bits(),
                account.at.ticks().cast_unsigned(),
                account.procs,
            ]);
        }
    }

    fn decode(version: u32, words: &[u64]) -> Option<Usage> {
        let (half_life, words) = words.split_first()?;
        let (users, words) = match version {
            1 => (usize::MAX, words),
            _ => {
                words.split_first().and_then(|(users, words)| Some((usize::try_from(*users).ok()?, words)))?
            }
        };
        let half_life = Span::from_ticks(half_life.cast_signed()).max(Span::TICK);
        let mut accounts = words.chunks(4).map(|chunk| {
            let [owner, amount, at, procs] = *chunk else { return None };
            let amount =
                Some(f64::from_bits(amount)).filter(|amount| amount.is_finite() && *amount >= 0.0)?;
            Some((decoded(owner).ok()?, Account { amount, at: Time::from_ticks(at.cast_signed()), procs }))
        });
        let (_, all) = accounts.next()??;
        let read: Vec<(Option<u32>, Account)> = accounts.collect::<Option<_>>()?;
        let (users, groups) = read.split_at_checked(users).unwrap_or((&read, &[]));
        let table = |of: &[(Option<u32>, Account)]| of.iter().copied().collect();
        Some(Usage { half_life: HalfLife(half_life), all, users: table(users), groups: table(groups) })
    }
}

/// Returns a user or a group as a number.
fn code(user: Option<u32>) -> u64 {
    user.map_or(0, |user| u64::from(user) + 1)
}

fn decoded(code: u64) -> Result<Option<u32>, TryFromIntError> {
    code.checked_sub(1).map(u32::try_from).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PolicyState;

    const HOUR: Span = Span::from_ticks(3_600_000_000);

    fn at(hours: i64) -> Time {
        Time::ZERO + Span::from_ticks(HOUR.ticks() * hours)
    }

    /// Users 1 and 2 are of group 7.
    fn owner(user: Option<u32>) -> Owner {
        Owner { user, group: user.map(|_| 7) }
    }

    fn usage() -> Usage {
        let mut usage = Usage::none(HOUR);
        usage.change(at(0), owner(Some(1)), 0, 4);
        usage.change(at(1), owner(Some(1)), 4, 0);
        usage.change(at(1), owner(Some(2)), 0, 4);
        usage.change(at(2), owner(None), 0, 1);
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
        // The group has that of both.
        assert_eq!(usage.group_processor_seconds(Some(7), at(2)), whole(seconds * 1.5));
        assert_eq!([Some(7), Some(8)].map(|group| usage.group_share(group, at(2))), [Usage::PARTS, 0]);
        assert_eq!(usage.groups().collect::<Vec<_>>(), [None, Some(7)]);
    }

    #[test]
    fn old_usage_is_no_usage() {
        let mut usage = usage();
        usage.change(at(3), owner(Some(2)), 4, 0);
        usage.change(at(3), owner(None), 1, 0);
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
        for words in [vec![9], vec![9, 1], vec![9, 1, 0, f64::NAN.to_bits(), 0, 0], vec![9; 7]] {
            assert_eq!(Usage::decode(2, &words), None);
        }
    }

    #[test]
    fn the_usage_of_users_is_read_from_the_state_before_groups() {
        let usage = usage();
        let mut words = vec![];
        usage.encode(&mut words);
        words.remove(1);
        words.truncate(1 + 4 * (1 + usage.users.len()));
        let read = Usage::decode(1, &words).unwrap();
        assert_eq!(read, Usage { groups: BTreeMap::new(), ..usage });
    }

    #[test]
    fn without_decay_it_is_a_sum() {
        let mut usage = usage();
        usage.half_life = HalfLife(Span::MAX);
        assert_eq!(usage.processor_seconds(None, at(5)), 3 * 3600);
    }
}
