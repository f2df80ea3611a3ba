//! What a user can make block or fail before the command runs: it is part of the job's window, and the job's failure.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use miserly_launch::{
    AttemptEnd, BootTime, EndCause, Exit, FoundAttempt, MachineClock as _, RunMode, StartFailure,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use crate::support::{SECOND, Test, cpus, until};
use crate::users::{PamService, of_user};

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// Returns an attempt with a window that ends in two seconds.
fn short(mut test: Test) -> Test {
    test.spec.mode = RunMode::Reserved { cpus: cpus(), end: BootTime::now().after(2 * SECOND) };
    test.spec.grace = SECOND / 2;
    test
}

fn failure(end: AttemptEnd) -> String {
    let Exit::Failed(failure) = end.exit else { panic!("{end:?}") };
    failure.to_string()
}

#[test]
fn a_fifo_that_no_process_reads_is_a_failure_at_once() {
    for with_error in [false, true] {
        let mut test = Test::new("echo ran >ran");
        fifo(&test.folder.path().join("fifo"));
        if with_error {
            test.spec.stderr = Some(miserly_launch::OutputFile { path: "fifo".into(), append: true });
        } else {
            test.spec.stdout.path = "fifo".into();
        }
        let end = test.run();
        assert_eq!(end.cause, None);
        assert_eq!(failure(end), "cannot open fifo for output: it is a FIFO that no process reads");
        assert!(!test.folder.path().join("ran").exists());
    }
}

#[test]
fn a_fifo_that_no_process_writes_is_a_failure_at_once() {
    let mut test = Test::new("cat >ran");
    fifo(&test.folder.path().join("fifo"));
    test.spec.stdin = Some("fifo".into());
    assert_eq!(failure(test.run()), "cannot open fifo for input: it is a FIFO that no process writes");
    assert!(!test.folder.path().join("ran").exists());
}

/// The command gets files that wait, as it would without a scheduler.
#[test]
fn fifos_with_another_end_are_open_and_wait() {
    let mut test = Test::new("cat; echo end");
    let [input, output] = ["input", "output"].map(|name| test.folder.path().join(name));
    fifo(&input);
    fifo(&output);
    (test.spec.stdin, test.spec.stdout.path) = (Some("input".into()), "output".into());
    let open = |path: &Path, write| {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        OpenOptions::new().read(true).write(write).custom_flags(flags).open(path).unwrap()
    };
    let mut reader = open(&output, false);
    let mut writer = open(&input, true);
    let shim = test.launch();
    until(|| shim.started().unwrap());
    writer.write_all(b"text\n").unwrap();
    drop(writer);
    assert_eq!(crate::support::ended(&shim).exit, Exit::Code(0));
    let mut read = String::new();
    reader.read_to_string(&mut read).unwrap();
    assert_eq!(read, "text\nend\n");
}

/// A user can bring about such an error as long as wanted, for example by a lease or a quota.
#[test]
fn an_output_that_lacks_a_resource_until_the_window_ends_is_the_failure_of_the_job() {
    let test = short(Test::new("echo ran >ran"));
    fs::write(test.folder.path().join("shortage"), "open-outputs 11 100000").unwrap();
    let end = test.run();
    assert_eq!(end.cause, Some(EndCause::Time));
    let failure = failure(end);
    assert!(failure.starts_with("cannot open out for output: Resource temporarily unavailable"), "{failure}");
    assert!(matches!(test.find(), FoundAttempt::Ended(_)));
    assert!(!test.folder.path().join("ran").exists());
}

/// The window begins before the user's part of the start.
#[test]
fn a_command_that_its_user_delays_has_begun_when_the_machine_was_ready() {
    let test = Test::new("true");
    fs::write(test.folder.path().join("shortage"), "open-outputs 11 20").unwrap();
    let begun = BootTime::now();
    let shim = test.launch();
    let launched = BootTime::now();
    let started = until(|| shim.started().unwrap());
    assert!(BootTime::now().since(begun) >= 2 * SECOND, "each of 20 passes takes 0.1 s");
    assert!(started.instant().parts().0 <= launched.after(SECOND), "{started:?}, launched at {launched:?}");
    assert_eq!(crate::support::ended(&shim).exit, Exit::Code(0));
}

#[test]
fn a_module_of_pam_that_does_not_answer_is_the_failure_of_the_job() {
    let Some(mut test) = of_user("echo ran >ran").map(short) else { return };
    let Some(service) = PamService::new("blocks", "session required pam_exec.so /bin/sleep 1000") else {
        return;
    };
    if let Some(user) = &mut test.spec.user {
        (user.name, user.pam) = ("nobody".into(), Some(service.name()));
    }
    let end = test.run();
    assert_eq!(end.cause, Some(EndCause::Time));
    let Exit::Failed(StartFailure::Setup { error, .. }) = end.exit else { panic!("{end:?}") };
    assert!(error.starts_with("no answer before the end of the window (PAM, service"), "{error}");
    assert!(!test.folder.path().join("ran").exists());
}

#[test]
fn files_may_be_devices() {
    let mut test = Test::new("echo text");
    test.spec.stdout.path = "/dev/null".into();
    test.spec.stdin = Some("/dev/null".into());
    assert_eq!(test.run().exit, Exit::Code(0));
}
