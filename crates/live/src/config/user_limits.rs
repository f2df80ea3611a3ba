//! The limits of each user.

use miserly_core::Span;
use miserly_engine::UserLimits;
use miserly_machine_file::kilobytes;
use serde::Deserialize;
use toml::{Spanned, Value};

use super::checked::time;
use super::error::{Problem, of_field};

/// The table `[user-limits]`, as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct UserLimitsFile {
    jobs: Option<u64>,
    bytes: Option<Spanned<Value>>,
    cpu_time: Option<Spanned<Value>>,
    pub(super) requests_per_minute: Option<u32>,
}

impl UserLimitsFile {
    /// Returns the limits for jobs.
    pub(super) fn limits(&self) -> Result<UserLimits, Problem> {
        let bytes = |written: &Spanned<Value>| {
            let amount = kilobytes(written.get_ref()).map_err(|error| of_field(written, "bytes", &error));
            amount.map(|kilobytes| kilobytes.saturating_mul(1024))
        };
        Ok(UserLimits {
            jobs: self.jobs,
            bytes: self.bytes.as_ref().map(bytes).transpose()?,
            cpu_time: time(self.cpu_time.as_ref(), "cpu-time")?.map(Span::ticks),
        })
    }
}
