use miserly_core::{Kind, Time};
use miserly_engine::{CpuHours, Limits, Topology, UserLimits, WaitingShimLimits};
use miserly_launch::CriticalPriority;

use super::*;

/// The page that has each field with its meaning.
const FIELDS: &str = include_str!("../../../../docs/daemon/fields.md");

fn machine() -> Machine {
    Machine::new((0..16).collect(), 64 << 20)
}

fn parse(text: &str) -> Result<Configuration, ConfigError> {
    Configuration::parse("daemon.toml", text, &machine())
}

#[test]
fn shims_wait_for_two_windows_on_each_processor_unless_the_file_says_otherwise() {
    let limits = |text| parse(text).unwrap().waiting_shims;
    assert_eq!(limits(""), WaitingShimLimits { most: 256, per_cpu: 2 });
    let written = limits("waiting-shims = 64\nwaiting-shims-per-cpu = 3");
    assert_eq!(written, WaitingShimLimits { most: 64, per_cpu: 3 });
}

/// Checks that the text is rejected with this message.
#[track_caller]
fn refused(text: &str, expect: &str) {
    let message = parse(text).err().map_or_else(|| "nothing".to_owned(), |error| error.to_string());
    assert!(message.starts_with("daemon.toml:") && message.contains(expect), "{message}");
}

#[test]
fn backups_are_taken_as_often_as_written() {
    let configuration = parse("backup-interval = '15min'\nbackup-keep = 8").unwrap();
    let plan = BackupPlan { interval: std::time::Duration::from_mins(15), keep: 8 };
    assert_eq!(configuration.backups, plan);
}

#[test]
fn nothing_written_is_half_the_machine_and_one_queue() {
    let configuration = Configuration::of_machine(&machine()).unwrap();
    let [queue] = &configuration.queues[..] else { panic!("{configuration:?}") };
    assert_eq!((queue.name.as_str(), queue.policy.to_string().as_str()), ("batch", "miser"));
    assert_eq!((queue.pool.most().cpus_count().get(), queue.pool.most().get(Kind::Memory)), (8, 32 << 20));
    assert_eq!(configuration.cpus, (8..16).collect::<Vec<_>>());
    assert_eq!(queue.terms.default_memory, 4 << 20);
    let small = Machine { quota: Some(1), ..Machine::new(vec![3], 1 << 20) };
    let configuration = Configuration::of_machine(&small).unwrap();
    assert_eq!((configuration.cpus, configuration.pool.most().cpus_count().get()), (vec![3], 1));
}

#[test]
fn the_pool_leaves_the_reserve_and_the_huge_pages() {
    let reserve = |text: &str| parse(text).map(|configuration| configuration.memory_reserve).unwrap();
    assert_eq!(reserve("[pool]\nmemory = '57GB'"), (64 << 20) / 10);
    assert_eq!(reserve("memory-reserve = '6GB'\n[pool]\nmemory = '58GB'"), 6 << 20);
    refused(
        "[pool]\nmemory = '58GB'",
        "2: the pool has 58GiB of memory, and the machine has 64GiB, of which 6.4GiB are reserved (memory-reserve): at most \
         57.6GiB are left for jobs",
    );
    refused("memory-reserve = '40GB'", "the pool has 32GiB of memory");
    refused("memory-reserve = 'much'", "memory-reserve: ");
    let huge = Machine { huge_pages: 8 << 20, ..machine() };
    let error =
        Configuration::parse("daemon.toml", "[pool]\nmemory = '50GB'", &huge).unwrap_err().to_string();
    assert!(error.contains("(memory-reserve) and 8GiB are huge pages: at most 49.6GiB"), "{error}");
    let pool = Configuration::of_machine(&huge).unwrap().pool;
    assert_eq!(pool.most().get(Kind::Memory), 28 << 20);
}

#[test]
fn whole_cores_need_whole_cores_in_the_pool() {
    let cores: Vec<Vec<u32>> = (0..8).map(|core| vec![core, core + 8]).collect();
    let siblings = Machine { topology: Topology { cores, nodes: vec![] }, ..machine() };
    let parse = |text: &str| Configuration::parse("daemon.toml", text, &siblings);
    let text = |cpus: u32| format!("whole-cores = true\n[pool]\ncpus = {cpus}\n");
    assert_eq!(parse(&text(4)).unwrap().cpus, [6, 7, 14, 15]);
    assert_eq!(parse("[pool]\ncpus = 4\n").unwrap().cpus, [12, 13, 14, 15]);
    let error = parse(&text(5)).unwrap_err().to_string();
    assert!(error.starts_with("daemon.toml:1: whole-cores: the pool has 5 cpus"), "{error}");
    let gang = text(4) + "[[queue]]\nname = 'a'\npolicy = 'gang'\n";
    let error = parse(&gang).unwrap_err().to_string();
    assert!(
        error
            .contains("whole-cores: the policy gang of queue a chooses single processors and knows no cores"),
        "{error}"
    );
}

#[test]
fn the_example_is_one() {
    let text = include_str!("../../../../docs/daemon.example.toml");
    let configuration = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<&str> = configuration.queues.iter().map(|queue| queue.name.as_str()).collect();
    assert_eq!(names, ["batch", "short"]);
    // The defaults in the example are the real defaults.
    let commented: String = text
        .lines()
        .map(|line| line.strip_prefix("# default: ").unwrap_or(""))
        .fold("user = 'miserly'\n".to_owned(), |all, line| all + line + "\n");
    let defaults = parse(&commented).unwrap_or_else(|error| panic!("{error}\n{commented}"));
    let nothing = parse("user = 'miserly'").unwrap();
    assert_eq!(defaults.rules, nothing.rules);
    assert_eq!(
        (defaults.grace, defaults.cleanup_time, defaults.orphan_resume_delay),
        (nothing.grace, nothing.cleanup_time, nothing.orphan_resume_delay)
    );
    assert_eq!((defaults.preempt_lead_time, defaults.access), (nothing.preempt_lead_time, nothing.access));
    assert_eq!(defaults.backups, nothing.backups);
    assert!(commented.lines().filter(|line| !line.is_empty()).count() >= 8, "{commented}");
}

#[test]
fn the_only_queue_has_the_pool_with_its_calendar() {
    let text = "utc-offset = '+01:00'\n[pool]\ncpus = 12\ncalendar = [{ days = 'mon-fri', from = '08:00', to = '18:00', cpus = 4 }]\n";
    let configuration = parse(text).unwrap();
    let [queue] = &configuration.queues[..] else { panic!("{configuration:?}") };
    assert_eq!((&queue.pool, queue.pool.minutes_ahead()), (&configuration.pool, 60));
    // 08:00 at +01:00 is 07:00 in Greenwich.
    let calendar = queue.pool.calendar(Time::ZERO);
    let at = |minutes: i64| calendar.at(Time::from_secs(minutes * 60).unwrap()).cpus_count().get();
    assert_eq!([at(7 * 60 - 1), at(7 * 60), at(17 * 60 - 1), at(17 * 60)], [12, 4, 4, 12]);
}

#[test]
fn what_is_wrong_is_named_with_line_and_field() {
    refused("nonsense = 1", "daemon.toml:1: unknown field `nonsense`");
    refused("\n\ngrace = 'soon'", "daemon.toml:3: grace: \"soon\" is not a duration; write");
    refused("state = 'here'", "state = \"here\": write the whole path");
    refused("backup-keep = 0", "backup-keep: it is at least 1");
    refused("\nwaiting-shims = -1", "daemon.toml:2: waiting-shims: it is at least 0");
    refused("waiting-shims-per-cpu = -2", "waiting-shims-per-cpu: it is at least 0");
    refused("\nbackup-interval = '0s'", "daemon.toml:2: backup-interval: it is at least a second");
    refused("access = 'friends'", "access = \"friends\": must be one of own, everybody");
    refused("allow-root = true", "allow-root: it has a meaning only with `user`");
    refused("pam = 'miserly'", "pam: it has a meaning only with `user`");
    refused("opportunistic = 'yes'", "expected a boolean");
    refused("[pool]\ncpus = 17", "daemon.toml:1: on mon 00:00: the pool would have 17 processors");
    refused(
        "[pool]\nmemory = '65GB'",
        "the pool would have 8 processors, 68157440 kB memory, and the machine has",
    );
    refused("[pool]\ncpus = -1", "daemon.toml:2: pool: cpus = -1: must be 0 to");
    refused("utc-offset = 'CET'", "utc-offset = \"CET\": write it as");
    refused("[[queue]]\nname = 'a b'", "name = \"a b\": letters, digits");
    refused("[[queue]]\nname = 'a'\n[[queue]]\nname = 'b'", "queue \"a\" without cpus");
    refused("[[queue]]\nname='a'\ncpus=0", "queue \"a\" never has a processor");
    refused("[[queue]]\nname = 'a'\npolicy = 'easi'", "daemon.toml:3: policy: ");
    refused("whole-cores = true\n[[queue]]\nname = 'a'\npolicy = 'eqspatial'", "knows no cores");
    refused("[[queue]]\nname = 'a'\npolicy = 'eqspatial'\nshadow = 'easy'", "it resizes running jobs");
    refused("[[queue]]\nname = 'a'\npolicy = 'easy'\nhorizon = '1d'", "daemon.toml:4: horizon: ");
    refused(
        "[[queue]]\nname = 'a'\ndefault-time = '2h'\nmax-time = '1h'",
        "default-time: 2h is more than max-time, 1h",
    );
    refused("[[queue]]\nname = 'a'\nidle-action = 'end'", "daemon.toml:3: idle-action: it needs idle-after");
    refused(
        "[[queue]]\nname = 'a'\nidle-after = '1h'\nidle-action = 'stop'",
        "daemon.toml:4: idle-action: it is \"warn\" or \"end\"",
    );
    refused("[[queue]]\nname = 'a'\nidle-after = 0", "idle-after: it is from 1 s to 30 days");
    refused("[[queue]]\nname = 'a'\npromise-slack = '25h'", "promise-slack: it is at most a day");
    refused(
        "[[queue]]\nname = 'a'\ndefault-memory = '60GB'",
        "default-memory: it is more than the queue ever has",
    );
    refused(
        "[pool]\ncalendar = [{ days = 'mon', from = '8', cpus = 1 }]",
        "pool: \"8\" is no time of the day",
    );
    refused("[pool]\ncalendar = [{ days = 'someday', cpus = 1 }]", "days = \"someday\"");
    refused(
        "[pool]\ncalendar = [{ days = 'mon' }]",
        "a rule of the calendar that changes nothing; say cpus or memory",
    );
}

#[test]
fn sums_hold_at_every_instant() {
    let queue = |name: &str, cpus: u32, more: &str| {
        format!("[[queue]]\nname = '{name}'\ncpus = {cpus}\nmemory = '1GB'\n{more}\n")
    };
    let night = "calendar = [{ days = 'sat,sun', cpus = 6 }]";
    let text = format!("[pool]\ncpus = 8\n{}{}", queue("a", 4, ""), queue("b", 4, night));
    refused(&text, "on sat 00:00: the queues together would have 10 processors");
    refused(&format!("[pool]\ncpus = 8\n{}{}", queue("a", 4, ""), queue("a", 4, "")), "a second queue \"a\"");
    let queues = format!("[pool]\ncpus = 10\n{}{}", queue("a", 4, ""), queue("b", 4, night));
    assert_eq!(parse(&queues).unwrap().queues[1].pool.most().cpus_count().get(), 6);
}

#[test]
fn limits_of_users_are_read() {
    let text = "[user-limits]\njobs = 10\nbytes = '1MiB'\ncpu-time = '1h'\nrequests-per-minute = 60";
    let configuration = parse(text).unwrap();
    let each =
        Limits { jobs: Some(10), bytes: Some(1 << 20), cpu_time: Some(3_600_000_000), ..Limits::default() };
    let limits = UserLimits { each, tables: vec![] };
    assert_eq!((configuration.user_limits, configuration.requests_per_minute), (limits, Some(60)));
    assert_eq!(parse("").unwrap().user_limits, UserLimits::default());
    refused("[user-limits]\njobs = -1", "daemon.toml:2:");
    refused("[user-limits]\nperiod = '3d'", "period: it has a meaning only with cpu-hours");
    refused("[user-limits]\ncpu-hours = 1\nperiod = '25h'", "1 to 366 whole days");
    refused("[user-limits]\ncpu-hours = -1", "cpu-hours: it is a number of hours");
    refused("[user-limits]\ngpu-hours = -1", "gpu-hours: it is a number of hours");
    refused("[user-limits]\ncpu-time = 'long'", "cpu-time: \"long\" is not a duration");
}

#[test]
fn limits_of_named_users_and_groups_are_read() {
    let text = "[[limit]]\nname = 'course'\ngroups = ['course', 50]\ntogether = true\ncpus = 32\ncpu-hours = 0.5\n\
                [[limit]]\nname = 'ann'\nusers = ['ann']\nrunning = 4\nqueued = 7\ncpu-hours = 10\n\
                gpus = 2\ngpu-hours = 5\nperiod = '7d'";
    let [course, ann] = &parse(text).unwrap().user_limits.tables[..] else { panic!("two tables") };
    let hours = |hours: i64, days| Some(CpuHours { most: hours * 1_800_000_000, days });
    let limits = Limits { cpus: Some(32), cpu_hours: hours(1, 30), ..Limits::default() };
    assert_eq!((&*course.name, course.together, course.limits), ("course", true, limits));
    assert_eq!((course.users.groups.len(), ann.users.users.len(), ann.together), (2, 1, false));
    let limits = Limits { running: Some(4), queued: Some(7), cpu_hours: hours(20, 7), ..Limits::default() };
    assert_eq!(ann.limits, Limits { gpus: Some(2), gpu_hours: hours(10, 7), ..limits });
    refused("[[limit]]\nusers = ['ann']\njobs = 1", "name: a limit needs one");
    refused("[[limit]]\nname = 'user-limits'\nusers = ['ann']\njobs = 1", "no name of a limit");
    refused("[[limit]]\nname = 'a'\njobs = 1", "names no users and no groups");
    refused("[[limit]]\nname = 'a'\nusers = [1]", "limits nothing");
    let twice = "[[limit]]\nname = 'a'\nusers = [1]\njobs = 1\n";
    refused(&twice.repeat(2), "a second limit \"a\"");
    let unknown = parse("[[limit]]\nname = 'a'\ngroups = ['no such group']\njobs = 1").unwrap().warnings();
    assert!(unknown[0].ends_with("no group \"no such group\"; it limits no user"), "{unknown:?}");
}

/// A typing error, or a directory service that does not answer, opens no queue.
#[test]
fn an_unknown_name_admits_nobody_and_is_a_warning() {
    let text = "[[queue]]\nname = 'a'\nusers = ['no such user', 7]\ngroups = ['no such group']";
    let configuration = parse(text).unwrap();
    let users = configuration.queues[0].terms.users.clone().expect("a list");
    assert_eq!((users.users.len(), users.groups.len()), (2, 1));
    let expect =
        ["no user \"no such user\"; it admits nobody", "no group \"no such group\"; it admits nobody"];
    let warnings = configuration.warnings();
    assert!(warnings.iter().zip(expect).all(|(warning, expect)| warning.ends_with(expect)), "{warnings:?}");
    assert_eq!(warnings.len(), 2);
    assert_eq!(
        (parse("").unwrap().queues[0].terms.users.clone(), parse("").unwrap().warnings()),
        (None, vec![])
    );
}

#[test]
fn a_horizon_is_the_policys() {
    let policy =
        |text: &str| parse(&format!("[[queue]]\nname = 'a'\n{text}")).unwrap().queues[0].policy.to_string();
    assert_eq!(policy("horizon = '1d'"), "miser(horizon=1d)");
    assert_eq!(policy("policy = 'miser()'\nhorizon = '1h'"), "miser(horizon=1h)");
}

#[test]
fn gang_time_slicing_runs_with_any_packing_and_not_in_a_pool_that_varies() {
    let queue = |policy: &str, more: &str| {
        format!("[[queue]]\nname = 'a'\ncpus = 4\nmemory = '1GB'\npolicy = '{policy}'\n{more}")
    };
    for policy in ["gang", "gang(packing=migration, quantum=2s)", "gang(packing=left-right-by-slots)"] {
        assert_eq!(parse(&queue(policy, "")).unwrap().queues[0].policy.descriptor().name, "gang");
    }
    refused(&queue("gang", "calendar = [{ days = 'sat', cpus = 8 }]"), "policy: ");
}

#[test]
fn a_summary_has_the_least_and_the_most() {
    let text = "[[queue]]\nname = 'a'\ncpus = 4\nmax-time = '1h'\ncalendar = [{ days = 'sat', cpus = 8, memory = '1GB' }]\nmemory = '2GB'";
    let summary = parse(text).unwrap().summary();
    let queue = &summary.queues[0];
    assert_eq!((queue.cpus, queue.memory), ([4, 8], [1 << 30, 2 << 30]));
    assert_eq!((queue.promises, queue.max_time, queue.default_memory), ("every job", Some(3600.0), 1 << 28));
    assert_eq!(summary.cpus, (8..16).collect::<Vec<_>>());
}

#[test]
fn jobs_of_systemd_have_the_machine_without_the_daemons_limits() {
    let limited = Machine { cpus: vec![0], quota: Some(1), memory: 1 << 20, ..machine() };
    let parse = |text: &str| Configuration::parse("daemon.toml", text, &limited);
    let configuration = parse("cgroup = 'systemd'").unwrap();
    assert_eq!(configuration.cpus, (8..16).collect::<Vec<_>>());
    assert_eq!(configuration.opportunistic_cpus, (0..16).collect::<Vec<_>>());
    assert_eq!(configuration.pool.most().get(Kind::Memory), 32 << 20);
    assert_eq!(parse("").unwrap().opportunistic_cpus, [0]);
}

#[test]
fn a_queue_may_let_programs_gain_rights() {
    let rules = |text: &str| parse(&format!("user = 'miserly'\n{text}")).unwrap().rules;
    let queue = |text: &str| format!("[[queue]]\nname = 'a'\n{text}");
    let none = rules(&queue("no-new-privileges = true"));
    assert!(none.no_new_privileges("a") && none.other_privileges.is_empty());
    let one = rules(&queue("no-new-privileges = false"));
    assert!(!one.no_new_privileges("a") && one.no_new_privileges("b"));
    let all_but_one = rules(&format!("no-new-privileges = false\n{}", queue("no-new-privileges = true")));
    assert!(all_but_one.no_new_privileges("a") && !all_but_one.no_new_privileges("b"));
    refused(&queue("no-new-privileges = true"), "3: no-new-privileges: it has a meaning only with `user`");
    refused(&format!("user = 'miserly'\n{}", queue("no-new-privileges = 1")), "it is true or false");
}

#[test]
fn a_job_in_its_window_has_a_priority_unless_it_is_switched_off() {
    let priority = |text: &str| parse(text).unwrap().rules.critical_priority;
    assert_eq!(priority(""), CriticalPriority::Auto);
    assert_eq!(priority("critical-priority = 'none'"), CriticalPriority::Off);
    assert_eq!(priority("critical-priority = 'real-time'"), CriticalPriority::RealTime);
    refused(
        "critical-priority = 'high'",
        "1: critical-priority = \"high\": must be one of auto, none, real-time",
    );
}

#[test]
fn something_is_left_for_other_programs() {
    // Only root's daemon confines other programs.
    let place = |text: &str| parse(&format!("user = 'miserly'\n{text}")).unwrap().cgroup;
    assert_eq!(place("cgroup = 'systemd'"), Some(GroupPlace::Systemd { confine: true }));
    assert_eq!(place("cgroup = '/a'"), Some(GroupPlace::Folder("/a".into())));
    let all = "cgroup = 'systemd'\nuser = 'miserly'\n[pool]\ncpus = 16";
    refused(all, "4: pool.cpus: all 16 online processors are in the pool");
    assert!(parse(&format!("confine = false\n{all}")).unwrap().cgroup.is_some());
    refused(&format!("confine = false\n{all}\n[[queue]]\nname = 'a'\nstrict = true"), "pool.cpus: all 16");
    refused("cgroup = 'systemd'\n[pool]\nmemory = '60GiB'", "pool.memory: jobs would have");
    refused("confine = true\ncgroup = '/a'", "confine: it needs cgroup");
    refused("[[queue]]\nname = 'a'\nstrict = true", "strict: it needs cgroup");
    refused("[[queue]]\nname = 'a'\nstrict = 1", "strict: it is true or false");
}

/// Checks that a section of the page has the fields that the parser lists after an unknown one.
#[track_caller]
fn check_fields(section: &str, text: &str) {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" |"));
    let names: Vec<String> = rows.map(|(name, _)| format!("`{name}")).collect();
    let problem = parse(text).unwrap_err().to_string();
    let expect = match &names[..] {
        [one, other] => format!("expected {one} or {other}"),
        all => format!("expected one of {}", all.join(", ")),
    };
    assert!(problem.ends_with(&expect), "{problem}\n{expect}");
}

#[test]
fn the_page_has_the_fields_of_the_parser() {
    let sections: Vec<&str> = FIELDS.split("\n## ").skip(1).collect();
    let [daemon, slurm, limits, limit, gpu, pool, queue, checkpoint, rule] = sections[..] else {
        panic!("{sections:?}")
    };
    check_fields(daemon, "nonsense = 1");
    check_fields(slurm, "[slurm]\nnonsense = 1");
    check_fields(limits, "[user-limits]\nnonsense = 1");
    check_fields(limit, "[[limit]]\nnonsense = 1");
    check_fields(gpu, "[[gpu]]\nnonsense = 1");
    check_fields(pool, "[pool]\nnonsense = 1");
    check_fields(queue, "[[queue]]\nname = 'a'\nnonsense = 1");
    check_fields(checkpoint, "[[queue]]\nname = 'a'\n[queue.checkpoint]\nnonsense = 1");
    check_fields(rule, "[pool]\ncalendar = [{ nonsense = 1 }]");
}

/// The example's defaults are tested against the parser.
#[test]
fn defaults_of_the_example() {
    let example = include_str!("../../../../docs/daemon.example.toml");
    let daemon = FIELDS.split("\n## ").nth(1).unwrap();
    for line in daemon.lines().filter(|line| line.ends_with("` |") && !line.starts_with("| `utc-offset`")) {
        let (name, _) = line.trim_start_matches("| `").split_once('`').unwrap();
        let (_, default) = line.trim_end_matches("` |").rsplit_once("| `").unwrap();
        let line = format!("# default: {name} = {default}\n");
        assert!(default.contains('`') || example.contains(&line), "{line}");
    }
}

#[test]
fn names_of_slurm_have_queues() {
    let text = "[slurm]\naccounts = { physics = 'a', art = 'b' }\nqos = { debug = 'b' }\n[slurm.partitions]\nmain = 'a'\n\
                [[queue]]\nname = 'a'\ncpus = 2\nmemory = '1GiB'\n[[queue]]\nname = 'b'\ncpus = 2\nmemory = '1GiB'\n";
    let tables = parse(text).unwrap().slurm;
    assert_eq!((&tables.accounts["physics"][..], &tables.accounts["art"][..]), ("a", "b"));
    assert_eq!((&tables.qos["debug"][..], &tables.partitions["main"][..]), ("b", "a"));
    refused("[slurm]\nqos = { x = 'c' }", "2: slurm.qos: there is no queue c for x; the queues are batch");
    refused("[slurm.partitions]\nbatch = 'batch'", "2: slurm.partitions: batch is the name of a queue");
    refused("[slurm]\naccounts = { 'a,b' = 'batch' }", "2: slurm.accounts: \"a,b\" is no name of Slurm");
    refused("[slurm]\nusers = { x = 'batch' }", "2: unknown field `users`");
}
