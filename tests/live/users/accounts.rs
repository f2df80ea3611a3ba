//! The accounts as whom jobs run, and those as whom none run.

use std::fs;
use std::path::{Path, PathBuf};

use miserly_api::model::{Phase, Submission};

use super::{WAIT, awake, command_of, is_done, refused, rights, spec, submit, touch};
use crate::support::accounts::{Account, Accounts, Group};
use crate::support::sh;

#[test]
fn jobs_have_the_groups_of_their_start() {
    let Some(accounts) = Accounts::new() else { return };
    let group = Group::new("lab");
    let daemon = awake(&accounts, "");
    let (ann, bob) = (&accounts.ann, &accounts.bob);
    let [of_ann, of_bob] = [ann, bob].map(|user| submit(&daemon, user, &["--hold"], WAIT));
    ann.change(&["--append", "--groups", &group.0]);
    for (user, job) in [(ann, of_ann), (bob, of_bob)] {
        assert!(command_of(&daemon, user, &["release", &job.to_string()]).status.success());
    }
    let user = |job| spec(&daemon, job).user.expect("a user");
    let (first, second) = (user(of_ann), user(of_bob));
    assert_eq!((first.name.as_str(), first.uid, first.gid), (ann.name.as_str(), ann.uid, ann.gid));
    assert!(first.groups.contains(&group.number()) && first.groups.contains(&ann.gid), "{first:?}");
    assert_eq!((second.name.as_str(), second.groups), (bob.name.as_str(), vec![bob.gid]));
    for (user, job) in [(ann, of_ann), (bob, of_bob)] {
        touch(&daemon, user, "go");
        is_done(&daemon, job);
    }
}

/// The shim sets the identity of the command.
#[test]
fn a_job_is_a_process_of_its_user() {
    let Some(accounts) = Accounts::new() else { return };
    let daemon = awake(&accounts, "");
    for user in [&accounts.ann, &accounts.bob] {
        let job = submit(&daemon, user, &["--output", "out"], "id -u; id -g; id -G; touch own");
        is_done(&daemon, job);
        let folder = daemon.path(&user.name);
        let Account { uid, gid, .. } = user;
        assert_eq!(fs::read_to_string(folder.join("out")).unwrap(), format!("{uid}\n{gid}\n{gid}\n"));
        for file in ["out", "own"] {
            assert_eq!(rights(&folder.join(file)).0, *uid, "{file}");
        }
    }
}

#[test]
fn neither_root_nor_system_users_nor_expired_accounts_have_jobs() {
    let Some(accounts) = Accounts::new() else { return };
    let daemon = awake(&accounts, "");
    let job = |name: &str, uid, gid| {
        let user = Account { name: name.to_owned(), uid, gid };
        command_of(&daemon, &user, &["submit", "--time", "5s", "--directory", "/", "true"])
    };
    refused(&job("run", 0, 0), "root cannot submit jobs here");
    refused(&job("run", 33, 33), "is a system user");
    refused(&job("run", 3_000_000_001, 33), "has no account");
    let ann = &accounts.ann;
    let [first, second] = [0; 2].map(|_| submit(&daemon, ann, &["--hold"], "touch ran"));
    ann.change(&["--expiredate", "1"]);
    refused(&command_of(&daemon, ann, &["submit", "--time", "5s", "true"]), "has expired");
    daemon.client().release(first).expect("it is released");
    let phase = daemon.wait(first).phase;
    assert!(matches!(&phase, Phase::Failed { message, .. } if message.contains("has expired")), "{phase:?}");
    ann.change(&["--expiredate", ""]);
    daemon.client().release(second).expect("it is released");
    is_done(&daemon, second);
}

#[test]
fn root_has_jobs_where_the_configuration_allows_it() {
    let Some(accounts) = Accounts::new() else { return };
    let daemon = awake(&accounts, "allow-root = true\n");
    let job = daemon.submit(&Submission { directory: "/".into(), ..sh("true", 5.0) });
    is_done(&daemon, job);
    assert_eq!(daemon.job(job).user, "root");
}

/// Removes a file when it is dropped.
struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn pam_is_asked_at_the_submission_and_at_the_start() {
    let Some(accounts) = Accounts::new() else { return };
    let service = format!("mt-{}", std::process::id());
    let file = File(Path::new("/etc/pam.d").join(&service));
    let modules =
        |control: &str| fs::write(&file.0, format!("account required {control}.so\n")).expect("a file");
    modules("pam_permit");
    let daemon = awake(&accounts, &format!("pam = \"{service}\"\n"));
    let ann = &accounts.ann;
    let [first, second] = [0; 2].map(|_| submit(&daemon, ann, &["--hold"], "true"));
    modules("pam_deny");
    refused(&command_of(&daemon, ann, &["submit", "--time", "5s", "true"]), "is not admitted");
    daemon.client().release(first).expect("it is released");
    let phase = daemon.wait(first).phase;
    assert!(matches!(&phase, Phase::Failed { message, .. } if message.contains("PAM refuses")), "{phase:?}");
    modules("pam_permit");
    daemon.client().release(second).expect("it is released");
    is_done(&daemon, second);
}
