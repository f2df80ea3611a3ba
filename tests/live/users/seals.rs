//! Jobs that were changed in the store of the daemon.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use miserly_api::model::Phase;
use miserly_engine::{JobRow, Journal, JournalBatch};
use miserly_live::store::Store;

use super::{asleep, is_done, submit};
use crate::support::Daemon;
use crate::support::accounts::{Account, Accounts};

/// A daemon that is broken into can change its own store. It cannot make a job of it.
#[test]
fn a_job_that_was_changed_in_the_store_does_not_run() {
    let Some(accounts) = Accounts::new() else { return };
    let (ann, bob) = (&accounts.ann, &accounts.bob);
    let mut daemon = asleep(&accounts, "");
    daemon.start();
    let order = |user| submit(&daemon, user, &["--hold"], "touch ran-as-submitted");
    let [command, user, seal, same] = [order(ann), order(ann), order(bob), order(ann)];
    daemon.stop();
    change(&daemon, &accounts.daemon, |number, record| {
        let credential =
            |record: &serde_json::Value| record["credential"].as_str().expect("it has one").to_owned();
        if number == command {
            record["submission"]["command"][2] = "touch changed".into();
        } else if number == user {
            let changed = credential(record).replace(&ann.uid.to_string(), &bob.uid.to_string());
            assert_ne!(changed, credential(record));
            record["uid"] = bob.uid.into();
            record["credential"] = changed.into();
        } else if number == seal {
            record.as_object_mut().expect("a record").remove("credential");
        }
    });
    daemon.start();
    for (job, says) in [(command, "does not prove"), (user, "does not prove"), (seal, "has no credential")] {
        daemon.client().release(job).expect("it is released");
        let phase = daemon.wait(job).phase;
        assert!(matches!(&phase, Phase::Failed { message, .. } if message.contains(says)), "{phase:?}");
    }
    for folder in [ann, bob].map(|user| daemon.path(&user.name)) {
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "nothing ran");
    }
    daemon.client().release(same).expect("it is released");
    is_done(&daemon, same);
    assert!(daemon.path(&ann.name).join("ran-as-submitted").exists());
}

/// Changes the records of the jobs in the store of a daemon that does not run.
fn change(daemon: &Daemon, owner: &Account, mut change: impl FnMut(i64, &mut serde_json::Value)) {
    let state = daemon.state();
    fs::set_permissions(&state, Permissions::from_mode(0o700)).expect("a mode");
    give(&state, "root");
    let mut store = Store::open(&state).expect("a store");
    let mut batch = JournalBatch::default();
    for row in Journal::live_jobs(&store).expect("rows") {
        let mut record = serde_json::from_str(&row.body).expect("a record");
        change(row.number, &mut record);
        batch.rows.push(JobRow { body: record.to_string(), ..row });
    }
    Journal::commit(&mut store, batch).expect("a commit");
    drop(store);
    give(&state, &owner.name);
}

/// Gives the files of a daemon to a user.
fn give(state: &Path, user: &str) {
    let forecasts = ["forecasts.db", "forecasts.db-wal", "forecasts.db-shm"];
    let files =
        ["lock", "store", "backups", "ended"].into_iter().chain(forecasts).map(|name| state.join(name));
    let files = files.filter(|path| path.exists());
    let mut command = Command::new("chown");
    assert!(command.arg("-R").arg(format!("{user}:")).args(files).status().expect("chown").success());
}

/// A daemon that is broken into launches a submission again as another job, or in another queue or with more memory.
#[test]
fn a_seal_serves_for_one_job_with_its_queue_and_its_memory() {
    let Some(accounts) = Accounts::new() else { return };
    let ann = &accounts.ann;
    let mut daemon = asleep(&accounts, "");
    daemon.start();
    let order = |script: &str| submit(&daemon, ann, &["--hold", "--memory", "16MiB"], script);
    let [first, again, memory, queue, spent] = ["touch ran-first", "true", "true", "true", "true"].map(order);
    daemon.client().release(spent).expect("it is released");
    is_done(&daemon, spent);
    daemon.stop();
    let mut of_first = None;
    change(&daemon, &accounts.daemon, |number, record| {
        if number == first {
            of_first = Some((record["submission"].clone(), record["credential"].clone()));
        } else if number == memory {
            record["submission"]["memory"] = (64 << 20).into();
            record["memory"] = (64 << 10).into();
        } else if number == queue {
            record["submission"]["queue"] = "other".into();
        }
    });
    let (submission, credential) = of_first.expect("it waits");
    change(&daemon, &accounts.daemon, |number, record| {
        if number == again {
            record["submission"] = submission.clone();
            record["credential"] = credential.clone();
        }
    });
    daemon.start();
    daemon.client().release(first).expect("it is released");
    is_done(&daemon, first);
    for (job, says) in [(again, "was used for job"), (memory, "does not prove"), (queue, "does not prove")] {
        daemon.client().release(job).expect("it is released");
        let phase = daemon.wait(job).phase;
        assert!(matches!(&phase, Phase::Failed { message, .. } if message.contains(says)), "{phase:?}");
    }
}
