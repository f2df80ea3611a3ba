//! `miserly hook`: runs a program at each event of jobs.
//!
//! It is a process of its own, so a slow or broken program never delays the daemon.

mod mail;

mod mail_rate;

mod program;

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, bail};
use jiff::{SignedDuration, Timestamp};
use miserly_api::client::{Client, ClientError};
use miserly_api::model::{DaemonEvent, Filter, JobView, JobsEvent, ProblemCode, listing};
use miserly_follow::{JobEvent, JobEventKind, KnownJobs};
use miserly_report::AtomicFile;
use rustix::fs::{Access, access};

use self::mail_rate::MailRate;
use super::client;
use super::text::matches_pattern;
use crate::args::HookArgs;

/// The time before a broken stream is opened again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &HookArgs) -> anyhow::Result<ExitCode> {
    if args.mail && access(&args.sendmail, Access::EXEC_OK).is_err() {
        bail!(
            "--sendmail {}: there is no such program; install a mail server, or give the path of a program like sendmail",
            args.sendmail.display()
        );
    }
    let known = args.state.as_deref().map_or_else(|| Ok(KnownJobs::default()), read)?;
    let client = client(&args.daemon)?;
    // A daemon that cannot be asked at all is an error. Later it is waited for.
    let status = client.status()?;
    if let Some(queue) = &args.queue
        && !status.queues.iter().any(|one| one.name == *queue)
    {
        bail!("there is no queue {queue:?}");
    }
    let since = known.journal.is_none().then_some(status.now);
    let rate = MailRate::new(args.mail_rate);
    let mut hook = Hook { args, client: &client, known, running: BTreeMap::new(), since, rate };
    loop {
        let mut failed = None;
        let after = hook.known.journal;
        let on_event = |event| match hook.take(event) {
            Ok(()) => ControlFlow::Continue(()),
            // The daemon went away in between: the same events come again.
            Err(error) if is_break(&error) => ControlFlow::Break(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        };
        let read =
            if args.mail { client.events_for_mail(after, on_event) } else { client.events(after, on_event) };
        if let Some(error) = failed {
            return Err(error);
        }
        if let Err(ClientError::Refused(problem)) = read {
            return Err(ClientError::Refused(problem).into());
        }
        sleep(AGAIN_AFTER);
    }
}

/// Returns whether an error is one of the connection.
fn is_break(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ClientError>().is_some_and(|error| !matches!(error, ClientError::Refused(_)))
}

struct Hook<'a> {
    args: &'a HookArgs,
    client: &'a Client,
    known: KnownJobs,
    /// The unfinished jobs, of which some run.
    running: BTreeMap<i64, JobView>,
    /// The instant before which nothing is news; `None` if the state of an earlier run goes on.
    since: Option<Timestamp>,
    /// The recent mails.
    rate: MailRate,
}

impl Hook<'_> {
    /// Takes an event of the stream, or a moment without one.
    ///
    /// If a mail cannot be sent because the daemon has gone away, the event counts as not taken.
    fn take(&mut self, event: Option<DaemonEvent>) -> anyhow::Result<()> {
        let before = self.args.mail.then(|| self.known.clone());
        let taken = self.taken(event);
        if let (Err(_), Some(before)) = (&taken, before) {
            self.known = before;
        }
        taken
    }

    fn taken(&mut self, event: Option<DaemonEvent>) -> anyhow::Result<()> {
        let is_news = matches!(event, Some(DaemonEvent::Snapshot(_) | DaemonEvent::Change(_)));
        let changed = match event {
            Some(DaemonEvent::Snapshot(all)) => self.snapshot(all)?,
            Some(DaemonEvent::Change(change)) => self.change(change),
            Some(DaemonEvent::Forecasts(_)) | None => vec![],
        };
        let near = match self.args.near_end.map(i64::try_from) {
            Some(Ok(secs)) => {
                let before = SignedDuration::from_secs(secs);
                self.known.near_end(Timestamp::now(), before, self.running.values())
            }
            _ => vec![],
        };
        let is_behind = |number| {
            let behind = |other: &JobEvent| {
                matches!(other.kind, JobEventKind::AtRisk | JobEventKind::Missed)
                    && other.job.number == number
            };
            changed.iter().any(behind)
        };
        let wanted: Vec<&JobEvent> =
            changed.iter().chain(&near).filter(|happened| self.is_wanted(happened)).collect();
        for happened in wanted {
            // The plan of such a job has moved, too, and this is one mail.
            if self.args.mail && happened.kind == JobEventKind::Moved && is_behind(happened.job.number) {
                continue;
            }
            if self.args.mail {
                self.mail(happened)?;
            } else {
                program::run(self.args, happened)?;
            }
        }
        if is_news || !near.is_empty() { self.keep() } else { Ok(()) }
    }

    /// Takes all unfinished jobs. Known ones that are not among them have ended meanwhile.
    fn snapshot(&mut self, JobsEvent { journal, jobs, .. }: JobsEvent) -> Result<Vec<JobEvent>, ClientError> {
        let mut changed = vec![];
        let missing = self.known.missing(&jobs);
        for number in &missing {
            match self.client.job(*number) {
                Ok(job) => changed.push(job),
                Err(ClientError::Refused(problem)) if problem.code == ProblemCode::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if self.known.journal.is_some() {
            self.short_lives(&mut changed)?;
        } else {
            self.known.highest = self.latest(jobs.len())?;
        }
        self.running = jobs.iter().map(|job| (job.number, job.clone())).collect();
        changed.extend(jobs);
        let happened = self.known.change(journal, changed);
        self.known.forget(&missing);
        Ok(happened)
    }

    /// Returns the highest number of a finished job, of a daemon with so many unfinished ones; 0 if there is none.
    fn latest(&self, unfinished: usize) -> Result<i64, ClientError> {
        let limit = u32::try_from(unfinished).unwrap_or(u32::MAX).saturating_add(1).min(listing::MOST);
        let jobs = self.client.jobs(&Filter { all: true, limit: Some(limit), ..Filter::default() })?;
        Ok(jobs.iter().map(|job| job.number).max().unwrap_or(0))
    }

    /// Adds the jobs that came and ended since the last event.
    fn short_lives(&self, changed: &mut Vec<JobView>) -> Result<(), ClientError> {
        let since = Filter { all: true, after: Some(self.known.highest), ..Filter::default() };
        self.client.each_page(&since, |page| {
            changed.extend(page.into_iter().filter(|job| job.phase.ended().is_some()));
            ControlFlow::Continue(())
        })
    }

    fn change(&mut self, JobsEvent { journal, jobs, gone }: JobsEvent) -> Vec<JobEvent> {
        for job in &jobs {
            if job.phase.ended().is_some() {
                self.running.remove(&job.number);
            } else {
                self.running.insert(job.number, job.clone());
            }
        }
        for job in &gone {
            self.running.remove(job);
        }
        self.known.forget(&gone);
        self.known.change(journal, jobs)
    }

    fn is_wanted(&self, JobEvent { kind, job }: &JobEvent) -> bool {
        let HookArgs { on, mine, user, queue, name, .. } = self.args;
        (self.args.mail || on.contains(kind))
            && self.since.is_none_or(|since| job.phase.ended().is_none_or(|ended| ended >= since))
            && (!mine || job.uid == rustix::process::geteuid().as_raw())
            && user.as_ref().is_none_or(|user| *user == job.user || *user == job.uid.to_string())
            && queue.as_ref().is_none_or(|queue| *queue == job.queue)
            && name.as_ref().is_none_or(|name| matches_pattern(name, &job.name))
    }

    /// Sends a mail, if the job asks for it. Events have no details, so the job is read again.
    fn mail(&mut self, JobEvent { kind, job }: &JobEvent) -> anyhow::Result<()> {
        if !mail::EVENTS.contains(kind) {
            return Ok(());
        }
        match self.client.job(job.number) {
            Ok(job) if mail::is_wanted(*kind, &job) => mail::send(self.args, &mut self.rate, *kind, &job),
            Ok(_) => Ok(()),
            Err(ClientError::Refused(problem)) if problem.code == ProblemCode::NotFound => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Keeps the known facts. Events whose programs have not ended by a crash come again.
    fn keep(&self) -> anyhow::Result<()> {
        let Some(path) = &self.args.state else { return Ok(()) };
        let text = serde_json::to_string(&self.known).context("cannot write the state")?;
        let kept = AtomicFile::write(path, |output| output.write_all(text.as_bytes()));
        kept.with_context(|| format!("cannot write --state {}", path.display()))
    }
}

fn read(path: &Path) -> anyhow::Result<KnownJobs> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(KnownJobs::default()),
        text => text.with_context(|| format!("cannot read --state {}", path.display()))?,
    };
    serde_json::from_str(&text).with_context(|| {
        format!("--state {} is no state of this command; remove it to begin anew", path.display())
    })
}
