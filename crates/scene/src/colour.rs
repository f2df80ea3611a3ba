//! The colour of each job, and the legend of the colours.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::palette::{CHANGES, GREY, Inks, REASONS, STATES, STEPS, VALUES};
use crate::clock::{DAY, HOUR, MINUTE, SECOND};
use crate::{ANY_GPU, Job, Kind, Part, RUN_NUMBERS, Schedule};

/// The number of ways to colour the jobs.
pub(crate) const CLASSINGS: usize = 10;

/// The colours of a bar: a place in the legend of each [`ColourBy`].
pub(crate) type Classes = [u8; CLASSINGS];

/// What the colour of a bar shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColourBy {
    /// The user.
    #[default]
    User,
    /// The queue, or the policy of a run.
    Queue,
    /// The reason of the start.
    Reason,
    /// The time from the submission to the start.
    Wait,
    /// The wait and the runtime together, as a multiple of the runtime.
    Slowdown,
    /// The state.
    State,
    /// The number of processors.
    Size,
    /// The type of the GPUs.
    Gpu,
    /// Of gang scheduling: whether the slot is the job's own.
    Slot,
    /// Of runs of one log: the start, compared with that of the same job under the first policy, or of that under the second one.
    Change,
}

/// The meaning of the colours of one [`ColourBy`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Legend {
    /// What the colours show.
    pub by: ColourBy,
    /// Its name.
    pub title: &'static str,
    /// The entries. A bar has the place of its entry.
    pub entries: Vec<Entry>,
}

/// A colour and its meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The meaning.
    pub name: String,
    /// The number of bars with this colour. A legend shows only entries that have bars.
    pub bars: usize,
    /// The colours in the light and the dark theme.
    #[serde(flatten)]
    pub inks: Inks,
}

impl ColourBy {
    /// All ways to colour the jobs, in the order of their places in [`Classes`].
    pub(crate) const ALL: [ColourBy; CLASSINGS] = [
        ColourBy::User,
        ColourBy::Queue,
        ColourBy::Reason,
        ColourBy::Wait,
        ColourBy::Slowdown,
        ColourBy::State,
        ColourBy::Size,
        ColourBy::Gpu,
        ColourBy::Slot,
        ColourBy::Change,
    ];

    const fn title(self) -> &'static str {
        match self {
            ColourBy::User => "user",
            ColourBy::Queue => "queue",
            ColourBy::Reason => "start reason",
            ColourBy::Wait => "wait",
            ColourBy::Slowdown => "slowdown",
            ColourBy::State => "state",
            ColourBy::Size => "size",
            ColourBy::Gpu => "GPU type",
            ColourBy::Slot => "slot",
            ColourBy::Change => "change between policies",
        }
    }
}

/// The start reasons, in the order of the legend.
const REASON_NAMES: [(&str, &str); 7] = [
    ("immediate", "started at once"),
    ("reserved", "started in queue order"),
    ("backfilled", "backfilled"),
    ("promised", "started in its promised window"),
    ("quantum", "ran in a time slice"),
    ("opportunistic", "ran on idle processors"),
    ("swapping", "swapped out or in"),
];

/// Returns a start reason in words; other texts stay.
pub(crate) fn reason_words(reason: &str) -> &str {
    REASON_NAMES.iter().find(|(known, _)| *known == reason).map_or(reason, |(_, words)| words)
}

/// The upper bounds of the waits, and their names.
const WAITS: [(i64, &str); 5] = [
    (MINUTE, "less than 1 min"),
    (10 * MINUTE, "less than 10 min"),
    (HOUR, "less than 1 h"),
    (6 * HOUR, "less than 6 h"),
    (24 * HOUR, "less than 1 d"),
];

/// The upper bounds of the slowdowns, and their names.
const SLOWDOWNS: [(i64, &str); 5] =
    [(2, "below 2"), (5, "below 5"), (10, "below 10"), (30, "below 30"), (100, "below 100")];

/// The shortest runtime of a slowdown.
const RUNTIME_LEAST: i64 = 10 * SECOND;

/// The upper bounds of the sizes, and their names.
const SIZES: [(i64, &str); 5] = [
    (2, "1 processor"),
    (5, "2 to 4 processors"),
    (17, "5 to 16 processors"),
    (65, "17 to 64 processors"),
    (257, "65 to 256 processors"),
];

const SLOT_NAMES: [&str; 2] = ["a job's own slot", "another slot: no other job needs its processors there"];

const STATE_NAMES: [&str; 7] = [
    "succeeded",
    "ended without success",
    "runs",
    "suspended, or swapped out or in",
    "promised",
    "planned or likely, not promised",
    "on idle processors",
];

/// The bounds of the changes, and their names.
const CHANGE_NAMES: [(i64, &str); 8] = [
    (-DAY, "starts over 1 d earlier than under the other policy"),
    (-6 * HOUR, "6 h to 1 d earlier"),
    (-HOUR, "1 h to 6 h earlier"),
    (-MINUTE, "1 min to 1 h earlier"),
    (HOUR, "1 min to 1 h later"),
    (6 * HOUR, "1 h to 6 h later"),
    (DAY, "6 h to 1 d later"),
    (i64::MAX, "over 1 d later"),
];

/// The colours of the jobs of some schedule.
pub(crate) struct Colours {
    /// The starts under the first policy and under the second one, by number; empty without two policies.
    starts: [Vec<(i64, i64)>; 2],
    users: BTreeMap<String, u8>,
    /// The types of GPUs.
    gpus: BTreeMap<String, u8>,
    legends: [Legend; CLASSINGS],
}

impl Colours {
    /// Assigns the colours. O(n log n) for n jobs.
    pub(crate) fn new(schedule: &Schedule<'_>) -> Colours {
        let (users, others) = first_users(schedule);
        let mut names: Vec<String> = vec![String::new(); users.len()];
        for (name, place) in &users {
            names[usize::from(*place)] =
                if name.is_empty() { "no user known".to_owned() } else { name.clone() };
        }
        let of_users =
            legend(ColourBy::User, &names, &VALUES, (others > 0).then(|| many(others, "other user")));
        let pools: Vec<String> =
            schedule.pools.iter().take(VALUES.len()).map(|pool| pool.name.clone()).collect();
        let more = schedule.pools.len().saturating_sub(pools.len());
        let of_pools =
            legend(ColourBy::Queue, &pools, &VALUES, (more > 0).then(|| many(more, "other queue")));
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let steps = |named: &[(i64, &str)], last: &str| {
            let names = named.iter().map(|(_, name)| *name).chain([last]).collect::<Vec<_>>();
            owned(&names)
        };
        let (gpus, types) = gpu_types(schedule);
        let reasons = owned(&REASON_NAMES.map(|(_, name)| name));
        let unknown = |name: &str| Some(name.to_owned());
        let legends = [
            of_users,
            of_pools,
            legend(ColourBy::Reason, &reasons, &REASONS, unknown("not known, or not started")),
            legend(ColourBy::Wait, &steps(&WAITS, "1 d or more"), &STEPS, unknown("no start planned")),
            legend(ColourBy::Slowdown, &steps(&SLOWDOWNS, "100 or more"), &STEPS, unknown("not started")),
            legend(ColourBy::State, &owned(&STATE_NAMES), &STATES, None),
            legend(ColourBy::Size, &steps(&SIZES, "more than 256 processors"), &STEPS, None),
            legend(ColourBy::Gpu, &types, &VALUES, unknown("no GPU")),
            legend(ColourBy::Slot, &owned(&SLOT_NAMES), &VALUES, None),
            legend(
                ColourBy::Change,
                &owned(&CHANGE_NAMES.map(|(_, name)| name)),
                &CHANGES,
                unknown("the same within 1 min"),
            ),
        ];
        Colours { starts: starts(schedule), users, gpus, legends }
    }

    /// Returns the colours of a bar, and counts it.
    pub(crate) fn classes(&mut self, job: &Job, kind: Kind) -> Classes {
        let grey = |by: ColourBy| self.legends[by as usize].entries.len() - 1;
        let classes = ColourBy::ALL.map(|by| match by {
            ColourBy::User => self.users.get(&job.user).map_or_else(|| grey(by), |place| usize::from(*place)),
            ColourBy::Queue => job.pool.min(grey(by)),
            ColourBy::Reason => {
                let word = if job.part == Part::Swap { "swapping" } else { &job.reason };
                let known = REASON_NAMES.iter().position(|(known, _)| *known == word);
                known.unwrap_or(REASON_NAMES.len())
            }
            ColourBy::Wait => wait(job).map_or_else(|| grey(by), |wait| step(&WAITS, wait)),
            ColourBy::Slowdown => {
                slowdown(job).map_or_else(|| grey(by), |slowdown| step(&SLOWDOWNS, slowdown))
            }
            ColourBy::State => state(job, kind),
            ColourBy::Size => step(&SIZES, i64::try_from(job.procs).unwrap_or(i64::MAX)),
            ColourBy::Gpu => self.gpus.get(&job.gpu).map_or_else(|| grey(by), |place| usize::from(*place)),
            ColourBy::Slot => usize::from(kind == Kind::Alternate),
            ColourBy::Change => self.change(job).unwrap_or_else(|| grey(by)),
        });
        for (legend, place) in self.legends.iter_mut().zip(classes) {
            if let Some(entry) = legend.entries.get_mut(place) {
                entry.bars += 1;
            }
        }
        classes.map(|place| u8::try_from(place).unwrap_or(u8::MAX))
    }

    /// Returns the step of the change of a start; `None` for less than a minute.
    fn change(&self, job: &Job) -> Option<usize> {
        let other = job.compared.or_else(|| {
            let others = &self.starts[usize::from(job.pool == 0)];
            let number = job.number % RUN_NUMBERS;
            let place = others.binary_search_by_key(&number, |(number, _)| *number).ok()?;
            Some(others[place].1)
        })?;
        let change = job.first_start()?.saturating_sub(other);
        let is_same = change.saturating_abs() < MINUTE;
        (!is_same).then(|| CHANGE_NAMES.partition_point(|(bound, _)| *bound < change))
    }

    /// Returns the legends. One with a single known value has nothing to show, except that of the users and that of the states.
    pub(crate) fn legends(self) -> Vec<Legend> {
        let shows = |legend: &Legend| match legend.by {
            ColourBy::User | ColourBy::State | ColourBy::Size => true,
            ColourBy::Slot => legend.entries[1].bars > 0,
            ColourBy::Queue => legend.entries.len() > 1,
            _ => {
                let known = legend.entries.len() - 1;
                legend.entries[..known].iter().any(|entry| entry.bars > 0)
            }
        };
        self.legends.into_iter().filter(shows).collect()
    }
}

/// Returns the users with the most work as places by name, and the number of the others.
fn first_users(schedule: &Schedule<'_>) -> (BTreeMap<String, u8>, usize) {
    let mut work: BTreeMap<&str, u128> = BTreeMap::new();
    for job in schedule.jobs.iter() {
        let length = match (job.start, job.end) {
            (Some(start), Some(end)) => end.saturating_sub(start),
            _ => job.limit,
        };
        *work.entry(&job.user).or_default() +=
            u128::from(job.procs) * u128::from(length.max(1).unsigned_abs());
    }
    let own = schedule.jobs.iter().find(|job| schedule.is_own(job)).map(|job| &*job.user);
    let mut ranked: Vec<(&str, u128)> = work.into_iter().collect();
    ranked.sort_by_key(|(user, work)| (Some(*user) != own, Reverse(*work)));
    let others = ranked.len().saturating_sub(VALUES.len());
    ranked.truncate(VALUES.len());
    ranked.sort_by_key(|(user, _)| (Some(*user) != own, user.len(), *user));
    ((ranked.into_iter().map(|(user, _)| user.to_owned()).zip(0..)).collect(), others)
}

/// Returns the types of GPUs that jobs request, as places by name, and the names of the places. The last place has all types from there on.
fn gpu_types(schedule: &Schedule<'_>) -> (BTreeMap<String, u8>, Vec<String>) {
    let types = schedule.jobs.iter().map(|job| job.gpu.clone()).filter(|name| !name.is_empty());
    let types: BTreeSet<String> = types.collect();
    let words = |name: &String| if name == ANY_GPU { "GPU of any type".to_owned() } else { name.clone() };
    let mut names: Vec<String> = types.iter().take(VALUES.len()).map(words).collect();
    if let (true, Some(last)) = (types.len() > VALUES.len(), names.last_mut()) {
        "other types".clone_into(last);
    }
    let last = u8::try_from(VALUES.len() - 1).unwrap_or(u8::MAX);
    (types.into_iter().zip((0..last).chain(std::iter::repeat(last))).collect(), names)
}

/// Returns the starts of the jobs under the first two policies of a log, by number.
fn starts(schedule: &Schedule<'_>) -> [Vec<(i64, i64)>; 2] {
    if !schedule.is_of_runs() || schedule.pools.len() < 2 {
        return Default::default();
    }
    [0, 1].map(|pool| {
        let jobs = schedule.jobs.iter().filter(|job| job.pool == pool);
        let mut starts: Vec<(i64, i64)> =
            jobs.filter_map(|job| Some((job.number % RUN_NUMBERS, job.start?))).collect();
        starts.sort_unstable();
        starts
    })
}

fn many(count: usize, word: &str) -> String {
    crate::counted(count as u64, word)
}

/// Returns a legend with these colours, and a grey last entry with this name.
fn legend(by: ColourBy, names: &[String], colours: &[Inks], last: Option<String>) -> Legend {
    let entry = |name: &String, inks: &Inks| Entry { name: name.clone(), bars: 0, inks: *inks };
    let mut entries: Vec<Entry> = names.iter().zip(colours).map(|(name, inks)| entry(name, inks)).collect();
    entries.extend(last.map(|name| Entry { name, bars: 0, inks: GREY }));
    if entries.is_empty() {
        entries.push(Entry { name: "no job".to_owned(), bars: 0, inks: GREY });
    }
    Legend { by, title: by.title(), entries }
}

fn step(bounds: &[(i64, &str)], value: i64) -> usize {
    bounds.partition_point(|(bound, _)| *bound <= value)
}

/// Returns the time from the submission of a job to its start, or to the planned one.
fn wait(job: &Job) -> Option<i64> {
    let planned = || job.window().or(job.likely.map(|[median, ..]| median));
    let start = if job.state.is_before_start() { planned() } else { job.first_start() };
    Some(start?.saturating_sub(job.submitted).max(0))
}

/// Returns the slowdown of a job that started. One that runs has its time limit as its runtime.
fn slowdown(job: &Job) -> Option<i64> {
    let (start, end) = (job.start?, job.end?);
    let (end, ran) = job.whole().map_or((end, end.saturating_sub(start)), |whole| (whole.end, whole.ran));
    let runtime = ran.max(RUNTIME_LEAST);
    // What it waited between its parts counts, too.
    let waited = end.saturating_sub(job.submitted).saturating_sub(ran).max(0);
    (!job.state.is_before_start()).then(|| waited.saturating_add(runtime) / runtime)
}

fn state(job: &Job, kind: Kind) -> usize {
    match kind {
        Kind::Ran if job.has_failed() => 1,
        Kind::Ran | Kind::Alternate => 0,
        Kind::Running => 2,
        Kind::Suspended | Kind::Swapping => 3,
        Kind::Promised => 4,
        Kind::Planned | Kind::Likely => 5,
        Kind::Idle => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bars, State};

    fn ran(number: i64, user: &str, wait: i64, length: i64) -> Job {
        Job {
            number,
            user: user.to_owned(),
            procs: 1,
            state: State::Ended,
            word: "done".to_owned(),
            start: Some(wait),
            end: Some(wait + length),
            ..Job::default()
        }
    }

    fn shown(bars: &Bars, by: ColourBy) -> Vec<(String, usize)> {
        let legend = bars.legends.iter().find(|legend| legend.by == by);
        let entries = legend.into_iter().flat_map(|legend| &legend.entries);
        entries.filter(|entry| entry.bars > 0).map(|entry| (entry.name.clone(), entry.bars)).collect()
    }

    #[test]
    fn every_bar_is_in_each_legend() {
        let jobs = (0..28).map(|n| ran(n, &format!("user {}", n % 14), n * 1000, 10_000));
        let bars = Bars::new(&Schedule::of_jobs(4, jobs));
        for legend in &bars.legends {
            assert_eq!(legend.entries.iter().map(|entry| entry.bars).sum::<usize>(), 28, "{:?}", legend.by);
        }
        let users = shown(&bars, ColourBy::User);
        assert_eq!(users.first(), Some(&("user 0".to_owned(), 2)));
        assert_eq!(users.last(), Some(&("3 other users".to_owned(), 6)));
    }

    #[test]
    fn gpus_have_a_legend_where_jobs_request_some() {
        let of_type = |number, gpu: &str| Job { gpu: gpu.to_owned(), ..ran(number, "a", 0, 10) };
        let bars = |gpus: &[&str]| {
            Bars::new(&Schedule::of_jobs(9, (0..).zip(gpus).map(|(number, gpu)| of_type(number, gpu))))
        };
        let count = |name: &str, bars| (name.to_owned(), bars);
        let found = shown(&bars(&["h100", "", "GPU", "a100", ""]), ColourBy::Gpu);
        assert_eq!(
            found,
            [count("GPU of any type", 1), count("a100", 1), count("h100", 1), count("no GPU", 2)]
        );
        assert!(shown(&bars(&["", ""]), ColourBy::Gpu).is_empty());
        let many = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"];
        assert_eq!(shown(&bars(&many), ColourBy::Gpu).last(), Some(&count("other types", 3)));
    }

    #[test]
    fn the_same_job_is_compared_under_two_policies() {
        let pools = vec![crate::Pool::default(); 2];
        let of = |pool: usize, number: i64, start: i64| Job {
            pool,
            number: number + i64::try_from(pool).unwrap() * RUN_NUMBERS,
            ..ran(number, "", start, 1000)
        };
        let jobs =
            [of(0, 1, 0), of(1, 1, 2 * HOUR), of(0, 2, 5 * MINUTE), of(1, 2, 0), of(0, 3, 0), of(1, 3, 1)];
        let mut schedule = Schedule { pools, live: false, ..Schedule::of_jobs(4, jobs) };
        let names: Vec<(String, usize)> = shown(&Bars::new(&schedule), ColourBy::Change);
        let counts: Vec<usize> = names.iter().map(|(_, bars)| *bars).collect();
        assert_eq!(counts, [1, 1, 1, 1, 2], "{names:?}");
        schedule.live = true;
        assert!(
            shown(&Bars::new(&schedule), ColourBy::Change).is_empty(),
            "the queues of a daemon have jobs of their own"
        );
    }

    #[test]
    fn waits_slowdowns_and_states_have_their_steps() {
        let failed = Job { word: "killed".to_owned(), ..ran(3, "", 0, 3_600_000) };
        let bars =
            Bars::new(&Schedule::of_jobs(4, [ran(1, "", 59_999, 10_000), ran(2, "", 60_000, 1), failed]));
        let of = |name: &str, bars| (name.to_owned(), bars);
        assert_eq!(shown(&bars, ColourBy::Wait), [of("less than 1 min", 2), of("less than 10 min", 1)]);
        assert_eq!(shown(&bars, ColourBy::Slowdown), [of("below 2", 1), of("below 10", 2)]);
        assert_eq!(shown(&bars, ColourBy::State), [of("succeeded", 2), of("ended without success", 1)]);
        assert!(shown(&bars, ColourBy::Reason).is_empty(), "no reason is known");
    }
}
