//! What is simulated is what is run: the journal of a life of real jobs, played again by the simulator, comes to the same decisions,
//! promises and order of starts. Lives of weeks, under more policies, are in `src/commands/live/replay/tests`.

use std::path::Path;
use std::time::Duration;

use miserly_api::client::{Client, ClientError};
use miserly_api::model::{Array, Modification, Submission};
use serde_json::Value;

use crate::support::{Daemon, Draws, cpus, miserly, queue, sh};

/// Jobs that are submitted one by one; arrays come on top.
const SINGLE: usize = 60;
const ARRAYS: usize = 4;
const IN_ARRAY: u32 = 5;

/// Lives with a kill in the middle, and compares.
#[test]
fn a_life_is_played_again() {
    let mut daemon = Daemon::new(&format!("{}default-memory = \"8MB\"\n", queue("miser")));
    let mut draws = Draws::new(1);
    let mut numbers = live(&daemon, &mut draws, SINGLE / 2);
    daemon.kill();
    daemon.start();
    numbers.extend(live(&daemon, &mut draws, SINGLE / 2));
    daemon.wait_for_all();
    daemon.stop();
    let played = play(&daemon.state());
    assert_eq!(played["difference"], Value::Null, "{played:#}");
    assert!(
        numbers.len() >= 80 && played["starts"].as_u64() > Some(40),
        "{} jobs: {played:#}",
        numbers.len()
    );
}

/// Submits jobs, and does to them all that people do. The numbers of all that were accepted.
fn live(daemon: &Daemon, draws: &mut Draws, jobs: usize) -> Vec<i64> {
    let client = daemon.client();
    let mut numbers = vec![];
    for nth in 0..jobs {
        let submission = job(draws, numbers.last().copied());
        numbers.push(client.submit(&submission).expect("it is accepted").jobs[0].number);
        if nth % (SINGLE / ARRAYS) == 0 {
            let array = Some(Array::range(1, IN_ARRAY, 1));
            let submitted = client.submit(&Submission { array, ..sh("sleep 0.02", 0.5) });
            numbers.extend(submitted.expect("it is accepted").jobs.iter().map(|job| job.number));
        }
        let other = draws.choice(&numbers);
        meddle(&client, draws, other);
    }
    numbers
}

/// A job that ends early, or at the end of its window, or fails; some wide, some that wait for an instant or another job.
fn job(draws: &mut Draws, last: Option<i64>) -> Submission {
    let widest = u64::try_from(cpus().len()).expect("a number of processors").min(2);
    let (script, time) = draws.choice(&[
        ("true", 0.5),
        ("exit 3", 1.0),
        ("sleep 0.03", 0.3),
        ("sleep 0.05", 2.0),
        ("sleep 0.05", 30.0),
        ("sleep 60", 0.1),
        ("trap '' TERM; sleep 60", 0.1),
    ]);
    let after = last.filter(|_| draws.below(12) == 0);
    Submission {
        cpus: 1 + draws.below(widest),
        after: after.into_iter().collect(),
        restartable: draws.below(2) == 0,
        ..sh(script, time)
    }
}

/// Now and then does something to a job, if the daemon lets it.
fn meddle(client: &Client, draws: &mut Draws, job: i64) {
    let done = match draws.below(16) {
        0 | 1 => client.cancel(job, false).map(drop),
        2 | 3 => client.extend(job, 0.2).map(drop),
        4 => client.hold(job, true).and_then(|_| client.release(job)).map(drop),
        5 => client.requeue(job, true).map(drop),
        6 | 7 => client.modify(job, &modification(draws, job), true).map(drop),
        8 => client.pause(job).and_then(|_| client.resume(job)).map(drop),
        _ => return,
    };
    assert!(matches!(done, Ok(()) | Err(ClientError::Refused(_))), "{done:?}");
}

/// Returns a change of a waiting job: larger, smaller, later, or in the place of another one.
fn modification(draws: &mut Draws, job: i64) -> Modification {
    let nothing = Modification::default();
    match draws.below(4) {
        0 => Modification { cpus: Some(1 + draws.below(2)), ..nothing },
        1 => Modification { time: Some(draws.choice(&[0.1, 0.7, 3.0])), ..nothing },
        2 => Modification { before: Some(job - 1 - i64::try_from(draws.below(3)).unwrap_or(0)), ..nothing },
        _ => Modification { begin: Some(jiff::Timestamp::now() + Duration::from_millis(300)), ..nothing },
    }
}

/// What `miserly replay` says of a state; its exit code says the same.
pub(crate) fn play(state: &Path) -> Value {
    let output = miserly(&["replay", "--json", "--state", &state.to_string_lossy()]);
    let played: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no answer: {}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(output.status.success(), played.get("difference").is_none(), "{played:#}");
    played
}
