//! The arguments of `miserly hook`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use miserly_api::model::is_address;
use miserly_api::submit::length_of_time;
use miserly_follow::JobEventKind;

use super::DaemonArgs;
use crate::args::values::words;

#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    /// The events, separated by commas
    #[arg(long, value_name = "EVENT", value_parser = words(&HOOK_EVENTS), value_delimiter = ',', default_value = "ended")]
    pub(crate) on: Vec<JobEventKind>,

    /// Limits the events to your jobs
    #[arg(long, short)]
    pub(crate) mine: bool,

    /// Limits the events to the jobs of a user, by name or number
    #[arg(long, short, value_name = "USER", conflicts_with = "mine")]
    pub(crate) user: Option<String>,

    /// Limits the events to a queue
    #[arg(long, value_name = "QUEUE")]
    pub(crate) queue: Option<String>,

    /// Limits the events to jobs with this name, in which * is any text and ? any character
    #[arg(long, short, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The time before the end of a running job at which its end is near, such as 5min
    #[arg(long, value_name = "TIME", value_parser = length_of_time, required_if_eq("on", "near-end"))]
    pub(crate) near_end: Option<u64>,

    /// The file in which the command keeps what it knows: no event is lost while it does not run
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,

    /// The time after which a run of the program is killed
    #[arg(long, value_name = "TIME", value_parser = length_of_time, default_value = "30s")]
    pub(crate) limit: u64,

    /// Sends the mails that jobs ask for (submit --mail) with sendmail, and runs no program
    #[arg(long, conflicts_with_all = ["on", "program"])]
    pub(crate) mail: bool,

    /// The sendmail program
    #[arg(long, value_name = "PATH", requires = "mail", default_value = "/usr/sbin/sendmail")]
    pub(crate) sendmail: PathBuf,

    /// The domains to which mail goes, separated by commas; * is any. Mail to users of this machine goes without
    #[arg(long, value_name = "DOMAIN", requires = "mail", value_delimiter = ',', value_parser = domain)]
    pub(crate) mail_domains: Vec<String>,

    /// The most mails for the jobs of one user in an hour; the others are left out, and noted
    #[arg(long, value_name = "N", requires = "mail", default_value_t = 60)]
    pub(crate) mail_rate: u32,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,

    /// The program and its arguments. It gets the event as a line of JSON, and MISERLY_EVENT, MISERLY_JOB, MISERLY_JOB_NAME,
    /// MISERLY_JOB_USER and MISERLY_JOB_STATE in its environment
    #[arg(value_name = "PROGRAM", required_unless_present = "mail", num_args = 1.., trailing_var_arg = true)]
    pub(crate) program: Vec<OsString>,
}

/// The words of the events.
pub(crate) const HOOK_EVENTS: [(&str, JobEventKind, &str); 10] = [
    ("submitted", JobEventKind::Submitted, "It was accepted"),
    ("started", JobEventKind::Started, "It has started in its window"),
    ("moved", JobEventKind::Moved, "Its promised start is another one"),
    ("at-risk", JobEventKind::AtRisk, "Its plan is behind its promise"),
    ("missed", JobEventKind::Missed, "Its promise was not kept: it started late, or ended without a start"),
    ("near-end", JobEventKind::NearEnd, "It reaches its time limit within --near-end"),
    ("idle", JobEventKind::Idle, "It uses almost no processor time, by idle-after of its queue"),
    ("given-up", JobEventKind::GivenUp, "It has ended because it had not started in time (--start-within)"),
    ("ended", JobEventKind::Ended, "It has ended in any way"),
    ("failed", JobEventKind::Failed, "It has ended, and not with exit code 0"),
];

/// Parses a domain.
fn domain(text: &str) -> Result<String, String> {
    if text == "*" || is_address(&format!("a@{text}")) {
        return Ok(text.to_ascii_lowercase());
    }
    Err("it is no domain; write one such as example.org, or * for any".to_owned())
}
