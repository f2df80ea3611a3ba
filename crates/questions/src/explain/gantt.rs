//! The Gantt chart of a wait: the job, and the jobs that held processors until its start.

use miserly_core::{JobNumber, Span, Time};
use miserly_report::count;

use super::clock::Clock;
use super::held::{Held, Holding};
use super::story::{Story, What};
use super::why::WaitReason;

/// The most jobs beside the waiting one.
const MOST: usize = 10;

/// The widest chart.
const WIDEST: usize = 80;

/// The narrowest bars.
const NARROWEST: usize = 20;

/// The longest start reason, with the blanks before it.
const REASON: usize = 12;

/// Returns the chart; `None` if the job did not wait, or never started.
pub(super) fn chart(story: &Story, held: &Held, clock: &Clock, width: usize) -> Option<String> {
    let (start, reason) = story.start()?;
    let submit = story.request.submit;
    if start <= submit {
        return None;
    }
    let (shown, others) = choose(story, held);
    let own = (story.request.number, count(story.request.procs().get()));
    let names = shown.iter().map(|holding| (holding.job, count(holding.procs.get()))).chain([own.clone()]);
    let names: Vec<(String, String)> = names.map(|(job, procs)| (job.to_string(), procs)).collect();
    let columns = Head::new(&names);
    let bars = width.min(WIDEST).saturating_sub(columns.width() + REASON).max(NARROWEST);
    let axis = Axis::new(submit, start, story.end.map(|(end, _)| end), bars);
    let mut text = title(shown.len(), others) + &columns.line("job", "procs", &" ".repeat(bars), "start");
    for (holding, (job, procs)) in shown.iter().zip(&names) {
        text +=
            &columns.line(job, procs, &axis.bar(holding), holding.reason.map_or("", |reason| reason.name()));
    }
    text += &columns.line(&own.0.to_string(), &own.1, &axis.own_bar(story, start), reason.name());
    text += &axis.labels(columns.width(), clock);
    Some(text + LEGEND)
}

const LEGEND: &str = "= runs; . waits; r has a reserved start; # this job runs; <> beyond the chart\n";

fn title(shown: usize, others: usize) -> String {
    match (shown, others) {
        (0, _) => "\nNo job held processors while it waited:\n".into(),
        (_, 0) => "\nJobs that held processors while it waited, and the job itself:\n".into(),
        _ => format!(
            "\nJobs that held processors while it waited ({shown} of {}), and the job itself:\n",
            shown + others
        ),
    }
}

/// Returns the jobs that the chart shows, in the order of their starts, and the number of others.
///
/// These are the jobs that the reasons name, and then the widest.
fn choose<'a>(story: &Story, held: &'a Held) -> (Vec<&'a Holding>, usize) {
    let named = named(story);
    let mut jobs: Vec<&Holding> = held.jobs().collect();
    jobs.sort_by_key(|holding| {
        (!named.contains(&holding.job), std::cmp::Reverse(holding.procs), holding.job)
    });
    let others = jobs.split_off(MOST.min(jobs.len())).len();
    jobs.sort_by_key(|holding| (holding.runs.first().copied(), holding.job));
    (jobs, others)
}

/// Returns the jobs that the text names as reasons.
fn named(story: &Story) -> Vec<JobNumber> {
    let mut named: Vec<JobNumber> = match &story.reason {
        Some(WaitReason::TooFewFree { holders, .. }) => holders.iter().map(|holder| holder.job).collect(),
        Some(WaitReason::Reservation { job, .. } | WaitReason::Order { job, .. }) => vec![*job],
        Some(WaitReason::Policy) | None => vec![],
    };
    named.extend(story.made_room.iter().map(|ended| ended.job));
    named
}

/// The columns before the bars.
struct Head {
    job: usize,
    procs: usize,
}

impl Head {
    fn new(names: &[(String, String)]) -> Head {
        let longest = |of: fn(&(String, String)) -> &String| names.iter().map(|name| of(name).len()).max();
        Head {
            job: longest(|name| &name.0).unwrap_or(0).max("job".len()),
            procs: longest(|name| &name.1).unwrap_or(0).max("procs".len()),
        }
    }

    fn width(&self) -> usize {
        self.job + self.procs + 4
    }

    fn line(&self, job: &str, procs: &str, bar: &str, reason: &str) -> String {
        let (jobs, wide) = (self.job, self.procs);
        format!("{job:>jobs$}  {procs:>wide$}  {bar}  {reason}").trim_end().to_owned() + "\n"
    }
}

/// The time axis: the wait, and an eighth of it on both sides.
struct Axis {
    from: Time,
    to: Time,
    submit: Time,
    start: Time,
    columns: usize,
}

impl Axis {
    fn new(submit: Time, start: Time, end: Option<Time>, columns: usize) -> Axis {
        let margin = Span::from_ticks((start - submit).ticks() / 8).max(Span::TICK);
        let from = Time::from_ticks(submit.ticks().saturating_sub(margin.ticks()));
        let to = (start + margin).min(end.unwrap_or(Time::MAX)).max(start + Span::TICK);
        Axis { from, to, submit, start, columns }
    }

    /// Returns the column of an instant. Instants beyond the axis have the column of its ends.
    fn column(&self, at: Time) -> usize {
        let at = at.clamp(self.from, self.to);
        let part = (at - self.from).as_secs_f64() / (self.to - self.from).as_secs_f64();
        // The part is between 0 and 1, so the product is a column.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let column = (part * self.columns as f64).round() as usize;
        column.min(self.columns)
    }

    /// Fills the columns between two instants, at least one.
    fn fill(&self, cells: &mut [char], from: Time, to: Time, mark: char) {
        let first = self.column(from).min(self.columns - 1);
        let last = self.column(to).max(first + 1);
        cells[first..last].fill(mark);
        if from < self.from {
            cells[0] = '<';
        }
        if to > self.to {
            cells[self.columns - 1] = '>';
        }
    }

    fn bar(&self, holding: &Holding) -> String {
        let mut cells = vec![' '; self.columns];
        for (from, to) in &holding.runs {
            let to = to.unwrap_or(Time::MAX);
            if to > self.from && *from < self.to {
                self.fill(&mut cells, *from, to, '=');
            }
        }
        cells.into_iter().collect()
    }

    /// Returns the bar of the waiting job.
    fn own_bar(&self, story: &Story, start: Time) -> String {
        let mut cells = vec![' '; self.columns];
        self.fill(&mut cells, self.submit, start, '.');
        let reserved = story.events.iter().find(|event| matches!(event.what, What::Moved(..)));
        if let Some(event) = reserved.filter(|event| event.at < start) {
            self.fill(&mut cells, event.at, start, 'r');
        }
        self.fill(&mut cells, start, story.end.map_or(Time::MAX, |(end, _)| end), '#');
        cells.into_iter().collect()
    }

    /// Returns the lines below the bars: the submission and the start.
    fn labels(&self, indent: usize, clock: &Clock) -> String {
        let (submit, start) = (indent + self.column(self.submit), indent + self.column(self.start));
        let submitted = format!("submitted {}", clock.text(self.submit));
        let started = format!("started {}", clock.text(self.start));
        let widest = indent + self.columns + REASON;
        let place = start.min(widest.saturating_sub(started.len()));
        let marks = format!("{:submit$}^{:>gap$}\n", "", "^", gap = start - submit);
        let first = format!("{:submit$}{submitted}", "");
        if first.len() + 2 > place {
            return format!("{marks}{first}\n{:place$}{started}\n", "");
        }
        format!("{marks}{first:place$}{started}\n")
    }
}

#[cfg(test)]
mod tests;
