//! `miserly explain`: the story of one job.

use miserly_core::{Broken, Effect, JobNumber, Reason, Request, Span, Time};
use miserly_report::{count, duration};
use miserly_sim::{Finished, Observer};
use miserly_workload::Estimates;
use miserly_workload::swf::{Field, Line};
use serde::Serialize;

use crate::args::ExplainArgs;
use crate::output::{print, print_json};
use crate::run::{Prepared, open};

/// How many of those who passed a job are named on a terminal.
const NAMED: usize = 10;

pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<()> {
    let prepared = Prepared::new(open(&args.trace)?, &args.run, Estimates::default())?;
    let mut watch = Watch::of(args.job);
    let mut simulation = prepared.simulation(&args.policy)?;
    let mut jobs = prepared.jobs()?.peekable();
    while !watch.over() && simulation.step(&mut jobs, &mut [&mut watch])?.is_some() {}
    let Some(story) = watch.story else { return Err(absent(&prepared, args.job)?) };
    if args.json {
        return print_json(&Document::of(&story, args.policy.to_string()));
    }
    print(&story.told(&args.policy.to_string()))
}

/// Why there is no such job in the run.
fn absent(prepared: &Prepared, job: JobNumber) -> anyhow::Result<anyhow::Error> {
    let mut reader = prepared.trace.reader()?;
    loop {
        match reader.next_line() {
            Ok(None) => break,
            Ok(Some(Line::Job(record))) if record.get(Field::Job) == job => {
                let line = reader.line();
                return Ok(anyhow::anyhow!(
                    "{}:{line}: job {job} is left out of the run; miserly simulate shows what is skipped and why",
                    prepared.trace.name()
                ));
            }
            Ok(Some(_)) | Err(_) => {}
        }
    }
    Ok(anyhow::anyhow!("{}: no job {job}; a job's number is field 1 of its line", prepared.trace.name()))
}

/// Follows one job through a run.
struct Watch {
    job: JobNumber,
    now: Time,
    /// Free processors and waiting jobs after the last instant.
    before: (u64, usize),
    story: Option<Story>,
    /// When the jobs that wait or run were submitted, for those submitted after ours.
    behind: Vec<Request>,
}

/// What happened to a job.
struct Story {
    request: Request,
    free: u64,
    waiting: usize,
    /// How its reserved start moved: when, to when, and what that was.
    moves: Vec<Move>,
    passed_by: Vec<Passer>,
    start: Option<(Time, Reason)>,
    end: Option<(Time, bool)>,
}

#[derive(Clone, Copy)]
struct Move {
    at: Time,
    start: Time,
    kind: MoveKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MoveKind {
    Promised,
    Planned,
    Broken(Broken),
}

/// A job that was submitted later and started earlier.
struct Passer {
    request: Request,
    start: Time,
    reason: Reason,
}

impl Watch {
    fn of(job: JobNumber) -> Watch {
        Watch { job, now: Time::ZERO, before: (0, 0), story: None, behind: Vec::new() }
    }

    fn over(&self) -> bool {
        self.story.as_ref().is_some_and(|story| story.end.is_some())
    }
}

impl Observer for Watch {
    fn submitted(&mut self, _now: Time, request: &Request) {
        match &self.story {
            None if request.number == self.job => {
                let (free, waiting) = self.before;
                let request = request.clone();
                self.story = Some(Story {
                    request,
                    free,
                    waiting,
                    moves: vec![],
                    passed_by: vec![],
                    start: None,
                    end: None,
                });
            }
            Some(story) if story.start.is_none() => self.behind.push(request.clone()),
            _ => {}
        }
    }

    fn effect(&mut self, now: Time, job: JobNumber, effect: &Effect) {
        self.now = now;
        let Some(story) = &mut self.story else { return };
        if job != self.job {
            if let (Effect::Started { reason, .. }, None) = (effect, story.start)
                && let Some(place) = self.behind.iter().position(|request| request.number == job)
            {
                let request = self.behind.swap_remove(place);
                story.passed_by.push(Passer { request, start: now, reason: *reason });
            }
            return;
        }
        let (start, kind) = match *effect {
            Effect::Started { reason, .. } => {
                story.start.get_or_insert((now, reason));
                return;
            }
            Effect::Promised { latest, .. } => (latest, MoveKind::Promised),
            Effect::Planned { start, .. } => (start, MoveKind::Planned),
            Effect::PromiseBroken { latest, why, .. } => (latest, MoveKind::Broken(why)),
        };
        story.moves.push(Move { at: now, start, kind });
    }

    fn instant(&mut self, _now: Time, free: u64, waiting: usize) {
        self.before = (free, waiting);
    }

    fn finished(&mut self, job: &Finished) -> std::io::Result<()> {
        if let Some(story) = self.story.as_mut().filter(|_| job.request.number == self.job) {
            story.end.get_or_insert((job.end, job.killed));
        }
        Ok(())
    }
}

impl Story {
    fn told(&self, policy: &str) -> String {
        let request = &self.request;
        let mut text = format!(
            "job {}: {} processors, estimate {}, under {policy}\n\n",
            request.number,
            count(request.procs()),
            span(request.estimate)
        );
        let mut line = |at: Time, what: String| {
            text.push_str(&format!("{:>12}  {what}\n", at.to_string()));
        };
        let queue = match self.waiting {
            0 => "nobody waiting".to_owned(),
            1 => "1 job waiting".to_owned(),
            waiting => format!("{} jobs waiting", count(waiting as u64)),
        };
        line(request.submit, format!("submitted; {} processors were free, {queue}", count(self.free)));
        for moved in &self.moves {
            line(moved.at, moved.told());
        }
        if let Some((start, reason)) = self.start {
            line(
                start,
                format!("started {}, after {} of waiting", told(reason), span(start - request.submit)),
            );
        }
        if let Some((end, killed)) = self.end {
            line(end, if killed { "killed at its estimate".into() } else { "ended".to_owned() });
        }
        text.push_str(&self.passers());
        text.push_str("\nTimes are seconds of the log.\n");
        text
    }

    fn passers(&self) -> String {
        if self.passed_by.is_empty() {
            return "\nNo job that was submitted later started before it.\n".into();
        }
        let passers = match self.passed_by.len() {
            1 => "1 job".to_owned(),
            more => format!("{} jobs", count(more as u64)),
        };
        let mut text = format!("\nStarted before it, though submitted later: {passers}\n");
        for passer in self.passed_by.iter().take(NAMED) {
            text.push_str(&format!(
                "{:>12}  job {}: {} processors, estimate {}, {}\n",
                passer.start.to_string(),
                passer.request.number,
                count(passer.request.procs()),
                span(passer.request.estimate),
                passer.reason.as_str().replace('_', " "),
            ));
        }
        if self.passed_by.len() > NAMED {
            text.push_str(&format!(
                "{:>12}  and {} more (--json has all)\n",
                "",
                self.passed_by.len() - NAMED
            ));
        }
        text
    }
}

impl Move {
    fn told(&self) -> String {
        let ahead = span(self.start - self.at);
        match self.kind {
            MoveKind::Promised => format!("promised a start at {} or before, {ahead} ahead", self.start),
            MoveKind::Planned => format!("reserved at {}, {ahead} ahead (a plan, not a promise)", self.start),
            MoveKind::Broken(Broken::Overdue) => {
                format!("promise broken, a running job is overdue; now {}, {ahead} ahead", self.start)
            }
        }
    }
}

fn told(reason: Reason) -> &'static str {
    match reason {
        Reason::AtOnce => "at once",
        Reason::Reserved => "in its turn (reserved)",
        Reason::Backfilled => "ahead of its turn (backfilled)",
        Reason::Promised => "as promised",
        Reason::Quantum => "for a quantum",
    }
}

fn span(span: Span) -> String {
    if span.ticks() < 1_000_000 { format!("{span}s") } else { duration(span.secs()) }
}

/// The story for programs. Times in seconds of the log.
#[derive(Serialize)]
struct Document {
    version: &'static str,
    policy: String,
    job: JobNumber,
    procs: u64,
    estimate: f64,
    submit: f64,
    free_at_submit: u64,
    waiting_at_submit: usize,
    reservations: Vec<Reservation>,
    start: Option<f64>,
    start_reason: Option<&'static str>,
    end: Option<f64>,
    killed_at_estimate: bool,
    passed_by: Vec<PassedBy>,
}

#[derive(Serialize)]
struct Reservation {
    at: f64,
    start: f64,
    kind: &'static str,
}

#[derive(Serialize)]
struct PassedBy {
    job: JobNumber,
    procs: u64,
    estimate: f64,
    submit: f64,
    start: f64,
    start_reason: &'static str,
}

impl Document {
    fn of(story: &Story, policy: String) -> Document {
        let request = &story.request;
        Document {
            version: env!("CARGO_PKG_VERSION"),
            policy,
            job: request.number,
            procs: request.procs(),
            estimate: request.estimate.as_secs_f64(),
            submit: secs(request.submit),
            free_at_submit: story.free,
            waiting_at_submit: story.waiting,
            reservations: story.moves.iter().map(Reservation::of).collect(),
            start: story.start.map(|(start, _)| secs(start)),
            start_reason: story.start.map(|(_, reason)| reason.as_str()),
            end: story.end.map(|(end, _)| secs(end)),
            killed_at_estimate: story.end.is_some_and(|(_, killed)| killed),
            passed_by: story.passed_by.iter().map(PassedBy::of).collect(),
        }
    }
}

impl Reservation {
    fn of(moved: &Move) -> Reservation {
        let kind = match moved.kind {
            MoveKind::Promised => "promised",
            MoveKind::Planned => "planned",
            MoveKind::Broken(Broken::Overdue) => "broken_overdue",
        };
        Reservation { at: secs(moved.at), start: secs(moved.start), kind }
    }
}

impl PassedBy {
    fn of(passer: &Passer) -> PassedBy {
        PassedBy {
            job: passer.request.number,
            procs: passer.request.procs(),
            estimate: passer.request.estimate.as_secs_f64(),
            submit: secs(passer.request.submit),
            start: secs(passer.start),
            start_reason: passer.reason.as_str(),
        }
    }
}

fn secs(time: Time) -> f64 {
    (time - Time::ZERO).as_secs_f64()
}
