//! The mails that jobs ask for, through sendmail.

use std::process::Command;

use miserly_api::model::{JobView, MailEvent, domain_of, is_address};
use miserly_follow::JobEventKind;
use miserly_launch::{BootTime, MachineClock as _};
use miserly_view::plain;

use super::mail_rate::{MailRate, Permit};
use super::program::feed;
use crate::args::HookArgs;
use crate::commands::live::show::efficiency;
use crate::commands::live::text::{local, outcome};

/// The events on which a mail can be sent.
pub(super) const EVENTS: [JobEventKind; 7] = [
    JobEventKind::Started,
    JobEventKind::Ended,
    JobEventKind::Failed,
    JobEventKind::Moved,
    JobEventKind::AtRisk,
    JobEventKind::Missed,
    JobEventKind::Idle,
];

/// Returns whether a job asks for a mail on an event. The end of a failed job is one mail.
pub(super) fn is_wanted(event: JobEventKind, job: &JobView) -> bool {
    let Some(mail) = &job.mail else { return false };
    let wants = |event| mail.on.contains(&event);
    match event {
        JobEventKind::Started => wants(MailEvent::Begin),
        JobEventKind::Ended => wants(MailEvent::End),
        JobEventKind::Failed => wants(MailEvent::Fail) && !wants(MailEvent::End),
        JobEventKind::Moved | JobEventKind::AtRisk | JobEventKind::Missed => wants(MailEvent::Moved),
        // An idle job may be ended.
        JobEventKind::Idle => wants(MailEvent::End) || wants(MailEvent::Fail),
        JobEventKind::Submitted | JobEventKind::NearEnd | JobEventKind::GivenUp => false,
    }
}

/// Sends the mail on an event of a job. A failure of sendmail is reported, and is no error.
///
/// No mail goes to a domain that the operator has not listed, or beyond the rate of the job's user.
///
/// # Errors
/// If sendmail cannot be started.
pub(super) fn send(
    args: &HookArgs,
    rate: &mut MailRate,
    event: JobEventKind,
    job: &JobView,
) -> anyhow::Result<()> {
    let to = job.mail.as_ref().and_then(|mail| mail.to.as_ref()).unwrap_or(&job.user);
    if let Err(why) = check_address(to, &args.mail_domains) {
        note!("job {}: no mail to {}: {why}", job.number, plain(to));
        return Ok(());
    }
    match rate.count(job.uid, BootTime::now()) {
        Permit::Yes => {}
        Permit::Last => {
            note!("{}: {} mails in an hour; further ones are left out", plain(&job.user), args.mail_rate);
        }
        Permit::No => return Ok(()),
    }
    let mut command = Command::new(&args.sendmail);
    command.args(["-i", "--", to]);
    let what = format!("{} for job {}", args.sendmail.display(), job.number);
    feed(command, letter(to, event, job), args.limit, &what)
}

/// Checks that mail goes to an address: to a user of this machine, or to a domain in the list.
fn check_address(to: &str, domains: &[String]) -> Result<(), &'static str> {
    if !is_address(to) {
        return Err("it is no address");
    }
    let listed = |domain: &str| domains.iter().any(|one| one == "*" || one.eq_ignore_ascii_case(domain));
    if domain_of(to).is_none_or(listed) { Ok(()) } else { Err("its domain is not in --mail-domains") }
}

/// Returns the text of a mail with its headers. Text of users has no line breaks in it.
fn letter(to: &str, event: JobEventKind, job: &JobView) -> String {
    let happened = match event {
        JobEventKind::Started => "has started".to_owned(),
        JobEventKind::Moved => "has another promised start".to_owned(),
        JobEventKind::AtRisk => "is likely to start later than promised".to_owned(),
        JobEventKind::Missed if job.phase.started().is_some() => "has started later than promised".to_owned(),
        JobEventKind::Missed => "has not started as promised".to_owned(),
        JobEventKind::Idle => "uses almost no processor time".to_owned(),
        _ => format!("has ended: {}", outcome(job)),
    };
    let name = plain(&job.name);
    let ascii: String = name.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect();
    let mut text = format!(
        "To: {to}\nSubject: Miserly job {} ({ascii}) {happened}\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\n",
        job.number
    );
    let mut line = |key: &str, value: String| text.push_str(&format!("{key:<10} {value}\n"));
    line("job", format!("{}, {name}", job.number));
    line("queue", plain(&job.queue));
    line("state", outcome(job));
    if let Some(window) = job.promise.as_ref().and_then(|promise| promise.now) {
        line("promised", format!("starts by {}, ends by {}", local(window.start), local(window.end)));
    }
    if let Some(start) = job.phase.started() {
        line("started", local(start));
    }
    if let Some(end) = job.phase.ended() {
        line("ended", local(end));
    }
    if let Some(used) = job.usage.as_ref().and_then(|usage| efficiency(job, &usage.total)) {
        line("used", used);
    }
    if let Some(output) = &job.output {
        line("output", plain(&output.to_string_lossy()));
    }
    text
}

#[cfg(test)]
mod tests {
    use miserly_api::model::Mail;

    use super::*;

    fn job(on: &[MailEvent]) -> JobView {
        let view = serde_json::json!({
            "number": 12, "name": "a\u{1b}[31mü", "uid": 7, "user": "ada", "queue": "batch", "cpus": 1, "memory": 0,
            "time": 5.0, "submitted": "2026-03-01T08:00:00Z", "phase": {"state": "queued"}, "script": false,
            "restartable": false, "opportunistic": false, "attempts": 0, "runs": 0
        });
        let view: JobView = serde_json::from_value(view).unwrap();
        JobView { mail: Some(Mail { on: on.to_vec(), to: None }), ..view }
    }

    #[test]
    fn the_end_of_a_failed_job_is_one_mail() {
        let both = job(&[MailEvent::End, MailEvent::Fail]);
        assert!(is_wanted(JobEventKind::Ended, &both) && !is_wanted(JobEventKind::Failed, &both));
        let fail = job(&[MailEvent::Fail]);
        assert!(!is_wanted(JobEventKind::Ended, &fail) && is_wanted(JobEventKind::Failed, &fail));
        assert!(!is_wanted(JobEventKind::Started, &fail));
    }

    #[test]
    fn mail_goes_to_this_machine_and_to_listed_domains() {
        let domains = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        for (to, list, goes) in [
            ("ada", &[][..], true),
            ("ada@example.org", &[], false),
            ("ada@Example.org", &["example.org"], true),
            ("ada@x.example.org", &["example.org"], false),
            ("ada@example.org", &["*"], true),
            ("/etc/x", &["*"], false),
            ("-bp", &["*"], false),
        ] {
            assert_eq!(check_address(to, &domains(list)).is_ok(), goes, "{to} {list:?}");
        }
    }

    #[test]
    fn a_name_adds_no_header() {
        let text = letter("ada", JobEventKind::Ended, &job(&[MailEvent::End]));
        let (headers, body) = text.split_once("\n\n").unwrap();
        assert_eq!(headers.lines().count(), 4, "{headers}");
        assert!(headers.is_ascii() && !text.contains('\u{1b}') && body.contains('ü'), "{text}");
    }
}
