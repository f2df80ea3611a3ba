//! A state that is replaced by its newest backup: what the backup has goes on, and nothing runs twice.

use std::fs;
use std::thread;
use std::time::Duration;

use super::clocks::Clocks;
use super::fault::Fault;
use super::load::{Load, Told};
use super::runs::Runs;
use super::{Campaign, seed};
use crate::support::{Daemon, Draws, SOON, is_over, processes, queue, rounds, until};

/// What is left of the store besides its backup.
#[derive(Clone, Copy, Debug)]
enum Left {
    /// Nothing.
    Nothing,
    /// The file beside the database, which has the highest number of a job.
    Mark,
}

#[test]
fn a_restored_backup_runs_no_job_twice_and_uses_no_number_again() {
    let seed = seed(18);
    let daemon = Daemon::with_faults(&format!("backup-interval = 1\n{}", queue("miser")));
    let mut campaign = Campaign::new(daemon, seed);
    for round in 0..rounds().div_ceil(10) {
        campaign.round = round;
        let left = campaign.draws.choice(&[Left::Nothing, Left::Mark]);
        round_with(&mut campaign, left);
    }
}

/// Submits jobs, takes a backup, submits more jobs, and goes on with the backup.
fn round_with(campaign: &mut Campaign, left: Left) {
    let known = load(campaign, "known");
    wait_for_backup(&campaign.daemon);
    let pause = Duration::from_millis(campaign.draws.below(300));
    let since = load(campaign, "since");
    thread::sleep(pause);
    let began = fs::read_to_string(campaign.daemon.path("ran")).unwrap_or_default();
    restore(&mut campaign.daemon, left);
    check_restored(campaign, left, &known, &since, &began);
}

/// Goes on with the newest backup, as docs/how-to/backups.md says.
#[track_caller]
fn restore(daemon: &mut Daemon, left: Left) {
    daemon.kill();
    let store = daemon.state().join("store");
    match left {
        Left::Nothing => fs::remove_dir_all(&store).expect("a store"),
        Left::Mark => {
            fs::copy(newest_backup(daemon), store.join("jobs.db")).expect("a copy");
            fs::remove_file(store.join("jobs.db-wal")).expect("a log");
        }
    }
    daemon.start_with(&["--recover"]);
}

#[track_caller]
fn newest_backup(daemon: &Daemon) -> std::path::PathBuf {
    let files = fs::read_dir(daemon.state().join("backups")).expect("backups").flatten();
    let number = |path: &std::path::PathBuf| path.file_stem()?.to_str()?.parse::<u64>().ok();
    let databases =
        files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|end| end == "db"));
    databases.max_by_key(number).expect("a backup")
}

fn load(campaign: &mut Campaign, part: &str) -> Told {
    let load = Load {
        client: campaign.daemon.client(),
        folder: campaign.daemon.path(""),
        clocks: std::sync::Arc::new(std::sync::RwLock::new(Clocks::new(campaign.daemon.faults()))),
        draws: Draws::new(campaign.draws.bits()),
        fault: Fault::KillDaemon,
        name: format!("{part}-{}", campaign.round),
    };
    load.run()
}

/// Waits for a backup that begins from now on.
#[track_caller]
fn wait_for_backup(daemon: &Daemon) {
    let taken = || daemon.log().matches("is complete").count();
    let before = taken();
    // The first one may have begun before.
    until("two backups are taken", SOON, || {
        // Without a commit there is none.
        let held =
            daemon.submit(&miserly_api::model::Submission { hold: true, ..crate::support::sh("true", 4.0) });
        daemon.client().cancel(held, false).expect("it is held");
        (taken() >= before + 2).then_some(())
    });
}

/// All that the backup has is over, nothing ran twice, and no number is used again.
#[track_caller]
fn check_restored(campaign: &mut Campaign, left: Left, known: &Told, since: &Told, began: &str) {
    campaign.finish();
    let daemon = &campaign.daemon;
    let next = daemon.submit(&crate::support::sh("true", 4.0));
    let jobs = daemon.history();
    let find = |number: i64| jobs.iter().find(|job| job.number == number);
    for number in &known.accepted {
        let job = find(*number).unwrap_or_else(|| panic!("job {number} is in the backup, and was lost"));
        assert!(is_over(&job.phase), "job {number}: {:?}", job.phase);
    }
    let runs = Runs::read(daemon);
    runs.check_attempts();
    let told = [&campaign.told, known, since];
    runs.check_processors(|job| told.iter().any(|told| told.in_windows.contains(&job)));
    let has_begun =
        |number: i64| began.lines().any(|line| line.split(' ').nth(1) == Some(&number.to_string()));
    for number in since.accepted.iter().filter(|number| matches!(left, Left::Mark) || has_begun(**number)) {
        assert!(next > *number, "number {number} is used again: {next}, {left:?}");
    }
    until("what the backup does not have is ended", SOON, || {
        processes::shims(&daemon.path("")).is_empty().then_some(())
    });
    campaign.told.in_windows.extend(known.in_windows.iter().chain(&since.in_windows));
}
