//! The rules that hold at every step, seen from outside: by users, by the disk and by the processes of the machine.

pub(crate) mod absence;
mod capacity;
pub(crate) mod shims;
mod sizes;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use jiff::Timestamp;
use miserly_api::model::{
    Exit, Failure, Filter, JobView, Judgement, KilledBy, Phase, PromiseChangeReason, Status, WaitReason,
};
use miserly_attempt::shim::BEGIN_DELAY;
use miserly_engine::{
    Attempt, Caller, DaemonInfo, DaemonReply, DaemonRequest, EndedFilter, EndedJobs, Engine, JobRow,
    JournalError, MemoryJournal, Snapshot,
};

use crate::checks::shims::SaidOf;
use crate::journals::WorldJournal;
use crate::site::{NoLauncher, ticks};
use crate::step::{Habit, Request, SECOND, Wish};
use crate::world::{Checked, World};

/// The time by which a command may begin after its recorded start.
const TOLERANCE: i64 = SECOND;

/// The longest time until the daemon looks for the start of a command: its pauses get longer.
const LATEST_NEWS: i64 = 5 * SECOND;

/// The longest time from a start to its command, if the machine lacks something meanwhile.
const LATEST_LAUNCH: i64 = 10 * SECOND;

/// The most launches of a job, and one more for each second.
const MOST_LAUNCHES: i64 = 30;

/// The time after which a daemon that is not disturbed knows that a command has begun.
pub(crate) const REPORTED: i64 = SECOND / 10;

/// The time after which a shim that is not disturbed knows another limit: a stopped one is continued before.
const EXTENDED: i64 = 10 * SECOND;

/// The longest grace that is drawn.
const LONGEST_GRACE: i64 = 2 * SECOND;

/// The facts about a job that its user knows.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Seen {
    user: u32,
    wish: Wish,
    /// The earliest start, in ticks.
    begin: Option<i64>,
    /// The latest start that its user set, in ticks.
    start_by: Option<i64>,
    /// The latest start of an open promise, in ticks.
    open: Option<i64>,
    /// Why its promise is at risk.
    risk: Option<PromiseChangeReason>,
    /// The latest starts of its judged promises, in ticks.
    judged: Vec<i64>,
    /// Its attempts, and when they were counted.
    attempts: (u32, i64),
    /// The promise that was judged as kept, with the attempt.
    kept: Option<(i64, u32)>,
    /// Whether an operator changed it.
    by_operator: bool,
    /// Whether a user let it run again, or released it.
    requeued: bool,
    released: bool,
    /// The last time limit, and the instant at which it was seen first.
    limit: (Duration, i64),
    /// Whether a restored state had it unfinished.
    restored: bool,
    /// Whether its attempt may have begun by a clock that the daemon does not know: in a boot that a restored state had not
    /// seen, or before the wall clock was set back.
    clock_lost: bool,
    ended: Option<Phase>,
    /// Where it runs in its window.
    size: sizes::Size,
}

/// The jobs as their users see them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    jobs: BTreeMap<i64, Seen>,
    /// How often the machine has booted.
    boots: u32,
    /// Whether a request permitted to move promises.
    moves: bool,
    /// Whether some jobs wait for others.
    conditions: bool,
    /// The jobs that a restore lost.
    lost: BTreeSet<i64>,
    /// The jobs of a request of this step that may move no promise of others.
    asked: Option<Vec<i64>>,
    /// Whether the jobs were checked after the last step.
    was_checked: bool,
    /// The rows of finished jobs, each with its view.
    finished: BTreeMap<i64, (String, Rc<JobView>)>,
    said: SaidOf,
}

/// The finished jobs of a journal, without those whose rows are known.
struct NewlyFinished<'a> {
    journal: &'a WorldJournal,
    known: BTreeMap<i64, (String, Rc<JobView>)>,
    /// All rows.
    rows: RefCell<Vec<JobRow>>,
}

impl EndedJobs for NewlyFinished<'_> {
    fn job(&self, number: i64) -> Result<Option<JobRow>, JournalError> {
        EndedJobs::job(self.journal, number)
    }

    fn ended_jobs(&self, filter: &EndedFilter) -> Result<Vec<JobRow>, JournalError> {
        let rows = EndedJobs::ended_jobs(self.journal, filter)?;
        let is_new = |row: &&JobRow| self.known.get(&row.number).is_none_or(|(body, _)| *body != row.body);
        let news = rows.iter().filter(is_new).cloned().collect();
        self.rows.replace(rows);
        Ok(news)
    }

    fn ended_from(&self, from: i64, limit: u32) -> Result<Vec<JobRow>, JournalError> {
        EndedJobs::ended_from(self.journal, from, limit)
    }
}

/// The jobs that keep a world from its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenJobs {
    all: Vec<(i64, &'static str)>,
    /// Why the first of them does not run.
    first: String,
    pub(crate) held: Vec<i64>,
    pub(crate) paused: Vec<i64>,
    /// Jobs that do not end by themselves: with more processors than a later limit permits to their users, or past their limits.
    pub(crate) oversized: Vec<i64>,
}

impl OpenJobs {
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl Watch {
    /// Returns the number of accepted jobs.
    pub(crate) fn count(&self) -> usize {
        self.jobs.len()
    }

    /// Takes note of accepted jobs.
    pub(crate) fn accept(&mut self, numbers: &[i64], user: u32, wish: &Wish, now: i64) -> Checked {
        self.conditions |= !wish.after.is_empty();
        for number in numbers {
            let seen = Seen {
                user,
                wish: wish.clone(),
                begin: wish.begin.map(|ticks| now + ticks),
                start_by: wish.start_within.map(|wait| now + wish.begin.unwrap_or(0).max(0) + wait),
                ..Seen::default()
            };
            if self.lost.contains(number) || self.jobs.insert(*number, seen).is_some() {
                return Err(format!("the number {number} is given twice"));
            }
        }
        Ok(())
    }

    /// Takes note of a request.
    pub(crate) fn asked(&mut self, tags: &BTreeMap<u32, Vec<i64>>, user: u32, request: &Request) {
        if let (0, Some(tag)) = (user, request.tag()) {
            for number in tags.get(&tag).into_iter().flatten() {
                self.change(*number, |seen| seen.by_operator = true);
            }
        }
        let (tag, moves) = match request {
            Request::Hold { tag, move_promises } => (tag, *move_promises),
            Request::Modify { tag, before, move_promises, .. } => (tag, *move_promises || before.is_some()),
            Request::Requeue { tag, move_promises } => {
                for number in tags.get(tag).into_iter().flatten() {
                    self.change(*number, |seen| seen.requeued = true);
                }
                (tag, *move_promises)
            }
            Request::Release { tag } => (tag, false),
            _ => return,
        };
        self.moves |= moves;
        self.asked = (!moves).then(|| tags.get(tag).cloned().unwrap_or_default());
        if matches!(request, Request::Release { .. }) {
            for number in tags.get(tag).into_iter().flatten() {
                self.change(*number, |seen| seen.released = true);
            }
        }
    }

    /// Returns the user of an accepted job.
    pub(crate) fn owner(&self, number: i64) -> Option<u32> {
        Some(self.jobs.get(&number)?.user)
    }

    /// Returns whether nothing but its shim can keep the command of a job from its start.
    pub(crate) fn starts(&self, number: i64) -> bool {
        let plain = |habit: &Habit| habit.prolog.is_none() && !habit.blocks;
        self.jobs.get(&number).is_some_and(|seen| seen.wish.runs.iter().all(plain))
    }

    /// Returns whether no restore lost a job.
    pub(crate) fn has_lost_none(&self) -> bool {
        self.lost.is_empty()
    }

    /// Takes note that the clock of a boot was set back since attempts of unfinished jobs may have begun.
    pub(crate) fn lose_clock(&mut self) {
        self.jobs.values_mut().filter(|seen| seen.ended.is_none()).for_each(|seen| seen.clock_lost = true);
    }

    /// Takes note of another boot.
    pub(crate) fn boot(&mut self) {
        self.boots += 1;
    }

    pub(crate) fn release(&mut self, number: i64) {
        self.change(number, |seen| seen.released = true);
    }

    fn change(&mut self, number: i64, change: impl FnOnce(&mut Seen)) {
        self.jobs.get_mut(&number).map(change);
    }

    /// Takes note that the state is an earlier one.
    pub(crate) fn restore(&mut self, earlier: &Watch) {
        let later = std::mem::replace(self, earlier.clone());
        let same_boot = self.boots == later.boots;
        self.boots = later.boots;
        for (number, seen) in later.jobs {
            if let Some(earlier) = self.jobs.get_mut(&number) {
                earlier.by_operator |= seen.by_operator;
                earlier.requeued |= seen.requeued;
                earlier.released |= seen.released;
                earlier.restored |= earlier.ended.is_none();
                earlier.clock_lost = seen.clock_lost || (earlier.ended.is_none() && !same_boot);
            } else {
                self.lost.insert(number);
            }
        }
        self.lost.extend(later.lost);
        self.moves |= later.moves;
        self.conditions |= later.conditions;
    }
}

impl World {
    /// Checks the rules. `all`: also those that take longer.
    pub(crate) fn check(&mut self, all: bool) -> Checked {
        if let Some(broken) = self.machine.take_broken() {
            return Err(broken);
        }
        self.check_runs()?;
        self.check_absence()?;
        let was_checked = std::mem::take(&mut self.watch.was_checked);
        let asked = self.watch.asked.take();
        let Some(snapshot) = self.snapshot() else { return Ok(()) };
        let views = self.views(&snapshot)?;
        self.check_lost(&views)?;
        let asked = asked.filter(|_| was_checked);
        for view in &views {
            self.check_job(view, asked.as_deref()).map_err(|what| format!("job {}: {what}", view.number))?;
        }
        self.watch.was_checked = true;
        let status = self.status(&snapshot)?;
        self.note_alone(&views, &status);
        check_rules(&status)?;
        check_sums(&views, &status)?;
        self.check_capacity(&status)?;
        self.check_gpus()?;
        self.check_turns(&views)?;
        self.check_shims(&views, &status)?;
        self.check_limits(&snapshot)?;
        if all || self.divides {
            self.check_sizes()?;
        }
        if self.wide {
            self.check_reservations(&snapshot, &views, &status)?;
        }
        if all {
            self.check_reads(&snapshot)?;
            self.check_stored(&snapshot)?;
        }
        Ok(())
    }

    fn snapshot(&self) -> Option<std::sync::Arc<Snapshot>> {
        self.is_quiet().then(|| self.latest())?
    }

    fn answer(
        &self,
        snapshot: &Snapshot,
        request: &DaemonRequest,
        ended: &impl EndedJobs,
    ) -> Result<DaemonReply, String> {
        let answer = snapshot.answer(self.moment(), &Caller::new(0), request, ended, &|_, _| Ok(()));
        answer.map_err(|problem| format!("{request:?} is refused: {}", problem.message))
    }

    /// Returns all jobs by number. A finished job whose row is the same is as it was.
    fn views(&mut self, snapshot: &Snapshot) -> Result<Vec<Rc<JobView>>, String> {
        let list = DaemonRequest::Jobs(Filter { all: true, details: true, ..Filter::default() });
        let known = std::mem::take(&mut self.watch.finished);
        let news = NewlyFinished { journal: &self.journal, known, rows: RefCell::default() };
        let jobs = match self.answer(snapshot, &list, &news)? {
            DaemonReply::Jobs(jobs) => jobs,
            other => return Err(format!("a list is {other:?}")),
        };
        let NewlyFinished { mut known, rows, .. } = news;
        let mut views: BTreeMap<i64, Rc<JobView>> =
            jobs.into_iter().map(|view| (view.number, Rc::new(view))).collect();
        for row in rows.into_inner() {
            let kept = known.remove(&row.number).filter(|(body, _)| *body == row.body);
            let view = kept.map(|(_, view)| view).or_else(|| views.get(&row.number).cloned());
            // A job that finished after the snapshot is not finished there.
            let Some(view) = view.filter(|view| view.phase.ended().is_some()) else { continue };
            views.entry(row.number).or_insert_with(|| Rc::clone(&view));
            self.watch.finished.insert(row.number, (row.body, view));
        }
        Ok(views.into_values().collect())
    }

    fn status(&self, snapshot: &Snapshot) -> Result<Status, String> {
        match self.answer(snapshot, &DaemonRequest::Status, &self.journal)? {
            DaemonReply::Status(status) => Ok(*status),
            other => Err(format!("a status is {other:?}")),
        }
    }

    /// Returns the jobs that have not ended.
    pub(crate) fn open_jobs(&mut self) -> Result<OpenJobs, String> {
        let Some(snapshot) = self.snapshot() else {
            return Ok(OpenJobs { all: vec![(0, "no daemon answers")], ..OpenJobs::default() });
        };
        let mut open = OpenJobs::default();
        for view in self.views(&snapshot)?.iter().filter(|view| view.phase.ended().is_none()) {
            let state = match &view.phase {
                Phase::Held => "held",
                Phase::Queued => "queued",
                Phase::Opportunistic { .. } => "early",
                Phase::Running(_) => "running",
                Phase::Suspended(_) => "suspended",
                _ => "unknown",
            };
            if open.all.is_empty() {
                open.first = format!("{:?}, planned {:?}", view.reasons, view.planned);
            }
            open.all.push((view.number, state));
            if state == "held" || view.set_aside.is_some() {
                self.watch.release(view.number);
                open.held.push(view.number);
            }
            let is_too_large = |reason: &WaitReason| match reason {
                WaitReason::UserLimit { limit, most } => {
                    limit.split('.').next_back() == Some("cpus") && *most < view.cpus
                }
                _ => false,
            };
            // It runs on for ever if nobody needs its place and its output blocks.
            let runs_on = view.overrun.is_some();
            // The rest of its reservation is too short for it.
            let is_left_over = view.queue.starts_with('r') && state == "queued" && view.planned.is_none();
            if runs_on || is_left_over || view.reasons.iter().any(is_too_large) {
                open.oversized.push(view.number);
            }
            if view.paused {
                open.paused.push(view.number);
            }
        }
        Ok(open)
    }

    /// No accepted job is lost.
    fn check_lost(&self, views: &[Rc<JobView>]) -> Checked {
        let shown: BTreeSet<i64> = views.iter().map(|view| view.number).collect();
        match self.watch.jobs.keys().find(|number| !shown.contains(number)) {
            Some(lost) => Err(format!("job {lost} was accepted and is gone")),
            None => Ok(()),
        }
    }

    /// No command runs too early, or more often than it may.
    fn check_runs(&self) -> Checked {
        let mut runs: BTreeMap<i64, u32> = BTreeMap::new();
        for (attempt, begun) in self.machine.begun() {
            *runs.entry(attempt.job).or_default() += 1;
            let Some(seen) = self.watch.jobs.get(&attempt.job) else { continue };
            if seen.begin.is_some_and(|begin| begun + 1_000 < begin) {
                return Err(format!("job {} begins before its earliest start", attempt.job));
            }
            if seen.wish.hold && !seen.released && seen.wish.members == 0 {
                return Err(format!("job {} begins although it is held", attempt.job));
            }
        }
        // Immediate service ends jobs and runs them again.
        let preempts = self.preempts;
        let may = |seen: &Seen| seen.wish.restartable || seen.wish.retry > 0 || seen.requeued || preempts;
        for (job, runs) in runs {
            let Some(seen) = self.watch.jobs.get(&job) else { continue };
            if runs > 1 && !may(seen) {
                return Err(format!("the command of job {job} ran {runs} times"));
            }
        }
        for (job, why) in self.machine.refused() {
            // A restored state may know of no end.
            if self.watch.jobs.get(&job).is_some_and(|seen| !seen.restored) {
                return Err(format!("the executor refuses job {job}: {why}"));
            }
        }
        for (job, blocked) in self.machine.repeated() {
            let Some(seen) = self.watch.jobs.get(&job).filter(|seen| !may(seen)) else { continue };
            // Less may be a window that was too short for a launch.
            if !seen.wish.early && blocked > i64::from(seen.wish.time) * SECOND * 3 / 5 {
                return Err(format!(
                    "job {job} blocked its start for {blocked} ticks, and got another window"
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn ticks(&self, at: Timestamp) -> i64 {
        self.moment().ticks_at(at).ticks()
    }

    /// Checks a job. `asked` has the jobs of a request of this step that may move no promise of others.
    fn check_job(&mut self, view: &JobView, asked: Option<&[i64]>) -> Checked {
        let now = self.now;
        let promised = view.promise.as_ref().map(|promise| self.ticks(promise.promised.start));
        let judged: Vec<i64> = view.judged.iter().map(|judged| self.ticks(judged.promised)).collect();
        let latest = judged.last().copied();
        let started = view.phase.started().map(|at| self.ticks(at));
        let attempt = Attempt { job: view.number, nth: view.attempts };
        let attempt_begun = self.machine.begun_at(attempt);
        let begun = attempt_begun.filter(|begun| begun + REPORTED < now);
        let begun = begun.filter(|_| !self.machine.was_held_back(attempt));
        let moves = self.watch.moves;
        let quiet_since = self.quiet_since();
        let out_of_time = match view.phase {
            Phase::Killed { start: Some(start), end, by: KilledBy::Time, .. } => {
                Some((self.ticks(start), self.ticks(end)))
            }
            _ => None,
        };
        // The end of a job on which others depend may come later than was promised.
        let conditions = self.watch.conditions;
        // An ended job keeps the wall times of its clock.
        let comparable = (view.phase.ended().is_none() || !self.wall_was_set) && !self.suspends;
        // A job may be suspended before its command begins.
        let (may_compare, stalled) = (!self.suspends && !self.preempts, self.last_stall);
        let Some(seen) = self.watch.jobs.get_mut(&view.number) else { return Ok(()) };
        if let Some(before) = &seen.ended {
            // Times are wall times, which move with the clock.
            let same = std::mem::discriminant(before) == std::mem::discriminant(&view.phase);
            return if same { Ok(()) } else { Err(format!("it was {before:?} and is {:?}", view.phase)) };
        }
        let first_begin = attempt_begun.filter(|_| may_compare);
        check_bounds(seen, view, first_begin, (now, stalled))?;
        note_judged(seen, view, judged, promised, self.preempts)?;
        check_kept(seen, view, begun)?;
        check_history(view)?;
        let (attempts, since) = std::mem::replace(&mut seen.attempts, (view.attempts, now));
        if i64::from(view.attempts - attempts) > MOST_LAUNCHES + (now - since).max(0) / SECOND {
            return Err(format!("it was launched {} times since {since}", view.attempts - attempts));
        }
        if !seen.wish.early
            && !seen.clock_lost
            && comparable
            && let (Some(started), Some(begun)) = (started, begun)
            && (view.phase.ended().is_some() || begun + LATEST_NEWS < now)
            && (started - begun).abs() > TOLERANCE
        {
            return Err(format!("it began at {begun}, and its recorded start is {started}"));
        }
        let limit = Duration::from_secs_f64(view.time);
        if seen.limit.0 != limit {
            seen.limit = (limit, now);
        }
        if let Some((start, end)) =
            out_of_time.filter(|_| !seen.wish.early && comparable && seen.wish.deadline.is_none())
        {
            check_limit(seen.limit, start, end, quiet_since)?;
            let seen = seen.clone();
            self.check_work(view.number, &seen, end)?;
        }
        let Some(seen) = self.watch.jobs.get_mut(&view.number) else { return Ok(()) };
        if view.phase.ended().is_some() {
            seen.ended = Some(view.phase.clone());
            return check_exit(seen, view);
        }
        let waits = matches!(view.phase, Phase::Queued | Phase::Held | Phase::Opportunistic { .. });
        match (seen.open, promised) {
            (Some(before), None) => return Err(format!("its promise to start by {before} is gone")),
            (Some(before), Some(after)) if before != after => {
                return Err(format!("its promise to start by {before} is one to start by {after} now"));
            }
            _ => {}
        }
        if waits {
            seen.open = promised;
        }
        let risk = view.promise.as_ref().and_then(|promise| promise.at_risk);
        // That of an early run which is being ended is judged: it is withdrawn, or its window began too late.
        let is_judged = latest == promised
            && view.judged.last().is_some_and(|judged| judged.judgement != Judgement::Kept);
        let has_passed = promised.is_some_and(|latest| latest + TOLERANCE < now);
        if waits && has_passed && risk.is_none() && !is_judged {
            return Err(format!(
                "it waits, was promised to start by {promised:?}, and nothing says that it is late"
            ));
        }
        let by_users = risk.is_some_and(|risk| {
            use PromiseChangeReason::{Amended, Held, Modified, Operator, Released, Requeued};
            (risk.why == Amended && !conditions)
                || matches!(risk.why, Held | Modified | Operator | Released | Requeued)
        });
        let before = std::mem::replace(&mut seen.risk, risk.map(|risk| risk.why));
        if let (Some(risk), None, Some(asked)) =
            (risk.filter(|risk| risk.why == PromiseChangeReason::Amended), before, asked)
            && !asked.contains(&view.number)
        {
            return Err(format!("a request that may move no promise puts its promise at risk: {risk:?}"));
        }
        if by_users && !moves && !seen.by_operator {
            return Err(format!("its promise is at risk for another user: {risk:?}"));
        }
        Ok(())
    }

    /// A daemon that loaded the state shows the same.
    fn check_stored(&self, snapshot: &Snapshot) -> Checked {
        let journal = MemoryJournal::new(self.journal.contents());
        let info = DaemonInfo { runs_as_users: true, ..DaemonInfo::default() };
        let setup = self.setup_now();
        let loaded = Engine::open(setup, info, journal.clone(), NoLauncher, self.moment());
        let loaded = loaded.map_err(|error| format!("the stored state cannot be loaded: {error}"))?;
        let loaded = loaded.snapshots().latest();
        // The rows of finished jobs are the same for both.
        let list = DaemonRequest::Jobs(Filter { details: true, ..Filter::default() });
        let shown = self.answer(snapshot, &list, &self.journal);
        let stored = self.answer(&loaded, &list, &journal);
        let (Ok(DaemonReply::Jobs(shown)), Ok(DaemonReply::Jobs(stored))) = (shown, stored) else {
            return Err("a list is refused".into());
        };
        // Adopted attempts are in no state.
        let [shown, stored] = [shown, stored].map(|mut jobs| {
            jobs.retain(|job| self.watch.jobs.contains_key(&job.number));
            jobs
        });
        for (shown, stored) in shown.iter().zip(&stored) {
            if let Some(differs) = difference(shown, stored) {
                return Err(format!("job {} is stored otherwise: {differs}", shown.number));
            }
        }
        if shown.len() == stored.len() { Ok(()) } else { Err("not all jobs are stored".into()) }
    }
}

/// Takes note of the judged promises of a job, by their latest starts. `promised` is that of its present promise.
fn note_judged(
    seen: &mut Seen,
    view: &JobView,
    judged: Vec<i64>,
    promised: Option<i64>,
    preempts: bool,
) -> Checked {
    if judged.len() > seen.judged.len() {
        // A job that runs again may have another promise by now.
        let runs_once = seen.wish.retry == 0 && !seen.wish.restartable && !seen.requeued && !preempts;
        let is_kept = view.judged.last().map(|judged| judged.judgement) == Some(Judgement::Kept);
        let latest = judged.last().filter(|_| runs_once && is_kept && !seen.clock_lost);
        seen.kept = latest.map(|latest| (*latest, view.attempts));
        (seen.judged, seen.open) = (judged, None);
    } else if judged.len() < seen.judged.len() {
        // A start that led to no command is taken back: its promise is open again.
        if seen.judged.pop() != promised || seen.judged.len() != judged.len() {
            return Err("a judgement of its promise is gone".into());
        }
        seen.kept = None;
    }
    Ok(())
}

/// A job is given up at its latest start exactly if its command has not begun by then, and runs past its limit only if its user
/// permits that.
fn check_bounds(seen: &Seen, view: &JobView, begun: Option<i64>, (now, stalled): (i64, i64)) -> Checked {
    if view.overrun.is_some() && !seen.wish.overrun {
        return Err("it runs past its limit, which is a hard one".into());
    }
    let habit = habit_of(seen, view);
    let is_idle = view.idle_since.is_some() || matches!(view.phase, Phase::Killed { by: KilledBy::Idle, .. });
    if is_idle && !habit.lazy && !seen.restored {
        return Err(format!("it works and counts as idle since {:?}", view.idle_since));
    }
    let given_up = matches!(view.phase, Phase::Failed { why: Failure::NotInTime, .. });
    let Some(start_by) = seen.start_by else {
        return if given_up { Err("it is given up without a latest start".into()) } else { Ok(()) };
    };
    if given_up && (begun.is_some() || now < start_by) && !seen.restored {
        return Err(format!("it had to start by {start_by}, began at {begun:?}, and is given up"));
    }
    let waits = matches!(view.phase, Phase::Queued | Phase::Held);
    if waits && view.runs == 0 && view.start_by.is_some() && start_by + TOLERANCE < now && !seen.clock_lost {
        return Err(format!("it had to start by {start_by}, and waits"));
    }
    // An early run may be parked before its command begins.
    if view.runs == 1
        && !seen.wish.early
        && !seen.restored
        && !seen.clock_lost
        // A daemon that stalls may have decided the start before.
        && begun.is_some_and(|begun| begun > start_by.max(stalled) + LATEST_LAUNCH)
    {
        return Err(format!("it had to start by {start_by}, and began at {begun:?}"));
    }
    Ok(())
}

/// A promise that counts as kept was kept: the command began in time.
fn check_kept(seen: &mut Seen, view: &JobView, begun: Option<i64>) -> Checked {
    let Some((latest, nth)) = seen.kept else { return Ok(()) };
    let Some(begun) = begun.filter(|_| view.attempts == nth) else { return Ok(()) };
    let last = view.judged.last().map(|judged| judged.judgement);
    if last == Some(Judgement::Kept) && begun > latest + TOLERANCE {
        let judged = &view.judged;
        return Err(format!(
            "it was promised to start by {latest}, began at {begun}, and counts as in time: {judged:?}"
        ));
    }
    Ok(())
}

/// A job without a deadline that is ended for its time has had it, but for its grace.
///
/// Its limit may just have changed, and there may have been no daemon to say so.
fn check_limit((limit, since): (Duration, i64), start: i64, end: i64, quiet_since: i64) -> Checked {
    let due = start + ticks(limit);
    let is_known = since.max(quiet_since) + EXTENDED < end;
    // A shim that begins its window beside a daemon that does not, begins it later, and ends it as planned.
    let late = ticks(BEGIN_DELAY);
    if is_known && end + LONGEST_GRACE + late + TOLERANCE < due {
        return Err(format!(
            "it began at {start} and was ended for its time at {end}, which was until {due}"
        ));
    }
    Ok(())
}

/// A start that is called earlier is not later.
fn check_history(view: &JobView) -> Checked {
    let history = view.promise.iter().flat_map(|promise| promise.history.windows(2));
    for pair in history {
        if let [before, after] = pair
            && after.why == PromiseChangeReason::Earlier
            && before.start.is_some_and(|before| after.start.is_none_or(|after| after > before))
        {
            return Err(format!("its promise moved from {before:?} to {after:?}, and counts as earlier"));
        }
    }
    Ok(())
}

/// Returns the habit of the last run of a job.
fn habit_of(seen: &Seen, view: &JobView) -> Habit {
    let nth = usize::try_from(view.attempts).unwrap_or(1).saturating_sub(1);
    seen.wish.runs.get(nth).or(seen.wish.runs.last()).copied().unwrap_or_default()
}

/// The shown exit code of a job is that of its processes.
fn check_exit(seen: &Seen, view: &JobView) -> Checked {
    let habit = habit_of(seen, view);
    match view.phase {
        Phase::Done { exit: Exit::Code(code), .. } if code != habit.code || habit.signal > 0 => {
            Err(format!("it ended with {code} and not with {}", habit.code))
        }
        _ => Ok(()),
    }
}

/// Returns the first field in which two views differ.
fn difference(shown: &JobView, stored: &JobView) -> Option<String> {
    let [shown, stored] = [shown, stored].map(|view| serde_json::to_value(view).unwrap_or_default());
    let (shown, stored) = (shown.as_object()?, stored.as_object()?);
    let name = shown.keys().chain(stored.keys()).find(|name| shown.get(*name) != stored.get(*name))?;
    Some(format!("{name} is {:?} and {:?}", shown.get(name), stored.get(name)))
}

/// No policy broke a rule, and every job has its place.
fn check_rules(status: &Status) -> Checked {
    for queue in &status.queues {
        if let Some(why) = &queue.stopped {
            return Err(format!("queue {} is stopped: {why}", queue.name));
        }
    }
    let aside = status.set_aside.first();
    aside.map_or(Ok(()), |aside| Err(format!("job {} is set aside: {}", aside.job, aside.reason)))
}

/// The numbers of promises are those of the jobs.
fn check_sums(views: &[Rc<JobView>], status: &Status) -> Checked {
    let count = |wanted| {
        views.iter().flat_map(|view| &view.judged).filter(|judged| judged.judgement == wanted).count() as u64
    };
    let judged = [Judgement::Kept, Judgement::Late, Judgement::Lost, Judgement::Withdrawn].map(count);
    let counted = [status.kept, status.late, status.lost, status.withdrawn];
    if judged != counted {
        return Err(format!("promises kept, late, lost, withdrawn: {judged:?} of jobs, {counted:?} in sum"));
    }
    let sum = counted.iter().sum::<u64>() + status.open + status.earlier;
    if status.promises != sum {
        return Err(format!("{} promises were given, and {sum} are accounted for", status.promises));
    }
    Ok(())
}
