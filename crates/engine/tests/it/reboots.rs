//! A reboot: the launcher reads the ends of attempts by the clock of an earlier boot.

use miserly_api::model::{Exit, JobView, KilledBy, Phase, Submission};
use miserly_engine::{Absence, Action, Attempt, AttemptOutcome};

use super::life::{Life, job, seconds};

const POLICIES: [&str; 6] =
    ["miser", "conservative", "easy", "ss", "immediate(policy=fcfs-backfill, quantum=30s, after=0s)", "gang"];

/// A life whose running jobs a shutdown ended, under the first daemon of the next boot.
struct Rebooted {
    life: Life,
    ordinary: i64,
    restartable: i64,
    waits: i64,
}

impl Rebooted {
    /// The jobs ended at second `end` by the launcher's clock, and the next daemon begins at second `back`.
    fn new(policy: &str, end: i64, back: i64) -> Rebooted {
        let mut life = Life::of_policy(policy, 2, 2);
        let ordinary = life.submit(1, job(1, 600));
        let restartable = life.submit(1, Submission { restartable: true, ..job(1, 600) });
        let waits = life.submit(2, Submission { restartable: true, ..job(2, 60) });
        let launched =
            |job: &i64| life.actions(*job).iter().any(|action| matches!(action, Action::Launch(_)));
        let launched: Vec<i64> = [ordinary, restartable, waits].into_iter().filter(launched).collect();
        let ended = |job| {
            let exit = Exit::Signal(15);
            let by = Some(KilledBy::Shutdown);
            (Attempt { job, nth: 1 }, AttemptOutcome::Ended { at: seconds(end), exit, by })
        };
        let ended = launched.into_iter().map(ended).collect();
        life.begin(back, &Absence { ended, ..Absence::default() });
        Rebooted { life, ordinary, restartable, waits }
    }
}

/// Returns the seconds of the start and the end of a job that a shutdown ended.
#[track_caller]
fn shut_down(job: &JobView) -> (i64, i64) {
    match job.phase {
        Phase::Killed { start: Some(start), end, by: KilledBy::Shutdown, .. } => {
            (Life::second(start), Life::second(end))
        }
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_ran_no_longer_than_until_now_whatever_clock_its_end_is_of() {
    for policy in POLICIES {
        for (end, back, expected) in
            [(7, 20, 7), (12 * 60, 20, 20), (i64::from(u32::MAX), 20, 20), (-700, 20, 1)]
        {
            let Rebooted { mut life, ordinary, .. } = Rebooted::new(policy, end, back);
            let shown = shut_down(&life.job(back + 1, ordinary));
            assert_eq!(shown, (1, expected), "{policy}: an end at {end}");
        }
    }
}

#[test]
fn a_restartable_job_runs_again_after_a_reboot_and_all_others_run() {
    for policy in POLICIES {
        for end in [7, 12 * 60] {
            let rebooted = Rebooted::new(policy, end, 20);
            let Rebooted { mut life, restartable, waits, .. } = rebooted;
            let (mut left, mut launched) = (vec![restartable, waits], vec![]);
            for second in 21..1000 {
                life.turn(second, vec![]);
                let launch = |job: &i64, life: &Life| {
                    life.actions(*job).iter().any(|action| matches!(action, Action::Launch(_)))
                };
                launched.extend(left.iter().copied().filter(|job| launch(job, &life)));
                left.retain(|job| !launched.contains(job));
                for job in std::mem::take(&mut launched) {
                    let nth = life.job(second, job).attempts;
                    life.end_attempt(second + 1, Attempt { job, nth });
                }
            }
            assert!(left.is_empty(), "{policy}: {left:?} wait");
            for job in [restartable, waits] {
                let shown = life.job(1001, job);
                assert!(matches!(shown.phase, Phase::Done { .. }), "{policy}: {:?}", shown.phase);
            }
            assert_eq!(life.job(1001, restartable).attempts, 2, "{policy}");
        }
    }
}
