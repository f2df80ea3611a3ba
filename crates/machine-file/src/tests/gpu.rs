//! GPUs of hosts that make sense, and those that do not.

use miserly_core::HostId;
use miserly_core::devices::{DeviceCell, DeviceRequest};

use crate::MachineSpec;

#[test]
fn gpus_of_hosts() {
    let text = r#"
        [[host]]
        name = "login"
        cpus = 4
        [[host]]
        name = "g"
        cpus = 64
        count = 2
        [[host.gpu]]
        type = "a100"
        memory = "80GiB"
        count = 6
        [[host.gpu]]
        type = "a100"
        memory = "80GiB"
        count = 2
        parts = [{ type = "3g.40gb", memory = "40GiB" }, { type = "1g.10gb", memory = "10GiB", count = 4 }]
        [[host.gpu]]
        type = "t4"
        memory = "16GiB"
        shares = true
    "#;
    let machine = MachineSpec::parse("m.toml", text).unwrap().machine();
    let table = machine.devices().unwrap();
    assert_eq!(table.types(), ["a100", "3g.40gb", "1g.10gb", "t4"]);
    let cells =
        |host| table.cells_of(HostId(host)).map(|cell| *table.cell(cell)).collect::<Vec<DeviceCell>>();
    assert!(cells(0).is_empty());
    let shown = |cell: &DeviceCell| (cell.capacity, cell.first, cell.parts, cell.shares);
    let expect = [(6, 0, 1, false), (2, 6, 1, false), (8, 8, 4, false), (16 << 20, 16, 1, true)];
    assert_eq!([1, 2].map(|host| cells(host).iter().map(shown).collect::<Vec<_>>()), [expect, expect]);
    let memory = table.classes().iter().map(|class| class.memory.map(|memory| memory >> 20));
    assert_eq!(memory.collect::<Vec<_>>(), [Some(80), Some(40), Some(10), Some(16)]);
    assert!(table.demand(&DeviceRequest::share(1 << 20)).is_ok() && !machine.is_plain());
}

/// Checks the message of a host with these lines about GPUs, from line 5 on.
#[track_caller]
fn wrong(lines: &str, expect: &str) {
    let text = format!("[[host]]\nname = \"a\"\ncpus = 8\n[[host.gpu]]\n{lines}");
    let problem = MachineSpec::parse("m.toml", &text).unwrap_err().to_string();
    assert_eq!(problem, format!("m.toml:{expect}"));
}

#[test]
fn mistakes_about_gpus() {
    wrong("count = 2", "4: host \"a\": gpu: write its type, such as type = \"a100\"");
    wrong(
        "type = \"a 100\"",
        "5: host \"a\": gpu type \"a 100\": must be letters, digits, '.', '_' and '-', with a letter",
    );
    wrong("type = \"t4\"\ncount = 65", "6: host \"a\": gpu \"t4\": count = 65: must be 1 to 64");
    wrong(
        "type = \"t4\"\nshares = true",
        "4: host \"a\": gpu \"t4\": shares = true needs its memory; write memory = \"80GiB\"",
    );
    wrong(
        "type = \"t4\"\nshares = true\nmemory = \"16GiB\"\nparts = [{ type = \"h\" }]",
        "4: host \"a\": gpu \"t4\": has parts and shares = true; a part is not shared, so remove one of them",
    );
    wrong(
        "type = \"a\"\nparts = [{ type = \"A\" }]",
        "6: host \"a\": gpu \"a\": part \"A\": has the type of the whole GPU; give it a type of its own",
    );
    wrong(
        "type = \"a\"\nmemory = \"8GiB\"\nparts = [{ type = \"b\", memory = \"5GiB\", count = 2 }]",
        "7: host \"a\": gpu \"a\": part \"b\": 2 of them have more memory than the GPU",
    );
    wrong(
        "type = \"a\"\ncount = 10\nparts = [{ type = \"b\", count = 7 }]",
        "7: host \"a\": gpu \"a\": part \"b\": more than 64 parts; split the GPUs into several tables",
    );
    wrong(
        "type = \"a\"\n[[host]]\nname = \"b\"\ncpus = 1\ngpus = 2",
        "9: host \"b\": gpus is a count without types, and there is a [[host.gpu]]; write [[host.gpu]] instead",
    );
    let text = "span = \"any\"\n[[host]]\nname = \"a\"\ncpus = 8\n[[host.gpu]]\ntype = \"t4\"";
    let problem = MachineSpec::parse("m.toml", text).unwrap_err().to_string();
    let expect = "GPUs with types need span = \"one\"; write gpus = N for jobs over several hosts";
    assert_eq!(problem, format!("m.toml:5: {expect}"));
}
