//! What an engine writes down of the clock.

use jiff::{SignedDuration, Timestamp};
use miserly_core::{Calendar, Kind, Resources, Span, Time};
use miserly_live::clock::{BootClock, Clock, Mark, Now};
use miserly_live::engine::{About, Action, Attempt, Engine, Hands, Queue, Setup};
use miserly_live::store::Store;

const MINUTE: i64 = 60_000_000;

/// Nobody to do anything.
struct Idle;

impl Hands for Idle {
    fn act(&mut self, _: Attempt, _: Action) {}
}

fn setup() -> Setup {
    let queue = Queue {
        name: "batch".into(),
        policy: "miser".parse().expect("a policy"),
        pool: Calendar::constant(Resources::cpus(2).with(Kind::Memory, 1 << 20)),
        default_time: None,
        most_time: None,
        default_memory: 0,
        users: vec![],
    };
    Setup {
        queues: vec![queue],
        cpus: vec![0, 1],
        early_cpus: vec![0, 1],
        grace: Span::ZERO,
        handover: Span::ZERO,
        alone: Span::ZERO,
        early: None,
    }
}

/// Minutes after the state was made, while the wall shows that.
fn at(minutes: i64, wall: Timestamp) -> Now {
    Now { ticks: Time::from_ticks(minutes * MINUTE), wall }
}

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
    engine.begin(at(0, noon), vec![]).expect("it begins");
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
