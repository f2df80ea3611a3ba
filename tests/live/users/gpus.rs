//! The GPUs of jobs, enforced by the kernel. Two harmless devices stand for them: `/dev/zero` and `/dev/full`.

use std::fs;
use std::path::PathBuf;

use miserly_api::model::Submission;
use miserly_test_support::Requirement;

use super::{Daemon, asleep, command_of, is_done, refused, runs, submit, text, touch};
use crate::support::accounts::{Account, Accounts};
use crate::support::{SOON, sh, until};

/// A folder of cgroup v2 for the groups of one daemon, which is removed with them.
struct Groups(PathBuf);

impl Groups {
    fn new() -> Option<Groups> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let field = |line: &str, nth| line.split(' ').nth(nth).map(str::to_owned);
        let mount = mounts.lines().find(|line| field(line, 2).as_deref() == Some("cgroup2"));
        let folder = mount.and_then(|line| field(line, 1));
        let folder =
            folder.map(|folder| PathBuf::from(folder).join(format!("mt-gpus-{}", std::process::id())));
        let made = folder.filter(|folder| fs::create_dir(folder).is_ok()).map(Groups);
        let _ = Requirement::Cgroup.is_met(made.is_some(), "needs a cgroup v2 in which it may create groups");
        made
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        let entries =
            |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let jobs: Vec<PathBuf> = entries(self.0.join("jobs")).filter(|path| path.is_dir()).collect();
        let all = jobs.into_iter().chain([self.0.join("jobs"), self.0.join("shims"), self.0.clone()]);
        for folder in all {
            until("a group without processes", SOON, || {
                let _ = fs::write(folder.join("cgroup.kill"), "1");
                (!folder.exists() || fs::remove_dir(&folder).is_ok()).then_some(())
            });
        }
    }
}

const GPUS: &str =
    "[[gpu]]\ntype = \"a\"\nnodes = [\"/dev/zero\"]\n[[gpu]]\ntype = \"a\"\nnodes = [\"/dev/full\"]\n";

fn with_gpus(accounts: &Accounts, more: &str) -> Daemon {
    let mut daemon = asleep(accounts, more);
    let configuration = fs::read_to_string(daemon.path("daemon.toml")).expect("its configuration");
    daemon.configure(&(configuration + GPUS));
    daemon.start();
    daemon
}

/// Returns the output of a job of a user.
fn output(daemon: &Daemon, user: &Account, job: i64) -> String {
    fs::read_to_string(daemon.path(&user.name).join(format!("miserly-{job}.out"))).unwrap_or_default()
}

/// Prints the devices that it can open.
const SEEN: &str =
    "seen() { for d in zero full null; do (: < /dev/$d) 2> /dev/null && printf '%s ' $d; done; echo; }; ";

#[test]
fn a_job_opens_no_gpu_of_another_job() {
    let Some(accounts) = Accounts::new() else { return };
    let Some(groups) = Groups::new() else { return };
    let more = format!("allow-root = true\ncgroup = \"{}\"\n", groups.0.display());
    let mut daemon = with_gpus(&accounts, &more);
    let unenforced = daemon.client().status().expect("a status").unenforced;
    assert!(unenforced.iter().all(|one| one.what != "gpus"), "{unenforced:?}");
    let (ann, bob) = (&accounts.ann, &accounts.bob);
    // The first one tries all that it can, before and after the daemon and the executor have been killed.
    let attacks = format!(
        "{SEEN} seen; echo $MISERLY_GPUS:$CUDA_VISIBLE_DEVICES; CUDA_VISIBLE_DEVICES=0,1 seen; \
         (echo $$ > {}/shims/cgroup.procs) 2> /dev/null || echo stays; \
         setsid -w sh -c '(: < /dev/full) 2> /dev/null && echo opened'; \
         touch began; while [ ! -e go ]; do sleep 0.05; done; seen",
        groups.0.display()
    );
    let first = submit(&daemon, ann, &["--gpus", "a:1", "--memory", "8MiB"], &attacks);
    runs(&daemon, ann, first);
    let second = submit(
        &daemon,
        bob,
        &["--gpus", "1", "--memory", "8MiB"],
        &format!("{SEEN} seen; echo $MISERLY_GPUS:$CUDA_VISIBLE_DEVICES"),
    );
    is_done(&daemon, second);
    assert_eq!(output(&daemon, bob, second), "full null \n1:0\n");
    let none = submit(&daemon, bob, &["--memory", "8MiB"], &format!("{SEEN} seen"));
    is_done(&daemon, none);
    assert_eq!(output(&daemon, bob, none), "null \n");
    // Root's job has the right to make a node, and does not get one.
    let script = format!("{SEEN} seen; mknod own c 1 5 || echo refused; mknod other c 1 3 && echo made");
    let job = daemon.submit(&Submission {
        memory: Some(8 << 20),
        directory: daemon.path(""),
        output: Some("own.out".into()),
        ..sh(&script, 50.0)
    });
    is_done(&daemon, job);
    let seen = fs::read_to_string(daemon.path("own.out")).expect("an output");
    assert!(seen.starts_with("null \n") && seen.ends_with("refused\nmade\n"), "{seen}");
    refused(&command_of(&daemon, bob, &["submit", "--gpus", "h100:1", "-t1", "--", "true"]), "there is a");
    daemon.kill();
    touch(&daemon, ann, "go");
    until("its end", SOON, || {
        output(&daemon, ann, first)
            .ends_with("zero null \n0:0\nzero null \nstays\nzero null \n")
            .then_some(())
    });
    daemon.start();
    is_done(&daemon, first);
}

#[test]
fn without_control_groups_the_status_names_gpus() {
    let Some(accounts) = Accounts::new() else { return };
    let daemon = with_gpus(&accounts, "");
    let output = command_of(&daemon, &accounts.ann, &["status"]);
    let shown = text(&output.stdout);
    assert!(
        shown.contains("gpus: a job can use the GPUs of other jobs: jobs have no control groups"),
        "{shown}"
    );
}
