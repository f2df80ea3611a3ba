//! Words that only a shell understands, in a command that no shell runs.

use std::borrow::Cow;

use miserly_api::model::Submission;

use crate::colour::message_head;

/// Operators of a shell that are words of their own.
const OPERATORS: [&str; 11] = ["|", "||", "&&", "&", "<", ">", ">>", "2>", "2>>", "&>", "2>&1"];

/// Commands of a shell that are no programs.
const BUILT_IN: [&str; 16] = [
    ".", "alias", "case", "cd", "eval", "exec", "export", "for", "if", "module", "set", "source", "ulimit",
    "umask", "unset", "while",
];

/// Returns how to submit a command of a shell, if the program of the job can only be meant as one.
pub(super) fn advice(job: &Submission) -> Option<String> {
    let program = job.command.first().filter(|_| job.script.is_none())?;
    let is_meant = has_operators(program)
        || program.contains(char::is_whitespace)
        || program.contains('=')
        || BUILT_IN.contains(&program.as_str());
    is_meant.then(|| format!("for a command of a shell, write {}", wrapped(&job.command)))
}

/// Returns whether a word has operators, quotes or patterns of a shell.
pub(super) fn has_operators(word: &str) -> bool {
    word.contains(['|', '&', ';', '<', '>', '(', ')', '$', '`', '"', '\'', '*', '?', '\n'])
}

/// Warns of operators among the arguments: the program gets them as they are.
pub(super) fn warn_of_operators(command: &[String]) {
    let arguments = command.iter().skip(1);
    if let Some(operator) = arguments.map(String::as_str).find(|word| OPERATORS.contains(word)) {
        note!(
            "{} {operator} is an argument of {} here, because no shell runs the command; for a shell, write {}",
            message_head("warning"),
            command[0],
            wrapped(command)
        );
    }
}

/// Returns the option for a command line of a shell, and the program for commands without the option, quoted for a shell.
fn wrapped(command: &[String]) -> String {
    let line = command.join(" ");
    let quoted = shlex::try_quote(&line).map_or(Cow::Borrowed("'COMMAND'"), |quoted| quoted);
    format!("--wrap {quoted} (submit), or sh -c {quoted}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(command: &[&str]) -> Submission {
        Submission {
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            ..Submission::default()
        }
    }

    #[test]
    fn what_only_a_shell_understands() {
        for (command, expect) in [
            (&["a | b"][..], Some("--wrap 'a | b'")),
            (&["a|b"], Some("--wrap 'a|b'")),
            (&["./sim < in > out"], Some("--wrap './sim < in > out'")),
            (&["sleep 5"], Some("--wrap 'sleep 5'")),
            (&["A=1", "prog"], Some("--wrap 'A=1 prog'")),
            (&["cd", "/data;", "ls"], Some("--wrap 'cd /data; ls'")),
            (&["for i in 1; do echo $i; done"], Some("--wrap ")),
            (&["nowhere", "a|b"], None),
        ] {
            let found = advice(&job(command));
            assert_eq!(found.is_some(), expect.is_some(), "{command:?}: {found:?}");
            assert!(found.is_none_or(|found| found.contains(expect.unwrap_or_default())), "{command:?}");
        }
        let script = Submission { script: Some("#!/bin/sh\n".to_owned()), ..job(&["a | b"]) };
        assert_eq!(advice(&script), None);
    }
}
