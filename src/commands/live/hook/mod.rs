//! `miserly hook`: runs a program at each event of jobs.
//!
//! It is a process of its own, so a slow or broken program never delays the daemon.

mod known;

mod program;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use miserly_api::client::{Client, ClientError};
use miserly_api::model::{DaemonEvent, JobView, JobsEvent, ProblemCode};

use self::known::{Happened, Known};
use super::client;
use super::text::matches_pattern;
use crate::args::HookArgs;

/// The time before a broken stream is opened again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &HookArgs) -> anyhow::Result<ExitCode> {
    let known = args.state.as_deref().map_or_else(|| Ok(Known::default()), read)?;
    let client = client(&args.daemon)?;
    // A daemon that cannot be asked at all is an error. Later it is waited for.
    client.status()?;
    let mut hook = Hook { args, client: &client, known, running: BTreeMap::new() };
    loop {
        let mut failed = None;
        let after = hook.known.journal;
        let read = client.events(after, |event| match hook.take(event) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        if let Err(ClientError::Refused(problem)) = read {
            return Err(ClientError::Refused(problem).into());
        }
        sleep(AGAIN_AFTER);
    }
}

struct Hook<'a> {
    args: &'a HookArgs,
    client: &'a Client,
    known: Known,
    /// The unfinished jobs, of which some run.
    running: BTreeMap<i64, JobView>,
}

impl Hook<'_> {
    /// Takes an event of the stream, or a moment without one.
    fn take(&mut self, event: Option<DaemonEvent>) -> anyhow::Result<()> {
        let before = self.known.clone();
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
        for happened in changed.iter().chain(&near).filter(|happened| self.is_wanted(happened)) {
            program::run(self.args, happened)?;
        }
        if self.known == before { Ok(()) } else { self.keep() }
    }

    /// Takes all unfinished jobs. Known ones that are not among them have ended meanwhile.
    fn snapshot(&mut self, JobsEvent { journal, jobs, .. }: JobsEvent) -> anyhow::Result<Vec<Happened>> {
        let mut changed = vec![];
        let missing = self.known.missing(&jobs);
        for number in &missing {
            match self.client.job(*number) {
                Ok(job) => changed.push(job),
                Err(ClientError::Refused(problem)) if problem.code == ProblemCode::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.running = jobs.iter().map(|job| (job.number, job.clone())).collect();
        changed.extend(jobs);
        let happened = self.known.change(journal, changed);
        self.known.forget(&missing);
        Ok(happened)
    }

    fn change(&mut self, JobsEvent { journal, jobs, gone }: JobsEvent) -> Vec<Happened> {
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

    fn is_wanted(&self, Happened { event, job }: &Happened) -> bool {
        let HookArgs { on, mine, user, queue, name, .. } = self.args;
        on.contains(event)
            && (!mine || job.uid == rustix::process::geteuid().as_raw())
            && user.as_ref().is_none_or(|user| *user == job.user || *user == job.uid.to_string())
            && queue.as_ref().is_none_or(|queue| *queue == job.queue)
            && name.as_ref().is_none_or(|name| matches_pattern(name, &job.name))
    }

    /// Keeps what is known. Events whose programs have not ended by a crash come again.
    fn keep(&self) -> anyhow::Result<()> {
        let Some(path) = &self.args.state else { return Ok(()) };
        let text = serde_json::to_string(&self.known).context("cannot write the state")?;
        let new = path.with_extension("new");
        let kept = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, path));
        kept.with_context(|| format!("cannot write --state {}", path.display()))
    }
}

fn read(path: &Path) -> anyhow::Result<Known> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Known::default()),
        text => text.with_context(|| format!("cannot read --state {}", path.display()))?,
    };
    serde_json::from_str(&text).with_context(|| {
        format!("--state {} is no state of this command; remove it to begin anew", path.display())
    })
}
