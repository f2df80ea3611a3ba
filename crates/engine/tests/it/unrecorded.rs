//! Attempts and rows without a usable record.

use miserly_api::model::{Exit, Phase, ProblemCode};
use miserly_core::{Calendar, Kind, Resources};
use miserly_engine::{
    Absence, Action, Adoption, Attempt, AttemptOutcome, BegunWindow, DaemonRequest, Input, JobRow, Journal,
    JournalBatch, Queue,
};

use super::life::{Life, early, job, queue, seconds};

const OLD: Attempt = Attempt { job: 9, nth: 1 };

fn adoption(attempt: Attempt, cpus: &[u32]) -> Adoption {
    let end = Some(seconds(100));
    Adoption { attempt, name: "old".into(), cpus: cpus.to_vec(), memory: 300, end, ..Adoption::default() }
}

fn over(attempt: Attempt, second: i64) -> Input {
    let outcome = AttemptOutcome::Ended { at: seconds(second), exit: Exit::Code(0), by: None };
    Input::AttemptEnded(attempt, outcome)
}

#[track_caller]
fn cpus(life: &mut Life, second: i64, number: i64) -> Vec<u32> {
    match life.job(second, number).phase {
        Phase::Running(allocation) => allocation.cpus,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_adopted_attempt_keeps_its_processors_and_its_memory_until_it_ends() {
    let mut life = Life::new(2, 2);
    life.info.highest = OLD.job;
    life.begin_with(1, &Absence::default(), vec![adoption(OLD, &[0])]);
    let first = life.submit(2, job(1, 50));
    let second = life.submit(3, job(1, 50));
    assert_eq!((first, second), (10, 11), "its number is not used again");
    assert_eq!(cpus(&mut life, 4, first), [1]);
    assert_eq!(life.job(5, second).phase, Phase::Queued);
    let adopted = life.job(6, OLD.job);
    assert_eq!((adopted.name.as_str(), adopted.memory), ("old", 300 * 1024));
    assert!(
        matches!(adopted.phase, Phase::Adopted { end: Some(_), ref cpus } if *cpus == [0]),
        "{adopted:?}"
    );
    let status = life.status(7);
    assert_eq!((status.adopted.len(), status.queues[0].cpus), (1, 1));
    assert_eq!(status.queues[0].memory, Some(700 * 1024));
    life.turn(20, vec![over(OLD, 20)]);
    assert_eq!(cpus(&mut life, 21, second), [0]);
    assert_eq!(life.status(22).adopted, []);
    assert!(matches!(life.actions(OLD.job)[..], [Action::Forget]), "its folder is removed");
}

/// The end is tried again with the batch. Until then nothing else may have what the attempt holds.
#[test]
fn an_adoption_goes_on_if_its_end_cannot_be_stored() {
    let mut life = Life::new(2, 2);
    life.info.highest = OLD.job;
    life.begin_with(1, &Absence::default(), vec![adoption(OLD, &[0])]);
    let [_, waits] = [(); 2].map(|()| life.submit(2, job(1, 50)));
    life.journal.set_full(true);
    life.turn(20, vec![over(OLD, 20)]);
    let status = life.status(20);
    assert_eq!((status.adopted.len(), status.queues[0].cpus), (1, 1));
    assert_eq!(life.job(20, waits).phase, Phase::Queued);
    life.journal.set_full(false);
    life.turn(22, vec![]);
    assert_eq!(life.status(22).adopted, []);
    assert_eq!(cpus(&mut life, 23, waits), [0]);
}

/// It was suspended when the attempt began that the state does not have.
#[test]
fn a_running_job_moves_off_the_processors_of_an_adopted_attempt() {
    let both = &[0, 1][..];
    for (machine, adopted, beside, loss) in [
        (4, both, &[2, 3][..], None),
        (3, both, &[2], Some("1 of 2")),
        (3, &[1], &[0, 2], None),
        (2, &[1], &[0], Some("1 of 2")),
        (2, both, both, Some("2 of 2")),
    ] {
        let mut life = Life::new(machine, 4);
        let number = life.submit(1, job(2, 50));
        assert_eq!(cpus(&mut life, 2, number), both);
        life.info.highest = OLD.job;
        life.begin_with(3, &Absence::default(), vec![adoption(OLD, adopted)]);
        assert_eq!(cpus(&mut life, 4, number), beside);
        assert!(
            matches!(&life.actions(number)[..], [Action::BeginWindow { cpus, .. }, Action::Continue] if cpus == beside)
        );
        let lost = life.job(4, number).capacity_lost;
        assert_eq!(lost.as_ref().map(|how| &how[..6]), loss);
        life.turn(5, vec![over(OLD, 5)]);
        assert_eq!(cpus(&mut life, 6, number).len(), 2, "{machine} {adopted:?}");
    }
}

/// Its job was planned there. The last queue would lose the processors of an attempt whose queue nobody knows.
#[test]
fn the_queue_of_an_adopted_attempt_lacks_what_it_holds() {
    let mut life = Life::new(2, 4);
    let half = || Calendar::constant(Resources::cpus(2).with(Kind::Memory, 500));
    life.setup.queues[0].pool = half();
    life.setup.queues.push(Queue { pool: half(), ..queue("last", "easy") });
    life.setup.cpus = (0..4).collect();
    life.info.highest = OLD.job;
    let of_first = Adoption { queue: Some("batch".into()), ..adoption(OLD, &[0, 1]) };
    life.begin_with(1, &Absence::default(), vec![of_first]);
    let pools = |life: &mut Life, second| {
        let status = life.status(second);
        status.queues.iter().map(|queue| (queue.cpus, queue.memory)).collect::<Vec<_>>()
    };
    assert_eq!(pools(&mut life, 2), [(0, Some(200 * 1024)), (2, Some(500 * 1024))]);
    life.turn(5, vec![over(OLD, 5)]);
    assert_eq!(pools(&mut life, 6), [(2, Some(500 * 1024)), (2, Some(500 * 1024))]);
    let unknown = Attempt { nth: 2, ..OLD };
    life.begin_with(7, &Absence::default(), vec![adoption(unknown, &[0])]);
    assert_eq!(pools(&mut life, 8), [(2, Some(500 * 1024)), (1, Some(200 * 1024))]);
}

/// No pool and no job changes then.
#[test]
fn readers_learn_of_the_end_of_an_adopted_attempt_that_holds_nothing() {
    let mut life = Life::new(1, 2);
    life.info.highest = OLD.job;
    let holds_nothing = Adoption { memory: 0, end: None, ..adoption(OLD, &[]) };
    life.begin_with(1, &Absence::default(), vec![holds_nothing]);
    assert!(life.snapshot().is_unfinished(OLD.job));
    life.turn(5, vec![over(OLD, 5)]);
    assert!(!life.snapshot().is_unfinished(OLD.job));
    assert_eq!(life.status(6).adopted, []);
}

#[test]
fn a_quote_is_refused_while_adopted_attempts_have_the_processors() {
    let mut life = Life::new(2, 2);
    life.info.highest = OLD.job;
    life.begin_with(1, &Absence::default(), vec![adoption(OLD, &[0])]);
    let problem = life.ask(2, DaemonRequest::Quote(job(2, 10))).unwrap_err();
    assert!(problem.message.ends_with("while adopted jobs run (`miserly status`)"), "{problem:?}");
    life.turn(5, vec![over(OLD, 5)]);
    assert!(life.ask(6, DaemonRequest::Quote(job(2, 10))).is_ok());
}

/// The state is older: there the job waits behind another one, and its attempt runs.
#[test]
fn a_window_that_the_ledger_cannot_begin_is_adopted_until_it_ends() {
    let mut life = Life::new(1, 2);
    let first = life.submit(1, job(1, 50));
    let waits = life.submit(2, early(1, 20));
    let attempt = Attempt { job: waits, nth: 1 };
    let begun = BegunWindow { attempt, cpus: vec![0], end: seconds(30) };
    life.begin(3, &Absence { begun: vec![begun], ..Absence::default() });
    assert_eq!(life.status(4).adopted.iter().map(|one| one.job).collect::<Vec<_>>(), [waits]);
    life.turn(10, vec![over(attempt, 10)]);
    assert_eq!(life.status(11).adopted, []);
    assert!(matches!(life.job(12, waits).phase, Phase::Done { .. }), "{:?}", life.job(12, waits));
    assert!(matches!(life.job(13, first).phase, Phase::Running(_)));
}

#[test]
fn a_row_that_cannot_be_read_is_shown_and_stays_and_its_attempt_keeps_its_record() {
    let mut life = Life::new(2, 2);
    let number = life.submit(1, job(1, 50));
    let row = life.journal.job(number).unwrap().unwrap();
    let bad = JobRow { body: String::new(), problem: Some("its checksum differs".into()), ..row.clone() };
    let write = |life: &mut Life, row: &JobRow| {
        let rows = vec![row.clone()];
        life.journal.commit(JournalBatch { rows, ..JournalBatch::default() }).unwrap();
    };
    write(&mut life, &bad);
    let attempt = Attempt { job: number, nth: 1 };
    life.begin_with(5, &Absence::default(), vec![adoption(attempt, &[0])]);
    assert!(matches!(life.job(6, number).phase, Phase::Unreadable { ref cpus, .. } if *cpus == [0]));
    let status = life.status(7);
    assert_eq!((status.at_risk, status.damage[0].job), (0, Some(number)), "it runs as promised");
    let hold = DaemonRequest::Hold { job: number, move_promises: false };
    assert_eq!(life.ask(8, hold).unwrap_err().code, ProblemCode::Conflict);
    life.turn(9, vec![over(attempt, 9)]);
    assert!(life.actions(number).is_empty(), "a later reader needs the record of the attempt");
    assert_eq!(life.journal.job(number).unwrap(), Some(bad));
    // Without an attempt it waits for a reader, and its promise is at risk.
    for second in [20, 30] {
        life.begin(second, &Absence::default());
        assert_eq!(life.status(second + 1).at_risk, 1);
    }
    write(&mut life, &row);
    let ended = AttemptOutcome::Ended { at: seconds(9), exit: Exit::Code(0), by: None };
    life.begin(40, &Absence { ended: vec![(attempt, ended)], ..Absence::default() });
    assert!(matches!(life.job(41, number).phase, Phase::Done { .. }));
    assert_eq!(life.status(42).damage, []);
}
