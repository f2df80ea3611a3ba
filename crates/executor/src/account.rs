//! The accounts as whom jobs may run.

use std::ffi::CString;
use std::fs;
use std::io;

use miserly_launch::{JobUser, Pam};
use nix::unistd::{Gid, Uid, User, getgrouplist};
use rustix::time::{ClockId, clock_gettime};

use crate::Credential;

/// The highest number of a system user where `/etc/login.defs` names none.
const SYSTEM: u32 = 999;
const DAY: i64 = 86_400;

/// The rules for the accounts as whom jobs may run.
#[derive(Clone, Debug)]
pub(crate) struct Accounts {
    /// Whether root may submit.
    pub(crate) allow_root: bool,
    /// The daemon's user. It may submit, though its number is that of a system user.
    pub(crate) daemon: u32,
    /// The account modules of PAM, if they have a say.
    pub(crate) pam: Option<Pam>,
}

/// The reason why no job runs as a user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccountProblem {
    #[error("root cannot submit jobs here (`allow-root` in the configuration)")]
    Root,
    #[error("user {uid} is a system user (up to {most}), and cannot submit jobs")]
    System { uid: u32, most: u32 },
    #[error("user {0} stands for all users that the system cannot name, and cannot submit jobs")]
    Overflow(u32),
    #[error("user {0} has no account on this machine")]
    Unknown(u32),
    #[error("user {uid} was {then} at the submission and is {now} now")]
    Renamed { uid: u32, then: String, now: String },
    #[error("the account of {0} is locked: it has expired")]
    Expired(String),
    #[error("the account of {user} is not admitted: {reason} (PAM)")]
    NotAdmitted { user: String, reason: String },
    #[error("the account of user {uid} cannot be looked up now: {error}")]
    Unavailable { uid: u32, error: io::Error },
}

impl AccountProblem {
    /// Returns whether a later try may succeed.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self, AccountProblem::Unavailable { .. })
    }
}

impl Accounts {
    /// Returns the account of a user that may submit jobs now, as PAM has it, too.
    pub(crate) fn submitting_account(&self, uid: u32) -> Result<User, AccountProblem> {
        self.account(uid).and_then(|user| self.admitted(user))
    }

    /// Returns the account of a user that may have jobs now. PAM is not asked: its modules may take any time.
    fn account(&self, uid: u32) -> Result<User, AccountProblem> {
        let unavailable = |error: io::Error| AccountProblem::Unavailable { uid, error };
        self.check_number(uid, system_users(), overflow_user())?;
        let found = User::from_uid(Uid::from_raw(uid)).map_err(|error| unavailable(error.into()))?;
        let user = found.ok_or(AccountProblem::Unknown(uid))?;
        match fs::read_to_string("/etc/shadow") {
            Ok(shadow) if is_expired(&shadow, &user.name, today()) => Err(AccountProblem::Expired(user.name)),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unavailable(error)),
            _ => Ok(user),
        }
    }

    /// Returns the user if PAM admits the account.
    fn admitted(&self, user: User) -> Result<User, AccountProblem> {
        match self.pam.as_ref().map(|pam| pam.check_account(&user.name)) {
            Some(Err(reason)) => {
                Err(AccountProblem::NotAdmitted { user: user.name, reason: reason.to_string() })
            }
            Some(Ok(())) | None => Ok(user),
        }
    }

    /// Returns the user of a job that begins now, with the groups of now.
    ///
    /// The primary group is that of the submission if the user is still a member of it. The process that becomes the command asks
    /// the modules of PAM, in the window of the job.
    pub(crate) fn job_user(&self, credential: &Credential) -> Result<JobUser, AccountProblem> {
        let Credential { uid, gid, user: then, .. } = credential;
        let user = self.account(*uid)?;
        if user.name != *then {
            return Err(AccountProblem::Renamed { uid: *uid, then: then.clone(), now: user.name });
        }
        let unavailable = |error: io::Error| AccountProblem::Unavailable { uid: *uid, error };
        let name = CString::new(user.name.as_str()).map_err(|error| unavailable(error.into()))?;
        let groups = getgrouplist(&name, user.gid).map_err(|error| unavailable(error.into()))?;
        let groups: Vec<u32> = groups.into_iter().map(Gid::as_raw).collect();
        let gid = if groups.contains(gid) { *gid } else { user.gid.as_raw() };
        Ok(JobUser { name: user.name, uid: *uid, gid, groups, no_new_privileges: true, pam: None })
    }

    fn check_number(&self, uid: u32, most: u32, overflow: u32) -> Result<(), AccountProblem> {
        match uid {
            0 if self.allow_root => Ok(()),
            0 => Err(AccountProblem::Root),
            _ if uid == overflow => Err(AccountProblem::Overflow(uid)),
            _ if uid <= most && uid != self.daemon => Err(AccountProblem::System { uid, most }),
            _ => Ok(()),
        }
    }
}

/// Returns the highest number of a system user.
fn system_users() -> u32 {
    fs::read_to_string("/etc/login.defs").map_or(SYSTEM, |text| system_users_of(&text))
}

fn system_users_of(definitions: &str) -> u32 {
    let value = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next() == Some("SYS_UID_MAX")).then(|| words.next()?.parse().ok())?
    };
    definitions.lines().find_map(value).unwrap_or(SYSTEM)
}

/// Returns the user that stands for all users without a number in this user namespace.
pub fn overflow_user() -> u32 {
    let text = fs::read_to_string("/proc/sys/kernel/overflowuid");
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(65_534)
}

/// Returns whether an account has expired by this day since 1970. `shadow` has the content of `/etc/shadow`.
///
/// A locked password does not lock the account: a user with a key needs no password.
fn is_expired(shadow: &str, name: &str, today: i64) -> bool {
    let fields = shadow.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut own = fields.filter(|fields| fields.first() == Some(&name));
    let expiry = own.next().and_then(|fields| fields.get(7)?.trim().parse::<i64>().ok());
    expiry.is_some_and(|day| day >= 0 && today >= day)
}

/// Returns the number of days since 1970.
fn today() -> i64 {
    clock_gettime(ClockId::Realtime).tv_sec.div_euclid(DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_root_nor_system_users_submit_jobs() {
        let accounts = |allow_root| Accounts { allow_root, daemon: 995, pam: None };
        let (strict, loose) = (accounts(false), accounts(true));
        let check = |accounts: &Accounts, uid| accounts.check_number(uid, 999, 65_534);
        assert!(matches!(check(&strict, 0), Err(AccountProblem::Root)));
        assert!(check(&loose, 0).is_ok());
        for accounts in [&strict, &loose] {
            for uid in [1, 33, 996, 999] {
                assert!(matches!(check(accounts, uid), Err(AccountProblem::System { .. })), "{uid}");
            }
            assert!(matches!(check(accounts, 65_534), Err(AccountProblem::Overflow(_))));
            for uid in [995, 1000, 1001, 3_000_000_000] {
                assert!(check(accounts, uid).is_ok(), "{uid}");
            }
        }
        assert!(matches!(strict.account(3_999_999_999), Err(AccountProblem::Unknown(_))));
    }

    #[test]
    fn an_account_expires_on_its_day() {
        let shadow = "root:*:1:0:99999:7:::\nann:!$y$x:1:0:99999:7::100:\nbob:x:1:0:99999:7:::\neve:x:1:0:99999:7::-1:\n\
                      annie:x:1:0:99999:7::1:\nodd\n";
        let check = |name: &str, today| is_expired(shadow, name, today);
        assert!(!check("ann", 99) && check("ann", 100) && check("ann", 101));
        assert!(check("annie", 99) && !check("anni", 99));
        for name in ["root", "bob", "eve", "odd", "nobody"] {
            assert!(!check(name, 1_000_000), "{name}");
        }
    }

    #[test]
    fn the_last_system_user_is_that_of_the_machine() {
        assert_eq!(system_users_of("# SYS_UID_MAX 5\nSYS_UID_MIN 1\nSYS_UID_MAX\t499\n"), 499);
        assert_eq!(system_users_of("#SYS_UID_MAX 5\nUID_MIN 1000\n"), SYSTEM);
        assert_eq!(system_users_of("SYS_UID_MAX many\n"), SYSTEM);
    }

    #[test]
    fn an_account_that_has_another_name_is_another_user() {
        let accounts = Accounts { allow_root: true, daemon: 1, pam: None };
        let credential =
            |user: &str, gid| Credential { uid: 0, gid, user: user.into(), issue: None, mac: String::new() };
        let root = accounts.job_user(&credential("root", 0)).unwrap();
        assert_eq!((root.name.as_str(), root.uid, root.gid), ("root", 0, 0));
        // A group of which the user is no member any more is not used.
        assert_eq!(accounts.job_user(&credential("root", 3_999_999_999)).unwrap().gid, 0);
        let renamed = accounts.job_user(&credential("toor", 0));
        assert!(matches!(renamed, Err(AccountProblem::Renamed { .. })), "{renamed:?}");
    }
}
