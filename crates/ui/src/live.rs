//! The content of the page now, made once for all its readers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use miserly_follow::{Board, Posted};
use miserly_scene::{Bars, DAY, Group, Legend, Opening};
use miserly_view::{Change, Facts, Moment, Phrase, changes, headline};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use crate::lists::Listing;
use crate::packed::Packed;
use crate::patch::diff;

/// The most changes that are remembered.
const CHANGES_MOST: u64 = 20;

/// The time between two contents, on average.
const MADE_EVERY: Duration = Duration::from_millis(250);

/// The quiet time after which contents may follow each other at once, until the average is reached.
const BURST: Duration = Duration::from_secs(1);

/// The most earlier instants that are remembered.
const PAST_MOST: usize = 4;

/// The content of the page at one change of the facts.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) version: u64,
    pub(crate) listing: Arc<Listing>,
    pub(crate) bars: Arc<Bars>,
    pub(crate) state: PageState,
    value: Value,
    /// The event with all of the state.
    whole: OnceLock<Arc<Packed>>,
    /// The event with the difference to the content of an earlier version.
    patch: Option<(u64, Arc<Packed>)>,
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
        let mut moment = Moment::without_jobs(facts);
        for pool in &mut moment.pools {
            // The page asks in minutes.
            pool.holes
                .retain(|hole| hole.until.is_none_or(|until| until.saturating_sub(facts.now) >= 60_000));
        }
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
        let patch = before.map(|before| {
            let patch = diff(&before.value, &value).unwrap_or_else(|| json!({}));
            let data = json!({"from": before.version, "patch": patch});
            (before.version, Arc::new(event("patch", &data)))
        });
        Shown { version: state.version, listing, bars, state, value, whole: OnceLock::new(), patch }
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

    /// Returns the event for a reader with the content of this version: the difference if it is the one before, else all of the state.
    pub(crate) fn event_after(&self, version: Option<u64>) -> Arc<Packed> {
        match &self.patch {
            Some((from, patch)) if Some(*from) == version => Arc::clone(patch),
            _ => Arc::clone(self.whole.get_or_init(|| Arc::new(event("state", &self.value)))),
        }
    }

    /// Returns all of the state as JSON.
    pub(crate) fn json(&self) -> String {
        self.value.to_string()
    }
}

/// Returns an event of a stream.
fn event(kind: &str, data: &Value) -> Packed {
    Packed::new(format!("event: {kind}\ndata: {data}\n\n"))
}

/// The content of the page, made again at a request after a change of the facts.
#[derive(Debug)]
pub(crate) struct Live {
    board: Board,
    rights: Rights,
    /// The last one, and the instant from which on a new one may be made.
    last: Mutex<(Arc<Shown>, Instant)>,
    /// The lists at earlier instants, each with the version of which it was made, the newest last.
    past: std::sync::Mutex<VecDeque<(u64, i64, Arc<Listing>)>>,
}

impl Live {
    /// Returns the page of these facts.
    pub(crate) fn new(board: &Board, rights: Rights) -> Live {
        let first = Shown::first(&board.latest(), rights);
        let last = Mutex::new((Arc::new(first), Instant::now()));
        Live { board: board.clone(), rights, last, past: std::sync::Mutex::default() }
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

    /// Returns the lists at an earlier instant, and makes them if they are not among the last ones.
    pub(crate) fn past(&self, shown: &Shown, at: i64) -> Arc<Listing> {
        let past = || self.past.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let key = (shown.version, at);
        if let Some((.., known)) = past().iter().find(|(version, at, _)| (*version, *at) == key) {
            return Arc::clone(known);
        }
        let facts = &shown.listing.facts;
        let made = Arc::new(Listing::new(Arc::new(facts.at(at.min(facts.now)))));
        let mut past = past();
        past.push_back((key.0, key.1, Arc::clone(&made)));
        if past.len() > PAST_MOST {
            past.pop_front();
        }
        made
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
    fn data(event: &Packed, kind: &str) -> Value {
        let text = String::from_utf8(event.part(false).to_vec()).unwrap();
        let start = format!("event: {kind}\ndata: ");
        serde_json::from_str(text.strip_prefix(&start).unwrap_or_else(|| panic!("{text}"))).unwrap()
    }

    proptest! {
        /// A page that takes each difference has the state that a new page gets.
        #[test]
        fn differences_make_the_state(steps in prop::collection::vec(prop::collection::vec(0u8..3, 0..12), 1..8)) {
            let mut shown = Shown::first(&posted(0, facts(0, &[])), RIGHTS);
            let mut page = data(&shown.event_after(None), "state");
            for (version, states) in (1..).zip(&steps) {
                let now = 1000 * i64::try_from(version).unwrap();
                shown = shown.next(&posted(version, facts(now, states)), RIGHTS);
                let patch = data(&shown.event_after(Some(version - 1)), "patch");
                prop_assert_eq!(&patch["from"], version - 1);
                page = patched(Some(&page), &patch["patch"]).unwrap();
                prop_assert_eq!(&page, &shown.value);
                prop_assert_eq!(&page, &data(&shown.event_after(None), "state"));
            }
        }
    }

    #[test]
    fn a_page_that_missed_a_change_gets_the_whole_state() {
        let mut shown = Shown::first(&posted(0, facts(0, &[1])), RIGHTS);
        for version in 1..3 {
            shown = shown.next(&posted(version, facts(0, &[2])), RIGHTS);
        }
        data(&shown.event_after(Some(1)), "patch");
        data(&shown.event_after(Some(0)), "state");
    }

    #[test]
    fn an_event_is_small_however_many_jobs_there_are() {
        let mut states = vec![0; 20_000];
        // The legends of waits and slowdowns come with the first start.
        states[4] = 1;
        let before = Shown::first(&posted(0, facts(0, &states)), RIGHTS);
        states[..4].fill(1);
        let after = before.next(&posted(1, facts(1000, &states)), RIGHTS);
        let size = |version| after.event_after(version).part(false).len();
        assert!(size(Some(0)) < 2000 && size(None) < 10_000, "{} and {} bytes", size(Some(0)), size(None));
    }

    #[test]
    fn room_of_less_than_a_minute_is_not_offered() {
        let holes = |until: i64| {
            let mut facts = facts(1000, &[]);
            let slice = |from: i64, cpus_free| miserly_api::model::Slice {
                from: jiff::Timestamp::from_millisecond(from).unwrap(),
                cpus: 8,
                cpus_free,
                memory_free: 0,
            };
            facts.pools[0].slices = vec![slice(1000, 8), slice(until, 0)];
            PageMoment::new(&facts).moment.pools[0].holes.len()
        };
        assert_eq!((holes(60_999), holes(61_000)), (0, 1));
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
