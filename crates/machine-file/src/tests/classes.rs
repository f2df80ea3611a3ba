//! Job classes that make sense, and those that do not.

use std::sync::Arc;

use miserly_classes::lsf::{Class, Length, Size};
use miserly_core::{JobClasses, SizeTurn};

use crate::{ClassesDoc, MachineSpec};

fn o2k() -> Arc<JobClasses> {
    MachineSpec::named("o2k", |_| unreachable!("it is built in")).unwrap().classes.unwrap()
}

/// The order of a host, such as `lj<=3 sj`.
fn order(classes: &JobClasses, host: &str) -> String {
    let turn = |turn: &SizeTurn| {
        let size = &classes.sizes[turn.size].name;
        turn.most.map_or_else(|| size.clone(), |most| format!("{size}<={most}"))
    };
    classes.hosts[host].iter().map(turn).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_built_in_table_is_that_of_the_paper() {
    let classes = o2k();
    let usual = ["eir", "nerthus", "jord1", "saga1", "huldra"].map(|host| (host, "lj<=3 mj<=4 sj"));
    for (host, expected) in
        usual.into_iter().chain([("hod1", "lj<=6 mj<=2 sj"), ("mimir", "sj"), ("modi2", "mj")])
    {
        assert_eq!(order(&classes, host), expected, "{host}");
    }
    assert_eq!(classes.hosts.len(), 8);
    for (size, own) in Size::ALL.into_iter().zip(&classes.sizes) {
        assert_eq!((size.name(), size.procs(), size.memory()), (&*own.name, own.procs, own.memory));
    }
    for (length, own) in Length::ALL.into_iter().zip(&classes.lengths) {
        assert_eq!((length.name(), length.limit()), (&*own.name, own.time));
        assert_eq!((Some(length.reserve_wait()), length == Length::VeryShort), (own.reserve_wait, own.first));
    }
    assert_eq!(classes.sizes.len() * classes.lengths.len(), Class::COUNT);
    assert_eq!(
        classes.lengths.iter().map(|length| length.most).collect::<Vec<_>>(),
        [None, None, Some(48), Some(20)]
    );
}

#[test]
fn a_document_gives_the_table_back() {
    let classes = o2k();
    let doc = ClassesDoc::new(&classes);
    assert_eq!(doc.classes().unwrap(), *classes);
    let broken = ClassesDoc { lengths: vec![], ..doc };
    assert_ne!(broken.classes().unwrap(), *classes);
}

/// A file with two hosts alike and one more, and these classes.
fn file(classes: &str) -> String {
    let hosts = "[[host]]\nname = 'n'\ncpus = 4\ncount = 2\n[[host]]\nname = 'big'\ncpus = 9\n";
    format!("{hosts}{classes}")
}

const SIZE: &str = "[[classes.size]]\nname = 's'\ncpus = 4\n";
const LENGTH: &str = "[[classes.length]]\nname = 'l'\ntime = '1h'\n";
const HOST: &str = "[[classes.host]]\nhosts = ['n', 'big']\norder = [{ size = 's' }]\n";

#[test]
fn hosts_are_named_together_or_one_by_one() {
    let together = MachineSpec::parse("m.toml", &file(&format!("{SIZE}{LENGTH}{HOST}"))).unwrap();
    let classes = together.classes.as_ref().unwrap();
    assert_eq!(classes.hosts.keys().collect::<Vec<_>>(), ["big", "n1", "n2"]);
    assert_eq!(classes.name, "m.toml");
    let single = HOST.replace("'n', 'big'", "'n2'");
    let single = MachineSpec::parse("m.toml", &file(&format!("{SIZE}{LENGTH}{single}"))).unwrap();
    let policy = |spec: &MachineSpec| {
        let policy: miserly_policies::PolicySpec = "lsf".parse().unwrap();
        policy.build(&spec.machine(), 0).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(policy(&together), Ok(()));
    let missing = "policy lsf: the job classes of m.toml have no host \"n1\"; add it to a [[classes.host]], or choose another policy";
    assert_eq!(policy(&single), Err(missing.to_owned()));
    let none = policy(&MachineSpec::parse("m.toml", &file("")).unwrap()).unwrap_err();
    assert!(
        none.contains("no table of job classes has a host \"n1\"") && none.contains("docs/machines.md"),
        "{none}"
    );
    // Hosts that are added have the order of those that they are like.
    let more = together.clone().adding(2, Some("n")).unwrap();
    assert_eq!((policy(&more), more.classes.unwrap().hosts.len()), (Ok(()), 5));
    assert_eq!(policy(&together.losing(&["n1".to_owned()]).unwrap()), Ok(()));
}

#[test]
fn mistakes_in_tables() {
    let wrong = |classes: String, expect: &str| {
        let problem = MachineSpec::parse("m.toml", &file(&classes)).unwrap_err().to_string();
        assert!(problem.contains(expect), "{problem} and not {expect}");
    };
    wrong(format!("{LENGTH}{HOST}"), "classes: there is no [[classes.size]]; write one or more");
    wrong(format!("{SIZE}{HOST}"), "there is no [[classes.length]]");
    wrong(format!("{SIZE}{LENGTH}"), "there is no [[classes.host]]");
    wrong(format!("{SIZE}{SIZE}{LENGTH}{HOST}"), "m.toml:12: classes: size \"s\" is there twice; remove one");
    let all = format!("{SIZE}{LENGTH}{HOST}");
    wrong(
        all.replace("'n', 'big'", "'n', 'n1'"),
        "classes: host \"n1\": it has an order already; remove one",
    );
    wrong(
        all.replace("'n', 'big'", "'x'"),
        "host \"x\": there is none of that name; there are big, n, n1, n2",
    );
    wrong(all.replace("size = 's'", "size = 't'"), "classes: there is no size \"t\"; there are s");
    wrong(
        all.replace("size = 's'", "size = 's', limit = 0"),
        "size \"s\": limit = 0: must be 1 to 4294967295",
    );
    wrong(
        all.replace("cpus = 4\n[[classes.length", "cpus = 0\n[[classes.length"),
        "size \"s\": cpus = 0: must be 1 to",
    );
    wrong(all.replace("'1h'", "'an hour'"), "length \"l\": time:");
    wrong(all.replace("time = '1h'", "time = '1h'\nwait = 3"), "unknown field `wait`");
}
