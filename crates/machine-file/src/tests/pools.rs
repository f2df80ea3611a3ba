//! Files of pools, one line each.

use miserly_core::{Kind, Resources, Span, Time};

use crate::{Pools, monday, parse as read};

fn parse(text: &str) -> Result<Pools, String> {
    let machine = Resources::cpus(32).with(Kind::Memory, 64 << 20);
    read(text)
        .and_then(|file| Pools::new(&file, &machine))
        .map_err(|problem| format!("{}: {}", problem.line(text), problem.text))
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
    calendar.at(Time::from_secs(hour * 3600).expect("a short time")).cpus_count().get()
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
    let whole = r#"pool = { cpus = 2, calendar = [{ days = "tue", cpus = 24 }] }"#;
    assert_eq!([23, 24, 47, 48].map(|hour| at(whole, hour)), [2, 24, 24, 2]);
    let berlin = format!("utc-offset = \"+01:00\"\n{working}");
    assert_eq!([6, 7, 16, 17].map(|hour| at(&berlin, hour)), [24, 8, 8, 24]);
}

#[test]
fn the_clock_of_a_run() {
    // 1970-01-01 was a Thursday; 1000000000 is a Sunday, at 01:46:40.
    assert_eq!(monday(Span::ZERO).secs(), 4 * 86_400);
    let later = Span::from_ticks(1_000_000_000_500_000);
    assert_eq!(monday(later).ticks(), (86_400 - 6_400) * 1_000_000 - 500_000);
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
    let memory = "[pool]\ncpus = 24\nmemory = \"1GB\"\n";
    refused(
        &format!("{memory}{}{}", queue("a", 1), queue("b", 1)),
        "5: queue \"a\" without memory; of several",
    );
    let bare = "[[queue]]\nname = \"a\"\n";
    refused(&format!("{memory}{bare}{}", queue("b", 1)), "5: queue \"a\" without cpus; of several");
    refused("[[queue]]\nname = \"a b\"", "2: name = \"a b\": letters, digits, - and _, at least one");
    refused("[[queue]]\nname = \"a\"\nusers = [-1]", "3: a user or a group is a name, or a number");
    refused(
        "[pool]\ncpus = 33",
        "1: on mon 00:00: the pool would have 33 processors, and the machine has 32",
    );
}

#[test]
fn the_only_queue_has_what_it_does_not_say_of_the_pool() {
    let pool = "[pool]\ncpus = 24\nmemory = \"1GB\"\ncalendar = [{ days = \"sat\", cpus = 8 }]\n";
    let of = |more: &str| parse(&format!("{pool}[[queue]]\nname = \"a\"\n{more}")).expect("it makes sense");
    let all = of("");
    assert_eq!(all.queues[0].week, all.pool);
    let part = &of("cpus = 8").queues[0].week;
    assert_eq!((part.least(), part.most()), (part.most(), Resources::cpus(8).with(Kind::Memory, 1 << 20)));
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
    refused(&rule(r#"{ from = "8:00", cpus = 1 }"#), "3: pool: \"8:00\" is no time of the day");
    refused(&rule(r#"{ to = "24:01", cpus = 1 }"#), "is no time of the day");
    refused(&rule(r#"{ days = "mo", cpus = 1 }"#), "write them as mon-fri");
    refused(&rule(r#"{ days = "mon,mon", cpus = 1 }"#), "write them as mon-fri");
    refused(
        &rule(
            r#"{ from = "08:00", to = "18:00", cpus = 1 }, { days = "fri", from = "17:59", to = "19:00", cpus = 2 }"#,
        ),
        "two rules of the calendar are about fri 17:59",
    );
    refused(
        &rule(r#"{ from = "08:00", to = "18:00" }"#),
        "3: pool: a rule of the calendar that changes nothing",
    );
    refused(&rule(r#"{ from = "08:00", to = "18:00", cpus = -1 }"#), "cpus = -1: must be 0 to");
    refused(&rule(r#"{ from = "08:00", to = "18:00", memory = "1GB" }"#), "give it to both or to none");
    refused("utc-offset = \"1\"\n[pool]\ncpus = 1", "1: utc-offset = \"1\": write it as +01:00");
    refused("[pool]\ncpu = 1", "unknown field `cpu`");
}
