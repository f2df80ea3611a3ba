//! Exit codes, signals, and commands that cannot be started.

use std::fs;
use std::path::Path;
use std::time::Duration;

use miserly_launch::{Exit, Failure, LaunchError, OrderError, Output, Refusal, launch};

use crate::support::{Test, exe};

#[test]
fn an_exit_code_is_recorded() {
    for code in [0, 1, 77, 255] {
        let end = Test::of(&format!("exit {code}")).run();
        assert_eq!((end.exit, end.cause, end.late), (Exit::Code(code), None, None));
    }
}

#[test]
fn a_signal_is_recorded() {
    for signal in [1, 2, 9, 15] {
        let end = Test::of(&format!("kill -{signal} $$")).run();
        assert_eq!(end.exit, Exit::Signal { signal, core: false });
    }
}

#[test]
fn what_it_used_is_recorded_with_that_of_its_children() {
    let end = Test::of("sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'").run();
    assert!(end.user > Duration::from_millis(5), "{:?}", end.user);
    assert!(end.max_rss > 1 << 20, "{}", end.max_rss);
}

#[track_caller]
fn fails(test: &Test) -> Failure {
    match test.run().exit {
        Exit::Failed(failure) => failure,
        other => panic!("it was started, and ended with {other:?}"),
    }
}

#[test]
fn a_program_that_is_not_there_fails() {
    let mut test = Test::of("");
    test.order.argv = vec!["no-such-program".into()];
    let failure = fails(&test);
    assert_eq!(failure.to_string(), "cannot run no-such-program: No such file or directory (os error 2)");
    assert!(matches!(failure, Failure::Program { path, .. } if path == Path::new("no-such-program")));
}

#[test]
fn a_directory_that_has_vanished_fails() {
    let mut test = Test::of("");
    test.order.cwd = "/no/such/folder".into();
    assert!(matches!(fails(&test), Failure::Folder { path, .. } if path == Path::new("/no/such/folder")));
}

#[test]
fn an_output_whose_folder_has_vanished_fails() {
    let mut test = Test::of("echo it runs >ran");
    test.order.stderr = Some(Output { path: "gone/err".into(), append: true });
    assert!(matches!(fails(&test), Failure::Output { path, .. } if path == Path::new("gone/err")));
    assert!(!test.folder.path().join("ran").exists());
}

#[test]
fn processors_that_are_not_there_fail() {
    let mut test = Test::of("");
    let end = test.order.mode.end().unwrap();
    test.order.mode = miserly_launch::Mode::Critical { cpus: vec![1000], end };
    assert!(matches!(fails(&test), Failure::Setup { what, .. } if what == "the cpus [1000]"));
}

#[test]
fn an_order_that_makes_no_sense_is_not_launched() {
    let mut test = Test::of("");
    test.order.cwd = "relative".into();
    let error = launch(exe(), &test.dir(), &test.order).unwrap_err();
    assert!(matches!(error, LaunchError::Order(OrderError::Relative(_))), "{error}");
    assert!(!test.dir().exists());
}

#[test]
fn a_folder_is_for_one_attempt() {
    let test = Test::of("echo ran >>ran");
    test.run();
    let error = launch(exe(), &test.dir(), &test.order).unwrap_err();
    assert!(matches!(error, LaunchError::Record(_)), "{error}");
    assert_eq!(fs::read_to_string(test.folder.path().join("ran")).unwrap(), "ran\n");
}

#[test]
fn a_shim_that_cannot_be_started_is_told_and_never_comes() {
    for (exe, wanted) in
        [("/no/such/shim", "cannot start the shim /no/such/shim: "), ("/bin/true", "said nothing")]
    {
        let test = Test::of("echo ran >ran");
        let error = launch(Path::new(exe), &test.dir(), &test.order).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
        assert!(!matches!(error, LaunchError::Unclear { .. }));
        assert!(test.dir().join("void").exists());
    }
}

#[test]
fn a_refusal_reads_well() {
    let refusal = Refusal::Cpus { cpus: vec![9], error: "Invalid argument".to_owned() };
    assert_eq!(refusal.to_string(), "cannot run on the processors [9]: Invalid argument");
}
