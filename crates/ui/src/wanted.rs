//! The parts of the content that a page shows beside its state: rows of lists, and parts of the chart.
//!
//! A page says what it wants, and the stream of its events has these parts after each change, as differences. Pages that want the same
//! share the work.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use miserly_scene::{Bars, CurvePart, PackedTile, TileRequest};
use miserly_view::Moment;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::answer::Refusal;
use crate::lists::{Listing, ListsQuestion, key_of};
use crate::live::{Chart, ProcessorMap};

/// The most parts of the chart of a page.
const PARTS_MOST: usize = 64;

/// The most columns of a part of the curves.
const COLUMNS_MOST: usize = 1024;

/// The most pages that are followed at once.
const WATCHERS_MOST: usize = 10_000;

/// What a page wants.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Wanted {
    /// The rows of the lists; `None` while an earlier instant is shown.
    lists: Option<ListsQuestion>,
    /// The parts of the chart, by names of the page.
    tiles: BTreeMap<String, TileRequest>,
    /// The parts of the curves, by names of the page.
    curves: BTreeMap<String, CurvesRequest>,
    /// Whether it wants the map of the processors, and the last changes.
    map: bool,
    changes: bool,
    /// The same as a text, by which pages that want the same are known.
    #[serde(skip)]
    pub(crate) key: Arc<str>,
}

/// A part of the curves.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct CurvesRequest {
    from: i64,
    column: i64,
    columns: usize,
}

impl Wanted {
    /// Returns what a page wants, with its key.
    ///
    /// # Errors
    /// If it wants too many parts, or is too long.
    pub(crate) fn checked(self) -> Result<Arc<Wanted>, Refusal> {
        if self.tiles.len() + self.curves.len() > PARTS_MOST {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "there are too many parts of the chart"));
        }
        let key = key_of(&self)?.into();
        Ok(Arc::new(Wanted { key, ..self }))
    }

    /// Returns the rows of the lists.
    pub(crate) fn lists_of(&self, listing: &Listing) -> Option<Value> {
        self.lists.as_ref().map(|question| listing.part(question))
    }

    /// Returns the parts of the chart. One that does not exist is null.
    pub(crate) fn chart_of(&self, chart: &Chart) -> Value {
        let bars = &chart.bars;
        let tiles = self.tiles.iter().map(|(name, request)| (name, bars.tile(request).map(PackedTile)));
        let tiles: BTreeMap<&String, Option<PackedTile>> = tiles.collect();
        let curves = self.curves.iter().map(|(name, request)| (name, request.part_of(bars)));
        let curves: BTreeMap<&String, Option<Vec<CurvePart>>> = curves.collect();
        let map = self.map.then(|| ProcessorMap::new(&chart.facts, Moment::without_jobs(&chart.facts)));
        let changes = self.changes.then_some(&chart.changes);
        json!({"tiles": tiles, "curves": curves, "map": map, "changes": changes})
    }
}

impl CurvesRequest {
    fn part_of(&self, bars: &Bars) -> Option<Vec<CurvePart>> {
        let CurvesRequest { from, column, columns } = *self;
        let is_allowed = column >= 1 && (1..=COLUMNS_MOST).contains(&columns);
        let part = || bars.curves.iter().map(|curves| curves.part(from, column, columns)).collect();
        is_allowed.then(part)
    }
}

/// The pages that follow the stream, by numbers that they choose.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watchers(Arc<Mutex<BTreeMap<u64, watch::Sender<Arc<Wanted>>>>>);

/// A page that follows the stream, until this is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    number: u64,
    watchers: Watchers,
    pub(crate) wanted: watch::Receiver<Arc<Wanted>>,
}

impl Watchers {
    /// Adds a page. A page that opens its stream again replaces its earlier one.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn add(&self, number: u64, wanted: Arc<Wanted>) -> Result<Watcher, Refusal> {
        let (sender, wanted) = watch::channel(wanted);
        let mut known = self.locked();
        if known.len() >= WATCHERS_MOST && !known.contains_key(&number) {
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open"));
        }
        known.insert(number, sender);
        drop(known);
        Ok(Watcher { number, watchers: self.clone(), wanted })
    }

    /// Replaces what a page wants.
    ///
    /// # Errors
    /// If it does not follow the stream.
    pub(crate) fn replace(&self, number: u64, wanted: Arc<Wanted>) -> Result<(), Refusal> {
        let gone = || Refusal::new(StatusCode::NOT_FOUND, "this page does not follow the events");
        self.locked().get(&number).ok_or_else(gone)?.send_replace(wanted);
        Ok(())
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, watch::Sender<Arc<Wanted>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut known = self.watchers.locked();
        // The page may have opened its stream again.
        if known.get(&self.number).is_some_and(|sender| sender.subscribe().same_channel(&self.wanted)) {
            known.remove(&self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_left_is_forgotten_unless_it_is_back() {
        let watchers = Watchers::default();
        let wanted = || Wanted::default().checked().unwrap();
        let first = watchers.add(7, wanted()).unwrap();
        let second = watchers.add(7, wanted()).unwrap();
        drop(first);
        watchers.replace(7, wanted()).unwrap();
        assert!(second.wanted.has_changed().unwrap());
        drop(second);
        assert!(watchers.replace(7, wanted()).is_err());
    }

    #[test]
    fn a_page_wants_few_parts() {
        let tiles =
            |count: usize| (0..count).map(|name| (name.to_string(), TileRequest::default())).collect();
        let wanted = |count| Wanted { tiles: tiles(count), ..Wanted::default() }.checked();
        assert!(wanted(PARTS_MOST).is_ok() && wanted(PARTS_MOST + 1).is_err());
    }

    #[test]
    fn a_page_has_a_short_question() {
        let wanted = |length| {
            let lists = json!({"find": "a".repeat(length)});
            Wanted { lists: serde_json::from_value(lists).unwrap(), ..Wanted::default() }.checked()
        };
        assert!(wanted(60 << 10).is_ok() && wanted(64 << 10).is_err());
    }
}
