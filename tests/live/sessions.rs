//! The README's session with a daemon: its commands print what it shows.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::Daemon;

/// The session's first job, in the README, and with an end that does not depend on the time it takes to get there.
const SLEEPS: [&str; 2] = ["sleep 2;", "while [ ! -e go ]; do sleep 0.05; done;"];

/// Returns the commands of the README's session, each with the lines that it shows below.
fn session() -> Vec<(String, String)> {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).expect("the README");
    let (_, section) = readme.split_once("\n## On your own machine\n").expect("a section");
    let block = section.split("```").nth(1).and_then(|block| block.strip_prefix("text\n")).expect("a block");
    let commands = block.split("$ ").filter_map(|part| part.split_once('\n'));
    commands.map(|(command, output)| (command.to_owned(), output.to_owned())).collect()
}

/// Returns what a command of the session prints in a shell of the daemon's user.
fn printed(daemon: &Daemon, command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_miserly")).parent().expect("a folder");
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", program.display());
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).current_dir(daemon.path("")).stdin(Stdio::null());
    shell.env("PATH", path).env("MISERLY_SOCKET", daemon.path("socket"));
    let output = shell.output().expect("a shell");
    assert!(output.stderr.is_empty(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the words of an output. Dates, times and the user's name are the same word everywhere.
fn words(output: &str, user: &str) -> Vec<String> {
    let word = |word: &str| {
        let shape = word.replace(|c: char| c.is_ascii_digit(), "0");
        match shape.as_str() {
            "0000-00-00" | "0000-00-00," => "DATE".to_owned(),
            "00:00:00" | "00:00:00," => "TIME".to_owned(),
            _ if word == user => "USER".to_owned(),
            _ => word.to_owned(),
        }
    };
    output.split_whitespace().map(word).collect()
}

/// Returns a line on rounds and effects without its figures, which depend on when jobs end.
fn without_figures(words: Vec<String>) -> Vec<String> {
    let is_rounds = words.get(1).is_some_and(|word| word == "rounds:");
    words.into_iter().filter(|word| !is_rounds || word.parse::<u64>().is_err()).collect()
}

#[test]
fn the_session_of_the_readme_is_what_the_program_prints() {
    let daemon = Daemon::new("");
    let user = printed(&daemon, "id -un");
    let session = session();
    assert!(session.len() >= 5, "{session:?}");
    for (command, shown) in session {
        if command.starts_with("miserly wait") {
            fs::write(daemon.path("go"), "").expect("a file");
        }
        let output = printed(&daemon, &command.replace(SLEEPS[0], SLEEPS[1]));
        let [output, shown] = [words(&output, user.trim()), words(&shown, "ada")].map(without_figures);
        assert_eq!(output, shown, "{command}");
    }
}
