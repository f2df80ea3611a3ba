//! The input and output files of a job.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
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
        let filled = self.filled(pattern.as_os_str().as_bytes());
        submission.directory.join(OsString::from_vec(filled))
    }

    /// Returns a pattern with its placeholders replaced. `%%` is a percent sign.
    fn filled(&self, pattern: &[u8]) -> Vec<u8> {
        let (array, index) = self.array.unwrap_or((self.job, 0));
        let mut text = Vec::with_capacity(pattern.len());
        let mut rest = pattern.iter().copied();
        while let Some(byte) = rest.next() {
            if byte != b'%' {
                text.push(byte);
                continue;
            }
            match rest.next() {
                Some(b'j') => text.extend(self.job.to_string().bytes()),
                Some(b'A') => text.extend(array.to_string().bytes()),
                Some(b'a') => text.extend(index.to_string().bytes()),
                Some(b'x') => text.extend(self.name.replace('/', "_").bytes()),
                Some(b'%') | None => text.push(b'%'),
                Some(other) => text.extend([b'%', other]),
            }
        }
        text
    }
}
