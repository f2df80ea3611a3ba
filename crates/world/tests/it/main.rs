//! Scripts that once failed, and the properties of scripts that others rest on.

#![allow(clippy::unwrap_used)] // A helper of a test fails as the test does.

use std::fs;
use std::path::Path;

use miserly_world::{Outcome, Script, Step, run, script, write_out};

fn kept() -> Vec<(String, Script)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut kept: Vec<(String, Script)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            (path.display().to_string(), serde_json::from_str(&text).unwrap())
        })
        .collect();
    kept.sort_by(|one, other| one.0.cmp(&other.0));
    kept
}

#[test]
fn what_once_failed_does_not_fail_again() {
    let kept = kept();
    assert!(kept.len() >= 10);
    for (name, script) in kept {
        let Outcome { failure, .. } = run(&script);
        assert_eq!(failure, None, "{name}:\n{script}");
    }
}

/// Jobs are written out and continue, also over a kill of the daemon in between and a reboot.
#[test]
fn suspended_jobs_are_written_out() {
    let restarts = |trace: &str| trace.matches("restarts, and was written out: Some").count();
    let (_, script) = kept().into_iter().find(|(name, _)| name.contains("written-out-over-a-kill")).unwrap();
    let Outcome { failure, trace, .. } = run(&script);
    assert_eq!((failure, restarts(&trace)), (None, 1), "{trace}");
    let (mut continued, mut failed) = (0, 0);
    for seed in 0..4 {
        let mut script = miserly_world::script(seed, 300, false);
        write_out(seed, &mut script);
        let Outcome { failure, trace, .. } = run(&script);
        assert_eq!(failure, None, "seed {seed}");
        continued += restarts(&trace);
        failed += trace.matches("failed: Some").count();
    }
    assert!(continued > 3 && failed > 3, "{continued} {failed}");
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in [3, 57, 350] {
        let [one, other] = [(); 2].map(|()| run(&script(seed, 300, true)));
        assert!(one.trace.lines().count() > 100 && one.jobs > 0, "seed {seed}");
        assert_eq!(one, other, "seed {seed}");
    }
}

#[test]
fn a_script_is_stored_as_it_is() {
    for seed in 0..20 {
        let script = script(seed, 100, false);
        assert_eq!(serde_json::from_str::<Script>(&script.to_json()).unwrap(), script, "seed {seed}");
    }
}

/// Each kind of step comes in some of the seeds that every change plays, and each seed has few of them.
#[test]
fn the_seeds_have_all_kinds_of_steps() {
    let kind = |step: &Step| format!("{step:?}").split([' ', '{']).next().unwrap_or_default().to_owned();
    let mut all = std::collections::BTreeSet::new();
    let mut fewest = usize::MAX;
    for seed in 0..200 {
        let kinds: std::collections::BTreeSet<String> =
            script(seed, 300, true).steps.iter().map(kind).collect();
        fewest = fewest.min(kinds.len());
        all.extend(kinds);
    }
    assert!(fewest < 5, "{fewest}");
    let expect = [
        "BackUp",
        "FailCommit",
        "FailOpen",
        "Full",
        "Kill",
        "KillShim",
        "Reboot",
        "Reload",
        "Request",
        "Restore",
        "SetWall",
        "ShutDown",
        "SignalMain",
        "Soon",
        "Stall",
        "Start",
        "Stop",
        "StopShim",
        "Submit",
        "TearCommit",
        "Wait",
    ];
    assert_eq!(all.iter().map(String::as_str).collect::<Vec<_>>(), expect);
}
