//! Limits on the size of a submission.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use miserly_api::model::{MailEvent, Problem, Submission, is_address, is_blank, is_invisible};

/// The most bytes of a name.
const NAME: usize = 256;
/// The most bytes of a path, as the system has it.
const PATH: usize = 4095;
/// The most bytes of arguments and environment together.
const WORDS: usize = 1 << 20;
/// The most bytes of a script.
const SCRIPT: usize = 2 << 20;
/// The most jobs in an array.
pub(crate) const ARRAY_MOST: usize = 10_000;
/// The most jobs that one job waits for.
const AFTER: usize = 1000;

/// Returns the bytes of the command, the script and the environment.
pub(crate) fn bytes(submission: &Submission) -> usize {
    words(submission) + submission.script.as_ref().map_or(0, String::len)
}

/// Returns the bytes of the command and the environment.
fn words(submission: &Submission) -> usize {
    let variables = submission.environment.iter().map(|(name, value)| name.len() + value.len() + 2);
    let raw = submission.environment_bytes.iter().map(|raw| raw.name.len() + raw.value.len() + 2);
    submission.command.iter().map(|word| word.len() + 1).chain(variables).chain(raw).sum()
}

/// Checks the size of each part of a submission.
///
/// # Errors
/// The first part that is too large, and its limit.
pub(crate) fn check(submission: &Submission) -> Result<(), Problem> {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let path = |path: &Path| path.as_os_str().as_bytes().len();
    let optional = |of: &Option<std::path::PathBuf>| of.as_deref().map_or(0, path);
    let command: usize = submission.command.iter().map(|word| word.len() + 1).sum();
    let sizes = [
        ("name", length(&submission.name), NAME, "bytes"),
        ("comment", length(&submission.comment), Submission::COMMENT_MOST, "bytes"),
        ("queue", length(&submission.queue), NAME, "bytes"),
        ("request_id", length(&submission.request_id), NAME, "bytes"),
        ("directory", path(&submission.directory), PATH, "bytes"),
        ("input", optional(&submission.input), PATH, "bytes"),
        ("output", optional(&submission.output), PATH, "bytes"),
        ("error", optional(&submission.error), PATH, "bytes"),
        ("script", length(&submission.script), SCRIPT, "bytes"),
        ("after", submission.after.len(), AFTER, "jobs"),
        ("retry", submission.retry.as_ref().map_or(0, |retry| retry.codes.len()), 255, "exit codes"),
        ("conditions", submission.conditions.len(), AFTER, "jobs"),
        ("command", command, WORDS, "bytes"),
        ("environment", words(submission), WORDS, "bytes, with the command"),
    ];
    let Some((field, size, most, unit)) = sizes.into_iter().find(|(_, size, most, _)| size > most) else {
        check_mail(submission)?;
        check_text("name", submission.name.as_deref())?;
        return check_text("comment", submission.comment.as_deref());
    };
    Err(Problem::with_field(field, format!("{field}: it has {size} {unit}, and the limit is {most}")))
}

/// Checks that the events and the address of a mail are usable.
fn check_mail(submission: &Submission) -> Result<(), Problem> {
    let Some(mail) = &submission.mail else { return Ok(()) };
    if mail.on.is_empty() || mail.on.len() > MailEvent::ALL.len() {
        return Err(Problem::with_field("mail", "mail: name each event at most once, and at least one"));
    }
    if mail.to.as_deref().is_some_and(|to| !is_address(to)) {
        return Err(Problem::with_field("mail", "mail: write one address, such as ada@example.org"));
    }
    Ok(())
}

/// Checks that all users see a text as it is, on a terminal and on a page.
fn check_text(field: &str, text: Option<&str>) -> Result<(), Problem> {
    let Some(text) = text else { return Ok(()) };
    let refused = |message: String| Err(Problem::with_field(field, message));
    if let Some(letter) = text.chars().find(|letter| is_invisible(*letter)) {
        return refused(format!(
            "{field}: {text:?} has the control character or invisible character U+{:04X}; leave it out",
            u32::from(letter)
        ));
    }
    if is_blank(text) {
        return refused(format!("{field}: it is blank; leave it out, or give one with letters"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(submission: &Submission, field: &str) {
        let problem = check(submission).unwrap_err();
        assert_eq!(problem.field.as_deref(), Some(field));
        assert!(problem.message.contains("the limit is"), "{problem:?}");
    }

    fn with_name(name: &str) -> Submission {
        Submission { name: Some(name.into()), ..Submission::default() }
    }

    #[test]
    fn a_name_is_shown_as_it_is() {
        for name in
            ["\u{1b}[31m", "new\nline", "\u{9b}", "a\u{200b}b", "\u{202e}a", "\u{feff}", "", " ", "\u{3000}"]
        {
            let problem = check(&with_name(name)).unwrap_err();
            assert_eq!(problem.field.as_deref(), Some("name"));
            let problem = check(&Submission { comment: Some(name.into()), ..Submission::default() });
            assert_eq!(problem.unwrap_err().field.as_deref(), Some("comment"));
        }
        check(&Submission { comment: Some("Füße 1".into()), ..with_name("Füße 1") }).unwrap();
    }

    #[test]
    fn each_part_has_a_limit() {
        let long = |bytes: usize| "x".repeat(bytes);
        let nothing = Submission::default;
        check(&Submission { name: Some(long(NAME)), directory: long(PATH).into(), ..nothing() }).unwrap();
        refused(&Submission { name: Some(long(NAME + 1)), ..nothing() }, "name");
        refused(&Submission { comment: Some(long(Submission::COMMENT_MOST + 1)), ..nothing() }, "comment");
        refused(&Submission { queue: Some(long(NAME + 1)), ..nothing() }, "queue");
        refused(&Submission { directory: long(PATH + 1).into(), ..nothing() }, "directory");
        refused(&Submission { output: Some(long(PATH + 1).into()), ..nothing() }, "output");
        refused(&Submission { error: Some(long(PATH + 1).into()), ..nothing() }, "error");
        refused(&Submission { script: Some(long(SCRIPT + 1)), ..nothing() }, "script");
        refused(&Submission { after: vec![1; AFTER + 1], ..nothing() }, "after");
        refused(&Submission { command: vec![long(WORDS)], ..nothing() }, "command");
        let half = WORDS / 2;
        let both = Submission {
            environment: [("A".into(), long(half))].into(),
            command: vec![long(half)],
            ..nothing()
        };
        refused(&both, "environment");
    }
}
