//! Two clocks: ticks, on which every decision is based, and wall time, which is only displayed.
//!
//! Ticks are monotonic. They follow the kernel's boot-time clock, which cannot be set and which
//! runs while the machine sleeps. A stored offset continues them across restarts of the machine.
//! The offsets of earlier boots are stored, too, so that an instant of a shim is read by the clock
//! of its own boot.
//! Setting the wall clock therefore moves no window. A start that is two hours away remains two
//! hours away, and is shown at the new time of day.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use miserly_core::{Span, Time};
use miserly_engine::{ClockMark, Journal, JournalBatch, JournalError, Now, wall_span};
use miserly_launch::{BootId, BootTime, StoredInstant};
use miserly_marks::mark;
use miserly_saved::ticks;
use serde::{Deserialize, Serialize};

/// The clocks of a machine.
pub trait Clocks {
    /// Returns the present instant of the kernel's boot-time clock.
    fn boot(&self) -> BootTime;

    /// Returns the time of day.
    fn wall(&self) -> Timestamp;
}

/// The greatest change of the difference of the clocks that is not followed, microseconds.
const SAME: i64 = 1_000;

/// The most readings of the clocks for an exact difference.
const EXACT_TRIES: u32 = 50;

/// The number of earlier boots that are remembered.
const EARLIER: usize = 16;

/// A boot of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    id: BootId,
    /// The instant of the boot.
    #[serde(with = "ticks")]
    offset: Time,
}

/// The boots before the present one, as they are stored. The latest one is last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EarlierBoots(Vec<Boot>);

/// The key of the stored value with the earlier boots.
const BOOTS: &str = "boots";

/// The key of the stored value with the last mark.
const MARK: &str = "clock";

/// Returns the last mark of a state, if it has one.
fn last_mark(journal: &impl Journal) -> Result<Option<ClockMark>, JournalError> {
    Ok(journal.value(MARK)?.and_then(|text| serde_json::from_str(&text).ok()))
}

impl EarlierBoots {
    /// Returns the boots with a known clock in a state: the earlier ones, and that of the last mark.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn with_last(journal: &impl Journal) -> Result<EarlierBoots, JournalError> {
        let earlier = EarlierBoots::read(journal)?;
        Ok(last_mark(journal)?.map_or(earlier.clone(), |mark| earlier.with(&mark)))
    }

    fn read(journal: &impl Journal) -> Result<EarlierBoots, JournalError> {
        Ok(journal.value(BOOTS)?.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    fn write(&self, journal: &mut impl Journal) -> Result<(), JournalError> {
        let text = serde_json::to_string(self).unwrap_or_default();
        journal.commit(JournalBatch { values: vec![(BOOTS.to_owned(), text)], ..JournalBatch::default() })
    }

    /// Returns an instant of one of these boots in ticks.
    pub fn ticks(&self, instant: &StoredInstant) -> Option<Time> {
        let (at, boot) = instant.parts();
        let boot = self.0.iter().find(|earlier| Some(&earlier.id) == boot)?;
        Some(boot.offset + since_boot(at))
    }

    /// Returns the boots before the present one, after the boot of the last mark.
    #[must_use]
    fn after(mut self, mark: &ClockMark, present: &BootId) -> EarlierBoots {
        if BootId::from(mark.boot.as_str()) != *present {
            self = self.with(mark);
        }
        let surplus = self.0.len().saturating_sub(EARLIER);
        self.0.drain(..surplus);
        self
    }

    /// Returns these boots and that of a mark.
    #[must_use]
    fn with(mut self, mark: &ClockMark) -> EarlierBoots {
        let id = BootId::from(mark.boot.as_str());
        self.0.retain(|earlier| earlier.id != id);
        self.0.push(Boot { id, offset: mark.offset });
        self
    }
}

/// The machine's clocks. Copies share the last difference of the clocks.
#[derive(Clone, Debug)]
pub struct BootClock<C> {
    /// The present boot, and those before it.
    boots: Arc<(BootId, EarlierBoots)>,
    /// The instant of the boot of the machine.
    offset: Time,
    /// The ticks of the last mark.
    marked: Time,
    clocks: C,
    /// The wall time less the ticks, as read last, microseconds.
    ///
    /// The two clocks run at the same rate, so the difference changes only if the wall clock is set. A reading of
    /// both is never exact: the thread may lose its processor between them.
    difference: Arc<AtomicI64>,
}

impl<C: Clocks> BootClock<C> {
    /// Returns the clock of a new state, which starts at 0 now.
    pub fn start(boot: BootId, clocks: C) -> BootClock<C> {
        let offset = Time::ZERO - since_boot(clocks.boot());
        BootClock::new((boot, EarlierBoots::default()), offset, Time::ZERO, clocks)
    }

    /// Returns the clock of a state, which continues from the stored mark.
    ///
    /// The offset of an earlier boot is stored before the next mark replaces it.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn of_state(
        journal: &mut impl Journal,
        boot: BootId,
        clocks: C,
    ) -> Result<BootClock<C>, JournalError> {
        let Some(mark) = last_mark(journal)? else { return Ok(BootClock::start(boot, clocks)) };
        let stored = EarlierBoots::read(journal)?;
        let clock = BootClock::resume(&mark, stored.clone(), boot, clocks);
        if *clock.earlier_boots() != stored
            && let Err(error) = clock.earlier_boots().write(journal)
        {
            // After any other failure the journal may not be used again.
            if !matches!(error, JournalError::Full(_)) {
                return Err(error);
            }
            tracing::warn!("the clocks of earlier boots are not kept: {error}");
        }
        Ok(clock)
    }

    fn new(boots: (BootId, EarlierBoots), offset: Time, marked: Time, clocks: C) -> BootClock<C> {
        // No difference is known, so the first reading takes its own.
        let difference = Arc::new(AtomicI64::new(i64::MAX));
        BootClock { boots: Arc::new(boots), offset, marked, clocks, difference }
    }

    /// Continues from a mark. The elapsed time across a boot of the machine is that of the wall
    /// clock, or none if the wall clock went back.
    ///
    /// `earlier` has the boots before that of the mark.
    fn resume(mark: &ClockMark, earlier: EarlierBoots, boot: BootId, clocks: C) -> BootClock<C> {
        let is_same = BootId::from(mark.boot.as_str()) == boot;
        let (boots, marked) = (earlier.after(mark, &boot), mark.ticks);
        if is_same {
            let clock = BootClock::new((boot, boots), mark.offset, marked, clocks);
            mark!("the same boot");
            let difference = mark.wall.as_microsecond().saturating_sub(mark.ticks.ticks());
            clock.difference.store(difference, Ordering::Relaxed);
            return clock;
        }
        mark!("the machine booted again");
        let away = wall_span(mark.wall, clocks.wall()).max(Span::ZERO);
        let offset = mark.ticks + away - since_boot(clocks.boot());
        BootClock::new((boot, boots), offset, marked, clocks)
    }

    /// Returns the mark to store.
    pub fn mark(&self) -> ClockMark {
        let (now, boot) = (self.read(), self.boots.0.to_string());
        ClockMark { boot, offset: self.offset, ticks: now.ticks, wall: now.wall }
    }

    /// Returns the boots before the present one, to store.
    fn earlier_boots(&self) -> &EarlierBoots {
        &self.boots.1
    }

    /// Returns a stored instant in ticks, by the clock of its boot; `None` if that boot is unknown.
    ///
    /// The wall clock bridges the time between two boots, and may be set back. So an instant of an earlier boot is at most now.
    pub fn stored(&self, instant: &StoredInstant) -> Option<Time> {
        let (present, earlier) = &*self.boots;
        match instant.boot_time(present) {
            Some(at) => Some(self.ticks(at)),
            None => earlier.ticks(instant).map(|at| at.min(self.now())),
        }
    }

    /// Returns the instant of an end in ticks.
    ///
    /// An end of an unknown boot has followed the last mark, since the daemon of that boot did not record it.
    pub fn ended(&self, instant: &StoredInstant) -> Time {
        self.stored(instant).unwrap_or(self.marked)
    }

    /// Returns the same instant on the kernel's clock.
    pub fn boot_time(&self, at: Time) -> BootTime {
        BootTime((at - self.offset).ticks())
    }

    /// Returns an instant of the kernel's clock in ticks.
    pub fn ticks(&self, at: BootTime) -> Time {
        self.offset + since_boot(at)
    }

    /// Returns the present instant of the kernel's clock.
    pub fn boot_now(&self) -> BootTime {
        self.clocks.boot()
    }

    /// Returns ticks since the state was created. They never decrease.
    pub fn now(&self) -> Time {
        self.ticks(self.boot_now())
    }

    /// Returns the present moment on both clocks.
    ///
    /// Two readings give the same wall time to an instant unless the wall clock was set between them. A user can
    /// thus ask for an instant that an answer has named.
    pub fn read(&self) -> Now {
        let reading = || {
            let before = self.now().ticks();
            let wall = self.clocks.wall().as_microsecond();
            let ticks = self.now();
            // The wall time was read between two readings of the ticks.
            (wall.saturating_sub(ticks.ticks()), wall.saturating_sub(before), ticks)
        };
        let (mut least, mut most, mut ticks) = reading();
        let mut difference = self.difference.load(Ordering::Relaxed);
        if difference < least.saturating_sub(SAME) || difference > most.saturating_add(SAME) {
            // An inexact difference would be corrected by a later reading.
            for _ in 0..EXACT_TRIES {
                if most - least <= SAME {
                    break;
                }
                let again = reading();
                if again.1 - again.0 < most - least {
                    (least, most, ticks) = again;
                }
            }
            difference = i64::midpoint(least, most);
            self.difference.store(difference, Ordering::Relaxed);
        }
        let wall = Timestamp::from_microsecond(ticks.ticks().saturating_add(difference));
        Now { ticks, wall: wall.unwrap_or(Timestamp::MAX) }
    }
}

/// Returns the time from the boot to an instant of the kernel's clock.
fn since_boot(at: BootTime) -> Span {
    Span::from_ticks(at.0)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    const MINUTE: i64 = 60_000_000;

    /// Clocks that a test sets. Copies are the same clocks.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct FakeClocks(Rc<Fake>);

    #[derive(Debug, Default)]
    struct Fake {
        boot: Cell<i64>,
        wall: Cell<i64>,
        /// The time that passes before each look at the wall clock, in microseconds: the thread may lose its processor.
        delay: Cell<i64>,
    }

    impl FakeClocks {
        fn at(boot: i64, wall: &str) -> FakeClocks {
            let clocks = FakeClocks::default();
            clocks.0.boot.set(boot);
            clocks.0.wall.set(wall.parse::<Timestamp>().unwrap().as_microsecond());
            clocks
        }

        /// Lets time pass, in microseconds.
        pub(crate) fn pass(&self, micros: i64) {
            self.0.boot.update(|boot| boot + micros);
            self.0.wall.update(|wall| wall + micros);
        }
    }

    impl Clocks for FakeClocks {
        fn boot(&self) -> BootTime {
            BootTime(self.0.boot.get())
        }

        fn wall(&self) -> Timestamp {
            self.0.delay.update(|delay| if delay > 0 { delay % 700 + 100 } else { 0 });
            self.pass(self.0.delay.get());
            Timestamp::from_microsecond(self.0.wall.get()).unwrap()
        }
    }

    const NOON: &str = "2026-03-01T12:00:00Z";

    fn resume(mark: &ClockMark, boot: &str, clocks: FakeClocks) -> BootClock<FakeClocks> {
        BootClock::resume(mark, EarlierBoots::default(), boot.into(), clocks)
    }

    #[test]
    fn ticks_go_on_over_a_restart_of_the_daemon_and_of_the_machine() {
        let clocks = FakeClocks::at(5 * MINUTE, NOON);
        let first = BootClock::start("one".into(), clocks.clone());
        clocks.pass(MINUTE);
        let mark = first.mark();
        assert_eq!(mark.ticks, Time::from_ticks(MINUTE));
        clocks.pass(MINUTE);
        // Wall time has no influence as long as the machine is up.
        clocks.0.wall.set(0);
        assert_eq!(resume(&mark, "one", clocks).now(), Time::from_ticks(2 * MINUTE));
        let rebooted = resume(&mark, "two", FakeClocks::at(7, "2026-03-01T13:01:00Z"));
        assert_eq!(rebooted.now(), Time::from_ticks(61 * MINUTE));
        let set_back = resume(&mark, "two", FakeClocks::at(7, "1970-01-01T00:00:00Z"));
        assert_eq!(set_back.now(), Time::from_ticks(MINUTE));
    }

    #[test]
    fn an_instant_keeps_its_wall_time_until_the_wall_clock_is_set() {
        let clocks = FakeClocks::at(5 * MINUTE, NOON);
        clocks.0.delay.set(1);
        let clock = BootClock::start("one".into(), clocks.clone());
        let at = Time::from_ticks(MINUTE);
        let named = clock.read().wall_at(at);
        for _ in 0..100 {
            assert_eq!(clock.read().wall_at(at), named);
            assert_eq!(clock.read().ticks_at(named), at);
        }
        let again = resume(&clock.mark(), "one", clocks.clone());
        assert_eq!(again.read().wall_at(at), named);
        clocks.0.wall.update(|wall| wall - 5_000_000);
        let moved = again.read().wall_at(at).duration_since(named);
        assert!(moved.as_millis().abs_diff(-5_000) < 10, "{moved}");
        assert_eq!(again.read().wall_at(again.read().ticks_at(named)), named);
    }

    /// Checks a wall clock that was set an hour forward before the mark. The machine boots a
    /// quarter of an hour after it.
    #[test]
    fn setting_the_wall_clock_is_no_time_that_passes() {
        let wall: Timestamp = "2026-03-01T13:10:00Z".parse().unwrap();
        let mark =
            ClockMark { boot: "one".into(), offset: Time::ZERO, ticks: Time::from_ticks(10 * MINUTE), wall };
        let clock = resume(&mark, "two", FakeClocks::at(MINUTE, "2026-03-01T13:25:00Z"));
        assert_eq!(clock.now(), Time::from_ticks(25 * MINUTE));
    }

    /// Returns the mark of a boot that has been up for some minutes, at a quarter past ten.
    fn mark(boot: &str, up: i64) -> ClockMark {
        let wall: Timestamp = "2026-03-01T10:15:00Z".parse().unwrap();
        let [offset, ticks] = [(100 - up) * MINUTE, 100 * MINUTE].map(Time::from_ticks);
        ClockMark { boot: boot.into(), offset, ticks, wall }
    }

    fn later() -> FakeClocks {
        FakeClocks::at(7, "2026-03-01T10:16:00Z")
    }

    #[test]
    fn an_instant_of_an_earlier_boot_is_read_by_the_clock_of_that_boot() {
        for up in [0, 1, 12, 99] {
            let clock = resume(&mark("one", up), "two", later());
            let instant = |boot: &str, minute| StoredInstant::new(BootTime(minute * MINUTE), boot.into());
            let minute = |boot, minute| clock.stored(&instant(boot, minute)).map(|at| at.ticks() / MINUTE);
            assert_eq!(minute("one", up), Some(100), "up for {up} min");
            assert_eq!(minute("one", 0), Some(100 - up));
            assert_eq!(minute("three", 5), None);
            // The jobs ended after the mark, and no later than now.
            assert_eq!(clock.ended(&instant("three", 5)), Time::from_ticks(100 * MINUTE));
            assert_eq!(minute("one", up + 600), Some(101));
            let now = clock.boot_now();
            let own = StoredInstant::new(now, "two".into());
            assert_eq!(clock.stored(&own), Some(clock.ticks(now)));
        }
    }

    #[test]
    fn the_clocks_of_earlier_boots_are_kept_over_restarts() {
        let (mut boots, mut last) = (EarlierBoots::default(), mark("0", 5));
        for boot in 1..40_i64 {
            // Each boot has two daemons.
            for _ in 0..2 {
                let clock = BootClock::resume(&last, boots, boot.to_string().as_str().into(), later());
                (last, boots) = (clock.mark(), clock.earlier_boots().clone());
            }
        }
        let text = serde_json::to_string(&boots).unwrap();
        assert_eq!(serde_json::from_str::<EarlierBoots>(&text).unwrap(), boots);
        let names: Vec<String> = boots.0.iter().map(|boot| boot.id.to_string()).collect();
        assert_eq!(names, (39 - 16..39).map(|boot| boot.to_string()).collect::<Vec<_>>());
    }
}
