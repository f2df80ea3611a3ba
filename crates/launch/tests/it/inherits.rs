//! The inherited properties of a command: exactly as specified, without any of the daemon's.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use miserly_cgroup::Capability;
use miserly_launch::{EndCause, Exit, OutputFile, ResourceLimits};

use crate::support::{Test, cpus, exe, output, status, until};

#[test]
fn the_environment_is_as_specified() {
    let mut test = Test::new("env");
    test.spec.argv = vec!["/usr/bin/env".into()];
    test.spec.env = vec![("A".into(), "b c".into()), ("EMPTY".into(), "".into())];
    let folder = test.folder.path().canonicalize().unwrap().join("7.1");
    assert_eq!(output(&test), format!("A=b c\nEMPTY=\nMISERLY_ATTEMPT_FOLDER={}\n", folder.display()));
}

#[test]
fn no_signal_is_blocked_or_ignored_and_no_file_is_open() {
    let test = Test::new("grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd");
    let out = output(&test);
    let mut lines = out.lines();
    for field in ["SigBlk:", "SigIgn:"] {
        let mask = lines.next().and_then(|line| line.strip_prefix(field)).unwrap();
        // Signals 32 and 33 are reserved by the C library.
        assert_eq!(u64::from_str_radix(mask.trim(), 16).unwrap() & !(3 << 31), 0, "{out}");
    }
    // The fourth is the directory that `ls` reads.
    assert_eq!(lines.collect::<Vec<_>>(), ["0", "1", "2", "3"]);
}

#[test]
fn it_leads_a_session_of_its_own_and_reads_nothing() {
    let test = Test::new("cut -d ' ' -f 1,5,6 /proc/$$/stat; readlink /proc/$$/fd/0");
    let out = output(&test);
    let (ids, input) = out.split_once('\n').unwrap();
    let ids: Vec<&str> = ids.split(' ').collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(input, "/dev/null\n");
}

#[test]
fn a_script_runs_by_its_interpreter_line() {
    let mut test = Test::new("");
    test.spec.script = Some("#!/bin/sh -u\necho \"$1 and $2\"; echo $undefined\n".to_owned());
    test.spec.argv = vec!["one".into(), "two".into()];
    assert_eq!(test.run().exit, Exit::Code(2));
    assert!(test.out().starts_with("one and two\n"), "{}", test.out());
}

#[test]
fn a_script_without_such_a_line_is_the_shells() {
    let mut test = Test::new("");
    test.spec.script = Some("echo $0 | sed 's|.*/||'\n".to_owned());
    test.spec.argv = vec![];
    assert_eq!(output(&test), "script\n");
}

#[test]
fn outputs_are_truncated_or_appended_to() {
    let mut test = Test::new("echo out; echo err >&2");
    fs::write(test.folder.path().join("out"), "before\nand more\n").unwrap();
    test.spec.attempt = 1;
    assert_eq!(output(&test), "out\nerr\n");

    let mut test = Test::new("echo out; echo err >&2");
    fs::write(test.folder.path().join("out"), "before\n").unwrap();
    test.spec.stdout.append = true;
    test.spec.stderr = Some(OutputFile { path: test.folder.path().join("err"), append: false });
    assert_eq!(output(&test), "before\nout\n");
    assert_eq!(fs::read_to_string(test.folder.path().join("err")).unwrap(), "err\n");
}

#[test]
fn files_are_made_under_its_umask_and_the_attempt_is_its_owners() {
    let mut test = Test::new("umask");
    test.spec.umask = 0o027;
    assert_eq!(output(&test), "0027\n");
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(test.folder.path().join("out")), 0o640);
    assert_eq!(mode(test.dir()), 0o700);
}

#[test]
fn limits_are_set() {
    let mut test = Test::new("ulimit -d; ulimit -Sn; ulimit -n 200 && ulimit -Sn");
    test.spec.limits = ResourceLimits { memory: Some(64 << 20), files: Some(100), processes: Some(20_000) };
    // With a control group the memory of all processes together is limited.
    let data = if test.group_can(Capability::MemoryMax) { "unlimited" } else { "65536" };
    assert_eq!(output(&test), format!("{data}\n100\n200\n"));
}

#[test]
fn nothing_of_the_launcher_is_inherited_but_may_be_raised_again() {
    // A launcher with other values than usual, in a process of its own.
    let test = Test::new("ulimit -Sc; cat /proc/$$/oom_score_adj; nice; ulimit -Hc");
    fs::create_dir(test.dir()).unwrap();
    fs::write(test.dir().join("spec.json"), serde_json::to_vec(&test.spec).unwrap()).unwrap();
    let hard = Command::new("sh").args(["-c", "ulimit -Hc"]).output().unwrap().stdout;
    let script =
        "ulimit -Sc $(ulimit -Hc); echo 300 > /proc/self/oom_score_adj; exec \"$0\" shim \"$1\" < /dev/null";
    Command::new("sh").args(["-c", script]).arg(exe()).arg(test.dir()).status().unwrap();
    until(|| test.dir().join("end.json").exists().then_some(()));
    let nice = Command::new("nice").output().unwrap().stdout;
    let nice = String::from_utf8(nice).unwrap().trim().parse::<i32>().unwrap().max(0);
    // Only a process with a right to it lowers its nice value.
    let nice = if rustix::process::geteuid().is_root() { 0 } else { nice };
    assert_eq!(test.out(), format!("0\n0\n{nice}\n{}", String::from_utf8(hard).unwrap()));
}

#[test]
fn memory_beyond_the_limit_is_not_to_be_had() {
    let mut test = Test::new("head -c 200000000 /dev/zero | tail -c 100000000 >/dev/null");
    test.spec.limits.memory = Some(32 << 20);
    let end = test.run();
    if test.group_can(Capability::MemoryMax) {
        assert_eq!((end.cause, end.exit), (Some(EndCause::Memory), Exit::Signal { signal: 9, core: false }));
        assert!(end.usage.is_some_and(|usage| usage.memory_kills == 1 && usage.memory_peak.is_some()));
    } else {
        assert!(test.out().contains("memory"), "{}", test.out());
    }
}

#[test]
fn it_stays_on_its_processors_and_so_do_its_children() {
    let cpu = *cpus().last().unwrap();
    let mut test = Test::new(
        "grep Cpus_allowed_list /proc/$$/status; sh -c 'grep Cpus_allowed_list /proc/$$/status; exit 0'",
    );
    let end = test.spec.mode.end().unwrap();
    test.spec.mode = miserly_launch::RunMode::Reserved { cpus: vec![cpu], end };
    let line = format!("Cpus_allowed_list:\t{cpu}\n");
    assert_eq!(output(&test), line.repeat(2));
}

#[test]
fn a_shim_holds_none_of_the_users_files() {
    let test = Test::new("echo here; sleep 100");
    let mut shim = test.launch();
    test.wait_out("here");
    let pid = shim.identity().pid;
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
        let file = fs::read_link(entry.unwrap().path()).unwrap();
        assert!(!file.starts_with(test.folder.path()) || file.starts_with(test.dir()), "{}", file.display());
    }
    // The shim's parent is the first process, or its replacement.
    assert_ne!(status(pid, "PPid"), std::process::id().to_string());
    crate::support::kill(&mut shim);
}
