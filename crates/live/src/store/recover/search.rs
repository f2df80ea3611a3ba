//! Rows found in the pages, whatever has become of the structures that lead to them.
//!
//! A row is known by its checksum. Which of two states of a job is the later one is told by the commits that wrote them. A row
//! cannot be made up by somebody's text: a record begins with bytes that JSON has no way to write.

use std::collections::BTreeMap;

use super::cells::{Cell, cell, pointers};
use super::image::{Image, PAGE};
use crate::store::error::{Damage, Place};
use crate::store::mark::{Mark, Repeated};
use crate::store::rows::{self, Columns};

/// Where a row lies.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub(super) page: u32,
    pub(super) at: usize,
    made: i64,
    sum: u32,
}

/// What lies in the pages.
#[derive(Default)]
pub(super) struct Found {
    /// By number; whether they have ended.
    pub(super) jobs: BTreeMap<i64, (bool, Spot)>,
    /// By number; the sum of the line before.
    pub(super) lines: BTreeMap<i64, (u32, Spot)>,
    /// By name.
    pub(super) meta: BTreeMap<String, Spot>,
    /// The latest mark.
    pub(super) mark: Option<Mark>,
    /// Rows that are where a page says that a row is, and are damaged.
    pub(super) damages: Vec<Damage>,
}

impl Found {
    /// Looks where the pages say that rows are.
    pub(super) fn by_pointers(image: &Image<'_>) -> Found {
        let mut found = Found::default();
        // The first page has the names of the tables.
        for number in 2..=image.end() {
            match image.page(number) {
                Ok(page) => {
                    for at in pointers(&page) {
                        found.look(image, &page, number, at);
                    }
                }
                Err(error) => {
                    let what = format!("page {number} cannot be read: {error}");
                    found.damages.push(Damage::new(Place::Structure, what));
                }
            }
        }
        found.settle();
        found
    }

    /// Looks everywhere, for what is not yet known and not known to be damaged; says what was found so.
    pub(super) fn anywhere(&mut self, image: &Image<'_>) -> Vec<Place> {
        let mut more = Found::default();
        for number in 2..=image.end() {
            let page = image.page(number).unwrap_or_default();
            for at in 8..page.len().min(PAGE) {
                if let Some(cell) = cell(image, &page, at) {
                    more.take(&cell, number, at);
                }
            }
        }
        let damaged = |place: Place| self.damages.iter().any(|damage| damage.place == place);
        more.jobs.retain(|number, _| !self.jobs.contains_key(number) && !damaged(Place::Job(*number)));
        more.lines.retain(|number, _| !self.lines.contains_key(number) && !damaged(Place::Line(*number)));
        more.meta.retain(|key, _| !self.meta.contains_key(key) && !damaged(Place::Meta(key.clone())));
        let jobs = more.jobs.keys().map(|&number| Place::Job(number));
        let lines = more.lines.keys().map(|&number| Place::Line(number));
        let places = jobs.chain(lines).chain(more.meta.keys().cloned().map(Place::Meta)).collect();
        self.jobs.append(&mut more.jobs);
        self.lines.append(&mut more.lines);
        self.meta.append(&mut more.meta);
        self.mark = self.mark.or(more.mark);
        places
    }

    fn look(&mut self, image: &Image<'_>, page: &[u8], number: u32, at: usize) {
        match cell(image, page, at) {
            Some(cell) if self.take(&cell, number, at) => {}
            Some(cell) => {
                let place = match (cell.width(), cell.number(2)) {
                    (7, _) => Place::Job(cell.number),
                    (5, Some(_)) => Place::Line(cell.number),
                    (5, None) => Place::Meta(Columns::text(&cell, 2).unwrap_or_default()),
                    _ => Place::Mark,
                };
                self.damages.push(Damage::new(place, "its checksum does not fit what it says"));
            }
            None => {
                self.damages
                    .push(Damage::new(Place::Structure, format!("a row of page {number} cannot be read")));
            }
        }
    }

    /// Takes what a row says, if its checksum fits and nothing later is known.
    fn take(&mut self, cell: &Cell, page: u32, at: usize) -> bool {
        let spot = |made, sum| Spot { page, at, made, sum };
        for ended in [false, true] {
            if let Ok(job) = rows::job(cell, ended) {
                let new = (ended, spot(job.made, job.sum));
                later(&mut self.jobs, cell.number, new, |(_, spot)| spot.made);
                return true;
            }
        }
        if let Ok(line) = rows::line(cell) {
            let new = (line.what.before, spot(line.made, line.sum));
            later(&mut self.lines, cell.number, new, |(_, spot)| spot.made);
            return true;
        }
        if let Ok(meta) = rows::meta(cell) {
            later(&mut self.meta, meta.what.0, spot(meta.made, meta.sum), |spot| spot.made);
            return true;
        }
        let mark = Columns::text(cell, 1).zip(cell.number(2)).and_then(|(text, sum)| Mark::read(&text, sum));
        if let Some(mark) = mark {
            self.mark = self.mark.filter(|known| known.commit > mark.commit).or(Some(mark));
        }
        mark.is_some()
    }

    /// A damaged row with the number of a whole one is another's, whose number is what is damaged: no two rows of a database are of one job.
    fn settle(&mut self) {
        for damage in &mut self.damages {
            let other = match &damage.place {
                Place::Job(number) => self.jobs.contains_key(number),
                Place::Line(number) => self.lines.contains_key(number),
                Place::Meta(key) => self.meta.contains_key(key),
                _ => false,
            };
            if other {
                let what = format!("a damaged row says that it is that of {}, which is there", damage.place);
                *damage = Damage::new(Place::Structure, what);
            }
        }
    }

    /// How many rows there are.
    pub(super) fn rows(&self) -> usize {
        self.jobs.len() + self.lines.len() + self.meta.len()
    }

    /// The last commit that any row tells of.
    pub(super) fn last_commit(&self) -> i64 {
        let jobs = self.jobs.values().map(|(_, spot)| spot.made);
        let lines = self.lines.values().map(|(_, spot)| spot.made);
        let all = jobs.chain(lines).chain(self.meta.values().map(|spot| spot.made));
        all.chain(self.mark.map(|mark| mark.commit)).max().unwrap_or(0)
    }

    /// Whether these are all rows as the last commit left them: as the mark says, or the file that repeats it.
    pub(super) fn is_whole(&self, repeated: Option<Repeated>) -> bool {
        let tallied = self.tallied();
        let as_marked = |mark: Mark| Mark { commit: mark.commit, ..tallied } == mark;
        let as_repeated = |said: Repeated| Mark { commit: said.commit, ..tallied }.sum() == said.sum;
        self.gaps().is_empty() && self.mark.map_or_else(|| repeated.is_some_and(as_repeated), as_marked)
    }

    fn tallied(&self) -> Mark {
        let mut mark = Mark::default();
        for (ended, spot) in self.jobs.values() {
            mark.jobs(*ended).add(spot.sum);
        }
        for spot in self.meta.values() {
            mark.meta.add(spot.sum);
        }
        if let Some((&line, (_, spot))) = self.lines.last_key_value() {
            (mark.line, mark.chain, mark.lines) = (line, spot.sum, self.lines.len() as u64);
        }
        mark
    }

    /// The lines that do not follow on the line before, which something else stood between: the line, the line before.
    pub(super) fn gaps(&self) -> Vec<(i64, i64)> {
        let mut last = (0, 0);
        let follows = self.lines.iter().filter_map(|(&number, (before, spot))| {
            let (line, chain) = std::mem::replace(&mut last, (number, spot.sum));
            (*before != chain).then_some((number, line))
        });
        follows.collect()
    }
}

/// Keeps the later of two states.
fn later<K: Ord, T>(known: &mut BTreeMap<K, T>, key: K, new: T, made: impl Fn(&T) -> i64) {
    if known.get(&key).is_none_or(|old| made(old) < made(&new)) {
        known.insert(key, new);
    }
}
