//! The jobs of an instant in lists, of which a page shows parts. An array is one row of a list.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::headline::has_failed_lately;
use crate::list_row::{ArrayCounts, Row, array_row, job_row, shown_end, shown_start};
use crate::words::{Sentences, is_promise_kept};
use crate::{Facts, Job, State};

/// The most rows of a list. Those behind them are found by their numbers and names.
const ROWS_MOST: usize = 100_000;

/// The lists of jobs, by their places in [`Facts::jobs`].
#[derive(Clone, Debug, Default)]
pub struct Lists {
    own: Vec<usize>,
    waiting: Vec<usize>,
    running: Vec<usize>,
    ended: Vec<usize>,
    /// The jobs of each array, by state.
    counts: BTreeMap<i64, ArrayCounts>,
}

/// The lists in their order on a page: own, waiting, running, ended.
pub const LISTS: usize = 4;

/// A question on the lists: which jobs, and which part of their rows.
#[derive(Clone, Debug, Default)]
pub struct ListsRequest {
    /// A part of the number, the name, the user or the pool; empty for all jobs.
    pub find: String,
    /// Whether only jobs of the user are listed.
    pub own: bool,
    /// The jobs by what became of them.
    pub which: Which,
    /// The order of each list, if it is not that of the list.
    pub sort: [Option<Sort>; LISTS],
    /// The arrays whose jobs are listed below them.
    pub open: BTreeSet<i64>,
    /// The first row of each list.
    pub from: [usize; LISTS],
    /// The most rows of a list.
    pub count: usize,
    /// A job, or the array with this number, that is given in any case.
    pub chosen: Option<(i64, bool)>,
}

/// Jobs by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// All jobs.
    #[default]
    All,
    /// Started jobs whose promise was kept.
    Kept,
    /// Jobs whose promise was not kept, or is at risk.
    Missed,
    /// Jobs that failed by themselves.
    Failed,
    /// Those that did so in the last day.
    FailedLately,
}

/// An order of a list. Jobs that are equal in it keep the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Sort {
    /// The column.
    pub by: Column,
    /// Whether the largest is first.
    #[serde(default)]
    pub down: bool,
}

/// A column by which a list can be sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    /// The number.
    Job,
    /// The name.
    Name,
    /// The name of the user.
    User,
    /// The name of the pool.
    Pool,
    /// The requested processors.
    Procs,
    /// The requested memory.
    Memory,
    /// The time limit.
    Limit,
    /// The word for the state.
    State,
    /// The submission.
    Submitted,
    /// The start, or the one that is promised or planned.
    Start,
    /// The median of the likely start.
    Likely,
    /// The end, or the latest one.
    End,
}

/// A part of the lists.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListsPart {
    /// The unfinished jobs of the user: those that run by their ends, and then those that wait by their starts. It is empty while all
    /// unfinished jobs are the user's: the other lists have them.
    pub own: ListPart,
    /// The waiting jobs, in the order of their starts.
    pub waiting: ListPart,
    /// The running and suspended jobs, by their ends.
    pub running: ListPart,
    /// The ended jobs, the latest first.
    pub ended: ListPart,
    /// The chosen job or array, if it is known.
    pub chosen: Option<Row>,
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListPart {
    /// The number of all its jobs.
    pub all: usize,
    /// The number of the jobs that the question admits.
    pub jobs: usize,
    /// The number of the rows of these jobs.
    pub total: usize,
    /// The place of the first row of this part.
    pub from: usize,
    /// The rows of this part.
    pub rows: Vec<Row>,
}

/// A row of a list before it is written: a job, or the jobs of an array.
pub(crate) enum Entry<'a> {
    Job(&'a Job),
    Array(i64, Vec<&'a Job>),
}

impl Lists {
    /// Returns the lists of these facts. O(n log n) for n jobs.
    pub fn new(facts: &Facts) -> Lists {
        let mut lists = Lists { counts: array_counts(facts), ..Lists::default() };
        for (place, job) in facts.jobs.iter().enumerate() {
            lists.of_state(job.state).push(place);
        }
        let job = |place: &usize| -> &Arc<Job> { &facts.jobs[*place] };
        let start = |job: &Job| job.window().or(job.likely.map(|[median, ..]| median)).unwrap_or(i64::MAX);
        lists.waiting.sort_by_cached_key(|place| {
            (job(place).state == State::Held, start(job(place)), job(place).number)
        });
        lists.running.sort_by_key(|place| (job(place).end.unwrap_or(i64::MAX), job(place).number));
        lists.ended.sort_by_key(|place| std::cmp::Reverse((job(place).end, job(place).number)));
        let own = lists.running.iter().chain(&lists.waiting).filter(|place| facts.is_own(job(place)));
        lists.own = own.copied().collect();
        if lists.own.len() == lists.running.len() + lists.waiting.len() {
            lists.own = vec![];
        }
        lists
    }

    fn of_state(&mut self, state: State) -> &mut Vec<usize> {
        match state {
            State::Ended => &mut self.ended,
            _ if state.holds() => &mut self.running,
            _ => &mut self.waiting,
        }
    }

    /// Returns the jobs of the lists in order: waiting, running, ended.
    pub(crate) fn jobs<'a>(&self, facts: &'a Facts) -> [Vec<&'a Job>; 3] {
        let jobs = |places: &[usize]| places.iter().map(|place| &*facts.jobs[*place]).collect();
        [&self.waiting, &self.running, &self.ended].map(|places| jobs(places))
    }

    /// Returns a part of the lists. The facts are those of which the lists were made.
    pub fn part(&self, facts: &Facts, request: &ListsRequest) -> ListsPart {
        let writer = Writer { facts, sentences: Sentences::new(facts), counts: &self.counts, request };
        let [waiting, running, ended] = self.jobs(facts);
        let own: Vec<&Job> = self.own.iter().map(|place| &*facts.jobs[*place]).collect();
        ListsPart {
            own: writer.part(0, &own),
            waiting: writer.part(1, &waiting),
            running: writer.part(2, &running),
            ended: writer.part(3, &ended),
            chosen: request.chosen.and_then(|(number, whole)| {
                let [waiting, running, ended] = [waiting, running, ended];
                let mut all = waiting.into_iter().chain(running).chain(ended);
                if whole {
                    let members: Vec<&Job> = all.filter(|job| array_of(job) == Some(number)).collect();
                    (!members.is_empty()).then(|| writer.array(number, &members))
                } else {
                    all.find(|job| job.number == number).map(|job| writer.job(job, false))
                }
            }),
        }
    }
}

/// What is needed to write rows.
struct Writer<'a> {
    facts: &'a Facts,
    sentences: Sentences<'a>,
    counts: &'a BTreeMap<i64, ArrayCounts>,
    request: &'a ListsRequest,
}

impl Writer<'_> {
    fn part(&self, list: usize, jobs: &[&Job]) -> ListPart {
        let find = self.request.find.to_lowercase();
        let ListsRequest { own, which, .. } = *self.request;
        let mut admitted: Vec<&Job> = jobs
            .iter()
            .copied()
            .filter(|job| {
                (!own || self.facts.is_own(job))
                    && which.admits(self.facts, job)
                    && matches(self.facts, job, &find)
            })
            .collect();
        if let Some(Sort { by, down }) = self.request.sort[list] {
            let order = |one: &&Job, other: &&Job| by.compare(self.facts, one, other);
            admitted.sort_by(|one, other| if down { order(other, one) } else { order(one, other) });
        }
        let from = self.request.from[list];
        let entries = entries(&admitted);
        let length = |entry: &Entry<'_>| match entry {
            Entry::Array(array, members) if self.request.open.contains(array) => 1 + members.len(),
            _ => 1,
        };
        let total: usize = entries.iter().map(length).sum::<usize>().min(ROWS_MOST);
        let from = from.min(total.saturating_sub(self.request.count));
        let mut rows = vec![];
        let mut place = 0;
        for entry in &entries {
            let (begin, left) = (place, self.request.count - rows.len());
            place += length(entry);
            if left == 0 || begin >= total {
                break;
            }
            if place > from {
                self.write(entry, from.saturating_sub(begin), left.min(total - begin), &mut rows);
            }
        }
        ListPart { all: jobs.len(), jobs: admitted.len(), total, from, rows }
    }

    /// Writes at most `most` rows of an entry, without its first ones.
    fn write(&self, entry: &Entry<'_>, without: usize, most: usize, rows: &mut Vec<Row>) {
        match entry {
            Entry::Job(job) => rows.push(self.job(job, false)),
            Entry::Array(array, members) => {
                let first = (without == 0).then(|| self.array(*array, members));
                let taken = usize::from(first.is_some());
                rows.extend(first);
                if self.request.open.contains(array) {
                    let members = members.iter().skip(without.saturating_sub(1)).take(most - taken);
                    rows.extend(members.map(|job| self.job(job, true)));
                }
            }
        }
    }

    fn job(&self, job: &Job, is_member: bool) -> Row {
        job_row(self.facts, &self.sentences, job, is_member)
    }

    fn array(&self, array: i64, members: &[&Job]) -> Row {
        let counts = self.counts.get(&array).copied().unwrap_or_default();
        array_row(self.facts, &self.sentences, array, members, counts)
    }
}

fn array_of(job: &Job) -> Option<i64> {
    job.array.map(|(array, _)| array)
}

/// Unites the jobs of an array, at the place of the first one. A single one stays a job.
pub(crate) fn entries<'a>(jobs: &[&'a Job]) -> Vec<Entry<'a>> {
    let mut members: BTreeMap<i64, Vec<&Job>> = BTreeMap::new();
    for job in jobs {
        if let Some(array) = array_of(job) {
            members.entry(array).or_default().push(job);
        }
    }
    let mut entries = vec![];
    for job in jobs {
        let Some(array) = array_of(job) else {
            entries.push(Entry::Job(job));
            continue;
        };
        match members.remove(&array) {
            Some(all) if all.len() > 1 => entries.push(Entry::Array(array, all)),
            Some(_) => entries.push(Entry::Job(job)),
            None => {}
        }
    }
    entries
}

/// Returns the jobs of each array by state.
pub(crate) fn array_counts(facts: &Facts) -> BTreeMap<i64, ArrayCounts> {
    let mut counts: BTreeMap<i64, ArrayCounts> = BTreeMap::new();
    for job in &facts.jobs {
        if let Some(array) = array_of(job) {
            counts.entry(array).or_default().add(job);
        }
    }
    counts
}

impl Which {
    fn admits(self, facts: &Facts, job: &Job) -> bool {
        match self {
            Which::All => true,
            Which::Kept => is_promise_kept(job) == Some(true),
            Which::Missed => job.unkept || is_promise_kept(job) == Some(false),
            Which::Failed => job.has_failed_by_itself(),
            Which::FailedLately => has_failed_lately(facts, job),
        }
    }
}

impl Column {
    /// Compares two jobs by what the column shows of them. A job without a time is behind those with one.
    fn compare(self, facts: &Facts, one: &Job, other: &Job) -> Ordering {
        let pool = |job: &Job| facts.pools.get(job.pool).map(|pool| &*pool.name);
        let number = |value: fn(&Job) -> i64| value(one).cmp(&value(other));
        match self {
            Column::Job => one.number.cmp(&other.number),
            Column::Name => one.name.cmp(&other.name),
            Column::User => one.user.cmp(&other.user),
            Column::Pool => pool(one).cmp(&pool(other)),
            Column::Procs => one.procs.cmp(&other.procs),
            Column::Memory => one.memory.cmp(&other.memory),
            Column::Limit => one.limit.cmp(&other.limit),
            Column::State => one.word.cmp(&other.word),
            Column::Submitted => one.submitted.cmp(&other.submitted),
            Column::Start => number(|job| shown_start(job).unwrap_or(i64::MAX)),
            Column::Likely => number(|job| job.likely.map_or(i64::MAX, |[median, ..]| median)),
            Column::End => number(|job| shown_end(job).unwrap_or(i64::MAX)),
        }
    }
}

/// Returns whether a job has this text, in small letters, in its number, its name, its user or its pool.
fn matches(facts: &Facts, job: &Job, find: &str) -> bool {
    let pool = || facts.pools.get(job.pool).filter(|_| facts.pools.len() > 1).map_or("", |pool| &pool.name);
    find.is_empty()
        || [&*job.label, &*job.name, &*job.user, pool()].iter().any(|text| contains(text, find))
        || (job.array.is_some() && job.number.to_string().contains(find))
}

/// Returns whether a text has another one, in small letters, in letters of any size.
fn contains(text: &str, find: &str) -> bool {
    if text.is_ascii() {
        return text.as_bytes().windows(find.len()).any(|part| part.eq_ignore_ascii_case(find.as_bytes()));
    }
    text.to_lowercase().contains(find)
}

#[cfg(test)]
mod tests {
    use miserly_scene::DAY;
    use proptest::prelude::*;

    use super::*;

    fn job(number: i64, array: Option<(i64, u32)>, state: State) -> Job {
        let label = array.map_or_else(|| number.to_string(), |(array, index)| format!("{array}[{index}]"));
        let word = if state == State::Ended { "done" } else { "queued" }.to_owned();
        Job { number, label, array, state, word, name: "Sort".to_owned(), limit: 60_000, ..Job::default() }
    }

    fn promised(number: i64, minute: i64) -> Job {
        let array = u32::try_from(number - 10).ok().filter(|index| *index < 10).map(|index| (10, index));
        Job { promised: Some(minute * 60_000), ..job(number, array, State::Waiting) }
    }

    /// Returns the facts of an array of ten jobs with two promised starts a minute, one of which has ended, between two other jobs.
    fn facts() -> Facts {
        let mut jobs: Vec<Job> = (10i64..19).map(|number| promised(number, number / 2)).collect();
        jobs.push(job(19, Some((10, 9)), State::Ended));
        jobs.extend([(1, 2), (30, 40)].map(|(number, minute)| promised(number, minute)));
        Facts::of_jobs(8, jobs)
    }

    fn part(facts: &Facts, request: &ListsRequest) -> ListsPart {
        Lists::new(facts).part(facts, request)
    }

    fn labels(list: &ListPart) -> Vec<&str> {
        list.rows.iter().map(|row| &*row.label).collect()
    }

    #[test]
    fn an_array_is_one_row() {
        let facts = facts();
        let shown = part(&facts, &ListsRequest { count: 40, ..ListsRequest::default() });
        assert_eq!(labels(&shown.waiting), ["1", "10[0-8]", "30"]);
        assert_eq!((shown.waiting.all, shown.waiting.jobs, shown.waiting.total), (11, 11, 3));
        assert_eq!(labels(&shown.ended), ["10[9]"], "a single job is no row of an array");
        let row = &shown.waiting.rows[1];
        assert_eq!((row.number, &*row.word), (10, "9 queued"));
        assert_eq!((&*row.start_text, &*row.end_text), ("by 00:05 to 00:09", "by 00:10"));
        let sentence = "10 jobs: 9 waiting, 1 ended; 10[0] starts by 00:05";
        assert_eq!(row.sentence, sentence);
    }

    #[test]
    fn an_opened_array_has_its_jobs_below_it() {
        let facts = facts();
        let request =
            ListsRequest { open: [10].into(), from: [0, 3, 0, 0], count: 3, ..ListsRequest::default() };
        let shown = part(&facts, &request).waiting;
        assert_eq!((labels(&shown), shown.from, shown.total), (vec!["10[1]", "10[2]", "10[3]"], 3, 12));
        assert!(shown.rows.iter().all(|row| row.member && row.of_array == Some(10)));
    }

    #[test]
    fn a_job_is_found_by_its_number_name_and_array() {
        let facts = facts();
        let find = |find: &str| {
            let request = ListsRequest { find: find.to_owned(), count: 40, ..ListsRequest::default() };
            part(&facts, &request)
        };
        assert_eq!(labels(&find("10[7]").waiting), ["10[7]"]);
        assert_eq!(labels(&find("17").waiting), ["10[7]"], "by its number of its own");
        assert_eq!(labels(&find("sORT").waiting), ["1", "10[0-8]", "30"]);
        assert_eq!(labels(&find("absent").waiting), Vec::<&str>::new());
    }

    #[test]
    fn own_jobs_have_a_list_and_an_order() {
        let of = |number, uid, state| Job { uid: Some(uid), end: Some(number), ..job(number, None, state) };
        let jobs = [
            of(1, 7, State::Waiting),
            of(2, 8, State::Waiting),
            of(3, 7, State::Running),
            of(4, 7, State::Ended),
        ];
        let mut facts = Facts::of_jobs(8, jobs);
        facts.uid = Some(7);
        let request = ListsRequest { count: 9, ..ListsRequest::default() };
        assert_eq!(labels(&part(&facts, &request).own), ["3", "1"]);
        let down = Some(Sort { by: Column::Job, down: true });
        let request = ListsRequest { sort: [None, down, None, None], ..request };
        let shown = part(&facts, &request);
        assert_eq!((labels(&shown.own), labels(&shown.waiting)), (vec!["3", "1"], vec!["2", "1"]));
        facts.jobs.remove(1);
        assert_eq!(part(&facts, &ListsRequest::default()).own.all, 0, "nobody else has a job");
    }

    #[test]
    fn jobs_are_listed_by_what_became_of_them() {
        let started = |number, promised, word: &str| Job {
            start: Some(5),
            promised_first: promised,
            word: word.to_owned(),
            ..job(number, None, State::Ended)
        };
        let facts = Facts::of_jobs(
            8,
            [
                started(1, Some(5), "done"),
                started(2, Some(4), "done, failed"),
                started(3, None, "cancelled"),
                Job { unkept: true, ..job(4, None, State::Waiting) },
                Job { start: Some(-2 * DAY), end: Some(-DAY), ..started(5, None, "out of time") },
                Job { start: Some(-2 * DAY), end: Some(-DAY - 1), ..started(6, None, "out of time") },
            ],
        );
        let listed = |which| {
            let shown = part(&facts, &ListsRequest { which, count: 9, ..ListsRequest::default() });
            [labels(&shown.waiting).join(" "), labels(&shown.ended).join(" ")]
        };
        assert_eq!(listed(Which::All), ["4", "5 6 3 2 1"]);
        assert_eq!(listed(Which::Kept), ["", "1"]);
        assert_eq!(listed(Which::Missed), ["4", "2"]);
        assert_eq!(listed(Which::Failed), ["", "5 6 2"]);
        assert_eq!(listed(Which::FailedLately), ["", "5"]);
    }

    #[test]
    fn the_chosen_one_is_given_wherever_it_is() {
        let facts = facts();
        let chosen =
            |chosen| part(&facts, &ListsRequest { chosen: Some(chosen), ..ListsRequest::default() }).chosen;
        assert_eq!(chosen((18, false)).unwrap().label, "10[8]");
        let array = chosen((10, true)).unwrap();
        assert_eq!((&*array.label, array.array.unwrap().ended), ("10[0-9]", 1));
        assert_eq!((chosen((99, false)), chosen((1, true))), (None, None));
    }

    proptest! {
        /// The parts of a list, one after the other, are the list.
        #[test]
        fn parts_make_the_list(
            arrays in prop::collection::vec(prop::option::of(0i64..3), 0..30),
            open in prop::collection::btree_set(0i64..3, 0..3),
            count in 1usize..7,
        ) {
            let jobs = (10i64..).zip(&arrays).map(|(number, array)| {
                job(number, array.map(|array| (array, u32::try_from(number).unwrap())), State::Waiting)
            });
            let facts = Facts::of_jobs(8, jobs);
            let ask = |from, count| {
                let request = ListsRequest { open: open.clone(), from: [0, from, 0, 0], count, ..ListsRequest::default() };
                part(&facts, &request).waiting
            };
            let whole = ask(0, 1000);
            prop_assert_eq!(whole.rows.len(), whole.total);
            let mut rows = vec![];
            while rows.len() < whole.total {
                let next = ask(rows.len(), count);
                prop_assert!(next.rows.len() <= count && next.from + next.rows.len() > rows.len());
                rows.extend(next.rows.into_iter().skip(rows.len() - next.from));
            }
            prop_assert_eq!(rows, whole.rows);
        }
    }
}
