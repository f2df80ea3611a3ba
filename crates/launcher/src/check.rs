//! Checks of submissions, before anything is promised.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use miserly_api::model::{Interaction, Problem, Submission};
use miserly_launch::{CommandSpec, SpecError};

/// Checks whether an attempt of a submission could be launched under this job name.
///
/// # Errors
/// The field of the submission that makes a launch impossible.
pub fn check(submission: &Submission, name: &str) -> Result<(), Problem> {
    let variables = submission.environment.iter().map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
    let raw = submission.environment_bytes.iter();
    let raw = raw.map(|raw| (OsStr::from_bytes(&raw.name), OsStr::from_bytes(&raw.value)));
    let draft = CommandSpec {
        argv: submission.command.iter().map(OsStr::new).collect(),
        has_script: submission.script.is_some(),
        cwd: &submission.directory,
        // The environment contains the job's name.
        env: variables.chain(raw).chain([(OsStr::new("MISERLY_JOB_NAME"), OsStr::new(name))]).collect(),
        input: submission.input.as_deref(),
        outputs: [&submission.output, &submission.error]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
            .collect(),
        umask: submission.umask,
    };
    draft.check().map_err(|error| Problem::with_field(field(&error), error.to_string()))?;
    check_interaction(submission)
}

/// Checks that clients can reach the job as it requests.
fn check_interaction(submission: &Submission) -> Result<(), Problem> {
    let Some(interaction) = submission.interaction else { return Ok(()) };
    let has_terminal = matches!(interaction, Interaction::Terminal { .. });
    let refused = |field, message: &str| Err(Problem::with_field(field, message));
    if submission.array.is_some() {
        return refused("array", "a job of an array has no clients; leave out `array` or `interaction`");
    }
    if has_terminal && submission.input.is_some() {
        return refused("input", "the input of a job with a terminal is the terminal; leave out `input`");
    }
    if has_terminal && submission.error.is_some() {
        return refused("error", "a job with a terminal has one output; leave out `error`");
    }
    Ok(())
}

/// Returns the field of the submission that an error is about.
fn field(error: &SpecError) -> &'static str {
    match error {
        SpecError::Relative(_) | SpecError::ZeroByte { what: "the working directory", .. } => "directory",
        SpecError::Variable(_) | SpecError::ZeroByte { what: "in the environment,", .. } => "environment",
        SpecError::ZeroByte { what: "the input file", .. } => "input",
        SpecError::ZeroByte { what: "the output file", .. } => "output",
        SpecError::Umask(_) => "umask",
        _ => "command",
    }
}

#[cfg(test)]
mod tests {
    use miserly_api::model::RawVariable;

    use super::*;

    fn submission() -> Submission {
        Submission { command: vec!["true".into()], directory: "/".into(), cpus: 1, ..Submission::default() }
    }

    /// Checks that a submission is rejected because of this field.
    #[track_caller]
    fn rejected(submission: &Submission, name: &str, expect: &str) {
        let problem = check(submission, name).unwrap_err();
        assert_eq!(problem.field.as_deref(), Some(expect), "{problem:?}");
    }

    fn with_variable(name: &str, value: &str) -> Submission {
        Submission { environment: [(name.into(), value.into())].into(), ..submission() }
    }

    #[test]
    fn a_submission_that_cannot_be_launched_is_rejected() {
        assert_eq!(check(&submission(), "true"), Ok(()));
        rejected(&Submission { command: vec![], ..submission() }, "true", "command");
        rejected(&Submission { command: vec!["a\0".into()], ..submission() }, "true", "command");
        rejected(&Submission { directory: "here".into(), ..submission() }, "true", "directory");
        rejected(&Submission { directory: "/a\0".into(), ..submission() }, "true", "directory");
        rejected(&Submission { umask: 0o1777, ..submission() }, "true", "umask");
        rejected(&with_variable("", "x"), "true", "environment");
        rejected(&with_variable("a=b", "x"), "true", "environment");
        rejected(&with_variable("a", "x\0"), "true", "environment");
        rejected(&submission(), "a\0", "environment");
        let raw = RawVariable { name: b"A=".to_vec(), value: vec![0xff] };
        rejected(&Submission { environment_bytes: vec![raw], ..submission() }, "true", "environment");
        rejected(&Submission { output: Some("a\0".into()), ..submission() }, "true", "output");
        rejected(&Submission { input: Some("a\0".into()), ..submission() }, "true", "input");
        let interaction = Some(Interaction::Terminal { rows: 0, columns: 0 });
        let interactive = Submission { interaction, ..submission() };
        assert_eq!(check(&interactive, "true"), Ok(()));
        rejected(&Submission { error: Some("a".into()), ..interactive.clone() }, "true", "error");
        rejected(&Submission { input: Some("a".into()), ..interactive.clone() }, "true", "input");
        let array = Some(miserly_api::model::Array::range(0, 1, 1));
        rejected(&Submission { array, ..interactive }, "true", "array");
        rejected(&Submission { error: Some("a\0".into()), ..submission() }, "true", "output");
    }
}
