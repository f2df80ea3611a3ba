//! Forecasts of the daemon: they are there while jobs wait, and have no bounds until enough of them came out.

use std::fs;

use miserly_api::model::{JobView, Phase, Submission, WhatIf};

use crate::support::{Daemon, SOON, cpus, has_two_cpus, queue, sh, until};

/// A job on all processors, with a limit of ten minutes.
fn wide(daemon: &Daemon, script: &str) -> Submission {
    Submission { cpus: cpus().len() as u64, directory: daemon.path(""), ..sh(script, 600.0) }
}

/// Waits for the forecast of a job.
#[track_caller]
fn forecast(daemon: &Daemon, job: i64) -> JobView {
    until("a forecast", SOON, || Some(daemon.job(job)).filter(|view| view.forecast.is_some()))
}

/// A daemon whose jobs take no time, and two more jobs on all processors: the first one runs until there is a file `go`.
fn with_history(daemon: &Daemon) -> [i64; 2] {
    for _ in 0..4 {
        let job = daemon.submit(&wide(daemon, "exit 0"));
        daemon.wait(job);
    }
    let runs = daemon.submit(&wide(daemon, "while [ ! -e go ]; do sleep 0.05; done"));
    let waits = daemon.submit(&wide(daemon, "exit 0"));
    [runs, waits]
}

#[test]
fn a_forecast_is_earlier_than_the_promise_and_has_no_bounds_at_first() {
    let mut daemon = Daemon::new(&queue("conservative"));
    let [runs, waits] = with_history(&daemon);
    let view = forecast(&daemon, waits);
    let (said, promised) = (view.forecast.expect("a forecast"), view.promise.expect("a promise"));
    let latest = promised.now.expect("a window").start;
    // In whole seconds, rounded up.
    assert!(
        said.made <= said.median && said.median.as_second() <= latest.as_second() + 1,
        "{said:?} {latest}"
    );
    // Nothing came out yet, so there are no bounds.
    assert_eq!((said.by_80, said.by_95, said.bounds()), (None, None, None));
    assert_eq!(daemon.job(runs).forecast, None);
    let what_if = |question: WhatIf| daemon.client().what_if(&question);
    let policy = |policy: &str| WhatIf { policy: Some(policy.to_owned()), ..WhatIf::default() };
    let answer = what_if(policy("easy")).expect("an answer");
    assert_eq!((answer.jobs.len(), answer.not_compared), (1, 0), "{answer:?}");
    assert_eq!(answer.mean.expect("a mean").median.to_bits(), 0.0_f64.to_bits());
    let further = WhatIf { job: Some(wide(&daemon, "exit 0")), ..WhatIf::default() };
    let answer = what_if(further).expect("an answer");
    assert!(answer.quote.is_some_and(|quote| quote.windows.len() == 1 && quote.forecast.is_some()));
    let with_cpus = |cpus| WhatIf { cpus: Some(cpus), ..WhatIf::default() };
    let answer = what_if(with_cpus(2 * cpus().len() as u64)).expect("an answer");
    assert!(answer.jobs[0].difference.largest < 0.0, "{answer:?}");
    assert!(answer.jobs[0].after.as_second() - jiff::Timestamp::now().as_second() < 5, "{answer:?}");
    let uid = rustix::process::getuid().as_raw();
    let without = |uid| WhatIf { without_uid: Some(uid), ..WhatIf::default() };
    assert_eq!(what_if(without(uid)).expect("an answer").not_compared, 1);
    assert_eq!(what_if(without(uid + 1)).expect("an answer").not_compared, 0);
    for (refused, why) in [
        (WhatIf::default(), "exactly one change"),
        (WhatIf { without_uid: Some(1), ..policy("easy") }, "exactly one change"),
        (with_cpus(0), "must be at least 1"),
        (with_cpus(u64::MAX), "runs on at most"),
        (with_cpus(1), "running jobs"),
        (policy("ss"), "ss"),
        (policy("nosuch"), "nosuch"),
        (WhatIf { queue: Some("nowhere".to_owned()), ..policy("easy") }, "nowhere"),
    ] {
        let error = what_if(refused).expect_err("a refusal").to_string();
        assert!(error.contains(why), "{error}");
    }
    // A job that would come behind it.
    let quote = daemon.client().quote(&wide(&daemon, "exit 0")).expect("a quote");
    let said = quote.forecast.expect("a forecast");
    assert_eq!((said.made <= said.median, said.bounds()), (true, None), "{said:?}");
    assert!(quote.windows[0].is_some_and(|window| said.median.as_second() <= window.start.as_second() + 1));
    let queue = daemon.client().all_jobs(&miserly_api::model::Filter::default()).expect("a list");
    assert!(queue.iter().any(|job| job.number == waits && job.forecast.is_some()), "{queue:?}");
    fs::write(daemon.path("go"), "").expect("a file");
    daemon.wait(waits);
    daemon.stop();
    daemon.start();
    // A forecast without bounds is not audited.
    assert_eq!(daemon.client().status().expect("a status").forecasts, None);
    assert!(matches!(daemon.job(waits).phase, Phase::Done { .. }));
    assert_eq!(daemon.job(waits).forecast, None);
}

/// Another policy acts at once, not from the next end on.
#[test]
fn a_job_that_another_policy_would_backfill() {
    if !has_two_cpus() {
        return;
    }
    let daemon = Daemon::new(&queue("fcfs"));
    let waits = "while [ ! -e go ]; do sleep 0.05; done";
    daemon.submit(&Submission { cpus: 1, ..wide(&daemon, waits) });
    daemon.submit(&wide(&daemon, "exit 0"));
    let narrow = daemon.submit(&Submission { cpus: 1, time: 60.0, ..wide(&daemon, waits) });
    let question = WhatIf { policy: Some("easy".to_owned()), ..WhatIf::default() };
    let answer = daemon.client().what_if(&question).expect("an answer");
    let job = answer.jobs.iter().find(|job| job.number == narrow).expect("it is compared");
    assert!(job.difference.largest < -100.0, "{job:?}");
    assert!(job.after.as_second() - jiff::Timestamp::now().as_second() < 5, "{job:?}");
    fs::write(daemon.path("go"), "").expect("a file");
    daemon.wait(narrow);
}

#[test]
fn a_damaged_database_of_forecasts_costs_the_audit_only() {
    let mut daemon = Daemon::asleep(&queue("easy"));
    fs::create_dir_all(daemon.state()).expect("a folder");
    fs::write(daemon.state().join("forecasts.db"), "this is not a database of any kind").expect("a file");
    daemon.start();
    let [_, waits] = with_history(&daemon);
    forecast(&daemon, waits);
    assert!(daemon.log().contains("forecasts are not kept"), "{}", daemon.log());
    fs::write(daemon.path("go"), "").expect("a file");
    daemon.wait(waits);
}

#[test]
fn a_policy_that_suspends_jobs_has_no_forecasts() {
    if !has_two_cpus() {
        return;
    }
    let all = cpus().len();
    let pool = format!("cleanup-time = 1\n[pool]\ncpus = {all}\nmemory = \"64MB\"\n");
    let queue = |policy: &str, cpus: usize| {
        format!("[[queue]]\nname = \"{policy}\"\npolicy = \"{policy}\"\ncpus = {cpus}\nmemory = \"32MB\"\n")
    };
    let daemon = Daemon::new(&format!("{pool}{}{}", queue("ss", all - 1), queue("easy", 1)));
    let job = |policy: &str, cpus: usize, script| Submission {
        queue: Some(policy.to_owned()),
        cpus: cpus as u64,
        memory: Some(1 << 20),
        ..wide(&daemon, script)
    };
    let waits = |policy: &str, cpus| {
        daemon.submit(&job(policy, cpus, "while [ ! -e go ]; do sleep 0.05; done"));
        daemon.submit(&job(policy, cpus, "exit 0"))
    };
    let [suspends, other] = [waits("ss", all - 1), waits("easy", 1)];
    // That of the other queue is made later.
    forecast(&daemon, other);
    assert_eq!(daemon.job(suspends).forecast, None);
    fs::write(daemon.path("go"), "").expect("a file");
    daemon.wait(suspends);
}
