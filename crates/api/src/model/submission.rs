//! Submissions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A job or an array of jobs to accept.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The program and its arguments; with `script`, the arguments of the script.
    #[serde(default)]
    pub command: Vec<String>,
    /// The text of a script. A later change of its file has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// The name of the job; by default the name of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The working directory.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub directory: PathBuf,
    /// The complete environment.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The variables of the environment that are not UTF-8 text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment_bytes: Vec<RawVariable>,
    /// The requested processors.
    #[serde(default = "one")]
    pub cpus: u64,
    /// The requested memory, in bytes; by default that of the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The time limit, in seconds.
    pub time: f64,
    /// The queue; by default the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The earliest start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<Timestamp>,
    /// The deadline of the end. A job that cannot meet it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Jobs that have to end first, in whichever way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<i64>,
    /// The indexes of an array. Its jobs differ only in their index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Array>,
    /// Whether its work may be lost and repeated.
    #[serde(default)]
    pub restartable: bool,
    /// Whether it must not run on idle resources before its start.
    #[serde(default)]
    pub no_opportunistic: bool,
    /// Whether it is held until it is released.
    #[serde(default)]
    pub hold: bool,
    /// The file of the standard output. `%j` is the job number, `%A` that of the array, `%a` the
    /// index, `%x` the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub output: Option<PathBuf>,
    /// The file of the standard error; by default that of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub error: Option<PathBuf>,
    /// The file mode creation mask.
    #[serde(default = "mask")]
    pub umask: u32,
    /// A name of this request. A repeated request with the same name submits nothing again, and gets
    /// the jobs of the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A variable of the environment as bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RawVariable {
    /// The bytes of the name.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<u32>))]
    pub name: Vec<u8>,
    /// The bytes of the value.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<u32>))]
    pub value: Vec<u8>,
}

/// The indexes of an array of jobs: from first to last by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Array {
    /// The first index.
    pub first: u32,
    /// The last index, which is included if the step reaches it.
    pub last: u32,
    /// The step between indexes; at least 1.
    #[serde(default = "one_step")]
    pub step: u32,
}

impl Submission {
    /// Returns the name of the job: the requested one, or that of the program.
    pub fn job_name(&self) -> String {
        let program = || {
            let program = self.command.first().filter(|_| self.script.is_none());
            program_name(program.map_or("script", String::as_str))
        };
        self.name.clone().unwrap_or_else(program)
    }
}

/// Returns the name of a program's job: that of its file, without control characters.
pub fn program_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).replace(char::is_control, "?")
}

const fn one() -> u64 {
    1
}

const fn one_step() -> u32 {
    1
}

const fn mask() -> u32 {
    0o077
}

impl Array {
    /// Returns the indexes, in order.
    pub fn indexes(self) -> impl Iterator<Item = u32> {
        (self.first..=self.last).step_by(usize::try_from(self.step.max(1)).unwrap_or(usize::MAX))
    }
}
