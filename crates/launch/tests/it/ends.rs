//! Exit codes, signals, and commands that cannot be started.

use miserly_launch::{Exit, Failure};

use crate::support::Test;

#[test]
fn an_exit_code_is_recorded() {
    for code in [0, 1, 77, 255] {
        let test = Test::of(&format!("exit {code}"));
        let end = test.run();
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
fn no_such_program() {
    let mut test = Test::of("");
    test.order.argv = vec!["no-such-program".into()];
    match test.run().exit {
        Exit::Failed(Failure::Program { path, .. }) => assert_eq!(path.to_str(), Some("no-such-program")),
        other => panic!("{other:?}"),
    }
}
