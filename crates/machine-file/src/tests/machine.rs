//! Machine files that make sense, and those that do not.

use miserly_core::{Kind, Procs, Resources, Sharing, Spread};

use crate::{HOSTS_MOST, MachineSpec};

#[track_caller]
fn parsed(text: &str) -> MachineSpec {
    MachineSpec::parse("m.toml", text).unwrap()
}

/// The hosts: name, processors, memory and GPUs.
fn hosts(spec: &MachineSpec) -> Vec<(String, u64, u64, u64)> {
    let machine = spec.machine();
    let shown = |host: &miserly_core::Host| {
        let has = host.capacity;
        (host.name.clone(), has.cpus_count().get(), has.get(Kind::Memory), has.get(Kind::Gpus))
    };
    machine.hosts().iter().map(shown).collect()
}

#[track_caller]
fn wrong(text: &str, expect: &str) {
    let problem = MachineSpec::parse("m.toml", text).unwrap_err().to_string();
    assert_eq!(problem, format!("m.toml:{expect}"));
}

#[test]
fn hosts_one_by_one_and_by_the_dozen() {
    let spec = parsed(
        r#"
        span = "any"
        sharing = "whole"
        [[host]]
        name = "big"
        cpus = 128
        memory = "1TB"
        [[host]]
        name = "n"
        cpus = 2
        memory = "2000000K"
        gpus = 4
        count = 2
        "#,
    );
    let n = |name: &str| (name.to_owned(), 2, 2_000_000, 4);
    assert_eq!(hosts(&spec), [("big".to_owned(), 128, 1 << 30, 0), n("n1"), n("n2")]);
    assert_eq!((spec.spread, spec.sharing, spec.procs()), (Spread::Any, Sharing::Whole, Procs::new(132)));
    let machine = spec.machine();
    assert_eq!((machine.spread(), machine.sharing()), (Spread::Any, Sharing::Whole));
}

#[test]
fn what_is_not_written_is_as_in_the_paper() {
    let spec = parsed("[[host]]\nname = \"a\"\ncpus = 3");
    assert_eq!((spec.spread, spec.sharing), (Spread::One, Sharing::Shared));
    assert!(spec.machine().is_plain() && spec.pools.is_none());
    assert_eq!(hosts(&spec), [("a".to_owned(), 3, 0, 0)]);
}

#[test]
fn units_of_memory() {
    for (written, kilobytes) in
        [("512KB", 512), ("3MiB", 3 << 10), ("64 GB", 64 << 20), ("1.5gb", 3 << 19), ("2T", 2 << 30)]
    {
        let spec = parsed(&format!("[[host]]\nname = \"a\"\ncpus = 1\nmemory = {written:?}"));
        assert_eq!(hosts(&spec)[0].2, kilobytes, "{written}");
    }
    for (written, problem) in [
        ("4096", "\"4096\" has no unit of memory; write 4096MiB or 4096GiB"),
        ("true", "\"boolean\" is not an amount of memory; write a number and a unit, such as 512MiB or 8GiB"),
        (
            "\"-1GB\"",
            "\"-1GB\" is not an amount of memory; write a number and a unit, such as 512MiB or 8GiB",
        ),
        ("\"1B\"", "\"1B\": an amount of memory is above 0"),
        ("\"99999999999TB\"", "\"99999999999TB\" is too large"),
    ] {
        wrong(
            &format!("[[host]]\nname = \"a\"\ncpus = 1\nmemory = {written}"),
            &format!("4: host \"a\": memory: {problem}"),
        );
    }
}

#[test]
fn mistakes_are_told_with_line_and_field() {
    let host = "[[host]]\nname = \"a\"\ncpus = 1\n";
    wrong("", "1: no host; a machine has one or more [[host]] with name and cpus");
    wrong("span = \"two\"\n[[host]]\nname = \"a\"\ncpus = 1", "1: span = \"two\": must be one of one, any");
    wrong(&format!("\nsharing = \"no\"\n{host}"), "2: sharing = \"no\": must be one of shared, whole");
    wrong(
        &format!("{host}cpu = 1"),
        "4: unknown field `cpu`, expected one of `name`, `cpus`, `memory`, `gpus`, `gpu`, `count`",
    );
    wrong(
        &format!("spam = 1\n{host}"),
        "1: unknown field `spam`, expected one of `span`, `sharing`, `gpu-fit`, `host`, `utc-offset`, `pool`, `queue`, `classes`",
    );
    wrong("[[host]]\nname = \"a\"", "1: missing field `cpus`");
    wrong("[[host]]\nname = \"a\"\ncpus = \"1\"", "3: invalid type: string \"1\", expected i64");
    wrong("[[host]]\nname = \"a\"\ncpus = 0", "3: host \"a\": cpus = 0: must be 1 to 1073741824");
    wrong("[[host]]\nname = \"a\"\ncpus = -1", "3: host \"a\": cpus = -1: must be 1 to 1073741824");
    wrong(&format!("{host}gpus = -1"), "4: host \"a\": gpus = -1: must be 0 to 1073741824");
    wrong(&format!("{host}count = 0"), "4: host \"a\": count = 0: must be 1 to 1000000");
    wrong(&format!("{host}count = 1000001"), "4: host \"a\": count = 1000001: must be 1 to 1000000");
    wrong("[[host]]\nname = \" \"\ncpus = 1", "1: host without a name; give it one");
}

#[test]
fn hosts_have_names_of_their_own() {
    let twice = "[[host]]\nname = \"a\"\ncpus = 1\n[[host]]\nname = \"a\"\ncpus = 2\n";
    wrong(twice, "4: a second host \"a\"; each has a name of its own");
    let hidden = "[[host]]\nname = \"a2\"\ncpus = 1\n[[host]]\nname = \"a\"\ncpus = 2\ncount = 3\n";
    wrong(hidden, "4: a second host \"a2\"; each has a name of its own");
}

#[test]
fn memory_is_that_of_all_hosts_or_of_none() {
    let some = "[[host]]\nname = \"a\"\ncpus = 1\nmemory = \"5K\"\n[[host]]\nname = \"b\"\ncpus = 2\n";
    wrong(some, "5: host \"b\": other hosts have memory; give it to all or to none");
}

#[test]
fn totals_can_be_counted() {
    let many =
        format!("[[host]]\nname = \"a\"\ncpus = 1\ncount = {HOSTS_MOST}\n[[host]]\nname = \"b\"\ncpus = 1");
    wrong(&many, "5: 1000001 hosts in all; there are at most 1000000");
    let wide = "[[host]]\nname = \"a\"\ncpus = 1073741824\n[[host]]\nname = \"b\"\ncpus = 1";
    wrong(wide, "4: 1073741825 processors in all; there are at most 1073741824");
    let full = "[[host]]\nname = \"a\"\ncpus = 1\nmemory = \"16777215TiB\"\ncount = 2000";
    wrong(full, "1: the memory of all hosts is more than a number of kB can say");
}

/// Table 2 of Chiang and Vernon, with its own column of memory per processor as the check.
#[test]
fn the_origin_2000_is_as_in_the_paper() {
    let spec = MachineSpec::named("o2k", |_| unreachable!("it is built in")).unwrap();
    assert_eq!(spec.procs(), Procs::new(960));
    let per_processor: Vec<_> = hosts(&spec)
        .iter()
        .map(|(name, cpus, memory, _)| format!("{name} {cpus} {}", memory / cpus / 1024))
        .collect();
    let table = [
        "eir 128 512",
        "nerthus 128 512",
        "jord1 128 256",
        "saga1 128 256",
        "huldra 128 256",
        "hod1 128 512",
    ];
    assert_eq!(per_processor[..6], table);
    assert_eq!(per_processor[6..], ["mimir 128 256", "modi2 64 256"]);
}

#[test]
fn machines_by_number_and_by_file() {
    let never = |_: &str| unreachable!("a number is no file");
    let plain = MachineSpec::named("430", never).unwrap();
    assert_eq!((plain.procs(), plain.machine().is_plain()), (Procs::new(430), true));
    assert_eq!(plain.machine().capacity(), Resources::cpus(430));
    for number in ["0", "1073741825", "99999999999999999999"] {
        let problem = MachineSpec::named(number, never).unwrap_err().to_string();
        assert_eq!(problem, format!("machine {number}: must have 1 to 1073741824 processors"));
    }
    let file = |path: &str| {
        assert_eq!(path, "some/where.toml");
        Ok("[[host]]\nname = \"a\"\ncpus = 3".to_owned())
    };
    assert_eq!(MachineSpec::named("some/where.toml", file).unwrap().name, "where.toml");
    let missing = MachineSpec::named("o3k", |_| Err(std::io::ErrorKind::NotFound.into())).unwrap_err();
    let expect = "no machine \"o3k\": not built in (o2k), not a number of processors, and not a readable file (entity not found)";
    assert_eq!(missing.to_string(), expect);
}
