//! What a start of the daemon needs besides a right configuration: its user, and systemd.

use super::{Configuration, GroupPlace};
use crate::separation::daemon_user;

impl Configuration {
    /// Returns what this machine lacks for a start, each with its remedy.
    pub fn lacks(&self) -> Vec<String> {
        self.lacks_of(GroupPlace::has_systemd())
    }

    fn lacks_of(&self, has_systemd: bool) -> Vec<String> {
        let user = self.user.as_deref().and_then(|name| daemon_user(name).err());
        let needs_systemd = matches!(self.cgroup, Some(GroupPlace::Systemd { .. }));
        let systemd = (needs_systemd && !has_systemd).then(|| {
            "cgroup = \"systemd\": systemd does not manage this machine (there is no /run/systemd/system), so jobs would have \
             no control groups; remove the line, or give a folder of cgroup v2"
                .to_owned()
        });
        user.map(|problem| problem.to_string()).into_iter().chain(systemd).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Machine;

    #[track_caller]
    fn check(text: &str, has_systemd: bool, expect: &[&str]) {
        let machine = Machine::new((0..4).collect(), 8 << 20);
        let text = format!("{text}\n[pool]\ncpus = 2\nmemory = '2GiB'\n");
        let lacks = Configuration::parse("daemon.toml", &text, &machine).unwrap().lacks_of(has_systemd);
        assert_eq!(lacks.len(), expect.len(), "{lacks:?}");
        for (lack, expect) in lacks.iter().zip(expect) {
            assert!(lack.contains(expect), "{lack}");
        }
    }

    #[test]
    fn unknown_users_and_a_missing_systemd() {
        check("", false, &[]);
        check(
            "user = 'no-such-user'",
            true,
            &["create it with `useradd --system --user-group no-such-user`"],
        );
        check("user = 'root'", true, &["this user has the rights of root"]);
        check("user = 'no-such-user'\ncgroup = 'systemd'", true, &["no such user"]);
        check(
            "user = 'no-such-user'\ncgroup = 'systemd'",
            false,
            &["no such user", "systemd does not manage"],
        );
        check("cgroup = '/sys/fs/cgroup/miserly'", false, &[]);
    }
}
