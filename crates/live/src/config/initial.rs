//! The first configuration file of a machine, with comments.

use std::fmt::Write;
use std::path::Path;

use nix::unistd::{Group, User};
use rustix::process::geteuid;

use super::gpus::detected;
use super::{GroupPlace, Machine};

/// The kilobytes of a mebibyte and of a gibibyte.
const MEBI: u64 = 1 << 10;
const GIBI: u64 = 1 << 20;

/// Groups of administrators on usual systems.
const ADMINISTRATORS: [&str; 3] = ["sudo", "wheel", "admin"];

/// What a first configuration depends on besides the processors and the memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitialFacts {
    /// Whether root writes it, for all users of the machine.
    pub for_all: bool,
    /// Whether systemd manages the machine.
    pub has_systemd: bool,
    /// Whether there is a user `miserly`, which the daemon can become.
    pub has_user: bool,
    /// A group of administrators with members.
    pub administrators: Option<String>,
    /// The number of GPUs.
    pub gpus: u64,
}

impl InitialFacts {
    /// Returns the facts of this machine.
    pub fn here() -> InitialFacts {
        let has_members = |name: &&str| {
            Group::from_name(name).is_ok_and(|group| group.is_some_and(|group| !group.mem.is_empty()))
        };
        InitialFacts {
            for_all: geteuid().is_root(),
            has_systemd: GroupPlace::has_systemd(),
            has_user: User::from_name("miserly").is_ok_and(|user| user.is_some()),
            administrators: ADMINISTRATORS
                .iter()
                .find(|name| has_members(name))
                .map(|name| (*name).to_owned()),
            gpus: detected(Path::new("/")).len() as u64,
        }
    }
}

/// Returns the first configuration of a machine. It passes its check there.
pub fn initial(machine: &Machine, facts: &InitialFacts) -> String {
    let in_groups = facts.for_all && facts.has_systemd;
    let whole = in_groups.then(|| machine.whole());
    let machine = whole.as_ref().unwrap_or(machine);
    let all = machine.count();
    let cpus = all - spare(all);
    // Programs outside of jobs need a processor.
    let confined = in_groups && cpus < all;
    let memory = rounded((machine.memory - machine.memory / 10).saturating_sub(machine.huge_pages));
    let mut text = format!(
        "# The configuration of Miserly for this machine: {all} processors, {} of memory, {} GPUs.\n\
         # `miserly daemon --check FILE` checks it, `miserly reload` applies a change. Lines that begin with # are examples.\n\
         # Every field: docs/daemon.example.toml\n\n",
        amount(rounded(machine.memory)),
        facts.gpus
    );
    text += "keep-history = \"365d\"        # then ended jobs are forgotten\n";
    if facts.for_all {
        text += &of_all(facts, confined);
    }
    let gpu_line = if facts.gpus > 0 { format!("gpus = {}\n", facts.gpus) } else { String::new() };
    text.push('\n');
    // A write to a text does not fail.
    let _ = write!(
        text,
        "# What all jobs have together.\n\
         [pool]\n\
         cpus = {cpus}                   # of {all}; the rest is for other programs\n\
         memory = \"{0}\"         # a tenth of the machine is for other programs\n\
         {gpu_line}\
         # Fewer processors while people work on the machine:\n\
         # calendar = [{{ days = \"mon-fri\", from = \"08:00\", to = \"18:00\", cpus = {1} }}]\n\n\
         # The first queue is that of jobs without --queue. Further ones share the pool: give each its cpus and memory.\n\
         [[queue]]\n\
         name = \"batch\"\n\
         policy = \"miser\"             # promises every job a start; `miserly policies` lists others\n\
         default-time = \"1h\"          # the time limit of a job without --time\n\
         max-time = \"7d\"\n\
         # default-memory = \"{2}\"   # of a job without --memory; by default its share for one processor\n\
         # users = [\"ada\"]            # who may use it; by default every user that may submit\n\
         # groups = [\"staff\"]\n",
        amount(memory),
        cpus.div_ceil(2),
        amount(rounded((memory / cpus.max(1)).max(MEBI)))
    );
    text
}

/// Returns the fields of a daemon for all users.
fn of_all(facts: &InitialFacts, confined: bool) -> String {
    let user = if facts.has_user { "" } else { "# " };
    let create = if facts.has_user {
        ""
    } else {
        "\n# It needs: useradd --system --user-group --home-dir / --shell /usr/sbin/nologin miserly"
    };
    let groups = match (facts.has_systemd, confined) {
        (true, true) => {
            "cgroup = \"systemd\"           # the kernel keeps the limits of all processes of a job together\n"
        }
        (true, false) => {
            "cgroup = \"systemd\"           # the kernel keeps the limits of all processes of a job together\nconfine = false               # the only processor is for all programs\n"
        }
        (false, _) => {
            "# cgroup = \"systemd\"         # systemd does not manage this machine, so jobs have no control groups\n"
        }
    };
    let (comment, name) = match &facts.administrators {
        Some(name) => ("", name.as_str()),
        None => ("# ", "admins"),
    };
    format!(
        "access = \"everybody\"         # all users of the machine may connect\n\
         {user}user = \"miserly\"            # jobs run as their users, and the daemon gives up root's rights{create}\n\
         {groups}\n\
         # They see, hold and cancel the jobs of all users.\n\
         {comment}[operators]\n\
         {comment}groups = [\"{name}\"]\n\n\
         # Limits of each user but root.\n\
         # [user-limits]\n\
         # jobs = 5000                 # unfinished ones\n\
         # requests-per-minute = 600\n"
    )
}

/// Returns the processors that stay for other programs.
fn spare(all: u64) -> u64 {
    if all > 1 { (all / 32).max(1) } else { 0 }
}

/// Returns an amount of kilobytes as whole gibibytes, or as whole mebibytes if it is small.
fn rounded(kilobytes: u64) -> u64 {
    let unit = if kilobytes >= 4 * GIBI { GIBI } else { MEBI };
    kilobytes / unit * unit
}

/// Returns the text of a rounded amount.
fn amount(kilobytes: u64) -> String {
    if kilobytes > 0 && kilobytes.is_multiple_of(GIBI) {
        format!("{}GiB", kilobytes / GIBI)
    } else {
        format!("{}MiB", kilobytes / MEBI)
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::Kind;

    use super::*;
    use crate::config::Configuration;

    /// Checks the pool that a machine gets: processors, mebibytes and GPUs.
    #[track_caller]
    fn check(machine: &Machine, facts: &InitialFacts, pool: (u64, u64, u64)) -> Configuration {
        let text = initial(machine, facts);
        let configuration = Configuration::parse("daemon.toml", &text, machine);
        let configuration = configuration.unwrap_or_else(|problem| panic!("{problem}\n{text}"));
        let most = configuration.pool.most();
        let found = (most.cpus_count().get(), most.get(Kind::Memory) / MEBI, most.get(Kind::Gpus));
        assert_eq!(found, pool, "{text}");
        assert!(configuration.queues[0].terms.default_time.is_some());
        // The examples are right, too.
        let examples: Vec<&str> = text
            .lines()
            .map(|line| {
                line.strip_prefix("# ")
                    .filter(|rest| rest.contains(" = ") || rest.starts_with('['))
                    .unwrap_or(line)
            })
            .filter(|line| !line.starts_with("confine"))
            .collect();
        let fields = examples.join("\n");
        assert!(toml::from_str::<toml::Table>(&fields).is_ok(), "{fields}");
        configuration
    }

    #[test]
    fn each_machine_gets_a_configuration_that_passes_its_check() {
        let machine = |cpus: u32, gibi: u64| Machine::new((0..cpus).collect(), gibi * GIBI);
        let user = InitialFacts::default();
        check(&machine(1, 1), &user, (1, 921, 0));
        check(&machine(2, 2), &user, (1, 1843, 0));
        check(&machine(64, 251), &InitialFacts { gpus: 4, ..user.clone() }, (62, 225 * 1024, 4));
        let quota = Machine { quota: Some(3), ..machine(16, 64) };
        check(&quota, &user, (2, 57 * 1024, 0));
        let huge = Machine { huge_pages: 8 * GIBI, ..machine(16, 64) };
        check(&huge, &user, (15, 49 * 1024, 0));
        for (has_systemd, has_user) in [(false, false), (true, true), (true, false)] {
            let administrators = has_user.then(|| "wheel".to_owned());
            let facts = InitialFacts { for_all: true, has_systemd, has_user, administrators, gpus: 0 };
            // With `user` or as root, systemd's groups may confine other programs.
            if has_user || geteuid().is_root() {
                let configuration = check(&machine(8, 16), &facts, (7, 14 * 1024, 0));
                assert_eq!(
                    (configuration.cgroup.is_some(), configuration.user.is_some()),
                    (has_systemd, has_user)
                );
            }
        }
    }
}
