use miserly_core::{Kind, Time};

use super::*;

fn machine() -> Machine {
    Machine { cpus: (0..16).collect(), quota: None, memory: 64 << 20 }
}

fn parse(text: &str) -> Result<Configuration, ConfigError> {
    Configuration::parse("daemon.toml", text, &machine())
}

/// The text is refused with this.
#[track_caller]
fn refused(text: &str, expect: &str) {
    let told = parse(text).err().map_or_else(|| "nothing".to_owned(), |error| error.to_string());
    assert!(told.starts_with("daemon.toml:") && told.contains(expect), "{told}");
}

#[test]
fn nothing_written_is_half_the_machine_and_one_queue() {
    let configuration = Configuration::of_machine(&machine()).unwrap();
    let [queue] = &configuration.queues[..] else { panic!("{configuration:?}") };
    assert_eq!((queue.name.as_str(), queue.policy.to_string().as_str()), ("batch", "miser"));
    assert_eq!((queue.pool.most().cpus_count(), queue.pool.most().get(Kind::Memory)), (8, 32 << 20));
    assert_eq!(configuration.cpus, (8..16).collect::<Vec<_>>());
    assert_eq!(queue.default_memory, 4 << 20);
    let small = Machine { cpus: vec![3], quota: Some(1), memory: 1 << 20 };
    let configuration = Configuration::of_machine(&small).unwrap();
    assert_eq!((configuration.cpus, configuration.pool.most().cpus_count()), (vec![3], 1));
}

#[test]
fn the_example_is_one() {
    let text = include_str!("../../../../docs/daemon.example.toml");
    let configuration = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<&str> = configuration.queues.iter().map(|queue| queue.name.as_str()).collect();
    assert_eq!(names, ["batch", "short"]);
    // What it shows as the default is the default.
    let commented: String = text
        .lines()
        .map(|line| line.strip_prefix("# default: ").unwrap_or(""))
        .fold(String::new(), |all, line| all + line + "\n");
    let defaults = parse(&commented).unwrap_or_else(|error| panic!("{error}\n{commented}"));
    let nothing = parse("").unwrap();
    assert_eq!(
        (defaults.grace, defaults.handover, defaults.alone),
        (nothing.grace, nothing.handover, nothing.alone)
    );
    assert_eq!((defaults.parking_lead, defaults.access), (nothing.parking_lead, nothing.access));
    assert!(commented.lines().filter(|line| !line.is_empty()).count() >= 6, "{commented}");
}

#[test]
fn a_calendar_is_of_the_week_where_the_machine_is() {
    let text = "utc-offset = '+01:00'\n[pool]\ncpus = 12\ncalendar = [{ days = 'mon-fri', from = '08:00', to = '18:00', cpus = 4 }]\n";
    let configuration = parse(text).unwrap();
    // 1970-01-01 was a Thursday; 08:00 at +01:00 is 07:00 in Greenwich.
    let calendar = configuration.queues[0].pool.calendar(0);
    let at = |hours: i64, minutes: i64| {
        calendar.at(Time::from_secs(hours * 3600 + minutes * 60).unwrap()).cpus_count()
    };
    assert_eq!([at(6, 59), at(7, 0), at(16, 59), at(17, 0)], [12, 4, 4, 12]);
    assert_eq!([at(48 + 10, 0), at(72 + 10, 0), at(96 + 10, 0)], [12, 12, 4], "Saturday, Sunday, Monday");
    let later = configuration.queues[0].pool.calendar(3_600_000_000);
    assert_eq!(later.at(Time::from_secs(6 * 3600).unwrap()).cpus_count(), 4);
}

#[test]
fn a_night_goes_over_midnight() {
    let text = "[pool]\ncpus = 4\ncalendar = [{ days = 'fri', from = '22:00', to = '06:00', cpus = 16 }]\n";
    let calendar = parse(text).unwrap().pool.calendar(0);
    // Friday is the second day.
    let at = |hours: i64| calendar.at(Time::from_secs(hours * 3600).unwrap()).cpus_count();
    assert_eq!([at(21 + 24), at(22 + 24), at(5 + 48), at(6 + 48), at(5 + 24)], [4, 16, 16, 4, 4]);
}

#[test]
fn what_is_wrong_is_named_with_line_and_field() {
    refused("nonsense = 1", "daemon.toml:1: unknown field `nonsense`");
    refused("\n\ngrace = 'soon'", "daemon.toml:3: grace: a time is written as");
    refused("state = 'here'", "state = \"here\": write the whole path");
    refused("access = 'friends'", "access = \"friends\": it is \"own\" or \"everybody\"");
    refused("opportunistic = 'yes'", "expected a boolean");
    refused(
        "[pool]\ncpus = 17",
        "daemon.toml:1: from mon 00:00 on the pool has 17 cpus, and the machine has 16",
    );
    refused("[pool]\nmemory = '65GB'", "kB of memory, and the machine has 67108864");
    refused("[pool]\ncpus = -1", "daemon.toml:2: cpus = -1: it is 0 or more");
    refused("utc-offset = 'CET'", "utc-offset = \"CET\": write it as");
    refused("[[queue]]\nname = 'a b'", "name = \"a b\": letters, digits");
    refused("[[queue]]\nname = 'a'\n[[queue]]\nname = 'b'", "queue \"a\" without cpus");
    refused("[[queue]]\nname='a'\ncpus=0", "cpus: queue \"a\" never has any");
    refused("[[queue]]\nname = 'a'\npolicy = 'easi'", "daemon.toml:3: policy: ");
    refused("[[queue]]\nname = 'a'\npolicy = 'eqspatial'", "it resizes running jobs");
    refused("[[queue]]\nname = 'a'\npolicy = 'sorted'", "policy: ");
    refused("[[queue]]\nname = 'a'\npolicy = 'easy'\nhorizon = '1d'", "daemon.toml:4: horizon: ");
    refused("[[queue]]\nname = 'a'\nusers = ['no such user']", "users: there is no user");
    refused(
        "[[queue]]\nname = 'a'\ndefault-time = '2h'\nmax-time = '1h'",
        "default-time: 7200 s is more than max-time",
    );
    refused(
        "[[queue]]\nname = 'a'\ndefault-memory = '60GB'",
        "default-memory: it is more than the queue ever has",
    );
    refused(
        "[pool]\ncalendar = [{ days = 'mon', from = '8', cpus = 1 }]",
        "from = \"8\": write a time of day",
    );
    refused("[pool]\ncalendar = [{ days = 'someday', cpus = 1 }]", "days = \"someday\"");
    refused("[pool]\ncalendar = [{ days = 'mon' }]", "say cpus or memory");
}

#[test]
fn sums_hold_at_every_instant() {
    let queue = |name: &str, cpus: u32, more: &str| {
        format!("[[queue]]\nname = '{name}'\ncpus = {cpus}\nmemory = '1GB'\n{more}\n")
    };
    let night = "calendar = [{ days = 'sat,sun', cpus = 6 }]";
    let text = format!("[pool]\ncpus = 8\n{}{}", queue("a", 4, ""), queue("b", 4, night));
    refused(&text, "from sat 00:00 on the queues have 10 cpus, and the pool has 8");
    refused(&format!("[pool]\ncpus = 8\n{}{}", queue("a", 4, ""), queue("a", 4, "")), "a second queue \"a\"");
    let queues = format!("[pool]\ncpus = 10\n{}{}", queue("a", 4, ""), queue("b", 4, night));
    assert_eq!(parse(&queues).unwrap().queues[1].pool.most().cpus_count(), 6);
}

#[test]
fn a_horizon_is_the_policys() {
    let policy =
        |text: &str| parse(&format!("[[queue]]\nname = 'a'\n{text}")).unwrap().queues[0].policy.to_string();
    assert_eq!(policy("horizon = '1d'"), "miser(horizon=86400s)");
    assert_eq!(policy("policy = 'miser()'\nhorizon = '1h'"), "miser(horizon=3600s)");
}
