mod checkpoints;

mod life;

use miserly_core::{EndHow, Time};
use miserly_engine::{EndedLine, PoolStep, QueueLine, RoundLine, SavedRequest};
use serde_json::json;

use super::journal::Began;
use super::*;

const SECOND: i64 = 1_000_000;

fn began(policy: &str) -> Began {
    let amounts = [8, 0, 0, 0];
    let (name, policy) = ("batch".to_owned(), policy.to_owned());
    Began {
        queues: vec![QueueLine {
            name,
            policy,
            pool: vec![PoolStep(Time::ZERO, amounts)],
            again: None,
            classes: None,
            charge: None,
            gpus: None,
            once: vec![],
        }],
        opportunistic: None,
    }
}

fn submitted(second: i64, number: i64, cpus: u64) -> RoundLine {
    let request: SavedRequest = serde_json::from_value(json!({
        "number": number, "submit": second * SECOND, "estimate": 1000 * SECOND, "cpus": cpus, "memory": 0, "user": 1, "queue": 0
    }))
    .unwrap();
    RoundLine { at: Time::from_ticks(second * SECOND), submitted: vec![request], ..RoundLine::default() }
}

fn ended(second: i64, job: i64) -> RoundLine {
    RoundLine {
        at: Time::from_ticks(second * SECOND),
        ended: vec![EndedLine { job, how: EndHow::Done }],
        ..RoundLine::default()
    }
}

/// Returns the effects of these rounds. `change` is another policy from that round on.
fn effects(policy: &str, rounds: &[RoundLine], change: Option<(usize, &str)>) -> Vec<(i64, EffectLine)> {
    let changes = change.map(|(before, policy)| (before, began(policy))).into_iter().collect();
    let mut stretch = Stretch { changes, ..Stretch::new(began(policy), None) };
    for round in rounds {
        stretch.rounds.push(round.clone());
        let came = simulated(&stretch).unwrap().into_iter().filter(|came| came.0 == round.at.ticks());
        // The end of a job refers to its start.
        stretch.rounds.last_mut().unwrap().effects = came.map(|(_, effect)| effect).collect();
    }
    simulated(&stretch).unwrap()
}

#[test]
fn what_is_noted_for_rows_outlives_a_change_of_the_quantum() {
    let policy = "gang(packing=left-right-by-slots, alternative=false)";
    let rounds = [
        submitted(1, 1, 1),
        submitted(2, 2, 7),
        submitted(3, 3, 5),
        submitted(5, 4, 1),
        ended(6, 3),
        ended(7, 2),
    ];
    let steady = effects(policy, &rounds, None);
    assert!(steady.iter().any(|(_, effect)| matches!(effect, EffectLine::Moved { .. })), "{steady:?}");
    let changed = "gang(packing=left-right-by-slots, alternative=false, quantum=5s)";
    assert_eq!(effects(policy, &rounds, Some((3, changed))), steady);
}
