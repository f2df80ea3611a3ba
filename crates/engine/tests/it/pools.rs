//! The free capacity of the pools.

use jiff::Timestamp;
use miserly_api::model::Submission;
use miserly_engine::{Absence, DaemonInfo, DaemonReply, DaemonRequest, Engine, MemoryJournal, Now};

use crate::support::{Idle, MINUTE, at, request, setup};

/// Returns the reply of the engine.
fn ask(engine: &mut Engine<Idle, MemoryJournal>, now: Now, question: DaemonRequest) -> DaemonReply {
    let (input, reply) = request(question);
    engine.process_batch(now, vec![input]).expect("a batch");
    reply.try_recv().expect("an answer").expect("no refusal")
}

/// ```text
///  3 |33333333333333333333
///  2 |1111111111
///  1 |111111111122222
///  0 |111111111122222
///    +---------+----+----+
///    0         10   15   20
/// ```
#[test]
fn windows_are_taken_from_the_pool_and_given_back() {
    let journal = MemoryJournal::default();
    let now = at(1, Timestamp::UNIX_EPOCH);
    let mut engine = Engine::open(setup(), DaemonInfo::default(), journal, Idle, now).expect("an engine");
    engine.begin(now, &Absence::default()).expect("it begins");
    for (cpus, minutes) in [(3, 10.0), (2, 5.0), (1, 20.0)] {
        let command = vec!["/bin/true".to_owned()];
        let job = Submission {
            command,
            directory: "/".into(),
            cpus,
            time: minutes * 60.0,
            ..Submission::default()
        };
        ask(&mut engine, now, DaemonRequest::Submit(job));
    }
    let DaemonReply::Pools(pools) = ask(&mut engine, now, DaemonRequest::Pools) else {
        panic!("pools were asked for")
    };
    let minute = |from: Timestamp| (from.as_microsecond() + MINUTE / 2) / MINUTE;
    let slices: Vec<(i64, u64)> =
        pools.pools[0].slices.iter().map(|slice| (minute(slice.from), slice.cpus_free)).collect();
    assert_eq!(slices, [(0, 0), (10, 1), (15, 3), (20, 4)]);
}
