//! An interrupt in the middle of a run.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::support::{Lab, line};

/// Looks at the folder every few milliseconds, for at most some seconds.
fn wait_for_temporary_file(lab: &Lab) {
    for _ in 0..5_000 {
        if lab.files().iter().any(|name| name.starts_with(".miserly-")) {
            return;
        }
        sleep(Duration::from_millis(2));
    }
    panic!("no temporary file: {:?}", lab.files());
}

#[test]
fn nothing_is_left_behind() {
    let lab = Lab::new();
    // Runs for seconds after the file was begun.
    let jobs: String = (0..400_000).map(|job| line((job, job * 20, 10, 1, 10))).collect();
    lab.write("log.swf", format!("; MaxProcs: 10\n{jobs}"));
    lab.write("out.csv", "the old one");
    let mut command = lab.command("simulate log.swf --policy easy --jobs out.csv");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a program that starts");
    wait_for_temporary_file(&lab);
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("kill").success());
    let output = child.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(130));
    assert_eq!((output.stdout, output.stderr), (vec![], vec![]));
    assert_eq!(lab.files(), ["log.swf", "out.csv"]);
    assert_eq!(lab.read("out.csv"), "the old one");
}
