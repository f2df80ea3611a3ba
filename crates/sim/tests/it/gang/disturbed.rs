//! Machines that lose processors and memory, limits of slots that change, and policies that begin anew, while jobs take turns.

use miserly_core::{Instants, Kind, Machine, Time};
use miserly_oracle::{NaiveChange, NaiveJob, NaivePool};
use miserly_policies::Chosen;
use miserly_workload::Job;

use crate::scripted::Play;
use crate::support::{SEED, jobs};

fn second(second: i64) -> Time {
    Time::from_secs(second).unwrap()
}

fn script(jobs: &[Job]) -> NaivePool {
    let mut jobs = jobs.to_vec();
    jobs.sort_by_key(|job| job.request.submit);
    let jobs = jobs.into_iter().map(|job| NaiveJob { request: job.request, runtime: job.runtime });
    NaivePool { steps: vec![], period: 1, horizon: None, jobs: jobs.collect(), changes: vec![] }
}

/// The rows at the end of a script, drawn as the numbers of the jobs and their processors.
fn rows(
    procs: u64,
    quads: &[(i64, i64, u64, i64)],
    losses: &[(i64, u64)],
    policies: [&str; 2],
) -> Vec<String> {
    let machine = Machine::plain(procs);
    let mut script = script(&jobs(quads));
    let capacity = |(at, cpus): &(i64, u64)| {
        (second(*at), NaiveChange::Capacity(machine.capacity().with(Kind::Cpus, *cpus)))
    };
    script.changes = losses.iter().map(capacity).collect();
    let built = |policy: &str| policy.parse::<Chosen>().unwrap().build(&machine, SEED).unwrap();
    let mut drawn = vec![];
    Play::on(machine.clone(), &script, built(policies[0]), Instants::Batch).run(|now, system| {
        if now < second(50) {
            system.queues_mut()[0].replace(built(policies[usize::from(now >= second(10))]));
            let ledger = system.queues()[0].ledger();
            let running = ledger.running().map(|job| ledger.entry(job));
            let place = |entry: &miserly_core::Entry| {
                let placement = entry.placement().unwrap();
                format!("{}: {} on {}", placement.slot.0, entry.request.number, placement.pes().unwrap())
            };
            drawn = running.map(place).collect();
            drawn.sort();
        }
    });
    drawn
}

#[test]
fn rows_beyond_a_new_limit_take_jobs_and_are_united() {
    // Three rows when the limit becomes two, in the last of which there is room.
    let quads = [(0, 900, 2, 900), (1, 900, 2, 900), (2, 900, 1, 900), (11, 900, 1, 900), (12, 900, 1, 900)];
    let policies = |packing: &str| [5, 2].map(|slots| format!("gang(packing={packing}, slots={slots})"));
    let full = ["0: 1 on 0-1", "1: 2 on 0-1", "2: 3 on 0", "2: 4 on 1"];
    for packing in ["first-fit", "buddy", "min-max-load", "migration"] {
        let [before, after] = policies(packing);
        assert_eq!(rows(2, &quads, &[], [&before, &after]), full, "{packing}");
    }
    // The second job ends: two rows are left, and there is still no room for the fifth one.
    let quads = [quads[0], (1, 7, 2, 7), quads[2], quads[3], quads[4]];
    let [before, after] = policies("first-fit");
    assert_eq!(rows(2, &quads, &[], [&before, &after]), ["0: 1 on 0-1", "2: 3 on 0", "2: 4 on 1"]);
    let [before, after] = policies("migration");
    assert_eq!(rows(2, &quads, &[], [&before, &after]), ["0: 1 on 0-1", "1: 3 on 0", "1: 4 on 1"]);
}
