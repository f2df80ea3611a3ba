//! Small matrices, drawn: a line for each row, a column for each processor; a job that runs in a
//! further row is a letter there.

use miserly_core::{EventOrder, Ledger, Machine, Span, Time};
use miserly_sim::Job;

use super::play;
use crate::support::{Quad, jobs, machine};

/// The rows that are used, with their numbers.
fn drawn(ledger: &Ledger) -> Vec<String> {
    let matrix = ledger.matrix().expect("time is sliced");
    let procs = usize::try_from(matrix.all().count().get()).unwrap();
    let draw = |slot| {
        let mut line = vec![b'.'; procs];
        for entry in ledger.running().map(|job| ledger.entry(job)) {
            let number = u8::try_from(entry.request.number).unwrap();
            let placement = entry.placement().unwrap();
            let sign = match placement.slot == slot {
                true => b'0' + number,
                false if entry.alternate_slots.contains(&slot) => b'a' - 1 + number,
                false => continue,
            };
            for (low, high) in placement.pes().unwrap().ranges() {
                line[*low as usize..=*high as usize].fill(sign);
            }
        }
        format!("{} {}", slot.0, String::from_utf8(line).unwrap())
    };
    matrix.slots().map(|(slot, _)| draw(slot)).collect()
}

/// The matrix as it is when each of these seconds is over.
#[track_caller]
fn check(procs: u64, quads: &[Quad], policy: &str, expected: &[(i64, &[&str])]) {
    let mut drawings: Vec<(Time, Vec<String>)> = vec![];
    play(&Machine::plain(procs), &jobs(quads), policy, EventOrder::Batched, |now, ledger| {
        drawings.push((now, drawn(ledger)));
    });
    for (second, rows) in expected {
        let then = drawings.iter().rev().find(|(now, _)| now.secs() <= *second);
        assert_eq!(then.expect("a round").1, *rows, "{policy} after second {second}");
    }
}

/// The jobs of Figure 9, which come a second after the other; the second one is the first to end.
const FIGURE_9: [Quad; 5] =
    [(0, 9000, 5, 9000), (1, 100, 4, 100), (2, 9000, 6, 9000), (3, 9000, 2, 9000), (4, 9000, 3, 9000)];

#[test]
fn figure_9_by_best_fit() {
    let third: &[&str] = &["0 11111...", "1 2222....", "2 333333.."];
    let fifth: &[&str] = &["0 11111555", "1 2222..dd", "2 33333344"];
    // Two slots, and both of them full.
    let end: &[&str] = &["0 11111555", "2 33333344"];
    check(8, &FIGURE_9, "gang(packing=best-fit)", &[(2, third), (4, fifth), (1000, end)]);
}

#[test]
fn figure_9_by_minimal_maximum_load() {
    // No processor has more than two jobs.
    let third: &[&str] = &["0 11111...", "1 2....222", "2 .333333."];
    let fifth: &[&str] = &["0 111114.4", "1 2555.222", "2 .333333."];
    // Three slots with few jobs in them, and only the one on two processors runs in another one
    // too.
    let end: &[&str] = &["0 111114.4", "1 .555.d.d", "2 .333333."];
    check(8, &FIGURE_9, "gang(packing=min-max-load)", &[(2, third), (4, fifth), (1000, end)]);
}

#[test]
fn the_other_schemes_on_the_same_jobs() {
    let fourth = |packing: &str, rows: &[&str]| {
        check(8, &FIGURE_9[..4], &format!("gang(packing={packing}, alternative=false)"), &[(3, rows)]);
    };
    fourth("first-fit", &["0 1111144.", "1 2222....", "2 333333.."]);
    fourth("left-right-by-size, threshold=4", &["0 ...11111", "1 2222....", "2 44333333"]);
    // The first row from the left, the second from the right, and so on.
    fourth("left-right-by-slots", &["0 11111...", "1 ....2222", "2 33333344"]);
    fourth("migration", &["0 33333344", "1 11111...", "2 2222...."]);
}

#[test]
fn rows_without_a_common_processor_become_one() {
    let quads = [(0, 10, 3, 10), (0, 900, 3, 900), (0, 900, 1, 900), (0, 900, 2, 900)];
    let policy = |unify| format!("gang(packing=first-fit, alternative=false, unify={unify})");
    let before: &[&str] = &["0 1113", "1 222.", "2 44.."];
    check(4, &quads, &policy(true), &[(0, before), (100, &["0 2223", "2 44.."])]);
    check(4, &quads, &policy(false), &[(0, before), (100, &["0 ...3", "1 222.", "2 44.."])]);
}

#[test]
fn unifications_are_counted() {
    let unifications = |quads: &[Quad], policy: &str| {
        let mut count = 0;
        play(&Machine::plain(4), &jobs(quads), policy, EventOrder::Batched, |_, ledger| {
            count = ledger.unifications().unwrap_or(0);
        });
        count
    };
    // As above: at the end of the first job, and of no other.
    let quads = [(0, 10, 3, 10), (0, 900, 3, 900), (0, 900, 1, 900), (0, 900, 4, 900)];
    assert_eq!(unifications(&quads, "gang(packing=first-fit)"), 1);
    assert_eq!(unifications(&quads, "gang(packing=first-fit, unify=false)"), 0);
    // 3 and 1, 2: without the one of three the others are together. The last one leaves a row
    // empty, which is no unification.
    let quads = [(0, 10, 3, 10), (0, 900, 1, 900), (0, 900, 2, 900), (0, 90, 4, 90)];
    assert_eq!(unifications(&quads, "gang(packing=migration)"), 1);
}

/// The third job arrived before the seventh, which has a lower own slot. Both could run in the last
/// slot.
#[test]
fn who_goes_first_in_a_further_row() {
    let before = [(0, 900, 4, 900), (0, 5, 4, 5), (0, 900, 2, 900), (0, 900, 2, 900), (0, 25, 3, 25)];
    let quads = [&before[..], &[(0, 900, 1, 900), (60, 900, 2, 900)]].concat();
    let by = |order: &str, last: &str| {
        let policy = format!("gang(packing=first-fit, unify=false, alternative_order={order})");
        check(4, &quads, &policy, &[(300, &["0 1111", "1 77dd", "2 3344", last])]);
    };
    by("arrival", "3 cc.6");
    by("slot", "3 gg.6");
}

#[test]
fn who_runs_in_a_further_row_gives_way() {
    let quads = [(0, 900, 4, 900), (0, 900, 2, 900), (9, 900, 2, 900)];
    let before: &[&str] = &["0 1111", "1 22.."];
    check(4, &quads, "gang(packing=first-fit)", &[(0, before), (9, &["0 1111", "1 2233"])]);
    let quads = [(0, 900, 3, 900), (0, 900, 4, 900), (0, 900, 1, 900), (0, 5, 2, 5), (9, 900, 2, 900)];
    // The fourth job has left the third slot, which is empty now. Then the fifth one enters it.
    let rows: &[(i64, &[&str])] = &[
        (0, &["0 1113", "1 2222", "2 44.c"]),
        (15, &["0 1113", "1 2222"]),
        (21, &["0 1113", "1 2222", "2 55.c"]),
    ];
    let late = [quads[0], quads[1], quads[2], quads[3], (20, 900, 2, 900)];
    check(4, &late, "gang(packing=first-fit)", rows);
}

#[test]
fn buddies_of_sizes_that_are_no_powers_of_two() {
    // The first job gets three of the lower four processors, which loads the fourth controller too.
    // So the second one goes to the upper four. Then no other controller of four is free in that
    // slot. The fourth job takes all of the less loaded upper half, and one of the lower. The fifth
    // one goes to a controller without other jobs on its ancestors.
    let quads = [(0, 900, 3, 900), (0, 900, 1, 900), (0, 900, 3, 900), (0, 900, 5, 900), (0, 900, 1, 900)];
    let rows: &[&str] = &["0 111.25..", "1 333.....", "2 4...4444"];
    check(8, &quads, "gang(packing=buddy, alternative=false)", &[(0, rows)]);
    // A machine of six: the right one of the two groups of four has two processors.
    let quads = [(0, 900, 3, 900), (0, 900, 2, 900), (0, 900, 3, 900), (0, 900, 5, 900)];
    let rows: &[&str] = &["0 111.22", "1 333...", "2 444.44"];
    check(6, &quads, "gang(packing=buddy, alternative=false)", &[(0, rows)]);
}

/// The ends of the jobs, in ticks.
fn ends(machine: &Machine, jobs: &[Job], policy: &str) -> Vec<i64> {
    let finished = play(machine, jobs, policy, EventOrder::Batched, |_, _| {});
    finished.iter().map(|job| (job.end - Time::ZERO).ticks()).collect()
}

#[test]
fn what_switching_costs() {
    let plain = Machine::plain(4);
    let two = jobs(&[(0, 100, 4, 100), (0, 100, 3, 100)]);
    assert_eq!(ends(&plain, &two, "gang(quantum=9s)"), [200_000_000, 200_000_000]);
    // Nine tenths of half of the time, to the tick.
    assert_eq!(ends(&plain, &two, "gang(quantum=9s, switch=1)"), [222_222_223, 222_222_223]);
    // Two at once, and one that runs beside either: it is never stopped.
    let three = jobs(&[(0, 100, 3, 100), (0, 100, 1, 100), (0, 100, 3, 100)]);
    assert_eq!(
        ends(&plain, &three, "gang(packing=first-fit, quantum=9s, switch=1)"),
        [222_222_223, 100_000_000, 222_222_223]
    );
    // Alone, nothing is switched.
    assert_eq!(ends(&plain, &two[..1], "gang(quantum=9s, switch=1)"), [100_000_000]);
}

#[test]
fn what_moving_costs() {
    let plain = Machine::plain(4);
    let two = jobs(&[(0, 100, 1, 100), (10, 100, 3, 100)]);
    assert_eq!(ends(&plain, &two, "gang(packing=migration, migrate=5)"), [105_000_000, 110_000_000]);
    // The third comes to the right end while the first one is still on its way there, and moves it
    // back.
    let three = jobs(&[(0, 100, 1, 100), (10, 100, 2, 100), (12, 4, 1, 4)]);
    let moved = ends(&plain, &three, "gang(packing=migration, migrate=5)");
    assert_eq!(moved, [105_000_000, 110_000_000, 16_000_000]);
    // The two that wait start at once, the shorter one first; but the other one came before it,
    // gets the place to the left, and keeps it.
    let waits = jobs(&[(0, 10, 4, 10), (1, 100, 2, 100), (2, 50, 2, 50)]);
    let moved = ends(&plain, &waits, "gang(packing=migration, migrate=5, slots=1, order=shortest)");
    assert_eq!(moved, [10_000_000, 110_000_000, 65_000_000]);
}

#[test]
fn memory_is_held_in_all_rows() {
    // Ten for all; the jobs ask for 1, 2, 3, 4 and 0.
    let machine = machine(&[(2, 9)]);
    let five = jobs(&[(0, 60, 2, 60); 5]);
    let starts = |policy: &str| -> Vec<i64> {
        let finished = play(&machine, &five, policy, EventOrder::Batched, |now, ledger| {
            let held: u64 = ledger
                .running()
                .map(|job| ledger.entry(job).request.demand.get(miserly_core::Kind::Memory))
                .sum();
            assert!(held <= 9, "{held} at {now}");
        });
        finished.iter().map(|job| job.start.secs()).collect()
    };
    assert_eq!(starts("gang"), [0, 0, 0, 180, 180]);
    assert_eq!(starts("gang(strict=false)"), [0, 0, 0, 240, 0]);
}

#[test]
fn an_overdue_job_keeps_its_place_and_its_turns() {
    let mut two = jobs(&[(0, 100, 4, 10), (0, 50, 4, 50)]);
    two[0].runtime = miserly_core::ActualRuntime(Span::from_secs(100).unwrap());
    // Halves until the second ends at 100; then the first has 50 left.
    assert_eq!(ends(&Machine::plain(4), &two, "gang"), [150_000_000, 100_000_000]);
}
