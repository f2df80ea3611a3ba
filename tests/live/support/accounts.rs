//! Accounts of this machine that exist during a test.

use std::process::{Command, id};
use std::sync::{Mutex, MutexGuard, PoisonError};

use miserly_test_support::Requirement;
use rustix::process::geteuid;

use super::{SOON, until};

/// One test at a time has accounts: the programs lock the databases.
static TURN: Mutex<()> = Mutex::new(());

/// A user of a daemon, and two ordinary users. They are removed at the end.
pub(crate) struct Accounts {
    pub(crate) daemon: Account,
    pub(crate) ann: Account,
    pub(crate) bob: Account,
    _turn: MutexGuard<'static, ()>,
}

/// An account.
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Accounts {
    /// Creates the accounts. If this process cannot, reports the skip of a test.
    #[track_caller]
    pub(crate) fn new() -> Option<Accounts> {
        let can = geteuid().is_root() && Command::new("useradd").arg("--help").output().is_ok();
        if !Requirement::Accounts.is_met(can, "needs root and useradd, to create accounts") {
            return None;
        }
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let account = |name: &str, options: &[&str]| Account::new(&format!("mt-{name}-{}", id()), options);
        Some(Accounts {
            daemon: account("d", &["--system"]),
            ann: account("ann", &[]),
            bob: account("bob", &[]),
            _turn: turn,
        })
    }
}

impl Account {
    fn new(name: &str, options: &[&str]) -> Account {
        let fixed = ["--user-group", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/bin/sh"];
        run("useradd", &[options, &fixed, &[name]].concat());
        Account { name: name.to_owned(), uid: number(name, "-u"), gid: number(name, "-g") }
    }

    /// Changes the account by `usermod`.
    pub(crate) fn change(&self, options: &[&str]) {
        run("usermod", &[options, &[&self.name]].concat());
    }
}

/// Removes a group when it is dropped.
pub(crate) struct Group(pub(crate) String);

impl Group {
    pub(crate) fn new(name: &str) -> Group {
        let group = Group(format!("mt-{name}-{}", id()));
        run("groupadd", &[&group.0]);
        group
    }

    pub(crate) fn number(&self) -> u32 {
        let output = Command::new("getent").args(["group", &self.0]).output().expect("getent");
        let line = String::from_utf8_lossy(&output.stdout).into_owned();
        line.split(':').nth(2).and_then(|number| number.parse().ok()).expect("a group")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = Command::new("groupdel").arg(&self.0).output();
    }
}

impl Drop for Accounts {
    fn drop(&mut self) {
        for account in [&self.daemon, &self.ann, &self.bob] {
            let _ = Command::new("userdel").args(["--force", &account.name]).output();
            let _ = Command::new("groupdel").arg(&account.name).output();
        }
    }
}

/// Runs a program that changes the databases, again while another process has locked them.
#[track_caller]
fn run(program: &str, arguments: &[&str]) {
    let mut last = String::new();
    until(&format!("{program} {arguments:?}"), SOON, || {
        let output = Command::new(program).args(arguments).output().expect("a program of the system");
        last = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() || last.contains("lock"), "{program} {arguments:?}: {last}");
        output.status.success().then_some(())
    });
}

fn number(name: &str, option: &str) -> u32 {
    let output = Command::new("id").args([option, name]).output().expect("id");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}
