//! The input and output files of a job.

use std::path::{Path, PathBuf};

use super::Submission;

/// The names of a job that its files can contain.
#[derive(Clone, Copy, Debug)]
pub struct OutputNames<'a> {
    /// The number of the job.
    pub job: i64,
    /// The number of the first job of its array, and its index; `None` without an array.
    pub array: Option<(i64, u32)>,
    /// The name of the job.
    pub name: &'a str,
}

impl OutputNames<'_> {
    /// Returns the file of the standard output.
    pub fn output(&self, submission: &Submission) -> PathBuf {
        let usual = || Path::new(if self.array.is_some() { "miserly-%A_%a.out" } else { "miserly-%j.out" });
        self.place(submission, submission.output.as_deref().unwrap_or_else(usual))
    }

    /// Returns the file of the standard error. By default it is that of the output.
    pub fn error(&self, submission: &Submission) -> PathBuf {
        let pattern = submission.error.as_deref();
        pattern.map_or_else(|| self.output(submission), |pattern| self.place(submission, pattern))
    }

    /// Returns the file of the standard input, if there is one.
    pub fn input(&self, submission: &Submission) -> Option<PathBuf> {
        submission.input.as_deref().map(|pattern| self.place(submission, pattern))
    }

    fn place(&self, submission: &Submission, pattern: &Path) -> PathBuf {
        match pattern.to_str() {
            Some(text) => submission.directory.join(self.filled(text)),
            None => submission.directory.join(pattern),
        }
    }

    /// Returns a pattern with its placeholders replaced. `%%` is a percent sign.
    fn filled(&self, pattern: &str) -> String {
        let (array, index) = self.array.unwrap_or((self.job, 0));
        let mut text = String::with_capacity(pattern.len());
        let mut rest = pattern.chars();
        while let Some(c) = rest.next() {
            if c != '%' {
                text.push(c);
                continue;
            }
            match rest.next() {
                Some('j') => text.push_str(&self.job.to_string()),
                Some('A') => text.push_str(&array.to_string()),
                Some('a') => text.push_str(&index.to_string()),
                Some('x') => text.push_str(&self.name.replace('/', "_")),
                Some('%') | None => text.push('%'),
                Some(other) => text.extend(['%', other]),
            }
        }
        text
    }
}
