//! The content of the page now, made once for all its readers.

use std::collections::VecDeque;
use std::sync::Arc;

use miserly_follow::{Board, Posted};
use miserly_view::{Bars, Change, Facts, Group, Moment, changes};
use serde::Serialize;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

/// The most changes that are remembered.
const CHANGES_MOST: usize = 100;

/// The most jobs of each list on the page.
const LISTED_MOST: usize = 200;

/// The content of the page at one change of the facts.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) facts: Arc<Facts>,
    pub(crate) bars: Arc<Bars>,
    pub(crate) state: PageState,
}

/// The requests that a page can make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rights {
    /// Whether jobs can be changed.
    pub(crate) actions: bool,
    /// Whether a daemon answers questions.
    pub(crate) daemon: bool,
}

/// The state of the page, as its script gets it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PageState {
    /// The number of the change.
    pub(crate) version: u64,
    /// Why it is not up to date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    pub(crate) moment: Moment,
    /// The groups of rows of the chart.
    pub(crate) groups: Vec<Group>,
    /// The first begin and the last end of a bar.
    pub(crate) range: Option<(i64, i64)>,
    /// The instants of the slider: its begin and its step, milliseconds.
    pub(crate) replay: (i64, i64),
    /// The last changes, the newest first.
    pub(crate) changes: VecDeque<Change>,
    /// Whether jobs can be changed from the page.
    pub(crate) actions: bool,
    /// Whether a daemon answers questions.
    pub(crate) daemon: bool,
}

impl PageState {
    fn new(posted: &Posted, bars: &Bars, changes: VecDeque<Change>, rights: Rights) -> PageState {
        PageState {
            version: posted.version,
            problem: posted.problem.clone(),
            moment: moment(&posted.facts),
            groups: bars.groups.clone(),
            range: bars.range,
            replay: (posted.facts.replay_begin(), posted.facts.replay_step()),
            changes,
            actions: rights.actions,
            daemon: rights.daemon,
        }
    }
}

/// Returns the moment that the page shows.
pub(crate) fn moment(facts: &Facts) -> Moment {
    Moment::listing(facts, LISTED_MOST)
}

/// The content of the page, made again at a request after a change of the facts.
#[derive(Debug)]
pub(crate) struct Live {
    board: Board,
    rights: Rights,
    /// The last one, and the instant from which on a new one may be made.
    last: Mutex<(Arc<Shown>, Instant)>,
}

impl Live {
    /// Returns the page of these facts.
    pub(crate) fn new(board: &Board, rights: Rights) -> Live {
        let first = shown(&board.latest(), VecDeque::new(), rights);
        Live { board: board.clone(), rights, last: Mutex::new((Arc::new(first), Instant::now())) }
    }

    /// Returns a receiver of changes of the facts.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Posted> {
        self.board.subscribe()
    }

    /// Returns the present content. Requests at the same time share it. The making takes a fifth of a processor at most.
    pub(crate) async fn latest(&self) -> Arc<Shown> {
        let mut last = self.last.lock().await;
        if self.board.latest().version == last.0.state.version {
            return Arc::clone(&last.0);
        }
        tokio::time::sleep_until(last.1).await;
        let (before, posted, rights) = (Arc::clone(&last.0), self.board.latest(), self.rights);
        let begun = Instant::now();
        let made = tokio::task::spawn_blocking(move || next(&before, &posted, rights)).await;
        let took = begun.elapsed();
        let shown = made.unwrap_or_else(|_| failed(&last.0));
        *last = (Arc::new(shown), Instant::now() + 4 * took);
        Arc::clone(&last.0)
    }
}

fn shown(posted: &Posted, changes: VecDeque<Change>, rights: Rights) -> Shown {
    let bars = Bars::of(&posted.facts);
    let state = PageState::new(posted, &bars, changes, rights);
    Shown { facts: Arc::clone(&posted.facts), bars: Arc::new(bars), state }
}

fn next(before: &Shown, posted: &Posted, rights: Rights) -> Shown {
    let mut recent = before.state.changes.clone();
    for change in changes(&before.facts, &posted.facts) {
        recent.push_front(change);
    }
    recent.truncate(CHANGES_MOST);
    shown(posted, recent, rights)
}

/// Returns the last page with a problem: its successor could not be made.
fn failed(last: &Shown) -> Shown {
    let problem = Some("a defect of miserly ui; its standard error has the details".to_owned());
    let state = PageState { problem, ..last.state.clone() };
    Shown { facts: Arc::clone(&last.facts), bars: Arc::clone(&last.bars), state }
}
