//! Invariants of every run with suspension, derived again from the ledger and from the observed
//! events.

use miserly_core::{
    Entry, EventOrder, Holds, HostId, JobId, Ledger, Machine, PeSet, Placement, Span, State, Time,
};
use miserly_oracle::{NaiveRule, NaiveSuspension};
use miserly_policies::PolicySpec;
use miserly_sim::{Allocation, Finished, Job, Simulation};
use proptest::prelude::*;

use super::settings::{Setting, cases, plain_cases};
use crate::rebuild::run_replacing;
use crate::story::stays;
use crate::support::{BOTH, SEED, Schedule, in_order};

/// A job as (over, under): its xfactor.
fn xfactor(entry: &Entry, now: Time) -> (i128, i128) {
    let ran = i64::try_from(entry.done(now) / u128::from(entry.request.procs())).unwrap();
    let estimate = entry.request.estimate.ticks().max(1_000_000);
    let wait = (now - entry.request.submit).ticks() - ran;
    (i128::from(wait + estimate), i128::from(estimate))
}

fn pes(entry: &Entry) -> &PeSet {
    entry.placement().and_then(Placement::pes).unwrap()
}

/// Whether the job that does not run could suspend the one that does.
fn may_suspend(idle: &Entry, running: &Entry, now: Time, factor: u64) -> bool {
    let ((over, under), (its_over, its_under)) = (xfactor(idle, now), xfactor(running, now));
    let comes_back = matches!(idle.state, State::Suspended { .. });
    let narrow = 2 * idle.request.procs().get() >= running.request.procs().get();
    let (mine, its) = (over * its_under, its_over * under);
    mine > its && mine * 1_000_000 >= its * i128::from(factor) && (comes_back || narrow)
}

/// Checks that no remaining job fits on the free resources, or could suspend enough jobs.
///
/// Jobs with a claim on processors and jobs being swapped out are excluded.
fn nobody_could_run(ledger: &Ledger, now: Time, factor: Option<u64>, migrates: bool) {
    let all = || ledger.waiting().chain(ledger.suspended());
    let mut available = ledger.free_pes(HostId(0)).unwrap().clone();
    let claim = |job: JobId| ledger.entry(job).planned_on.as_ref().and_then(Placement::pes);
    for pes in all().filter_map(claim) {
        available.remove_all(pes);
    }
    let certain = |job: JobId| {
        claim(job).is_some()
            || matches!(ledger.entry(job).state, State::Suspended { holds: Holds::All { .. }, .. })
    };
    for job in all().filter(|job| !certain(*job)) {
        let entry = ledger.entry(job);
        let mut had = available.clone();
        let mut in_the_way = vec![];
        for other in ledger.running().map(|other| ledger.entry(other)) {
            let may = factor.is_some_and(|factor| may_suspend(entry, other, now, factor));
            // One that is read back works from an instant to come.
            if may && other.progress.at <= now {
                had.insert_all(pes(other));
            } else {
                in_the_way.push(pes(other));
            }
        }
        let can = match &entry.state {
            State::Suspended { .. } if !migrates => had.contains_all(pes(entry)),
            _ => had.count() >= entry.request.procs(),
        };
        assert!(!can, "job {} could run at {now}: {in_the_way:?}", entry.request.number);
    }
}

/// A machine, jobs, and a policy.
type Case = (Machine, Vec<Job>, Setting);

/// Plays the jobs, and checks the ledger after every round. Returns the outcomes in the order of
/// the numbers.
fn play(
    (machine, jobs, setting): &Case,
    instants: EventOrder,
    look: impl Fn(&Ledger, Time),
) -> Vec<Finished> {
    let policy = setting.written().parse::<PolicySpec>().unwrap().build(machine, SEED).unwrap();
    let mut simulation = Simulation::new(machine.clone(), policy, instants).with_numbered_processors();
    let mut schedule = Schedule::default();
    let mut source = in_order(jobs).peekable();
    while let Some(now) = simulation.step(&mut source, &mut [&mut schedule]).unwrap() {
        let ledger = simulation.system().queues()[0].ledger();
        ledger.sanity_check(now);
        look(ledger, now);
    }
    schedule.0.sort_by_key(|job| job.request.number);
    schedule.0
}

/// How long the stays of a job last, and for how much of them it is read back, and written out.
fn lengths(job: &Finished) -> (Span, Span, Span) {
    let all = stays(job);
    let sum = |part: fn(&Allocation) -> Span| all.iter().map(part).fold(Span::ZERO, |sum, span| sum + span);
    (
        sum(|stay| stay.to - stay.from),
        sum(|stay| stay.worked.0 - stay.from),
        sum(|stay| stay.to - stay.worked.1),
    )
}

/// Checks that no claim is overdue.
fn every_claim_is_in_time(ledger: &Ledger, now: Time) {
    for job in ledger.waiting().chain(ledger.suspended()) {
        let entry = ledger.entry(job);
        let due = entry.planned.filter(|_| entry.planned_on.is_some());
        assert!(due.is_none_or(|due| due > now), "job {} claims what it does not get", entry.request.number);
    }
}

proptest! {
    #[test]
    fn whoever_suspended_others_runs_when_they_are_out(case in cases()) {
        for instants in BOTH {
            play(&case, instants, every_claim_is_in_time);
        }
    }

    #[test]
    fn every_job_ends_with_its_work_done(case in cases()) {
        for instants in BOTH {
            let finished = play(&case, instants, |_, _| ());
            prop_assert_eq!(finished.len(), case.1.len(), "{}", case.2.written());
            for job in finished {
                let (there, read, written) = lengths(&job);
                prop_assert_eq!(there - read - written, job.runtime, "{:?}", job);
                prop_assert_eq!(job.interruptions.overhead, read + written);
                prop_assert_eq!(job.end - job.start - job.interruptions.suspended - read, job.runtime);
                prop_assert_eq!(job.interruptions.suspended > Span::ZERO, job.end - job.start > job.runtime);
            }
        }
    }

    #[test]
    fn nobody_waits_who_could_run_or_suspend_enough(case in plain_cases()) {
        let NaiveRule::Xfactor { factor, limit: None, .. } = case.2.naive.rule else { return Ok(()) };
        for instants in BOTH {
            let look = |ledger: &Ledger, now| nobody_could_run(ledger, now, factor, case.2.naive.migrates);
            play(&case, instants, look);
        }
    }

    #[test]
    fn nobody_suspends_with_no_factor(case in cases()) {
        let rule = NaiveRule::Xfactor { factor: None, limit: None, period: None };
        let naive = NaiveSuspension { rule, ..case.2.naive };
        let case = (case.0, case.1, Setting { naive });
        for instants in BOTH {
            prop_assert!(play(&case, instants, |_, _| ()).iter().all(|job| job.interruptions.count == 0));
        }
    }

    #[test]
    fn a_rebuilt_policy_goes_on_the_same(
        case in cases(),
        replace in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        let all = |job: &Finished| (job.start, job.end, job.reason, job.interruptions);
        for instants in BOTH {
            let kept = play(&case, instants, |_, _| ());
            let policy = case.2.written();
            let rebuilt = run_replacing(&case.0, &case.1, &policy, instants, &replace).0;
            let [kept, rebuilt] = [kept, rebuilt].map(|jobs| jobs.iter().map(all).collect::<Vec<_>>());
            prop_assert_eq!(kept, rebuilt, "{}, {}", policy, instants);
        }
    }
}
