//! What the page shows now, made once for all its readers.

use std::collections::VecDeque;
use std::sync::Arc;

use miserly_follow::{Board, Posted};
use miserly_view::{Bars, Change, Facts, Group, Moment, changes};
use serde::Serialize;
use tokio::sync::watch;

/// The most changes that are remembered.
const CHANGES_MOST: usize = 100;

/// The most jobs of each list on the page.
const LISTED_MOST: usize = 200;

/// What the page shows at one change of the facts.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) facts: Arc<Facts>,
    pub(crate) bars: Bars,
    pub(crate) state: PageState,
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
    /// The last changes, the newest first.
    pub(crate) changes: VecDeque<Change>,
    /// Whether jobs can be changed from the page.
    pub(crate) actions: bool,
}

impl PageState {
    fn new(posted: &Posted, bars: &Bars, changes: VecDeque<Change>, actions: bool) -> PageState {
        PageState {
            version: posted.version,
            problem: posted.problem.clone(),
            moment: shortened(Moment::of(&posted.facts)),
            groups: bars.groups.clone(),
            range: bars.range,
            changes,
            actions,
        }
    }
}

/// Returns a moment with the first jobs of each list.
pub(crate) fn shortened(mut moment: Moment) -> Moment {
    for list in [&mut moment.waiting, &mut moment.running, &mut moment.ended] {
        // The jobs of the user are listed wherever they are.
        let mut place = 0;
        list.retain(|line| {
            place += 1;
            place <= LISTED_MOST || line.own
        });
    }
    moment
}

/// Returns what the page shows, kept up to date by a task.
pub(crate) fn show(board: &Board, actions: bool) -> watch::Receiver<Arc<Shown>> {
    let mut source = board.subscribe();
    let first = source.borrow_and_update().clone();
    let shown = Arc::new(shown(&first, VecDeque::new(), actions));
    let (sender, receiver) = watch::channel(shown);
    tokio::spawn(async move {
        while source.changed().await.is_ok() {
            let posted = source.borrow_and_update().clone();
            let before = Arc::clone(&sender.borrow());
            let next = tokio::task::spawn_blocking(move || next(&before, &posted, actions)).await;
            let Ok(next) = next else { return };
            if sender.send(Arc::new(next)).is_err() {
                return;
            }
        }
    });
    receiver
}

fn shown(posted: &Posted, changes: VecDeque<Change>, actions: bool) -> Shown {
    let bars = Bars::of(&posted.facts);
    let state = PageState::new(posted, &bars, changes, actions);
    Shown { facts: Arc::clone(&posted.facts), bars, state }
}

fn next(before: &Shown, posted: &Posted, actions: bool) -> Shown {
    let mut recent = before.state.changes.clone();
    for change in changes(&before.facts, &posted.facts) {
        recent.push_front(change);
    }
    recent.truncate(CHANGES_MOST);
    shown(posted, recent, actions)
}
