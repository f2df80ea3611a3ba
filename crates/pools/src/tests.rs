//! Files of pools, one line each.

use miserly_core::{Kind, Resources, Time};

use crate::{Pools, PoolsFile, check, monday};

fn parse(text: &str) -> Result<Pools, String> {
    let file: PoolsFile = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let machine = Resources::cpus(32).with(Kind::Memory, 64 << 20);
    check(&file, &machine).map_err(|problem| {
        let line = 1 + text[..problem.at.start].matches('\n').count();
        format!("{line}: {}", problem.text)
    })
}

#[track_caller]
fn refused(text: &str, expect: &str) {
    let problem = parse(text).expect_err("it makes no sense");
    assert!(problem.contains(expect), "{problem}");
}

/// The processors of the first queue at that hour of the week.
#[track_caller]
fn at(text: &str, hour: i64) -> u64 {
    let pools = parse(text).expect("it makes sense");
    let calendar = pools.queues[0].week.calendar(Time::ZERO);
    calendar.at(Time::from_secs(hour * 3600).expect("a short time")).cpus_count()
}

#[test]
fn days_and_nights() {
    let working =
        r#"pool = { cpus = 24, calendar = [{ days = "mon-fri", from = "08:00", to = "18:00", cpus = 8 }] }"#;
    assert_eq!([0, 7, 8, 17, 18].map(|hour| at(working, hour)), [24, 24, 8, 8, 24]);
    assert_eq!([4, 5, 6].map(|day| at(working, day * 24 + 12)), [8, 24, 24]);
    let nights =
        r#"pool = { cpus = 2, calendar = [{ days = "sun", from = "20:00", to = "08:00", cpus = 24 }] }"#;
    // The night of Sunday ends on Monday.
    assert_eq!([0, 7, 8, 6 * 24 + 19, 6 * 24 + 20].map(|hour| at(nights, hour)), [24, 24, 2, 2, 24]);
    let berlin = format!("utc-offset = \"+01:00\"\n{working}");
    assert_eq!([6, 7, 16, 17].map(|hour| at(&berlin, hour)), [24, 8, 8, 24]);
}

#[test]
fn the_clock_of_a_run() {
    // 1970-01-01 was a Thursday; 1000000000 is a Sunday, at 01:46:40.
    assert_eq!(monday(0).secs(), 4 * 86_400);
    assert_eq!(monday(1_000_000_000).secs(), 86_400 - 6_400);
}

#[test]
fn queues_divide_the_pool() {
    let queue = |name: &str, cpus: u64| format!("[[queue]]\nname = \"{name}\"\ncpus = {cpus}\n");
    let pool = "[pool]\ncpus = 24\n";
    let three = format!("{pool}{}{}{}", queue("a", 8), queue("b", 8), queue("c", 8));
    assert_eq!(parse(&three).map(|pools| pools.queues.len()), Ok(3));
    assert_eq!(parse(pool).map(|pools| pools.queues[0].name.clone()), Ok("batch".into()));
    refused(
        &format!("{three}{}", queue("d", 1)),
        "12: on mon 00:00: the queues together would have 25 processors, and the pool has 24 processors",
    );
    refused(&format!("{pool}{}{}", queue("a", 1), queue("a", 1)), "7: a second queue \"a\"");
    refused(&format!("{pool}{}", queue("a", 0)), "4: queue \"a\" never has a processor");
    refused(
        "[pool]\ncpus = 24\nmemory = \"1GB\"\n[[queue]]\nname = \"a\"\ncpus = 1",
        "say how much of it this queue has",
    );
    refused(
        "[pool]\ncpus = 33",
        "1: on mon 00:00: the pool would have 33 processors, and the machine has 32",
    );
}

#[test]
fn an_instant_at_which_it_does_not_fit() {
    let text = r#"
[pool]
cpus = 8
calendar = [{ from = "20:00", to = "08:00", cpus = 24 }]
[[queue]]
name = "nights"
cpus = 0
calendar = [{ from = "20:00", to = "08:30", cpus = 24 }]
"#;
    refused(text, "5: on mon 08:00: the queues together would have 24 processors, and the pool has 8");
}

#[test]
fn what_is_written_wrong() {
    let rule = |rule: &str| format!("[pool]\ncpus = 8\ncalendar = [{rule}]");
    refused(&rule(r#"{ from = "8:00", to = "18:00" }"#), "3: pool: \"8:00\" is no time of the day");
    refused(&rule(r#"{ from = "08:00", to = "24:01" }"#), "is no time of the day");
    refused(&rule(r#"{ days = "mo", from = "08:00", to = "18:00" }"#), "write them as mon-fri");
    refused(&rule(r#"{ days = "mon,mon", from = "08:00", to = "18:00" }"#), "write them as mon-fri");
    refused(
        &rule(r#"{ from = "08:00", to = "18:00" }, { days = "fri", from = "17:59", to = "19:00" }"#),
        "two rules of the calendar are about fri 17:59",
    );
    refused(&rule(r#"{ from = "08:00", to = "18:00", cpus = -1 }"#), "cpus = -1: it is 0 to");
    refused(&rule(r#"{ from = "08:00", to = "18:00", memory = "1GB" }"#), "give it to both or to none");
    refused("utc-offset = \"1\"\n[pool]\ncpus = 1", "1: utc-offset = \"1\": write it as +01:00");
    refused("[pool]\ncpu = 1", "unknown field `cpu`");
}
