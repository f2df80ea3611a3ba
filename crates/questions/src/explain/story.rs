//! The history of a job, and its text.

use miserly_core::{BreachCause, Procs, Refusal, Request, SlotId, Span, StartReason, Time};
use miserly_report::{TableStyle, count, figure};
use miserly_sim::OpportunisticWork;
use miserly_units::duration_rounded;

use super::clock::Clock;
use super::why::{EndedJob, WaitReason, processors, room_text};

/// The most jobs that are listed as started before this one. Also the most successive changes of
/// processors or slots.
const NAMED: usize = 10;

/// The history of a job.
pub(super) struct Story {
    pub(super) request: Request,
    pub(super) free: Procs,
    pub(super) waiting: usize,
    /// The reason why it does not start at its submission.
    pub(super) reason: Option<WaitReason>,
    /// The jobs that ended at the instant of its first start, if it waited.
    pub(super) made_room: Vec<EndedJob>,
    /// The events between its submission and its end, in order.
    pub(super) events: Vec<Event>,
    pub(super) passed_by: Vec<Passer>,
    pub(super) end: Option<(Time, End)>,
    /// The opportunistic work before its start, if any.
    pub(super) opportunistic: Option<OpportunisticWork>,
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
    SwappedOut,
    Resumed,
    /// Its processors changed to this number.
    Resized(Procs),
    /// It moved to another slot, or to other processors.
    Remapped,
    /// Its share of the slots changed.
    Slots(SlotShare),
    /// It runs opportunistically on this number of processors; 0: parked.
    Opportunistic(Procs),
    /// It lost this work, in processor-ticks.
    Requeued(u128),
}

/// The slots of a time-sliced job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotShare {
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

    /// Returns the history as text, with the chart of its wait.
    pub(super) fn text(&self, policy: &str, chart: Option<&str>, clock: &Clock, style: TableStyle) -> String {
        let request = &self.request;
        let mut text = format!(
            "job {}: {}, estimate {}, under {policy}\n\n",
            request.number,
            processors(request.procs()),
            duration_rounded(request.estimate)
        );
        let mut line = |at: Time, what: String| text.push_str(&dated(&clock.text(at), &what, clock, style));
        let queue = match self.waiting {
            0 => "no job waiting".to_owned(),
            1 => "1 job waiting".to_owned(),
            waiting => format!("{} jobs waiting", count(waiting as u64)),
        };
        let were = if self.free == Procs::ONE { "was" } else { "were" };
        line(request.submit, format!("submitted; {} {were} free, {queue}", processors(self.free)));
        if let Some(reason) = &self.reason {
            line(request.submit, format!("waits: {}", reason.text(request.submit)));
        }
        let mut started = false;
        // The number of successive instants with nothing but changes of processors or slots.
        let (mut moves, mut last_move) = (0, None);
        for (event, next) in self.events.iter().zip(self.events.iter().skip(1).map(Some).chain([None])) {
            let again = event.moves() && last_move == Some(event.at);
            moves = if event.moves() { moves + usize::from(!again) } else { 0 };
            last_move = event.moves().then_some(event.at);
            let starts = matches!(event.what, What::Started(_)) && !started;
            if let Some(room) = room_text(&self.made_room).filter(|_| starts) {
                line(event.at, room);
            }
            if moves <= NAMED {
                line(event.at, event.text(request.submit, started, clock));
            } else if !next.is_some_and(Event::moves) {
                let more = count((moves - NAMED) as u64);
                let what = event.what_moves();
                line(event.at, format!("the last of {more} further changes of its {what} (--json has all)"));
            }
            started |= matches!(event.what, What::Started(_));
        }
        if let Some((end, how)) = self.end {
            line(end, how.text().to_owned());
        }
        text.push_str(&self.opportunistic.map_or_else(String::new, |done| opportunistic_line(&done)));
        text.push_str(chart.unwrap_or_default());
        text.push_str(&self.passers(clock, style));
        text.push_str(&format!("\n{}\n", style.paragraph(&clock.note())));
        text
    }

    fn passers(&self, clock: &Clock, style: TableStyle) -> String {
        if self.passed_by.is_empty() {
            return "\nNo later job started before it.\n".into();
        }
        let passers = match self.passed_by.len() {
            1 => "1 job".to_owned(),
            more => format!("{} jobs", count(more as u64)),
        };
        let mut text = format!("\nLater jobs that started before it: {passers}\n");
        for passer in self.passed_by.iter().take(NAMED) {
            let what = format!(
                "job {}: {}, estimate {}, {}",
                passer.request.number,
                processors(passer.request.procs()),
                duration_rounded(passer.request.estimate),
                passer.reason.name(),
            );
            text.push_str(&dated(&clock.text(passer.start), &what, clock, style));
        }
        if self.passed_by.len() > NAMED {
            let more = format!("and {} more (--json has all)", self.passed_by.len() - NAMED);
            text.push_str(&dated("", &more, clock, style));
        }
        text
    }
}

impl Event {
    /// Returns whether it is only a change of the number of processors, or of the slots.
    fn moves(&self) -> bool {
        matches!(self.what, What::Resized(_) | What::Opportunistic(_) | What::Remapped | What::Slots(_))
    }

    /// Returns a phrase for the resources that such changes concern.
    fn what_moves(&self) -> &'static str {
        if matches!(self.what, What::Remapped | What::Slots(_)) {
            "slots or processors"
        } else {
            "processors"
        }
    }

    /// Returns the text of the event. `submit` is the submission of the job, and `started` whether
    /// it has started before.
    fn text(&self, submit: Time, started: bool, clock: &Clock) -> String {
        match self.what {
            What::Moved(start, kind) => kind.text(&clock.text(start), start - self.at),
            What::Started(reason) if started => format!("started again {}", reason_text(reason)),
            What::Started(reason) => {
                format!(
                    "started {}, after {} of waiting",
                    reason_text(reason),
                    duration_rounded(self.at - submit)
                )
            }
            What::Suspended => "suspended".into(),
            What::SwappedOut => "swapped out: holds no resources".into(),
            What::Resumed => "resumed".into(),
            What::Resized(Procs::ONE) => "continues on 1 processor".into(),
            What::Resized(procs) => format!("continues on {} processors", count(procs.get())),
            What::Remapped => "moved to another slot or other processors".into(),
            What::Slots(SlotShare { slot, used: 1, .. }) => format!("in slot {}, the only one", slot.0),
            What::Slots(SlotShare { slot, runs_in, used }) => {
                format!("in slot {}: runs in {runs_in} of {used} slots", slot.0)
            }
            What::Opportunistic(Procs::ZERO) => "parked".into(),
            What::Opportunistic(Procs::ONE) => "runs opportunistically on 1 idle processor".into(),
            What::Opportunistic(procs) => {
                format!("runs opportunistically on {} idle processors", count(procs.get()))
            }
            What::Requeued(0) => "requeued; no work is lost".into(),
            What::Requeued(lost) => {
                let lost = figure(Some(processor_seconds(lost)));
                format!("requeued; {lost} processor-seconds of work are lost")
            }
        }
    }
}

impl MoveKind {
    fn text(self, start: &str, until: Span) -> String {
        let until = duration_rounded(until);
        match self {
            MoveKind::Promised => format!("promised a start at {start} at the latest, in {until}"),
            MoveKind::Planned => format!("reserved at {start}, in {until} (no promise)"),
            MoveKind::BreachCause(why) => {
                format!("promise broken, {}; now {start}, in {until}", cause(why))
            }
        }
    }
}

/// Returns a line with its instant, broken at the width of the table.
fn dated(at: &str, what: &str, clock: &Clock, style: TableStyle) -> String {
    style.beside(&format!("{at:>width$}  ", width = clock.width()), what)
}

/// Returns the text for the cause of a broken promise.
const fn cause(why: BreachCause) -> &'static str {
    match why {
        BreachCause::Overdue => "a running job is overdue",
        BreachCause::Away => "the scheduler was not running",
        BreachCause::Capacity => "the machine lost capacity",
        BreachCause::Amended => "another request was amended",
    }
}

impl End {
    fn text(self) -> &'static str {
        match self {
            End::Done => "ended",
            End::KilledAtEstimate => "killed at the log's estimate",
            End::Refused(Refusal::BeyondClasses) => {
                "refused: larger than the largest job class of the policy"
            }
            End::Refused(Refusal::TooLarge) => "refused: larger than its pool",
            End::Refused(Refusal::NoWindow) => "refused: no window within the horizon",
            End::Refused(Refusal::Preempted) => "refused: it was preempted, and is not run again",
            End::Refused(Refusal::Deadline) => "refused: no window that ends by its deadline",
        }
    }
}

/// Returns a line on the opportunistic work before its start.
fn opportunistic_line(done: &OpportunisticWork) -> String {
    let work = figure(Some(processor_seconds(done.work)));
    format!(
        "\nBefore its start it ran opportunistically for {} and did {work} processor-seconds of work.\n",
        duration_rounded(done.ran)
    )
}

pub(super) fn processor_seconds(ticks: u128) -> f64 {
    ticks as f64 / 1e6
}

fn reason_text(reason: StartReason) -> &'static str {
    match reason {
        StartReason::Immediate => "immediately",
        StartReason::Reserved => "in queue order (reserved)",
        StartReason::Backfilled => "ahead of an earlier job (backfilled)",
        StartReason::Promised => "as promised",
        StartReason::Quantum => "for a quantum",
    }
}
