//! Recognition of the form of a log by its first lines.

use miserly_core::described_enum;
use miserly_workload::Trace;

use crate::error::ImportError;
use crate::slurm::is_accounting;

/// The number of bytes at the start of a log that decide its form.
const START: u64 = 1 << 16;

/// Whether a form is the one that a simulation reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conversion {
    /// The log is read as it is.
    Native,
    /// The log is converted first.
    Imported,
}

described_enum! {
    /// The form of a log.
    pub enum Form, conversion: Conversion {
        Swf "swf" Native
            "Standard Workload Format",
        Slurm "slurm" Imported
            "Slurm accounting",
        Batsim "batsim" Imported
            "Batsim workload",
    }
}

impl Form {
    /// Returns the form of a log.
    ///
    /// # Errors
    /// The log cannot be opened, or its first lines have no known form. An error further on is left to the reader.
    pub fn of(trace: &Trace) -> Result<Form, ImportError> {
        let start = trace.start(START)?;
        let start = String::from_utf8_lossy(&start);
        Form::of_start(&start).ok_or_else(|| {
            let first = start.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            ImportError::UnknownForm { name: trace.name().into(), first: first.chars().take(60).collect() }
        })
    }

    /// Returns the form of a log that begins with this text. An empty one is in the Standard Workload Format.
    fn of_start(start: &str) -> Option<Form> {
        let text = start.trim_start_matches('\u{feff}').trim_start();
        if text.starts_with('{') {
            return Form::of_json(text);
        }
        let is_content = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let Some(line) = text.lines().map(str::trim).find(is_content) else { return Some(Form::Swf) };
        let begins_with_number =
            line.split_whitespace().next().is_some_and(|word| word.parse::<f64>().is_ok());
        // The reader of the format reports binary data.
        if line.starts_with(';') || begins_with_number || line.contains(is_binary) {
            return Some(Form::Swf);
        }
        is_accounting(line).then_some(Form::Slurm)
    }

    /// Returns the form of a JSON document. The first job or the first profile is within the start.
    fn of_json(start: &str) -> Option<Form> {
        let has = |name: &str| start.contains(&format!("\"{name}\""));
        (has("subtime") || has("profiles") || has("nb_res")).then_some(Form::Batsim)
    }
}

fn is_binary(letter: char) -> bool {
    letter == char::REPLACEMENT_CHARACTER || letter.is_control() && letter != '\t'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(start: &str, expect: Option<Form>) {
        assert_eq!(Form::of_start(start), expect, "{start:?}");
    }

    #[test]
    fn by_the_first_line() {
        check("", Some(Form::Swf));
        check("\u{feff}\n ; MaxProcs: 4\nanything", Some(Form::Swf));
        check("1 0 -1 1O", Some(Form::Swf));
        check("\u{7f}ELF\u{1}", Some(Form::Swf));
        check("# a comment\nJobIDRaw|Submit|Start|End|AllocCPUS|State\n", Some(Form::Slurm));
        check("{\"jobs\": [{\"id\": 1, \"subtime\": 0}]}", Some(Form::Batsim));
        check("{\"plan\": 1}", None);
        check("a page of text", None);
        check("<html>", None);
    }
}
