//! Colours: `--color`, `NO_COLOR` and `CLICOLOR`, in tables and in messages.

use crate::support::{Lab, Run};

const GREEN: &str = "\u{1b}[1m\u{1b}[32m";
const RED: &str = "\u{1b}[31m";

/// A log on which EASY is significantly better than FCFS, and not than conservative backfilling.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.stdout("workload generate --model sud --jobs 5000 --load 0.5 -o log.swf");
    lab
}

const COMPARE: &str = "compare log.swf -p fcfs -p easy -p conservative";

#[test]
fn the_best_is_green_and_the_significantly_worst_is_red() {
    let lab = lab();
    let text = lab.stdout(&format!("{COMPARE} --color always"));
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).expect("a row").to_owned();
    let wait = row("wait, mean");
    assert_eq!((wait.matches(GREEN).count(), wait.matches(RED).count()), (1, 1), "{wait}");
    assert!(wait.find(RED) < wait.find(GREEN) && wait.ends_with('~'), "{wait}");
    // The significance of a percentile is unknown.
    assert_eq!((row("wait, p95").matches(GREEN).count(), row("wait, p95").matches(RED).count()), (1, 0));
    let plain = text.replace(GREEN, "").replace(RED, "").replace("\u{1b}[0m", "");
    assert_eq!(plain, lab.stdout(COMPARE));
}

#[test]
fn errors_are_red_as_those_of_the_command_line() {
    let lab = Lab::new();
    let red = format!("\u{1b}[1m{RED}error:\u{1b}[0m ");
    for line in ["--color always simulate none.swf -p easy", "simulat --color=always"] {
        let run = lab.run(line);
        assert_eq!((run.code, run.stderr.starts_with(&red)), (Some(2), true), "{line}: {}", run.stderr);
    }
    for line in ["simulate none.swf -p easy", "simulat", "simulate none.swf -p easy --color never"] {
        assert!(lab.run(line).stderr.starts_with("error: "), "{line}");
    }
}

/// `script` gives the program a terminal.
fn on_terminal(lab: &Lab, variables: &[(&str, &str)], option: &str) -> String {
    let program = env!("CARGO_BIN_EXE_miserly");
    let mut command = std::process::Command::new("script");
    command.args(["-qec", &format!("{program} simulate none.swf -p easy {option}"), "/dev/null"]);
    command.current_dir(lab.path("")).env_remove("NO_COLOR").env_remove("CLICOLOR").env("TERM", "xterm");
    command.envs(variables.iter().copied());
    let output = command.output().expect("script, of util-linux");
    Run::from_output(&output).stdout
}

#[test]
fn a_terminal_has_colours_unless_the_user_has_none() {
    let lab = Lab::new();
    let coloured = |variables: &[(&str, &str)], option| on_terminal(&lab, variables, option).contains(RED);
    assert!(coloured(&[], ""));
    assert!(!coloured(&[("NO_COLOR", "1")], "") && !coloured(&[("CLICOLOR", "0")], ""));
    assert!(!coloured(&[], "--color never"));
    assert!(coloured(&[("NO_COLOR", "1")], "--color always"));
}
