//! `miserly top --run`: a simulated run on the terminal.

use crate::support::{Lab, log};

/// Three jobs on ten processors: the second one waits for the first one, and the third one is backfilled.
fn lab() -> Lab {
    Lab::with_log(&log(&[(1, 0, 3600, 6, 3600), (2, 60, 3600, 8, 3600), (3, 120, 3000, 4, 3000)]))
}

#[test]
fn a_frame_of_an_instant() {
    let lab = lab();
    let frame = lab.stdout("top --run log.swf -p easy --once --ascii --at 00:30");
    for part in ["day 1 00:30:00  step 30 s", "waiting 1", "running 2", "job 2: starts by 01:00"] {
        assert!(frame.contains(part), "{part:?} is not in\n{frame}");
    }
    let map = lab.stdout("top --run log.swf -p easy --once --ascii --processors --at 00:30");
    for part in ["easy  10 held, 0 free of 10", "     0 aaaaaabbbb", "a 1 immediate user 1: 0-5"] {
        assert!(map.contains(part), "{part:?} is not in\n{map}");
    }
    // Without an instant it is the end.
    let end = lab.stdout("top --run log.swf -p easy -p conservative --once --ascii");
    assert!(end.contains("day 1 02:00:00") && end.contains("conservative ["), "{end}");
}

#[test]
fn its_json_has_the_map() {
    let lab = lab();
    let moment = lab.document("top --run log.swf -p easy --json --at 00:30");
    assert_eq!((&moment["running_count"], &moment["waiting_count"]), (&2.into(), &1.into()));
    let host = &moment["pools"][0]["hosts"][0];
    assert_eq!((&host["cpus"], &host["held"], &host["free"]), (&10.into(), &10.into(), &0.into()));
    let first = serde_json::json!({"use": "held", "cpus": 6, "numbers": [[0, 5]], "job": 1, "label": "1"});
    assert_eq!(host["parts"][0], first);
    let early = lab.document("top --run log.swf -p easy --json --at -90min");
    assert_eq!(early["text"], "day 1 00:30:00");
}

#[test]
fn memory_of_a_machine() {
    let lab = Lab::new();
    lab.write("log.swf", "1 0 -1 3600 2 -1 1048576 2 3600 1048576 1 1 -1 -1 -1 -1 -1 -1\n");
    lab.write("machine.toml", "[[host]]\nname = \"m\"\ncpus = 4\nmemory = \"8GiB\"\n");
    let moment = lab.document("top --run log.swf -p easy --machine machine.toml --json --at 00:30");
    let host = &moment["pools"][0]["hosts"][0];
    assert_eq!(
        (&host["memory"], &host["memory_held"]),
        (&(8i64 << 30).into(), &(2i64 << 30).into()),
        "{host}"
    );
}

#[test]
fn hosts_of_a_machine() {
    let lab = lab();
    lab.write("machine.toml", "span = \"any\"\n[[host]]\nname = \"n\"\ncpus = 4\ncount = 3\n");
    let map =
        lab.stdout("top --run log.swf -p easy --machine machine.toml --once --ascii --processors --at 00:30");
    for line in ["easy  3 hosts", "n1 aa..   2/4  a 1", "n2 bbbb   4/4  b 3", "n3 aaaa   4/4  a 1"] {
        assert!(map.lines().any(|shown| shown == line), "{line:?} is not in\n{map}");
    }
}

#[test]
fn wrong_options_are_one_error() {
    let lab = lab();
    for (options, says) in [
        ("--run log.swf -p easy --once --at never", "write an instant, such as day 3 08:00"),
        ("--run log.swf -p easy --once --at 99:00", "write an instant"),
        ("--run log.swf -p easy --json --at +1s", "is after the last known instant: day 1 02:00:00"),
        ("--run log.swf --once", "give a policy"),
        ("-p easy --once", "needs --run"),
        ("--run absent.swf -p easy --once", "absent.swf"),
        ("--journal absent --once", "absent"),
    ] {
        let run = lab.run(&format!("top {options}"));
        assert_eq!((run.code, &*run.stdout), (Some(2), ""), "{options}");
        assert!(run.stderr.contains(says) && run.stderr.lines().count() == 1, "{options}: {}", run.stderr);
    }
}
