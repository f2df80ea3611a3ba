//! Gang scheduling: slot schedules and actions, before and after a restart.

use std::collections::BTreeSet;

use miserly_api::model::{Exit, Phase, Slots};
use miserly_core::Span;
use miserly_engine::{Absence, Action, Attempt, AttemptOutcome, DaemonRequest, Input, SlotSchedule};

use super::life::{Life, job, seconds};

const PACKINGS: [&str; 8] = [
    "first-fit",
    "best-fit",
    "left-right-by-size, threshold=2",
    "left-right-by-slots",
    "min-max-load",
    "min-average-load",
    "buddy",
    "migration",
];

fn gang(more: &str, cpus: u32) -> Life {
    Life::of_policy(&format!("gang({more})"), cpus.into(), cpus)
}

/// Returns the job numbers of each slot.
fn rows(life: &Life) -> Vec<(u32, Vec<i64>)> {
    let numbers = |row: &BTreeSet<Attempt>| row.iter().map(|attempt| attempt.job).collect();
    turns(life).slots.iter().map(|(slot, row)| (*slot, numbers(row))).collect()
}

fn turns(life: &Life) -> SlotSchedule {
    life.turns("batch").expect("the jobs take turns")
}

/// Drops the actions for some jobs.
fn forget(life: &Life, jobs: &[i64]) {
    for number in jobs {
        life.actions(*number);
    }
}

fn cpus(life: &mut Life, second: i64, number: i64) -> Vec<u32> {
    match life.job(second, number).phase {
        Phase::Running(holding) => holding.cpus,
        other => panic!("{other:?}"),
    }
}

fn slots(life: &mut Life, second: i64, number: i64) -> Slots {
    life.job(second, number).slots.expect("its jobs take turns")
}

#[test]
fn jobs_begin_stopped_with_a_limit_and_run_when_it_is_their_turn() {
    let mut life = gang("quantum=3s", 4);
    let [one, two] = [1, 2].map(|at| life.submit(at, job(3, 100)));
    for number in [one, two] {
        let actions = life.actions(number);
        let [Action::Launch(launch)] = &actions[..] else { panic!("{actions:?}") };
        assert_eq!((launch.limit, &launch.cpus[..]), (Some(Span::from_ticks(100_000_000)), &[0, 1, 2][..]));
    }
    assert_eq!(turns(&life).quantum, Span::from_ticks(3_000_000));
    assert_eq!(rows(&life), [(0, vec![one]), (1, vec![two])]);
    assert_eq!(slots(&mut life, 3, one), Slots { own: 0, runs_in: vec![0], used: 2, fraction: 0.5 });
}

/// Its time limit takes twice as long in one of two slots. The cleanup time is not part of it.
#[test]
fn the_end_that_is_shown_is_that_of_its_time() {
    let mut life = gang("quantum=3s", 2);
    let [one, _two] = [1, 1].map(|at| life.submit(at, job(2, 100)));
    let Phase::Running(holding) = life.job(1, one).phase else { panic!("it runs") };
    let lasts = holding.end.as_microsecond() - holding.start.as_microsecond();
    assert!((lasts - 200_000_000).abs() < 10, "{lasts}");
}

#[test]
fn who_fits_beside_others_runs_in_their_rows_too_until_somebody_comes_there() {
    let mut life = gang("", 4);
    let [wide, small, other] = [(1, 3), (2, 1), (3, 3)].map(|(at, cpus)| life.submit(at, job(cpus, 100)));
    assert_eq!(rows(&life), [(0, vec![wide, small]), (1, vec![small, other])]);
    assert!((slots(&mut life, 4, small).fraction - 1.0).abs() < 1e-9);
    let next = life.submit(5, job(1, 100));
    assert_eq!(rows(&life), [(0, vec![wide, small]), (1, vec![other, next])]);
    life.end(6, next);
    assert_eq!(rows(&life), [(0, vec![wide, small]), (1, vec![small, other])]);
}

#[test]
fn rows_that_fit_together_become_one_and_whoever_moves_is_told_where_to() {
    let mut life = gang("packing=first-fit, alternative=false", 4);
    let [one, two, three] = [1, 2, 3].map(|at| life.submit(at, job(2, 100)));
    assert_eq!(rows(&life), [(0, vec![one, two]), (1, vec![three])]);
    life.end(4, one);
    assert_eq!(rows(&life), [(0, vec![two, three])]);
    let mut life = gang("packing=migration", 4);
    let [one, two, three] = [(1, 3), (2, 1), (3, 2)].map(|(at, cpus)| life.submit(at, job(cpus, 100)));
    assert_eq!(cpus(&mut life, 4, two), [3]);
    forget(&life, &[one, two, three]);
    life.end(5, one);
    assert_eq!(rows(&life), [(0, vec![two, three])]);
    let actions = life.actions(two);
    assert!(matches!(&actions[..], [Action::Move(cpus)] if *cpus == [2]), "{actions:?}");
}

#[test]
fn the_next_daemon_tells_all_of_them_again_and_lets_nobody_go_by_itself() {
    let mut life = gang("", 2);
    let [one, two] = [1, 2].map(|at| life.submit(at, job(2, 100)));
    let before = turns(&life);
    life.begin(5, &Absence::default());
    assert_eq!(turns(&life), before);
    for number in [one, two] {
        let actions = life.actions(number);
        let [Action::Move(cpus), Action::RunFor(limit)] = &actions[..] else { panic!("{actions:?}") };
        assert_eq!((&cpus[..], *limit), (&[0, 1][..], Span::from_ticks(100_000_000)));
    }
}

#[test]
fn a_longer_window_is_a_longer_limit() {
    let mut life = gang("", 2);
    let one = life.submit(1, job(2, 100));
    life.actions(one);
    life.ask(2, DaemonRequest::Extend { job: one, by: 20.0 }).unwrap();
    let actions = life.actions(one);
    assert!(
        matches!(&actions[..], [Action::RunFor(limit)] if *limit == Span::from_ticks(120_000_000)),
        "{actions:?}"
    );
}

#[test]
fn on_a_lost_processor_jobs_share_what_is_left() {
    let mut life = gang("", 4);
    let [one, two] = [1, 2].map(|at| life.submit(at, job(2, 100)));
    assert_eq!([one, two].map(|number| cpus(&mut life, 3, number)), [vec![0, 1], vec![2, 3]]);
    forget(&life, &[one, two]);
    life.turn(4, vec![Input::Online(vec![0, 2, 3])]);
    assert_eq!(cpus(&mut life, 5, one), [0, 3], "in the place of the lost one the highest");
    assert!(matches!(&life.actions(one)[..], [Action::Move(cpus)] if *cpus == [0, 3]));
    assert!(cpus(&mut life, 6, two).iter().all(|cpu| [0, 2, 3].contains(cpu)), "none on what is gone");
    let next = life.submit(7, job(3, 100));
    assert_eq!((cpus(&mut life, 8, next), slots(&mut life, 8, next).own), (vec![0, 2, 3], 1));
    life.begin(9, &Absence::default());
    life.turn(10, vec![Input::Online(vec![0, 1, 2, 3])]);
    assert_eq!([one, two].map(|number| cpus(&mut life, 11, number)), [vec![0, 1], vec![2, 3]]);
}

#[test]
fn other_settings_count_at_once_and_another_policy_is_refused_while_jobs_run() {
    let mut life = gang("quantum=3s", 2);
    let [one, two] = [1, 2].map(|at| life.submit(at, job(2, 100)));
    life.setup.queues[0].policy = "gang(quantum=7s)".parse().unwrap();
    life.reread(3);
    assert_eq!(turns(&life).quantum, Span::from_ticks(7_000_000));
    for other in ["easy", "ss"] {
        life.setup.queues[0].policy = other.parse().unwrap();
        let refused = life.set_up(4).unwrap_err();
        assert!(refused.message.contains("under the policy gang"), "{}", refused.message);
    }
    life.end(5, one);
    life.end(6, two);
    life.set_up(7).unwrap();
    assert_eq!(life.turns("batch"), None, "nobody takes turns any more");
    let next = life.submit(8, job(2, 100));
    assert!(life.job(9, next).slots.is_none());
    life.setup.queues[0].policy = "gang".parse().unwrap();
    assert!(life.set_up(10).is_err());
}

#[test]
fn with_fewer_slots_than_are_used_nobody_opens_another_one() {
    for packing in ["buddy", "migration"] {
        let mut life = gang(&format!("packing={packing}, slots=5"), 2);
        let [one, two, three] = [(1, 2), (2, 2), (3, 1)].map(|(at, cpus)| life.submit(at, job(cpus, 100)));
        life.setup.queues[0].policy = format!("gang(packing={packing}, slots=2)").parse().unwrap();
        life.reread(4);
        let four = life.submit(5, job(1, 100));
        assert_eq!(rows(&life), [(0, vec![one]), (1, vec![two]), (2, vec![three, four])], "{packing}");
        let five = life.submit(6, job(1, 100));
        life.begin(7, &Absence::default());
        life.end(8, two);
        assert!(matches!(life.job(9, five).phase, Phase::Queued), "{packing}");
        life.end(10, one);
        assert_eq!(slots(&mut life, 11, five).used, 2, "{packing}");
    }
}

#[test]
fn a_row_with_a_lost_processor_is_united_with_none_until_it_is_back() {
    let mut life = gang("packing=first-fit, alternative=false", 4);
    let [one, two, three, four, five] =
        [(1, 2), (2, 1), (3, 1), (4, 2), (5, 2)].map(|(at, cpus)| life.submit(at, job(cpus, 100)));
    life.turn(6, vec![Input::Online(vec![0, 1, 2])]);
    life.end(7, two);
    life.end(8, four);
    assert_eq!(rows(&life), [(0, vec![one, three]), (1, vec![five])]);
    life.turn(9, vec![Input::Online(vec![0, 1, 2, 3])]);
    life.end(10, three);
    assert_eq!(rows(&life), [(0, vec![one, five])]);
}

#[test]
fn rows_are_united_for_a_job_that_ended_while_there_was_no_daemon() {
    let mut life = gang("packing=first-fit, alternative=false", 4);
    let [one, two, three] = [1, 2, 3].map(|at| life.submit(at, job(2, 100)));
    let outcome = AttemptOutcome::Ended { at: seconds(4), exit: Exit::Code(0), by: None };
    let over = vec![(Attempt { job: one, nth: 1 }, outcome)];
    life.begin(5, &Absence { ended: over, ..Absence::default() });
    assert_eq!(rows(&life), [(0, vec![two, three])]);
}

/// Pseudo-random numbers.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

/// Two lives have the same events. In one of them a new daemon begins after every second event.
///
/// Jobs come and end, processors are lost and restored, and the limit of slots changes.
#[test]
fn with_any_packing_a_daemon_decides_as_the_one_before_it_would_have() {
    for (nth, packing) in (1..).zip(PACKINGS) {
        let policy = format!("packing={packing}");
        let (mut steady, mut restless, mut draws) = (gang(&policy, 8), gang(&policy, 8), Draws(nth));
        let mut living: Vec<i64> = vec![];
        for event in 0..40 {
            let second = 10 * (event + 1);
            let [lost, limit] = [6, 3].map(|below| u32::try_from(draws.below(below)).unwrap());
            for life in [&mut steady, &mut restless] {
                match event % 4 {
                    1 => life.turn(second - 5, vec![Input::Online((lost..8).collect())]),
                    2 => {
                        let written = format!("gang(packing={packing}, slots={})", 2 + 3 * limit);
                        life.setup.queues[0].policy = written.parse().unwrap();
                        life.reread(second - 5);
                    }
                    _ => {}
                }
            }
            if living.len() > 8 || (living.len() > 2 && draws.below(2) == 0) {
                let gone = living.swap_remove(draws.below(living.len()));
                steady.end(second, gone);
                restless.end(second, gone);
            } else {
                let cpus = 1 + draws.below(8) as u64;
                living.push(steady.submit(second, job(cpus, 10_000)));
                restless.submit(second, job(cpus, 10_000));
            }
            for life in [&mut steady, &mut restless] {
                life.turn(second + 1, vec![Input::Online((0..8).collect())]);
            }
            if event % 2 == 0 {
                restless.begin(second + 1, &Absence::default());
                steady.turn(second + 1, vec![]);
            }
            assert_eq!(rows(&steady), rows(&restless), "{packing}, event {event}");
            for number in &living {
                let [one, other] = [&mut steady, &mut restless].map(|life| life.job(second + 2, *number));
                assert_eq!((one.slots, one.phase), (other.slots, other.phase), "{packing}, job {number}");
            }
        }
    }
}
