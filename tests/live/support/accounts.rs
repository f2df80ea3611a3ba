//! Accounts of this machine that exist during a test.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio, id};
use std::sync::{Mutex, PoisonError};

use miserly_test_support::Requirement;
use rustix::process::geteuid;

use super::{SOON, until};

/// The accounts of this process.
static POOL: Mutex<Pool> = Mutex::new(Pool { free: vec![], count: 0, guard: None });

/// Accounts that no test has now. It takes longer to create and to remove some than many a test does.
struct Pool {
    free: Vec<[Account; 3]>,
    /// The sets that were created.
    count: usize,
    /// The names for a process that removes the accounts when this one has ended, in whatever way.
    guard: Option<ChildStdin>,
}

/// Removes the accounts whose names it has read, once nobody writes any more.
const GUARD: &str = "while read -r name; do all=\"$all $name\"; done; \
    for name in $all; do userdel --force \"$name\"; groupdel \"$name\"; done";

impl Pool {
    fn take(&mut self) -> [Account; 3] {
        self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            [("d", &["--system"][..]), ("ann", &[]), ("bob", &[])].map(|(name, options)| {
                let name = format!("mt-{name}-{}-{}", id(), self.count);
                writeln!(self.guard(), "{name}").expect("a pipe");
                Account::new(&name, options)
            })
        })
    }

    fn guard(&mut self) -> &mut ChildStdin {
        self.guard.get_or_insert_with(|| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", GUARD]).process_group(0);
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().expect("a shell").stdin.take().expect("a pipe")
        })
    }
}

/// A user of a daemon, and two ordinary users. Another test has them at the end of this one.
pub(crate) struct Accounts {
    pub(crate) daemon: Account,
    pub(crate) ann: Account,
    pub(crate) bob: Account,
}

/// An account.
#[derive(Clone)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Accounts {
    /// Returns accounts that no other test has. If this process cannot create any, reports the skip of a test.
    #[track_caller]
    pub(crate) fn new() -> Option<Accounts> {
        let can = geteuid().is_root() && Command::new("useradd").arg("--help").output().is_ok();
        if !Requirement::Accounts.is_met(can, "needs root and useradd, to create accounts") {
            return None;
        }
        let [daemon, ann, bob] = POOL.lock().unwrap_or_else(PoisonError::into_inner).take();
        Some(Accounts { daemon, ann, bob })
    }
}

impl Drop for Accounts {
    fn drop(&mut self) {
        // A test that fails may leave them changed.
        if !std::thread::panicking() {
            let set = [&self.daemon, &self.ann, &self.bob].map(Account::clone);
            POOL.lock().unwrap_or_else(PoisonError::into_inner).free.push(set);
        }
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
