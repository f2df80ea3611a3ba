//! The content of the page now, made once for all its readers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use miserly_follow::{Board, Posted};
use miserly_scene::{Bars, DAY, Group, Legend, Opening};
use miserly_view::{Change, Facts, Moment, Phrase, changes, headline};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use crate::actions::OFFERS_EVERY;
use crate::lists::Listing;
use crate::packed::Packed;
use crate::patch::diff;
use crate::wanted::Wanted;

/// The most changes that are remembered.
const CHANGES_MOST: u64 = 20;

/// The time between two contents, on average.
const MADE_EVERY: Duration = Duration::from_millis(250);

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
    pub(crate) listing: Arc<Listing>,
    pub(crate) bars: Arc<Bars>,
    pub(crate) state: PageState,
    value: Value,
    /// The difference to the state before this one.
    patch: Option<Value>,
    /// The parts beside the state that pages want.
    parts: Arc<Parts>,
    /// The version and the parts of the content before this one.
    before: Option<(u64, Arc<Parts>)>,
    /// The events of this content: for pages that have an earlier version with some parts, and want some.
    events: Mutex<BTreeMap<EventKey, Arc<Packed>>>,
}

/// What a page has, and the name of the parts that it wants.
type EventKey = (Option<Have>, String);

/// The most different parts, and the most different events, of a content that are kept.
const KEPT_MOST: usize = 256;

/// The parts that pages want, each made once.
#[derive(Debug, Default)]
pub(crate) struct Parts(std::sync::Mutex<BTreeMap<String, Arc<Value>>>);

impl Parts {
    fn get(&self, key: &str) -> Option<Arc<Value>> {
        self.locked().get(key).cloned()
    }

    fn put(&self, key: &str, parts: &Arc<Value>) {
        let mut known = self.locked();
        if known.len() >= KEPT_MOST {
            known.clear();
        }
        known.insert(key.to_owned(), Arc::clone(parts));
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Value>>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// What a page has: a version, and the parts that it wanted then.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Have {
    pub(crate) version: u64,
    pub(crate) wanted: String,
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
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PageState {
    /// The number of the change.
    pub(crate) version: u64,
    /// Why it is not up to date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    pub(crate) moment: PageMoment,
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
    /// The part of the time that the chart shows first.
    pub(crate) opening: Opening,
    /// The meanings of the colours of the chart.
    pub(crate) legends: Vec<Legend>,
    /// The instants of the slider: its begin and its step, milliseconds.
    pub(crate) replay: (i64, i64),
    /// The last changes by their number, so that a difference has the new ones only.
    pub(crate) changes: BTreeMap<u64, Change>,
    /// Whether jobs can be changed from the page.
    pub(crate) actions: bool,
    /// Whether a daemon answers questions.
    pub(crate) daemon: bool,
    /// The time after which a page asks again what starts now, seconds.
    pub(crate) offers_every: u64,
}

/// A moment without its jobs. A page asks for the rows that it shows.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PageMoment {
    #[serde(flatten)]
    pub(crate) moment: Moment,
    /// The names and the users of the jobs in the map.
    pub(crate) names: BTreeMap<i64, [String; 2]>,
}

impl PageMoment {
    /// Returns the moment that the page shows.
    pub(crate) fn new(facts: &Facts) -> PageMoment {
        let moment = Moment::without_jobs(facts);
        let parts = moment.pools.iter().flat_map(|pool| &pool.hosts).flat_map(|host| &host.parts);
        let placed: BTreeSet<i64> = parts.filter_map(|part| part.job).collect();
        let shown = facts.jobs.iter().filter(|job| placed.contains(&job.number));
        let names = shown.map(|job| (job.number, [job.name.clone(), job.user.clone()])).collect();
        PageMoment { moment, names }
    }
}

impl PageState {
    fn new(posted: &Posted, bars: &Bars, changes: BTreeMap<u64, Change>, rights: Rights) -> PageState {
        PageState {
            version: posted.version,
            problem: posted.problem.clone(),
            moment: PageMoment::new(&posted.facts),
            groups: bars.groups.clone(),
            range: bars.range,
            offsets: posted.facts.clock.offsets(
                bars.range.map_or(posted.facts.now, |(first, _)| first) - MARGIN,
                posted.facts.now + MARGIN,
            ),
            headline: headline(&posted.facts),
            runs: posted.facts.is_of_runs(),
            opening: Opening::new(&posted.facts.schedule(), bars),
            legends: bars.legends.clone(),
            replay: (posted.facts.replay_begin(), posted.facts.replay_step()),
            changes,
            actions: rights.actions,
            daemon: rights.daemon,
            offers_every: OFFERS_EVERY.as_secs(),
        }
    }
}

impl Shown {
    fn first(posted: &Posted, rights: Rights) -> Shown {
        let (listing, bars) = (Listing::new(Arc::clone(&posted.facts)), Bars::new(&posted.facts.schedule()));
        let state = PageState::new(posted, &bars, BTreeMap::new(), rights);
        Shown::new(Arc::new(listing), Arc::new(bars), state, None)
    }

    fn new(listing: Arc<Listing>, bars: Arc<Bars>, state: PageState, before: Option<&Shown>) -> Shown {
        let value = serde_json::to_value(&state).unwrap_or_default();
        let patch = before.and_then(|before| diff(&before.value, &value));
        let before = before.map(|before| (before.version, Arc::clone(&before.parts)));
        let (parts, events) = (Arc::default(), Mutex::default());
        Shown { version: state.version, listing, bars, state, value, patch, parts, before, events }
    }

    /// Returns the content after this one.
    fn next(&self, posted: &Posted, rights: Rights) -> Shown {
        let before = &self.listing.facts;
        let mut recent = self.state.changes.clone();
        let next = recent.last_key_value().map_or(0, |(number, _)| number + 1);
        recent.extend((next..).zip(changes(before, &posted.facts)));
        if let Some((&last, _)) = recent.last_key_value() {
            recent = recent.split_off(&(last + 1).saturating_sub(CHANGES_MOST));
        }
        // A failure leaves the facts as they are.
        let same = Arc::ptr_eq(before, &posted.facts);
        let (listing, bars) = if same {
            (Arc::clone(&self.listing), Arc::clone(&self.bars))
        } else {
            (Arc::new(Listing::new(Arc::clone(&posted.facts))), Arc::new(Bars::new(&posted.facts.schedule())))
        };
        let state = PageState::new(posted, &bars, recent, rights);
        Shown::new(listing, bars, state, Some(self))
    }

    /// Returns this content with a problem: its successor could not be made.
    fn failed(&self, version: u64) -> Shown {
        let problem = Some("a defect of miserly ui; its standard error has the details".to_owned());
        let state = PageState { version, problem, ..self.state.clone() };
        Shown::new(Arc::clone(&self.listing), Arc::clone(&self.bars), state, None)
    }

    /// Returns the event for a page: the difference to what it has, or all if that is not known. Equal pages share it.
    pub(crate) async fn event(self: &Arc<Shown>, have: Option<&Have>, wanted: &Arc<Wanted>) -> Arc<Packed> {
        let mut events = self.events.lock().await;
        let key = (have.cloned(), wanted.key.clone());
        if let Some(known) = events.get(&key) {
            return Arc::clone(known);
        }
        let (shown, have, wanted) = (Arc::clone(self), have.cloned(), Arc::clone(wanted));
        let made = tokio::task::spawn_blocking(move || shown.make_event(have.as_ref(), &wanted)).await;
        // A part that cannot be made is a defect, and the next content may have it.
        let made = Arc::new(made.unwrap_or_else(|_| Packed::new(":\n\n".to_owned())));
        if events.len() >= KEPT_MOST {
            events.clear();
        }
        events.insert(key, Arc::clone(&made));
        made
    }

    fn make_event(&self, have: Option<&Have>, wanted: &Wanted) -> Packed {
        let parts = self.parts_of(wanted);
        let same =
            have.filter(|have| have.version == self.version).map(|have| (None, self.parts.get(&have.wanted)));
        let before = self.before.as_ref().zip(have).filter(|((version, _), have)| *version == have.version);
        let before = before.map(|((_, parts), have)| (self.patch.clone(), parts.get(&have.wanted)));
        let Some((state, old)) = same.or(before) else {
            let whole = json!({"state": self.value, "parts": *parts});
            return event(&json!({"version": self.version, "patch": [whole]}));
        };
        let mut patch = Map::new();
        patch.extend(state.map(|state| ("state".to_owned(), state)));
        let changed = old.map_or_else(|| Some(json!([*parts])), |old| diff(&old, &parts));
        patch.extend(changed.map(|changed| ("parts".to_owned(), changed)));
        let from = have.map(|have| have.version);
        event(&json!({"version": self.version, "from": from, "patch": patch}))
    }

    fn parts_of(&self, wanted: &Wanted) -> Arc<Value> {
        self.parts.get(&wanted.key).unwrap_or_else(|| {
            let made = Arc::new(wanted.parts_of(self));
            self.parts.put(&wanted.key, &made);
            made
        })
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
        if self.board.latest().version == last.0.version || is_behind {
            return Arc::clone(&last.0);
        }
        tokio::time::sleep_until(last.1).await;
        let (before, posted, rights) = (Arc::clone(&last.0), self.board.latest(), self.rights);
        let begun = Instant::now();
        let version = posted.version;
        let made = tokio::task::spawn_blocking(move || before.next(&posted, rights)).await;
        let took = begun.elapsed();
        let shown = made.unwrap_or_else(|_| last.0.failed(version));
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
        let mut past = self.past.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
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
    use miserly_view::{Account, Clock, Job, PoolFacts, State};
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
            clock: Clock::SinceStart,
            title: "test".into(),
            live: true,
            earlier: false,
            uid: None,
            pools: vec![pool],
            jobs: (0..).zip(states).map(job).collect(),
            account: Account::default(),
        }
    }

    fn posted(version: u64, facts: Facts) -> Posted {
        Posted { version, facts: Arc::new(facts), problem: None }
    }

    /// Returns the data of an event.
    fn data(event: &Packed) -> Value {
        let text = String::from_utf8(event.part(None, false).to_vec()).unwrap();
        serde_json::from_str(text.strip_prefix("data: ").unwrap_or_else(|| panic!("{text}"))).unwrap()
    }

    /// Returns the wish for these rows, and a part of the chart.
    fn wanted(from: usize) -> Wanted {
        let tile = json!({"group": 0, "from": 0, "column": 100, "columns": 100, "bands": 1});
        let wanted = json!({
            "lists": {"count": 5, "from": [0, from, 0, 0]},
            "tiles": {"a": tile},
            "curves": {"b": {"from": 0, "column": 100, "columns": 10}}
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
        let size = |have: Option<&Have>| after.make_event(have, &wanted).part(None, false).len();
        let (patch, whole) = (size(Some(&have(0, &wanted))), size(None));
        assert!(patch < 4000 && whole < 60_000, "{patch} and {whole} bytes");
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
