//! What an engine writes down of the clock.

use jiff::{SignedDuration, Timestamp};
use miserly_live::clock::{BootClock, Clock, Mark};
use miserly_live::engine::{About, Engine, Meanwhile};
use miserly_live::store::Store;

use crate::idle::{Idle, MINUTE, at, setup};

/// A step of the wall is no time that passes: not while the machine is up, and not when it is started again.
#[test]
fn what_the_wall_was_set_by_has_not_passed_after_a_restart_of_the_machine() {
    let noon: Timestamp = "2026-03-01T12:00:00Z".parse().expect("an instant");
    let minutes = |minutes: i64| SignedDuration::from_mins(minutes);
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a new state");
    let first = Mark { boot: "one".into(), offset: 0, ticks: 0, wall: noon.as_microsecond() };
    let about = About { mark: Some(first), ..About::default() };
    let mut engine = Engine::open(setup(), about, store, Idle, at(0, noon)).expect("an engine");
    engine.begin(at(0, noon), Meanwhile::default()).expect("it begins");
    // In ten minutes the wall goes on by an hour and ten.
    engine.go(at(10, noon + minutes(70))).expect("it goes");
    drop(engine);

    let store = Store::open(folder.path()).expect("the state");
    let text = store.meta("clock").expect("a state that can be read").expect("a mark");
    let mark: Mark = serde_json::from_str(&text).expect("a mark");
    assert_eq!((mark.ticks, mark.wall), (10 * MINUTE, (noon + minutes(70)).as_microsecond()));
    // The machine is up again a quarter of an hour later, by the wall as it is since.
    let clock = BootClock::resume(&mark, "two", || "2026-03-01T13:25:00Z".parse().expect("an instant"));
    let ticks = clock.now().ticks();
    assert!((25 * MINUTE..26 * MINUTE).contains(&ticks), "{ticks}");
}
