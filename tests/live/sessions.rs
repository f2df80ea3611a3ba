//! The sessions with a daemon in the documents: their commands print what the pages show.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Daemon, SOON, has_two_cpus, until};

/// A command of a session, and the lines that the page shows below it.
type Step = (String, String);

/// Writes a `sleep` that ends when there is a file `go`, and not after some time.
fn write_sleep(daemon: &Daemon) {
    let program = daemon.path("bin/sleep");
    fs::create_dir(daemon.path("bin")).expect("a folder");
    let go = daemon.path("go").display().to_string();
    fs::write(&program, format!("#!/bin/sh\nuntil test -e {go}; do /bin/sleep 0.05; done\n"))
        .expect("a file");
    fs::set_permissions(program, Permissions::from_mode(0o755)).expect("a mode");
}

/// Returns the text of a page of the project.
fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect("a page")
}

/// Returns the blocks of a page that begin with these words, without them.
fn blocks<'a>(page: &'a str, begin: &str) -> Vec<&'a str> {
    page.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix(begin)).collect()
}

/// Returns the commands of all sessions of a page.
fn session(page: &str) -> Vec<Step> {
    let commands = |block: &str| -> Vec<Step> {
        let parts = format!("\n{block}");
        let parts = parts.split("\n$ ").skip(1).map(|part| part.split_once('\n').unwrap_or((part, "")));
        parts.map(|(command, output)| (command.to_owned(), output.to_owned())).collect()
    };
    blocks(page, "text\n").into_iter().flat_map(commands).collect()
}

/// Returns what a command prints, once it has the forecasts that the page shows. Jobs sleep until a command waits for one.
fn printed_as(daemon: &Daemon, command: &str, shown: &str) -> String {
    if command.starts_with("miserly wait") {
        fs::write(daemon.path("go"), "").expect("a file");
        let output = printed(daemon, command);
        fs::remove_file(daemon.path("go")).expect("a file");
        return output;
    }
    let likely = |text: &str| text.contains("LIKELY");
    until("the forecasts of the page", SOON, || {
        Some(printed(daemon, command))
            .filter(|output| command != "miserly queue" || likely(output) == likely(shown))
    })
}

/// Returns what a command of the session prints in a shell of the daemon's user.
fn printed(daemon: &Daemon, command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_miserly")).parent().expect("a folder");
    let own = daemon.path("bin");
    let path = format!("{}:{}:/usr/local/bin:/usr/bin:/bin", own.display(), program.display());
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).current_dir(daemon.path("")).stdin(Stdio::null());
    shell.env("PATH", path).env("MISERLY_SOCKET", daemon.path("socket"));
    let output = shell.output().expect("a shell");
    assert!(output.stderr.is_empty(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the words of an output. Dates, times, numbers of processors and the names of users are
/// the same word everywhere: the user of the test may be root, whom some lines name beside the user.
fn words(output: &str, user: &str) -> Vec<String> {
    let word = |word: &str| {
        let shape = word.replace(|c: char| c.is_ascii_digit(), "0");
        match shape.as_str() {
            "0000-00-00" | "0000-00-00," => "DATE".to_owned(),
            "00:00:00" | "00:00:00," => "TIME".to_owned(),
            "0000-00-00T00:00:00.000000+00:00" | "0000-00-00T00:00:00.000000-00:00" => "INSTANT".to_owned(),
            "0-0" | "00-00" => "PROCESSORS".to_owned(),
            _ if [user, "ada", "root"].contains(&word) => "USER".to_owned(),
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

/// Compares the output of a command with the page's.
#[track_caller]
fn compare(daemon: &Daemon, command: &str, output: &str, shown: &str) {
    let user = printed(daemon, "id -un");
    let [output, shown] = [output, shown].map(|text| without_figures(words(text, user.trim())));
    assert_eq!(output, shown, "{command}");
}

#[test]
fn the_session_of_the_readme_is_what_the_program_prints() {
    let daemon = Daemon::new("");
    write_sleep(&daemon);
    let readme = page("README.md");
    let (_, section) = readme.split_once("\n## On your own machine\n").expect("a section");
    let session = session(section);
    assert!(session.len() >= 5, "{session:?}");
    for (command, shown) in session {
        let output = printed_as(&daemon, &command, &shown);
        compare(&daemon, &command, &output, &shown);
    }
}

/// Starts the daemon, again if it runs, and returns the last line of its log.
fn started(daemon: &mut Daemon, socket: &str) -> String {
    daemon.stop();
    daemon.start();
    let log = daemon.log();
    let ready = log.lines().rfind(|line| line.contains(": ready on ")).expect("a line");
    ready.replace(&daemon.path("socket").display().to_string(), socket)
}

/// The section on several people needs a second user.
#[test]
fn the_session_of_the_shared_server_is_what_the_program_prints() {
    if !has_two_cpus() {
        return;
    }
    let page = page("docs/how-to/shared-server.md");
    let (before, rest) = page.split_once("\n## 6. Several people\n").expect("a section");
    let (_, after) = rest.split_once("\n## ").expect("a section");
    let (configuration, job) = (blocks(before, "toml\n")[0], blocks(before, "sh\n#!/bin/sh\n")[0]);
    let mut daemon = Daemon::asleep(configuration);
    fs::write(daemon.path("miserly.toml"), configuration).expect("a file");
    write_sleep(&daemon);
    fs::write(daemon.path("job.sh"), format!("#!/bin/sh\n{job}")).expect("a file");
    let session = session(&format!("{before}\n{after}"));
    assert!(session.len() >= 14, "{session:?}");
    for (command, shown) in session {
        let output = match command.as_str() {
            "miserly daemon --config miserly.toml" => started(&mut daemon, "/tmp/miserly-trial/run/socket"),
            _ => printed_as(&daemon, &command, &shown),
        };
        compare(&daemon, &command, &output, &shown);
    }
}
