//! The history of a job, and its text.

use miserly_core::{BreachCause, Procs, Refusal, Request, SlotId, Span, StartReason, Time};
use miserly_report::{count, figure};
use miserly_sim::OpportunisticWork;
use miserly_units::{duration, duration_rounded};

/// The most jobs that are listed as started before this one. Also the most successive changes of
/// processors or slots.
const NAMED: usize = 10;

/// The history of a job.
pub(super) struct Story {
    pub(super) request: Request,
    pub(super) free: Procs,
    pub(super) waiting: usize,
    /// The events between its submission and its end, in order.
    pub(super) events: Vec<Event>,
    pub(super) passed_by: Vec<Passer>,
    pub(super) end: Option<(Time, End)>,
    /// The opportunistic work before its start, if any.
    pub(super) ahead: Option<OpportunisticWork>,
}

#[derive(Clone, Copy)]
pub(super) struct Event {
    pub(super) at: Time,
    pub(super) what: What,
}

#[derive(Clone, Copy)]
pub(super) enum What {
    /// The reserved start moved to this instant.
    Moved(Time, MoveKind),
    Started(StartReason),
    Suspended,
    WrittenOut,
    Resumed,
    /// Its processors changed to this number.
    Resized(Procs),
    /// It moved to another slot, or to other processors.
    Remapped,
    /// Its share of the slots changed.
    Turns(Turns),
    /// It runs opportunistically on this number of processors; 0: parked.
    Ahead(Procs),
    /// It lost this work, in processor-ticks.
    Requeued(u128),
}

/// The slots of a time-sliced job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turns {
    /// The slot of its own placement.
    pub(super) slot: SlotId,
    /// The number of slots in which it runs.
    pub(super) runs_in: usize,
    /// The number of used slots.
    pub(super) used: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MoveKind {
    Promised,
    Planned,
    BreachCause(BreachCause),
}

/// The end of a job in the system.
#[derive(Clone, Copy)]
pub(super) enum End {
    Done,
    KilledAtEstimate,
    Refused(Refusal),
}

/// A job that was submitted later and started earlier.
pub(super) struct Passer {
    pub(super) request: Request,
    pub(super) start: Time,
    pub(super) reason: StartReason,
}

impl Story {
    /// Returns its first start.
    pub(super) fn start(&self) -> Option<(Time, StartReason)> {
        self.events.iter().find_map(|event| match event.what {
            What::Started(reason) => Some((event.at, reason)),
            _ => None,
        })
    }

    pub(super) fn text(&self, policy: &str) -> String {
        let request = &self.request;
        let mut text = format!(
            "job {}: {} processors, estimate {}, under {policy}\n\n",
            request.number,
            count(request.procs().get()),
            duration(request.estimate)
        );
        let mut line = |at: Time, what: String| {
            text.push_str(&format!("{:>12}  {what}\n", at.to_string()));
        };
        let queue = match self.waiting {
            0 => "no job waiting".to_owned(),
            1 => "1 job waiting".to_owned(),
            waiting => format!("{} jobs waiting", count(waiting as u64)),
        };
        line(request.submit, format!("submitted; {} processors were free, {queue}", count(self.free.get())));
        let mut started = false;
        // The number of successive instants with nothing but changes of processors or slots.
        let (mut moves, mut last_move) = (0, None);
        for (event, next) in self.events.iter().zip(self.events.iter().skip(1).map(Some).chain([None])) {
            let again = event.moves() && last_move == Some(event.at);
            moves = if event.moves() { moves + usize::from(!again) } else { 0 };
            last_move = event.moves().then_some(event.at);
            if moves <= NAMED {
                line(event.at, event.description(request.submit, started));
            } else if !next.is_some_and(Event::moves) {
                let more = count((moves - NAMED) as u64);
                let what = event.what_moves();
                line(event.at, format!("the last of {more} further changes of its {what} (--json has all)"));
            }
            started |= matches!(event.what, What::Started(_));
        }
        if let Some((end, how)) = self.end {
            line(end, how.description().to_owned());
        }
        text.push_str(&self.ahead.map_or_else(String::new, |ahead| opportunistic_work(&ahead)));
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
                count(passer.request.procs().get()),
                duration(passer.request.estimate),
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

impl Event {
    /// Returns whether it is only a change of the number of processors, or of the slots.
    fn moves(&self) -> bool {
        matches!(self.what, What::Resized(_) | What::Ahead(_) | What::Remapped | What::Turns(_))
    }

    /// Returns a phrase for the resources that such changes concern.
    fn what_moves(&self) -> &'static str {
        if matches!(self.what, What::Remapped | What::Turns(_)) {
            "slots or processors"
        } else {
            "processors"
        }
    }

    /// Returns the text of the event. `submit` is the submission of the job, and `started` whether
    /// it has started before.
    fn description(&self, submit: Time, started: bool) -> String {
        match self.what {
            What::Moved(start, kind) => kind.description(start, start - self.at),
            What::Started(reason) if started => format!("started again {}", reason_text(reason)),
            What::Started(reason) => {
                format!(
                    "started {}, after {} of waiting",
                    reason_text(reason),
                    duration_rounded(self.at - submit)
                )
            }
            What::Suspended => "suspended".into(),
            What::WrittenOut => "swapped out: holds no resources".into(),
            What::Resumed => "resumed".into(),
            What::Resized(Procs::ONE) => "goes on with 1 processor".into(),
            What::Resized(procs) => format!("goes on with {} processors", count(procs.get())),
            What::Remapped => "moved to another slot or other processors".into(),
            What::Turns(Turns { slot, used: 1, .. }) => format!("in slot {}, the only one", slot.0),
            What::Turns(Turns { slot, runs_in, used }) => {
                format!("in slot {}: runs in {runs_in} of {used} slots", slot.0)
            }
            What::Ahead(Procs::ZERO) => "parked".into(),
            What::Ahead(Procs::ONE) => "runs ahead of its start on 1 idle processor".into(),
            What::Ahead(procs) => {
                format!("runs ahead of its start on {} idle processors", count(procs.get()))
            }
            What::Requeued(0) => "back in the queue; no work is lost".into(),
            What::Requeued(lost) => {
                let lost = figure(Some(processor_seconds(lost)));
                format!("back in the queue; {lost} processor-seconds of work are lost")
            }
        }
    }
}

impl MoveKind {
    fn description(self, start: Time, ahead: Span) -> String {
        let ahead = duration_rounded(ahead);
        match self {
            MoveKind::Promised => format!("promised a start at {start} or before, {ahead} ahead"),
            MoveKind::Planned => format!("reserved at {start}, {ahead} ahead (a plan, not a promise)"),
            MoveKind::BreachCause(why) => {
                format!("promise broken, {}; now {start}, {ahead} ahead", cause(why))
            }
        }
    }
}

/// Returns the text for the cause of a broken promise.
const fn cause(why: BreachCause) -> &'static str {
    match why {
        BreachCause::Overdue => "a running job is overdue",
        BreachCause::Away => "no scheduler ran when it was due",
        BreachCause::Capacity => "the machine lost capacity",
        BreachCause::Amended => "another request was amended",
    }
}

impl End {
    fn description(self) -> &'static str {
        match self {
            End::Done => "ended",
            End::KilledAtEstimate => "killed at the log's estimate",
            End::Refused(Refusal::BeyondClasses) => {
                "refused: it requests more than the largest of the policy's job classes"
            }
            End::Refused(Refusal::TooLarge) => "refused: it requests more than its pool ever has",
            End::Refused(Refusal::NoWindow) => "refused: there is no window for it within the horizon",
            End::Refused(Refusal::Deadline) => "refused: there is no window for it that ends by its deadline",
        }
    }
}

/// Returns a line on the opportunistic work before its start.
fn opportunistic_work(ahead: &OpportunisticWork) -> String {
    let work = figure(Some(processor_seconds(ahead.work)));
    format!(
        "\nAhead of its start it ran for {}, and did {work} processor-seconds of its work.\n",
        duration_rounded(ahead.ran)
    )
}

pub(super) fn processor_seconds(ticks: u128) -> f64 {
    ticks as f64 / 1e6
}

fn reason_text(reason: StartReason) -> &'static str {
    match reason {
        StartReason::Immediate => "at once",
        StartReason::Reserved => "in its turn (reserved)",
        StartReason::Backfilled => "ahead of its turn (backfilled)",
        StartReason::Promised => "as promised",
        StartReason::Quantum => "for a quantum",
    }
}
