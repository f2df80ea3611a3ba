//! The fields of a configuration file, for documents.
//!
//! A test compares their names with those that the parser accepts.

use self::DefaultValue::{Described, Is};

/// A table of a configuration file.
#[derive(Debug)]
pub struct Table {
    /// The heading of the table, as it is written; empty for the fields before all tables.
    pub name: &'static str,
    /// The content.
    pub title: &'static str,
    /// The fields, in the order of the parser.
    pub fields: &'static [Field],
}

/// A field of a configuration file.
#[derive(Debug)]
pub struct Field {
    /// The name.
    pub name: &'static str,
    /// The values that it can have.
    pub takes: &'static str,
    /// The effect, in Markdown.
    pub meaning: &'static str,
    /// The value of a missing field: as it is written, or in Markdown.
    pub default: DefaultValue,
}

/// The value of a missing field.
#[derive(Debug)]
pub enum DefaultValue {
    /// This value, as it is written.
    Is(&'static str),
    /// A value that depends on the machine or on other fields, in words.
    Described(&'static str),
}

const fn field(
    name: &'static str,
    takes: &'static str,
    meaning: &'static str,
    default: DefaultValue,
) -> Field {
    Field { name, takes, meaning, default }
}

/// Every table of the file.
pub const TABLES: [Table; 6] = [
    Table { name: "", title: "The daemon", fields: &DAEMON },
    Table { name: "[user-limits]", title: "limits of each user but root", fields: &USER_LIMITS },
    Table { name: "[[limit]]", title: "limits of some users", fields: &LIMIT },
    Table { name: "[pool]", title: "the resources of all queues", fields: &POOL },
    Table { name: "[[queue]]", title: "a queue", fields: &QUEUE },
    Table { name: "calendar", title: "a rule of a calendar", fields: &RULE },
];

const DAEMON: [Field; 26] = [
    field(
        "state",
        "absolute path",
        "The folder of the state. It must not be on a network file system.",
        Described("`/var/lib/miserly` for root, else `$XDG_STATE_HOME/miserly` or `~/.local/state/miserly`"),
    ),
    field(
        "socket",
        "absolute path",
        "The socket of the API.",
        Described(
            "`/run/miserly/socket` for root, else `$XDG_RUNTIME_DIR/miserly/socket` or `/tmp/miserly-UID/socket`",
        ),
    ),
    field(
        "access",
        "`\"own\"` or `\"everybody\"`",
        "The users with access. `own`: the daemon's user and root. `everybody`: all others may look, and submit if `user` is set. \
         Without `user` only the daemon's user submits, because jobs run as that user.",
        Is("\"own\""),
    ),
    field(
        "user",
        "name of a user",
        "Runs each job as the user who submitted it ([Users](../daemon/users.md#jobs-of-other-users)). \
         The daemon is started by root, and becomes this user. The user has a group of the same name without other members.",
        Described("none: all jobs run as the user who started the daemon"),
    ),
    field("allow-root", "true or false", "Whether root may submit jobs. Only with `user`.", Is("false")),
    field(
        "private-folders",
        "true or false",
        "Whether each job has `/tmp`, `/dev/shm` and System V IPC of its own, which are gone with it. \
         Their content counts as memory of the job. Only with `user`.",
        Is("true"),
    ),
    field(
        "no-new-privileges",
        "true or false",
        "Whether programs with the set-user-ID bit, such as `sudo`, give jobs no rights. A queue may differ. Only with `user`.",
        Is("true"),
    ),
    field(
        "pam",
        "name of a service",
        "The service of PAM. Its account modules are asked at each submission and at each start; its session modules \
         set limits and variables of each job. \
         It must not have `pam_systemd`, which moves the job to another group. Only with `user`.",
        Described("none: jobs have the limits of the daemon"),
    ),
    field(
        "cgroup",
        "`\"systemd\"` or absolute path",
        "The place in which each job gets a control group ([Control groups](../daemon/enforcement.md#control-groups)): \
         a scope that the daemon asks systemd for, as root, or a folder of cgroup v2. \
         The folder is created if its parent exists.",
        Described("none: jobs have no control groups"),
    ),
    field(
        "confine",
        "true or false",
        "Whether other programs are kept off the processors of jobs in their windows \
         ([Confinement](../daemon/enforcement.md#confinement)). \
         It needs `cgroup = \"systemd\"`, and a processor outside the pool.",
        Described("true with `cgroup = \"systemd\"`, else false"),
    ),
    field(
        "utc-offset",
        "offset",
        "The offset of the calendars' clock from UTC, such as `\"+01:00\"`. There is no daylight saving.",
        Is("\"+00:00\""),
    ),
    field(
        "grace",
        "time",
        "The time before the end of a window at which a job gets `SIGTERM`. \
         It is at most a tenth of the job's time. The job is killed at the end.",
        Is("\"10s\""),
    ),
    field(
        "cleanup-time",
        "time",
        "The time after the end of a window for which its resources stay reserved, \
         until the job has certainly ended.",
        Is("\"5s\""),
    ),
    field(
        "orphan-resume-delay",
        "time",
        "The time after which the shim of a stopped job resumes it when no daemon runs.",
        Is("\"10min\""),
    ),
    field(
        "preempt-lead-time",
        "time",
        "The time before a promised start at which opportunistic jobs on its processors are parked.",
        Is("\"5s\""),
    ),
    field(
        "opportunistic",
        "true or false",
        "Whether jobs run on idle resources before their start.",
        Is("true"),
    ),
    field(
        "whole-cores",
        "true or false",
        "Whether jobs get whole cores: requests for processors are rounded up, and no two jobs in their windows share a core \
         ([Which processors](../daemon/queues.md#which-processors)).",
        Is("false"),
    ),
    field(
        "memory-reserve",
        "memory",
        "The memory of the machine that is not for jobs. The pool has at most the rest, without huge pages. \
         Opportunistic jobs are parked while less is available \
         ([Memory of opportunistic jobs](../daemon/queues.md#memory-of-opportunistic-jobs)).",
        Described("a tenth of the machine's"),
    ),
    field(
        "keep-history",
        "time",
        "The time for which finished jobs and the journal are remembered \
         ([What is remembered](../daemon/operate.md#what-is-remembered)).",
        Described("for ever"),
    ),
    field(
        "backup-interval",
        "time, at least 1 s",
        "The time between backups of the state \
         ([Durable state](../daemon-configuration.md#durable-state)).",
        Is("\"1h\""),
    ),
    field("backup-keep", "whole number, at least 1", "The number of backups kept.", Is("3")),
    field(
        "operators",
        "table",
        "The lists `users` and `groups`: those who may see and change all jobs, use every queue and drain the daemon, \
         as root and the daemon's user may ([Rights](../daemon/users.md#rights)).",
        Described("none"),
    ),
    field("user-limits", "table", "The limits of each user, below.", Described("none")),
    field("limit", "tables", "The limits of some users, below.", Described("none")),
    field("pool", "table", "The resources of all queues, below.", Described("half of the machine")),
    field(
        "queue",
        "tables",
        "The queues, below. Jobs that name no queue go to the first one.",
        Described("one queue, `batch`, with the whole pool"),
    ),
];

const USER_LIMITS: [Field; 9] = [
    field(
        "requests-per-minute",
        "whole number",
        "The requests of a user in a minute. The daemon's user and root are exempt from this one.",
        Described("none"),
    ),
    JOBS,
    QUEUED,
    RUNNING,
    CPUS,
    BYTES,
    CPU_TIME,
    CPU_HOURS,
    PERIOD,
];

const LIMIT: [Field; 12] = [
    field("name", "text", "The name, in refusals and in `miserly limits`.", Described("required")),
    field("users", "list of names or numbers", "The users.", Described("none")),
    field("groups", "list of names or numbers", "The groups whose members are limited.", Described("none")),
    field(
        "together",
        "true or false",
        "Whether the limits are for all of these users together, in place of each of them \
         ([Limits of users](../daemon/users.md#limits-of-users)).",
        Is("false"),
    ),
    JOBS,
    QUEUED,
    RUNNING,
    CPUS,
    BYTES,
    CPU_TIME,
    CPU_HOURS,
    PERIOD,
];

const JOBS: Field = field("jobs", "whole number", "The unfinished jobs of a user.", Described("none"));
const QUEUED: Field = field(
    "queued",
    "whole number",
    "Those of them that are not in their windows. A new job counts.",
    Described("none"),
);
const RUNNING: Field = field(
    "running",
    "whole number",
    "The jobs that run, or wait with a promise, at the same time. Further ones wait without a promise.",
    Described("none"),
);
const CPUS: Field = field("cpus", "whole number", "The processors of these jobs.", Described("none"));
const BYTES: Field = field(
    "bytes",
    "memory",
    "The commands, scripts and environments of the unfinished jobs.",
    Described("none"),
);
const CPU_TIME: Field = field(
    "cpu-time",
    "time",
    "The sum of the processors of the unfinished jobs times their time limits.",
    Described("none"),
);
const CPU_HOURS: Field = field(
    "cpu-hours",
    "number",
    "The processor hours of the windows that ended within the period, and of the unfinished jobs.",
    Described("none"),
);
const PERIOD: Field =
    field("period", "time", "The period of `cpu-hours`: 1 to 366 whole days.", Is("\"30d\""));

const POOL: [Field; 4] = [
    field(
        "cpus",
        "whole number",
        "The processors.",
        Described("half of those that the daemon may use, at least 1"),
    ),
    field("memory", "memory", "The memory.", Described("half of the machine's")),
    field(
        "gpus",
        "whole number",
        "The GPUs, with the indexes from 0 on ([GPUs](../daemon/queues.md#gpus)).",
        Is("0"),
    ),
    field("calendar", "list of rules", "Other amounts at certain hours.", Described("no rule")),
];

const QUEUE: [Field; 21] = [
    field("name", "letters, digits, `-`, `_`", "The name.", Described("required")),
    field(
        "cpus",
        "whole number",
        "The processors of its pool.",
        Described("a single queue has the pool's; of several, each states it"),
    ),
    field(
        "memory",
        "memory",
        "The memory of its pool.",
        Described("a single queue has the pool's; of several, each states it"),
    ),
    field(
        "gpus",
        "whole number",
        "The GPUs of its pool. Its policy must not suspend, requeue or slice jobs.",
        Described("a single queue has the pool's; of several, none"),
    ),
    field(
        "calendar",
        "list of rules",
        "Other amounts at certain hours.",
        Described("a single queue has the pool's; of several, none"),
    ),
    field("policy", "policy", "A policy in its written form ([Policies](policies.md)).", Is("\"miser\"")),
    field(
        "shadow",
        "policy",
        "A second policy, which sees the same jobs and starts none: \
         [`miserly shadow report`](../how-to/shadow.md) tells what it would have done.",
        Described("no shadow"),
    ),
    field(
        "users",
        "list of names or numbers",
        "The users of the queue. Root and the daemon's user may use every queue.",
        Described("all users"),
    ),
    field(
        "groups",
        "list of names or numbers",
        "The groups of the queue. The system's databases (NSS) name the groups of a user at each submission. \
         A group that is empty or unknown admits nobody.",
        Described("all users"),
    ),
    field(
        "horizon",
        "time",
        "The limit of how far ahead a window may lie, for a policy with such a parameter.",
        Described("the policy's own"),
    ),
    field(
        "default-time",
        "time",
        "The time limit of a job without `--time`.",
        Described("`--time` is required"),
    ),
    field("max-time", "time", "The longest time limit.", Described("none")),
    field(
        "default-memory",
        "memory",
        "The memory of a job without `--memory`.",
        Described("the queue's memory divided by its processors, for a job of any width"),
    ),
    field(
        "strict",
        "true or false",
        "Whether a job in its window has its processors for itself also while they are idle \
         ([Strict queues](../daemon/enforcement.md#strict-queues)). \
         It needs `cgroup = \"systemd\"`, and a processor outside the pool.",
        Is("false"),
    ),
    field(
        "pause",
        "true or false",
        "Whether users may stop their jobs in their windows (`miserly pause`). The window goes on.",
        Is("true"),
    ),
    field(
        "promise-slack",
        "time, at most a day",
        "The time from the planned start of a job to the latest start that it is promised \
         ([promises](../explanation/promises.md)). Only absences, stalls and launches use it.",
        Is("\"2s\""),
    ),
    field(
        "no-new-privileges",
        "true or false",
        "Whether programs with the set-user-ID bit, such as `sudo`, give its jobs no rights. Only with `user`.",
        Described("that of the whole file"),
    ),
    field(
        "prolog",
        "list of words",
        "A program that runs before the command of each job, by its absolute path, and its arguments \
         ([Prolog and epilog](../daemon/queues.md#prolog-and-epilog)). With `user` it runs as root.",
        Described("none"),
    ),
    field(
        "prolog-time",
        "time, at most 10 min",
        "The time after which the prolog is killed. The job then fails.",
        Is("\"1min\""),
    ),
    field(
        "epilog",
        "list of words",
        "A program that runs after the last process of each job, before its resources are free. It is as `prolog`.",
        Described("none"),
    ),
    field(
        "epilog-time",
        "time, at most 10 min",
        "The time after which the epilog is killed. It is at least a second less than `cleanup-time`.",
        Described("one minute, but at most `cleanup-time` less a second"),
    ),
];

const RULE: [Field; 5] = [
    field(
        "days",
        "days or ranges of days",
        "The days, such as `\"sat,sun\"` or `\"fri-mon\"`.",
        Described("every day"),
    ),
    field("from", "time of day", "The start, such as `\"08:00\"`.", Described("the start of the day")),
    field(
        "to",
        "time of day",
        "The end. A `to` that is not after `from` is on the next day.",
        Described("the end of the day"),
    ),
    field("cpus", "whole number", "The processors in that time.", Described("as at all other times")),
    field("memory", "memory", "The memory in that time.", Described("as at all other times")),
];

#[cfg(test)]
mod tests {

    use super::*;
    use crate::config::{ConfigError, Configuration, Machine};

    fn problem(text: &str) -> String {
        let machine = Machine::new((0..16).collect(), 64 << 20);
        let parsed: Result<Configuration, ConfigError> = Configuration::parse("daemon.toml", text, &machine);
        parsed.expect_err("an unknown field").to_string()
    }

    /// Checks that a table has the fields that the parser lists after an unknown one.
    #[track_caller]
    fn check(table: &Table, text: &str) {
        let names: Vec<String> = table.fields.iter().map(|field| format!("`{}`", field.name)).collect();
        let expect = format!("expected one of {}", names.join(", "));
        let problem = problem(text);
        assert!(problem.ends_with(&expect), "{problem}\n{expect}");
    }

    #[test]
    fn fields_of_the_parser() {
        let [daemon, limits, limit, pool, queue, rule] = &TABLES;
        check(daemon, "nonsense = 1");
        check(limits, "[user-limits]\nnonsense = 1");
        check(limit, "[[limit]]\nnonsense = 1");
        check(pool, "[pool]\nnonsense = 1");
        check(queue, "[[queue]]\nname = 'a'\nnonsense = 1");
        check(rule, "[pool]\ncalendar = [{ nonsense = 1 }]");
    }

    /// The example's defaults are tested against the parser.
    #[test]
    fn defaults_of_the_example() {
        let example = include_str!("../../../../docs/daemon.example.toml");
        for field in &DAEMON {
            if let Is(value) = field.default
                && field.name != "utc-offset"
            {
                let line = format!("# default: {} = {value}\n", field.name);
                assert!(example.contains(&line), "{line}");
            }
        }
    }
}
