//! The clock's mark, which the engine stores with each commit.

use jiff::{SignedDuration, Timestamp};
use miserly_core::Time;
use miserly_engine::{Absence, ClockMark, DaemonInfo, Engine, Journal, MemoryJournal};

use crate::support::{Idle, MINUTE, at, setup};

/// Setting the wall clock is not time that passes. The mark has the wall time at its own instant.
#[test]
fn the_mark_has_the_wall_time_as_it_was_set() {
    let noon: Timestamp = "2026-03-01T12:00:00Z".parse().expect("an instant");
    let minutes = |minutes: i64| SignedDuration::from_mins(minutes);
    let journal = MemoryJournal::default();
    let first = ClockMark { boot: "one".into(), offset: Time::ZERO, ticks: Time::ZERO, wall: noon };
    let info = DaemonInfo { mark: Some(first), ..DaemonInfo::default() };
    let mut engine = Engine::open(setup(), info, journal.clone(), Idle, at(0, noon)).expect("an engine");
    engine.begin(at(0, noon), &Absence::default()).expect("it begins");
    // In ten minutes the wall clock advances by an hour and ten minutes.
    engine.shutdown(at(10, noon + minutes(70))).expect("it ends");
    let text = journal.value("clock").expect("a readable journal").expect("a mark");
    let mark: ClockMark = serde_json::from_str(&text).expect("a mark");
    assert_eq!((mark.ticks, mark.wall), (Time::from_ticks(10 * MINUTE), noon + minutes(70)));
}
