//! The content of the page now, made once for all its readers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use miserly_follow::{Board, Posted};
use miserly_scene::{Bars, DAY, Group, Legend, Opening};
use miserly_view::{Change, Facts, HostNow, Moment, Phrase, changes, headline};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, OnceCell, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until};

use crate::actions::OFFERS_EVERY;
use crate::lists::Listing;
use crate::packed::Packed;
use crate::patch::diff;
use crate::wanted::Wanted;

/// The most changes that are remembered.
const CHANGES_MOST: u64 = 20;

/// The time between two contents, on average.
const MADE_EVERY: Duration = Duration::from_millis(250);

/// The least time between two charts. What changes in one is seldom wider than a pixel, and is half of an event.
const CHART_EVERY: Duration = Duration::from_secs(1);

/// The quiet time after which contents may follow each other at once, until the average is reached.
const BURST: Duration = Duration::from_secs(1);

/// The most earlier instants that are remembered.
const PAST_MOST: usize = 4;

/// The most computations on earlier instants at the same time.
const PAST_TURNS: usize = 2;

/// The content of the page at one change of the facts.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) version: u64,
    /// The version of the facts.
    posted: u64,
    pub(crate) listing: Arc<Listing>,
    pub(crate) chart: Arc<Chart>,
    pub(crate) moment: Moment,
    pub(crate) state: PageState,
    value: Value,
    /// The difference to the state before this one.
    patch: Option<Value>,
    /// The parts of the lists that pages want.
    lists: Arc<Parts>,
    /// The content before this one.
    before: Option<Before>,
    /// The events of this content: for pages that have an earlier version with some parts, and want some.
    events: std::sync::Mutex<BTreeMap<EventKey, EventCell>>,
}

/// The chart of the page, with the map of the processors and the last changes. Several contents may have the same one.
#[derive(Debug)]
pub(crate) struct Chart {
    /// The facts of which it was made.
    pub(crate) facts: Arc<Facts>,
    pub(crate) bars: Bars,
    /// The last changes by their number, so that a difference has the new ones only.
    pub(crate) changes: BTreeMap<u64, Change>,
    made: Instant,
    /// The parts of it that pages want.
    parts: Parts,
}

/// The version of a content, and the parts that pages had then.
#[derive(Debug)]
struct Before {
    version: u64,
    lists: Arc<Parts>,
    chart: Arc<Chart>,
}

/// What a page has, and the name of the parts that it wants.
type EventKey = (Option<Have>, Arc<str>);

/// An event, made by the first who asks. Others wait for it, and for no other one. `None` if it cannot be made.
type EventCell = Arc<OnceCell<Option<Arc<Packed>>>>;

/// The most different parts, and the most different events, of a content that are kept.
const KEPT_MOST: usize = 256;

/// The parts that pages want, each made once.
#[derive(Debug, Default)]
pub(crate) struct Parts(std::sync::Mutex<BTreeMap<Arc<str>, Arc<PartsCell>>>);

/// The parts of one name.
type PartsCell = OnceLock<Arc<Value>>;

impl Parts {
    /// Returns the parts with this name, if they were made.
    fn get(&self, key: &str) -> Option<Arc<Value>> {
        locked(&self.0).get(key)?.get().cloned()
    }

    /// Returns the parts with this name, and makes them if they are new.
    fn made(&self, key: &Arc<str>, make: impl FnOnce() -> Value) -> Arc<Value> {
        let cell = kept(&self.0, Arc::clone(key));
        Arc::clone(cell.get_or_init(|| Arc::new(make())))
    }
}

/// Returns the value of a key that is kept, or a new one.
fn kept<K: Ord, V: Default>(values: &std::sync::Mutex<BTreeMap<K, Arc<V>>>, key: K) -> Arc<V> {
    let mut values = locked(values);
    if values.len() >= KEPT_MOST && !values.contains_key(&key) {
        values.clear();
    }
    Arc::clone(values.entry(key).or_default())
}

fn locked<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What a page has: a version, and the parts that it wanted then.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Have {
    pub(crate) version: u64,
    pub(crate) wanted: Arc<str>,
}

/// The requests that a page can make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rights {
    /// Whether jobs can be changed.
    pub(crate) actions: bool,
    /// Whether a daemon answers questions.
    pub(crate) daemon: bool,
}

/// The time beside that of the jobs in which the chart has the offsets of the clock: some more than a year.
const MARGIN: i64 = 400 * DAY;

/// The state of the page, as its script gets it.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PageState {
    /// The number of the change.
    pub(crate) version: u64,
    /// Why it is not up to date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    /// The moment without what a page asks for: its jobs and the map of its processors. The clock of a live page is that of the browser.
    pub(crate) moment: Moment,
    /// The groups of rows of the chart.
    pub(crate) groups: Vec<Group>,
    /// The first begin and the last end of a bar.
    pub(crate) range: Option<(i64, i64)>,
    /// The parts of the time with one offset of the clock from UTC each: the begin of each part, and its offset.
    pub(crate) offsets: Vec<(i64, i64)>,
    /// The sentences above the chart.
    pub(crate) headline: Vec<Phrase>,
    /// Whether the pools are runs of one log, whose jobs have the same numbers.
    pub(crate) runs: bool,
    /// The part of the time that the chart shows first; of a live page from the present on.
    pub(crate) opening: Opening,
    /// The meanings of the colours of the chart.
    pub(crate) legends: Vec<Legend>,
    /// Whether the chart has the curve of the GPUs.
    #[serde(rename = "hasGpus")]
    pub(crate) has_gpus: bool,
    /// The instants of the slider: its begin and its step, milliseconds.
    pub(crate) replay: (i64, i64),
    /// Whether jobs can be changed from the page.
    pub(crate) actions: bool,
    /// Whether a daemon answers questions.
    pub(crate) daemon: bool,
    /// The time after which a page asks again what starts now, seconds.
    pub(crate) offers_every: u64,
}

/// An earlier moment without its jobs. A page asks for the rows that it shows.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PageMoment {
    #[serde(flatten)]
    moment: Moment,
    map: ProcessorMap,
}

/// The processors of each pool, and the names and the users of the jobs there.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ProcessorMap {
    hosts: Vec<Vec<HostNow>>,
    names: BTreeMap<i64, [String; 2]>,
}

impl PageMoment {
    /// Returns the moment that the page shows.
    pub(crate) fn new(facts: &Facts) -> PageMoment {
        let moment = Moment::without_jobs(facts);
        PageMoment { moment: without_map(moment.clone()), map: ProcessorMap::new(facts, moment) }
    }
}

impl ProcessorMap {
    /// Returns the map of the processors at the instant of the facts.
    pub(crate) fn new(facts: &Facts, moment: Moment) -> ProcessorMap {
        let hosts: Vec<Vec<HostNow>> = moment.pools.into_iter().map(|pool| pool.hosts).collect();
        let parts = hosts.iter().flatten().flat_map(|host| &host.parts);
        let placed: BTreeSet<i64> = parts.filter_map(|part| part.job).collect();
        let shown = facts.jobs.iter().filter(|job| placed.contains(&job.number));
        let names = shown.map(|job| (job.number, [job.name.clone(), job.user.clone()])).collect();
        ProcessorMap { hosts, names }
    }
}

/// Returns a moment without its map, and without what starts now, for which a page asks the daemon.
fn without_map(mut moment: Moment) -> Moment {
    for pool in &mut moment.pools {
        (pool.hosts, pool.holes) = (vec![], vec![]);
    }
    moment
}

impl Chart {
    fn first(facts: &Arc<Facts>) -> Chart {
        let (bars, made) = (Bars::new(&facts.schedule()), Instant::now());
        Chart { facts: Arc::clone(facts), bars, changes: BTreeMap::new(), made, parts: Parts::default() }
    }

    /// Returns the chart after this one.
    fn next(&self, facts: &Arc<Facts>) -> Chart {
        let mut recent = self.changes.clone();
        let next = recent.last_key_value().map_or(0, |(number, _)| number + 1);
        recent.extend((next..).zip(changes(&self.facts, facts)));
        if let Some((&last, _)) = recent.last_key_value() {
            recent = recent.split_off(&(last + 1).saturating_sub(CHANGES_MOST));
        }
        let (bars, made) = (Bars::after(&facts.schedule(), &self.bars), Instant::now());
        Chart { facts: Arc::clone(facts), bars, changes: recent, made, parts: Parts::default() }
    }
}

impl PageState {
    fn new(posted: &Posted, moment: &Moment, chart: &Chart, rights: Rights) -> PageState {
        let (bars, of_chart) = (&chart.bars, &chart.facts);
        let begin = bars.range.map_or(of_chart.now, |(first, _)| first);
        let opening = Opening::new(&of_chart.schedule(), bars);
        let present = if of_chart.live { of_chart.now } else { 0 };
        PageState {
            version: 0,
            problem: posted.problem.clone(),
            moment: Moment {
                text: if moment.live { String::new() } else { moment.text.clone() },
                ..without_map(moment.clone())
            },
            groups: bars.groups.clone(),
            range: bars.range,
            offsets: of_chart.clock.offsets(begin - MARGIN, of_chart.now + MARGIN),
            headline: headline(&posted.facts),
            runs: posted.facts.is_of_runs(),
            opening: Opening { from: opening.from - present, to: opening.to - present, ..opening },
            legends: bars.legends.clone(),
            has_gpus: bars.gpus,
            replay: (posted.facts.replay_begin(), posted.facts.replay_step()),
            actions: rights.actions,
            daemon: rights.daemon,
            offers_every: OFFERS_EVERY.as_secs(),
        }
    }
}

impl Shown {
    fn first(posted: &Posted, rights: Rights) -> Shown {
        let listing = Arc::new(Listing::new(Arc::clone(&posted.facts)));
        let chart = Arc::new(Chart::first(&posted.facts));
        Shown::new(posted, listing, chart, rights, None)
    }

    fn new(
        posted: &Posted,
        listing: Arc<Listing>,
        chart: Arc<Chart>,
        rights: Rights,
        before: Option<&Shown>,
    ) -> Shown {
        let version = before.map_or(0, |before| before.version + 1);
        let moment = Moment::without_jobs(&listing.facts);
        let state = PageState { version, ..PageState::new(posted, &moment, &chart, rights) };
        let posted = posted.version;
        let value = serde_json::to_value(&state).unwrap_or_default();
        let patch = before.and_then(|before| diff(&before.value, &value));
        let before = before.map(|Shown { version, lists, chart, .. }| Before {
            version: *version,
            lists: Arc::clone(lists),
            chart: Arc::clone(chart),
        });
        let (lists, events) = (Arc::default(), std::sync::Mutex::default());
        Shown { version, posted, listing, chart, moment, state, value, patch, lists, before, events }
    }

    /// Returns the content after this one. It has the same chart if that is new.
    fn next(&self, posted: &Posted, rights: Rights) -> Shown {
        // A failure leaves the facts as they are.
        let same = Arc::ptr_eq(&self.listing.facts, &posted.facts);
        let listing =
            if same { Arc::clone(&self.listing) } else { Arc::new(Listing::new(Arc::clone(&posted.facts))) };
        let keeps = Arc::ptr_eq(&self.chart.facts, &posted.facts) || Instant::now() < self.chart_from();
        let chart = if keeps { Arc::clone(&self.chart) } else { Arc::new(self.chart.next(&posted.facts)) };
        Shown::new(posted, listing, chart, rights, Some(self))
    }

    /// Returns this content with a problem: its successor could not be made.
    fn failed(&self, version: u64, rights: Rights) -> Shown {
        let problem = Some("a defect of miserly ui; its standard error has the details".to_owned());
        let posted = Posted { version, facts: Arc::clone(&self.listing.facts), problem };
        Shown::new(&posted, Arc::clone(&self.listing), Arc::clone(&self.chart), rights, Some(self))
    }

    /// Returns the instant from which on the next chart may be made.
    fn chart_from(&self) -> Instant {
        self.chart.made + CHART_EVERY
    }

    /// Returns the instant at which the chart is to be made anew, if it is older than the lists.
    pub(crate) fn chart_due(&self) -> Option<Instant> {
        let is_old = self.state.problem.is_none() && !Arc::ptr_eq(&self.chart.facts, &self.listing.facts);
        is_old.then(|| self.chart_from())
    }

    /// Returns the event for a page: the difference to what it has, or all if that is not known. Equal pages share it.
    ///
    /// Returns `None` after a panic: a part that cannot be made is a defect, and the next content may have it.
    pub(crate) async fn event(
        self: &Arc<Shown>,
        have: Option<&Have>,
        wanted: &Arc<Wanted>,
    ) -> Option<Arc<Packed>> {
        let cell = kept(&self.events, (have.cloned(), Arc::clone(&wanted.key)));
        let (shown, have, wanted) = (Arc::clone(self), have.cloned(), Arc::clone(wanted));
        let make = async move {
            let made = tokio::task::spawn_blocking(move || shown.make_event(have.as_ref(), &wanted)).await;
            made.ok().map(Arc::new)
        };
        cell.get_or_init(|| make).await.clone()
    }

    fn make_event(&self, have: Option<&Have>, wanted: &Wanted) -> Packed {
        let lists = self.lists.made(&wanted.key, || json!(wanted.lists_of(&self.listing)));
        let chart = self.chart.parts.made(&wanted.key, || wanted.chart_of(&self.chart));
        let had = |lists: &Parts, chart: &Chart, wanted| (lists.get(wanted), chart.parts.get(wanted));
        let same = have
            .filter(|have| have.version == self.version)
            .map(|have| (None, had(&self.lists, &self.chart, &have.wanted)));
        let before = self.before.as_ref().zip(have).filter(|(before, have)| before.version == have.version);
        let before = before
            .map(|(before, have)| (self.patch.clone(), had(&before.lists, &before.chart, &have.wanted)));
        let Some((state, (old_lists, old_chart))) = same.or(before) else {
            let whole = json!({"state": self.value, "lists": *lists, "chart": *chart});
            return event(&json!({"version": self.version, "patch": [whole]}));
        };
        let changed = |old: Option<Arc<Value>>, new: &Arc<Value>| match old {
            Some(old) if Arc::ptr_eq(&old, new) => None,
            Some(old) => diff(&old, new),
            None => Some(json!([**new])),
        };
        let parts =
            [("state", state), ("lists", changed(old_lists, &lists)), ("chart", changed(old_chart, &chart))];
        let patch: Map<String, Value> =
            parts.into_iter().filter_map(|(name, part)| Some((name.to_owned(), part?))).collect();
        let from = have.map(|have| have.version);
        event(&json!({"version": self.version, "from": from, "patch": patch}))
    }

    /// Returns all of the state as JSON.
    pub(crate) fn json(&self) -> String {
        self.value.to_string()
    }
}

/// Returns an event of a stream.
fn event(data: &Value) -> Packed {
    Packed::new(format!("data: {data}\n\n"))
}

/// The content of the page, made again at a request after a change of the facts.
#[derive(Debug)]
pub(crate) struct Live {
    board: Board,
    rights: Rights,
    /// The last one, and the instant from which on a new one may be made.
    last: Mutex<(Arc<Shown>, Instant)>,
    /// The lists at earlier instants, each with the version of which it was made, the newest last.
    past: std::sync::Mutex<VecDeque<(u64, i64, PastListing)>>,
    past_turns: Arc<Semaphore>,
}

/// The lists at an earlier instant, made by the first who asks.
type PastListing = Arc<OnceLock<Arc<Listing>>>;

impl Live {
    /// Returns the page of these facts.
    pub(crate) fn new(board: &Board, rights: Rights) -> Live {
        let first = Shown::first(&board.latest(), rights);
        let last = Mutex::new((Arc::new(first), Instant::now()));
        let past_turns = Arc::new(Semaphore::new(PAST_TURNS));
        Live { board: board.clone(), rights, last, past: std::sync::Mutex::default(), past_turns }
    }

    /// Returns a receiver of changes of the facts.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Posted> {
        self.board.subscribe()
    }

    /// Returns the present content. Requests at the same time share it. The making takes a fifth of a processor at most.
    pub(crate) async fn latest(&self) -> Arc<Shown> {
        self.after(None).await
    }

    /// Returns the present content to a reader that has the one of this version. A reader that is behind gets the last one at once, so
    /// that it misses none.
    pub(crate) async fn after(&self, version: Option<u64>) -> Arc<Shown> {
        let mut last = self.last.lock().await;
        let is_behind = version.is_some_and(|version| version != last.0.version);
        let is_due = last.0.chart_due().is_some_and(|due| due <= Instant::now());
        if (self.board.latest().version == last.0.posted && !is_due) || is_behind {
            return Arc::clone(&last.0);
        }
        sleep_until(last.1).await;
        let (before, posted, rights) = (Arc::clone(&last.0), self.board.latest(), self.rights);
        let begun = Instant::now();
        let version = posted.version;
        let made = tokio::task::spawn_blocking(move || before.next(&posted, rights)).await;
        let took = begun.elapsed();
        let shown = made.unwrap_or_else(|_| last.0.failed(version, rights));
        let now = Instant::now();
        let quiet = now.checked_sub(BURST).map_or(last.1, |earliest| earliest.max(last.1));
        *last = (Arc::new(shown), (quiet + MADE_EVERY).max(now + 4 * took));
        Arc::clone(&last.0)
    }

    /// Waits for a turn to compute something of an earlier instant. It ends with the permit.
    pub(crate) async fn past_turn(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.past_turns).acquire_owned().await.ok()
    }

    /// Returns the lists at an earlier instant, and makes them if they are not among the last ones.
    pub(crate) fn past(&self, shown: &Shown, at: i64) -> Arc<Listing> {
        let listing = self.past_listing((shown.version, at));
        let facts = &shown.listing.facts;
        let made = || Arc::new(Listing::new(Arc::new(facts.at(at.min(facts.now)))));
        Arc::clone(listing.get_or_init(made))
    }

    fn past_listing(&self, key: (u64, i64)) -> PastListing {
        let mut past = locked(&self.past);
        let known = past.iter().find(|(version, at, _)| (*version, *at) == key);
        if let Some(known) = known.map(|(.., listing)| Arc::clone(listing)) {
            return known;
        }
        let listing = PastListing::default();
        past.push_back((key.0, key.1, Arc::clone(&listing)));
        if past.len() > PAST_MOST {
            past.pop_front();
        }
        listing
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use miserly_view::{Job, PoolFacts, State};
    use proptest::prelude::*;

    use super::*;
    use crate::patch::patched;

    const RIGHTS: Rights = Rights { actions: true, daemon: true };

    /// Returns facts with jobs that wait, run or have ended, one for each number.
    fn facts(now: i64, states: &[u8]) -> Facts {
        let job = |(number, state): (i64, &u8)| {
            let state = [State::Waiting, State::Running, State::Ended][usize::from(*state) % 3];
            let (start, end) = (Some(now - number), Some(now + number));
            let array = Some((0, u32::try_from(number).unwrap()));
            let cpus = vec![(u32::try_from(number % 8).unwrap(), u32::try_from(number % 8).unwrap())];
            let label = format!("0[{number}]");
            Arc::new(Job { number, label, array, procs: 1, state, start, end, cpus, ..Job::default() })
        };
        let pool = PoolFacts { name: "batch".into(), cpus: 8, numbers: vec![(0, 7)], ..PoolFacts::default() };
        Facts {
            now,
            title: "test".into(),
            live: true,
            pools: vec![pool],
            jobs: (0..).zip(states).map(job).collect(),
            ..crate::no_facts()
        }
    }

    fn posted(version: u64, facts: Facts) -> Posted {
        Posted { version, facts: Arc::new(facts), problem: None }
    }

    /// Returns the data of an event.
    fn data(event: &Packed) -> Value {
        let text = event.text();
        serde_json::from_str(text.strip_prefix("data: ").unwrap_or_else(|| panic!("{text}"))).unwrap()
    }

    /// Returns the wish for these rows, and a part of the chart.
    fn wanted(from: usize) -> Wanted {
        let tile = json!({"group": 0, "from": 0, "column": 100, "columns": 100, "bands": 1});
        let wanted = json!({
            "lists": {"count": 5, "from": [0, from, 0, 0]},
            "tiles": {"a": tile},
            "curves": {"b": {"from": 0, "column": 100, "columns": 10}},
            "map": true, "changes": true
        });
        let wanted: Wanted = serde_json::from_value(wanted).unwrap();
        Arc::into_inner(wanted.checked().unwrap()).unwrap()
    }

    fn have(version: u64, wanted: &Wanted) -> Have {
        Have { version, wanted: wanted.key.clone() }
    }

    proptest! {
        /// A page that takes each difference has the state that a new page gets.
        #[test]
        fn differences_make_the_state(
            steps in prop::collection::vec((prop::collection::vec(0u8..3, 0..12), 0usize..9), 1..8),
        ) {
            let mut shown = Shown::first(&posted(0, facts(0, &[])), RIGHTS);
            let mut has = wanted(0);
            let whole = |shown: &Shown, wanted: &Wanted| data(&shown.make_event(None, wanted))["patch"][0].clone();
            let mut page = whole(&shown, &has);
            for (version, (states, from)) in (1..).zip(&steps) {
                let now = 1000 * i64::try_from(version).unwrap();
                shown = shown.next(&posted(version, facts(now, states)), RIGHTS);
                // The page wants other rows, at first of the content that it has.
                let wants = [(version - 1, has), (version, wanted(*from))];
                has = wanted(*from);
                for (from, wanted) in wants {
                    let event = data(&shown.make_event(Some(&have(from, &wanted)), &has));
                    prop_assert_eq!(&event["from"], from);
                    page = patched(Some(&page), &event["patch"]).unwrap();
                    prop_assert_eq!(&page["state"], &shown.value);
                    prop_assert_eq!(&page, &whole(&shown, &has));
                }
            }
        }
    }

    #[test]
    fn a_page_that_missed_a_change_gets_the_whole_state() {
        let mut shown = Shown::first(&posted(0, facts(0, &[1])), RIGHTS);
        for version in 1..3 {
            shown = shown.next(&posted(version, facts(0, &[2])), RIGHTS);
        }
        let wanted = wanted(0);
        let from = |version| data(&shown.make_event(Some(&have(version, &wanted)), &wanted))["from"].clone();
        assert_eq!([from(1), from(0)], [json!(1), Value::Null]);
    }

    #[test]
    fn an_event_is_small_however_many_jobs_there_are() {
        let mut states = vec![0; 20_000];
        // The legends of waits and slowdowns come with the first start.
        states[4] = 1;
        let before = Shown::first(&posted(0, facts(0, &states)), RIGHTS);
        states[..4].fill(1);
        let after = before.next(&posted(1, facts(1000, &states)), RIGHTS);
        let wanted = wanted(0);
        before.make_event(None, &wanted);
        let size = |have: Option<&Have>| after.make_event(have, &wanted).text().len();
        let (patch, whole) = (size(Some(&have(0, &wanted))), size(None));
        assert!(patch < 4000 && whole < 60_000, "{patch} and {whole} bytes");
    }

    #[tokio::test(start_paused = true)]
    async fn a_chart_is_as_old_as_a_second_at_most() {
        let board = Board::new(facts(0, &[0]));
        let live = Live::new(&board, RIGHTS);
        let states = |shown: &Shown| [&shown.listing.facts, &shown.chart.facts].map(|facts| facts.now);
        tokio::time::advance(CHART_EVERY).await;
        board.post(facts(1, &[1]));
        let first = live.after(None).await;
        assert_eq!(states(&first), [1, 1], "it changes at once after a quiet second");
        board.post(facts(2, &[2]));
        let second = live.after(Some(first.version)).await;
        assert_eq!(states(&second), [2, 1]);
        let (due, wanted) = (second.chart_due().unwrap(), wanted(0));
        first.make_event(None, &wanted);
        let event = data(&second.make_event(Some(&have(first.version, &wanted)), &wanted));
        assert!(event["patch"].get("lists").is_some() && event["patch"].get("chart").is_none(), "{event}");
        assert_eq!(live.after(Some(second.version)).await.version, second.version);
        sleep_until(due).await;
        let third = live.after(Some(second.version)).await;
        assert_eq!((states(&third), third.chart_due()), ([2, 2], None));
        let event = data(&third.make_event(Some(&have(second.version, &wanted)), &wanted));
        assert!(event["patch"].get("lists").is_none() && event["patch"].get("chart").is_some(), "{event}");
    }

    #[tokio::test]
    async fn an_event_waits_for_no_other_one() {
        let shown = Arc::new(Shown::first(&posted(0, facts(0, &[0, 1, 2])), RIGHTS));
        // The event of one page is being made by another thread.
        let slow = wanted(1).checked().unwrap();
        let cell = kept(&shown.events, (None, Arc::clone(&slow.key)));
        let (begun, begins) = tokio::sync::oneshot::channel();
        let made = tokio::spawn(async move {
            let make = || async {
                let _ = begun.send(());
                pending().await
            };
            let _: &Option<Arc<Packed>> = cell.get_or_init(make).await;
        });
        begins.await.unwrap();
        let quick = wanted(0).checked().unwrap();
        assert!(shown.event(None, &quick).await.unwrap().text().starts_with("data: "));
        made.abort();
    }

    #[tokio::test]
    async fn a_stream_ends_at_an_event_that_cannot_be_made() {
        use futures_util::StreamExt;

        let live = Arc::new(Live::new(&Board::new(facts(0, &[0, 1])), RIGHTS));
        let wanted = wanted(0).checked().unwrap();
        let shown = live.latest().await;
        let cell = kept(&shown.events, (None, Arc::clone(&wanted.key)));
        cell.set(None).unwrap();
        let watcher = crate::wanted::Watchers::default().add(1, wanted).unwrap();
        // A page that connects again begins with all of the content.
        let mut stream = Box::pin(crate::routes::contents(live, watcher, None, false));
        assert_eq!(stream.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn readers_miss_no_content() {
        let board = Board::new(facts(0, &[]));
        let live = Live::new(&board, RIGHTS);
        let first = live.after(None).await.version;
        board.post(facts(1, &[0]));
        let second = live.after(Some(first)).await.version;
        board.post(facts(2, &[1]));
        // One reader takes the third content; another one has the first still.
        assert_eq!(live.after(Some(first)).await.version, second, "one after the other");
        assert_eq!(live.after(Some(second)).await.version, 2);
    }
}
