//! Exit codes, signals, and commands that cannot be started.

use std::fs;
use std::path::Path;
use std::time::Duration;

use miserly_launch::{Exit, LaunchError, OutputFile, ShimRefusal, SpecError, StartFailure, launch};

use crate::support::{Test, exe, output};

#[test]
fn an_exit_code_is_recorded() {
    for code in [0, 1, 77, 255] {
        let end = Test::new(&format!("exit {code}")).run();
        assert_eq!((end.exit, end.cause, end.late), (Exit::Code(code), None, None));
    }
}

#[test]
fn a_signal_is_recorded() {
    for signal in [1, 2, 9, 15] {
        let end = Test::new(&format!("kill -{signal} $$")).run();
        assert_eq!(end.exit, Exit::Signal { signal, core: false });
    }
}

#[track_caller]
fn fails(test: &Test) -> StartFailure {
    match test.run().exit {
        Exit::Failed(failure) => failure,
        other => panic!("it was started, and ended with {other:?}"),
    }
}

#[test]
fn a_program_that_is_not_there_fails() {
    let mut test = Test::new("");
    test.spec.argv = vec!["no-such-program".into()];
    let failure = fails(&test);
    assert_eq!(failure.to_string(), "cannot run no-such-program: No such file or directory (os error 2)");
    assert!(matches!(failure, StartFailure::Program { path, .. } if path == Path::new("no-such-program")));
}

#[test]
fn a_directory_that_has_vanished_fails() {
    let mut test = Test::new("");
    test.spec.cwd = "/no/such/folder".into();
    assert!(
        matches!(fails(&test), StartFailure::WorkingDirectory { path, .. } if path == Path::new("/no/such/folder"))
    );
}

#[test]
fn an_input_file_is_read_to_its_end() {
    let mut test = Test::new("cat; echo end");
    fs::write(test.folder.path().join("in"), "text\n").unwrap();
    test.spec.stdin = Some("in".into());
    assert_eq!(output(&test), "text\nend\n");
}

#[test]
fn an_input_file_that_is_missing_fails() {
    let mut test = Test::new("echo it runs >ran");
    test.spec.stdin = Some("gone/in".into());
    assert!(matches!(fails(&test), StartFailure::InputFile { path, .. } if path == Path::new("gone/in")));
    assert!(!test.folder.path().join("ran").exists());
}

#[test]
fn an_output_in_a_missing_directory_fails() {
    let mut test = Test::new("echo it runs >ran");
    test.spec.stderr = Some(OutputFile { path: "gone/err".into(), append: true });
    assert!(matches!(fails(&test), StartFailure::OutputFile { path, .. } if path == Path::new("gone/err")));
    assert!(!test.folder.path().join("ran").exists());
}

#[test]
fn processors_that_are_not_there_fail() {
    let mut test = Test::new("");
    let end = test.spec.mode.end().unwrap();
    test.spec.mode = miserly_launch::RunMode::Reserved { cpus: vec![1000], end };
    assert!(matches!(fails(&test), StartFailure::Setup { what, .. } if what == "the cpus [1000]"));
}

#[test]
fn an_order_that_makes_no_sense_is_not_launched() {
    let mut test = Test::new("");
    test.spec.cwd = "relative".into();
    let error = launch(exe(), &test.dir(), &test.spec).unwrap_err();
    assert!(matches!(error, LaunchError::Spec(SpecError::Relative(_))), "{error}");
    assert!(!test.dir().exists());
}

#[test]
fn a_folder_is_for_one_attempt() {
    let test = Test::new("echo ran >>ran");
    test.run();
    let error = launch(exe(), &test.dir(), &test.spec).unwrap_err();
    assert!(matches!(error, LaunchError::Record(_)), "{error}");
    assert_eq!(fs::read_to_string(test.folder.path().join("ran")).unwrap(), "ran\n");
}

#[test]
fn a_shim_that_cannot_be_started_is_an_error() {
    for (exe, wanted) in
        [("/no/such/shim", "cannot start the shim /no/such/shim: "), ("/bin/true", "its log is empty")]
    {
        let test = Test::new("echo ran >ran");
        let error = launch(Path::new(exe), &test.dir(), &test.spec).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
        assert!(!matches!(error, LaunchError::Unclear { .. }));
        assert!(test.dir().join("void").exists());
    }
}

#[test]
fn a_refusal_reads_well() {
    let refusal = ShimRefusal::Cpus { cpus: vec![9], error: "Invalid argument".to_owned() };
    assert_eq!(refusal.to_string(), "cannot run on the processors [9]: Invalid argument");
}

#[test]
fn what_the_processes_used_is_recorded() {
    let burn = "burn() { i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; }";
    let alone = cpu_time(&Test::new(&format!("{burn}; burn")));
    let with_child = cpu_time(&Test::new(&format!("{burn}; burn; burn; (burn; burn; burn; burn)")));
    assert!(alone > Duration::ZERO && with_child > 2 * alone, "{alone:?}, {with_child:?}");
}

/// Runs a job and returns the time of its processes on processors.
#[track_caller]
fn cpu_time(test: &Test) -> Duration {
    let end = test.run();
    if test.spec.cgroup.is_some() {
        assert_eq!(end.processes, None);
        return end.usage.unwrap().cpu;
    }
    let used = end.processes.unwrap();
    assert!((100_000..1_000_000_000).contains(&used.memory_peak), "{used:?}");
    assert_eq!(end.usage, None);
    used.user + used.system
}
