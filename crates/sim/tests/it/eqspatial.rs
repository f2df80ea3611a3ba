//! Spatial equipartitioning on random workloads: invariants for any jobs.

use std::io;

use miserly_core::{
    Effect, Entry, EventOrder, Host, HostId, JobId, JobNumber, Kind, Ledger, Machine, PeSet, Procs, Request,
    Resources, Span, State, Time, work,
};
use miserly_oracle::{NaiveJob, equipartition};
use miserly_policies::PolicySpec;
use miserly_policies::equipartition::{MissedWork, Repartitioned};
use miserly_sim::{Finished, Job, Observer, Simulation};
use proptest::prelude::*;

use crate::support::{BOTH, SEED, in_order};

/// (submit, runtime, estimate beyond that), seconds; processors; memory, and how much of ten parts
/// of it are used.
type Asks = ((i64, i64, i64), u64, (u64, u64));

/// Returns hosts with these processors and this memory.
fn hosts(each: &[(u64, u64)]) -> Machine {
    let host = |&(cpus, memory): &(u64, u64)| Host {
        name: format!("{cpus}x{memory}"),
        capacity: Resources::cpus(cpus).with(Kind::Memory, memory),
    };
    Machine::new(each.iter().map(host).collect())
}

fn job((number, &((submit, runtime, more), procs, (memory, used))): (i64, &Asks)) -> Job {
    let secs = |secs| Span::from_secs(secs).unwrap();
    let demand = Resources::cpus(procs).with(Kind::Memory, memory);
    let request = Request::new(number, Time::ZERO + secs(submit), secs((runtime + more).max(0)), demand);
    Job { used_memory: Some(memory * used / 10), ..Job::new(request, secs(runtime)) }
}

/// One to three hosts, and jobs with memory that one of them has, with load and many equal
/// instants.
pub(crate) fn workload() -> impl Strategy<Value = (Machine, Vec<Job>)> {
    prop::collection::vec((1u64..9, 10u64..40), 1..4).prop_flat_map(|each| {
        let most = each.iter().map(|(_, memory)| *memory).max().unwrap_or(Procs::ZERO.get());
        // Half of the jobs overrun nothing, some ask for more processors than any host has.
        let job_of = ((0i64..60, 0i64..30, -3i64..20), 1u64..12, (0..=most, 1u64..=10));
        let all = prop::collection::vec(job_of, 1..40);
        all.prop_map(move |asks| (hosts(&each), (1..).zip(&asks).map(job).collect()))
    })
}

/// The policy, and the parameters that the checks need.
#[derive(Clone, Debug)]
pub(crate) struct Params {
    pub(crate) written: String,
    min_interval: Span,
    long_job_after: Option<Span>,
    quantum_memory: u64,
    keep_work: bool,
}

pub(crate) fn params() -> impl Strategy<Value = Params> {
    let interval = prop::sample::select(vec![0i64, 3, 10]);
    let long = prop::sample::select(vec![None, Some(1i64), Some(4), Some(15)]);
    (interval, long, 0..6, 0u64..20, any::<bool>()).prop_map(
        |(interval, long, quantum, quantum_memory, keep_work)| Params {
            written: format!(
                "eqspatial(min_interval={interval}, long_job_after={}, quantum={quantum}, \
                quantum_memory={quantum_memory}, keep_work={keep_work})",
                long.map_or("none".into(), |secs| secs.to_string()),
            ),
            min_interval: Span::from_secs(interval).unwrap(),
            long_job_after: long.and_then(Span::from_secs),
            quantum_memory,
            keep_work,
        },
    )
}

/// The outcome of the jobs, and the jobs resized in the round.
#[derive(Default)]
struct Watch {
    finished: Vec<Finished>,
    resized: Vec<JobId>,
}

impl Observer for Watch {
    fn effect(&mut self, _: Time, _: JobNumber, effect: &Effect) {
        if let Effect::Resized { job, .. } = effect {
            self.resized.push(*job);
        }
    }

    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        self.finished.push(job.clone());
        Ok(())
    }
}

/// Plays the jobs. `after` receives each round: its instant, the ledger, and the resized jobs.
fn play(
    machine: &Machine,
    jobs: &[Job],
    policy: &str,
    instants: EventOrder,
    mut after: impl FnMut(Time, &mut Simulation, &Watch),
) -> Vec<Finished> {
    let policy = policy.parse::<PolicySpec>().unwrap().build(machine, SEED).unwrap();
    let mut simulation = Simulation::new(machine.clone(), policy, instants).with_numbered_processors();
    let mut watch = Watch::default();
    let mut source = in_order(jobs).peekable();
    while let Some(now) = simulation.step(&mut source, &mut [&mut watch]).unwrap() {
        after(now, &mut simulation, &watch);
        watch.resized.clear();
    }
    assert_eq!(watch.finished.len(), jobs.len(), "nobody waits for ever");
    watch.finished.sort_by_key(|job| job.request.number);
    watch.finished
}

/// The jobs that run on a host.
fn on_host(ledger: &Ledger, host: HostId) -> Vec<&Entry> {
    let here = |entry: &&Entry| {
        entry.placement().is_some_and(|placement| placement.shares().iter().any(|share| share.host == host))
    };
    ledger.running().map(|job| ledger.entry(job)).filter(here).collect()
}

/// Whether a running job shares equally: it is in no quantum, catches nothing up, and has not run
/// for `long`.
fn shares(entry: &Entry, now: Time, long: Option<Span>) -> bool {
    let State::Running { start, quantum, .. } = entry.state else { return false };
    quantum.is_none()
        && entry.policy_state.get::<MissedWork>().work == 0
        && long.is_none_or(|long| now - start < long)
}

/// Checks a host that has just been repartitioned.
fn check_division(ledger: &Ledger, host: HostId, now: Time, long: Option<Span>) {
    let jobs = on_host(ledger, host);
    let procs = ledger.machine().host(host).capacity.cpus_count();
    let asked: Procs = jobs.iter().map(|entry| entry.request.procs()).sum();
    let used: Procs = jobs.iter().map(|entry| entry.working()).sum();
    assert_eq!(used, procs.min(asked), "as many as there are, or as were asked for");
    assert!(jobs.iter().all(|entry| entry.working() >= Procs::ONE));
    let (equal, first): (Vec<&Entry>, Vec<&Entry>) =
        jobs.into_iter().partition(|entry| shares(entry, now, long));
    for kind in [&equal, &first] {
        let most = kind.iter().map(|entry| entry.working()).max().unwrap_or(Procs::ZERO);
        for entry in kind.iter().filter(|entry| entry.working() < entry.request.procs()) {
            assert!(
                entry.working() + Procs::ONE >= most,
                "job {} has too few at {now}",
                entry.request.number
            );
        }
    }
    if first.iter().any(|entry| entry.working() < entry.request.procs()) {
        assert!(equal.iter().all(|entry| entry.working() == Procs::ONE), "they have all that can be spared");
    }
}

/// Processor-ticks on the machine.
fn worked(job: &Finished) -> u128 {
    let stays = job.allocations.iter().map(|stay| work(stay.to - stay.from, stay.pes.count()));
    let whole = job.pes.iter().filter(|_| job.allocations.is_empty());
    stays.chain(whole.map(|pes| work(job.end - job.start, pes.count()))).sum()
}

proptest! {
    #[test]
    fn a_repartitioning_is_as_equal_as_the_requests_allow((machine, jobs) in workload(), params in params()) {
        for instants in BOTH {
            play(&machine, &jobs, &params.written, instants, |now, simulation, _| {
                let ledger = simulation.system().queues()[0].ledger();
                for host in (0..).map(HostId).take(machine.hosts().len()) {
                    if params.min_interval == Span::ZERO || ledger.host_state::<Repartitioned>(host).0 == Some(now) {
                        check_division(ledger, host, now, params.long_job_after);
                    }
                }
            });
        }
    }

    #[test]
    fn a_host_is_repartitioned_at_intervals((machine, jobs) in workload(), params in params()) {
        for instants in BOTH {
            let mut marks = vec![None; machine.hosts().len()];
            let mut lent = vec![false; machine.hosts().len()];
            play(&machine, &jobs, &params.written, instants, |now, simulation, watch| {
                let ledger = simulation.system().queues()[0].ledger();
                for job in &watch.resized {
                    // A job that was requeued since, and started elsewhere, does not count.
                    let Some(State::Running { start, placement, .. }) = ledger.get(*job).map(|entry| &entry.state)
                    else {
                        continue;
                    };
                    if *start == now {
                        continue;
                    }
                    assert_eq!(ledger.host_state::<Repartitioned>(placement.shares()[0].host).0, Some(now), "processors changed hands");
                }
                for (host, (mark, lent)) in (0..).map(HostId).zip(marks.iter_mut().zip(&mut lent)) {
                    let before = std::mem::replace(mark, ledger.host_state::<Repartitioned>(host).0);
                    let in_quantum = |entry: &&Entry| matches!(entry.state, State::Running { quantum: Some(_), .. });
                    let lends = on_host(ledger, host).iter().any(in_quantum);
                    // A quantum that begins or ends does not wait.
                    let exempt = std::mem::replace(lent, lends) || lends;
                    if let (Some(before), false) = (before, exempt || *mark == before) {
                        assert!(now - before >= params.min_interval, "repartitioned at {before} and again at {now}");
                    }
                }
            });
        }
    }

    #[test]
    fn no_work_is_lost_or_done_twice((machine, jobs) in workload(), params in params()) {
        for instants in BOTH {
            let finished = play(&machine, &jobs, &params.written, instants, |_, _, _| {});
            for (job, source) in finished.iter().zip(&jobs) {
                let (done, asked) = (worked(job) - job.lost, work(job.runtime, job.request.procs()));
                let last = job.pes.as_ref().map_or(Procs::ZERO, PeSet::count);
                prop_assert!(done >= asked, "job {} ended before it was done", job.request.number);
                // One that outgrows its memory in the quantum runs to the end of that, whatever it
                // has to do.
                let outgrew = params.keep_work && source.used_memory > Some(params.quantum_memory);
                prop_assert!(outgrew || done - asked < u128::from(last.max(Procs::new(1))), "job {} did more", job.request.number);
            }
        }
    }

    #[test]
    fn a_rebuilt_equipartition_goes_on_the_same(
        (machine, jobs) in workload(),
        params in params(),
        replace in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        let chosen: PolicySpec = params.written.parse().unwrap();
        let facts = |job: &Finished| (job.start, job.end, job.reason, job.allocations.clone(), job.lost);
        for instants in BOTH {
            let kept = play(&machine, &jobs, &params.written, instants, |_, _, _| {});
            let mut replace = replace.iter().cycle();
            let rebuilt = play(&machine, &jobs, &params.written, instants, |_, simulation, _| {
                if *replace.next().unwrap() {
                    simulation.system().queues_mut()[0].replace(chosen.build(&machine, SEED).unwrap());
                }
            });
            for (kept, rebuilt) in kept.iter().zip(&rebuilt) {
                prop_assert_eq!(facts(kept), facts(rebuilt), "job {}", kept.request.number);
            }
        }
    }

    #[test]
    fn serial_jobs_with_a_processor_each_start_at_once(jobs in prop::collection::vec((0i64..60, 0i64..30, 0i64..9), 1..30)) {
        let asks: Vec<Asks> = jobs.iter().map(|times| (*times, 1, (0, 1))).collect();
        let jobs: Vec<Job> = (1..).zip(&asks).map(job).collect();
        for instants in BOTH {
            for job in play(&Machine::plain(jobs.len() as u64), &jobs, "eqspatial", instants, |_, _, _| {}) {
                prop_assert_eq!((job.start, job.wait()), (job.request.submit, Span::ZERO));
            }
        }
    }

    #[test]
    fn the_same_end_for_every_job_as_the_naive_one(
        procs in 1u64..12,
        jobs in prop::collection::vec(((0i64..60, 0i64..30, -3i64..9), 1u64..16, Just((0, 1))), 1..40),
        long in prop::option::of(1i64..20),
    ) {
        let jobs: Vec<Job> = (1..).zip(&jobs).map(job).collect();
        let naive: Vec<NaiveJob> =
            jobs.iter().map(|job| NaiveJob { request: job.request.clone(), runtime: job.runtime }).collect();
        let theirs = equipartition(procs, &naive, long.and_then(Span::from_secs));
        let long = long.map_or("none".into(), |secs| secs.to_string());
        let policy = format!("eqspatial(long_job_after={long})");
        for instants in BOTH {
            let ours = play(&Machine::plain(procs), &jobs, &policy, instants, |_, _, _| {});
            let ours: Vec<Time> = ours.iter().map(|job| job.end).collect();
            prop_assert_eq!(&ours, &theirs, "{}", instants);
        }
    }
}
