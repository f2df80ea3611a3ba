//! A part of the chart at a level of detail: bars that are wide enough, and a shade for the others.
//!
//! It costs as much as the jobs in it, so a browser draws a million jobs as it draws a hundred.

use serde::{Deserialize, Serialize};

use crate::bars::Index;
use crate::{Bar, Bars, Kind};

/// The most bars of a tile that are drawn one by one, unless the widest ones alone are more.
const BARS_MOST: usize = 1500;

/// The most columns of a tile, and the most bands.
const CELLS_MOST: usize = 1024;

/// A part of a group's time, and the size in which it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct TileRequest {
    /// The group, by its place in [`Bars::groups`].
    pub group: usize,
    /// The begin.
    pub from: i64,
    /// The time of a column, milliseconds, at least 1.
    pub column: i64,
    /// The columns, at most 1024.
    pub columns: usize,
    /// The bands into which the rows are divided for shades, at most 1024.
    pub bands: usize,
}

/// A part of a chart: wide bars one by one, and the others as a shade.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tile {
    /// The bars: begin, end, number of the job, kind (its place in [`Kind`]), owner, ranges of rows, likely start.
    pub bars: Vec<TileBar>,
    /// The jobs that are too short at this level of detail; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shade: Option<Shade>,
}

/// A bar: begin, end, number of the job, kind, owner, ranges of rows, likely start.
pub type TileBar = (i64, i64, i64, u8, u64, Vec<(u32, u32)>, Option<[i64; 2]>);

/// How much of each cell is taken by short jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shade {
    /// The bands.
    pub bands: usize,
    /// Runs of cells, column by column from the lowest band: the number of cells, and their shade from 0 to 255.
    pub runs: Vec<(u32, u8)>,
    /// The number of jobs in it.
    pub jobs: usize,
}

impl Bars {
    /// Returns a part of the chart. Returns `None` if the group does not exist, or a size is not allowed.
    ///
    /// It costs O(jobs in the part).
    pub fn tile(&self, request: &TileRequest) -> Option<Tile> {
        let TileRequest { group, from, column, columns, bands } = *request;
        let (index, rows) = (self.indexes.get(group)?, self.groups.get(group)?.rows);
        let sizes = [columns, bands].into_iter().all(|size| (1..=CELLS_MOST).contains(&size));
        if !sizes || column < 1 {
            return None;
        }
        let to = from.saturating_add(column.saturating_mul(i64::try_from(columns).ok()?));
        let least = least_class(index, column, from, to);
        let wide = (least..index.classes()).flat_map(|class| shown(index, class, from, to));
        let bars: Vec<TileBar> = wide.map(tile_bar).collect();
        let mut shading = Shading::new(request, rows);
        for bar in (0..least.min(index.classes())).flat_map(|class| shown(index, class, from, to)) {
            shading.add(bar);
        }
        Some(Tile { bars, shade: shading.shade() })
    }
}

fn shown(index: &Index, class: usize, from: i64, to: i64) -> impl Iterator<Item = &Bar> {
    index.within(class, from, to).iter().filter(move |bar| bar.to > from || bar.from >= from)
}

/// Returns the shortest class of bars that are drawn one by one: they are wider than a column, and not too many.
fn least_class(index: &Index, column: i64, from: i64, to: i64) -> usize {
    let wide = column.unsigned_abs().ilog2() as usize;
    let mut count = 0;
    for class in (wide..index.classes()).rev() {
        count += index.within(class, from, to).len();
        if count > BARS_MOST {
            return class + 1;
        }
    }
    wide
}

fn tile_bar(bar: &Bar) -> TileBar {
    (bar.from, bar.to, bar.job, kind_number(bar.kind), bar.owner, bar.rows.clone(), bar.likely)
}

const fn kind_number(kind: Kind) -> u8 {
    kind as u8
}

/// The cells of a tile, and how much of each is taken.
struct Shading<'a> {
    request: &'a TileRequest,
    rows: u32,
    /// Row-milliseconds for each cell, column by column; empty until there is a bar.
    taken: Vec<f64>,
    jobs: usize,
}

impl<'a> Shading<'a> {
    fn new(request: &'a TileRequest, rows: u32) -> Shading<'a> {
        Shading { request, rows, taken: vec![], jobs: 0 }
    }

    fn add(&mut self, bar: &Bar) {
        let TileRequest { from, column, columns, bands, .. } = *self.request;
        if self.taken.is_empty() {
            self.taken = vec![0.0; columns * bands];
        }
        self.jobs += 1;
        let (last, column) = (columns as i128 - 1, i128::from(column));
        let relative = |at: i64| i128::from(at) - i128::from(from);
        let (begin, end) = (relative(bar.from), relative(bar.to).max(relative(bar.from) + 1));
        let first = begin.div_euclid(column).clamp(0, last);
        let final_column = (end - 1).div_euclid(column).clamp(0, last);
        for cell in first..=final_column {
            let part = end.min((cell + 1) * column) - begin.max(cell * column);
            if part > 0 {
                self.add_rows(bar, usize::try_from(cell).unwrap_or(0), part as f64);
            }
        }
    }

    /// Adds a part of a bar to a column, in all its bands.
    fn add_rows(&mut self, bar: &Bar, column: usize, part: f64) {
        let bands = self.request.bands;
        let height = f64::from(self.rows) / bands as f64;
        for &(low, above) in &bar.rows {
            let (low, above) = (f64::from(low), f64::from(above));
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a band, from 0")]
            let (first, last) = ((low / height) as usize, ((above - 1e-9) / height) as usize);
            for band in first..=last.min(bands - 1) {
                let covered = above.min((band + 1) as f64 * height) - low.max(band as f64 * height);
                self.taken[column * bands + band] += covered.max(0.0) * part;
            }
        }
    }

    fn shade(&self) -> Option<Shade> {
        if self.jobs == 0 {
            return None;
        }
        let bands = self.request.bands;
        let whole = f64::from(self.rows) / bands as f64 * self.request.column as f64;
        let mut runs: Vec<(u32, u8)> = vec![];
        for taken in &self.taken {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 255")]
            let shade = (taken / whole * 255.0).ceil().clamp(0.0, 255.0) as u8;
            match runs.last_mut() {
                Some((cells, last)) if *last == shade => *cells += 1,
                _ => runs.push((1, shade)),
            }
        }
        Some(Shade { bands, runs, jobs: self.jobs })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Facts, Job, State};

    fn bars(jobs: &[(i64, i64, u64)]) -> Bars {
        let job = |(number, &(start, length, procs)): (i64, &(i64, i64, u64))| Job {
            number,
            procs,
            state: State::Ended,
            start: Some(start),
            end: Some(start + length),
            ..Job::default()
        };
        Bars::new(&Facts::of_jobs(8, (1..).zip(jobs).map(job)))
    }

    fn cells(tile: &Tile) -> Vec<u8> {
        let runs = tile.shade.iter().flat_map(|shade| shade.runs.clone());
        runs.flat_map(|(cells, shade)| vec![shade; cells as usize]).collect()
    }

    #[test]
    fn a_short_job_is_a_shade() {
        let bars = bars(&[(0, 100, 8), (100, 1, 4)]);
        let request = TileRequest { group: 0, from: 0, column: 10, columns: 20, bands: 2 };
        let tile = bars.tile(&request).unwrap();
        assert_eq!(tile.bars.iter().map(|bar| bar.2).collect::<Vec<_>>(), [1]);
        let cells = cells(&tile);
        assert_eq!(cells.len(), 40);
        let taken: Vec<(usize, u8)> = cells.into_iter().enumerate().filter(|(_, shade)| *shade > 0).collect();
        assert_eq!(taken, [(20, 26)], "a tenth of one cell");
        assert_eq!(bars.range, Some((0, 101)));
    }

    #[test]
    fn a_size_that_is_not_allowed_gives_nothing() {
        let bars = bars(&[(0, 1, 1)]);
        let request = TileRequest { group: 0, from: 0, column: 1, columns: 1, bands: 1 };
        assert!(bars.tile(&request).is_some());
        for wrong in [
            TileRequest { group: 1, ..request },
            TileRequest { column: 0, ..request },
            TileRequest { columns: 0, ..request },
            TileRequest { bands: 4096, ..request },
        ] {
            assert_eq!(bars.tile(&wrong), None);
        }
        for from in [i64::MIN, i64::MIN + 1, i64::MAX - 5] {
            for column in [1, 1 << 62, i64::MAX] {
                let far = TileRequest { from, column, columns: 1024, ..request };
                assert!(bars.tile(&far).is_some());
            }
        }
    }

    proptest! {
        /// No job is lost at any level of detail: each is a bar or in the shade, if it is in the part.
        #[test]
        fn every_job_of_the_part_is_shown(
            jobs in prop::collection::vec((0i64..500, 1i64..200, 1u64..8), 0..40),
            from in -50i64..600,
            column in 1i64..64,
            columns in 1usize..20,
        ) {
            let request = TileRequest { group: 0, from, column, columns, bands: 4 };
            let tile = bars(&jobs).tile(&request).unwrap();
            let to = from + column * i64::try_from(columns).unwrap();
            let inside = |(start, length, _): &&(i64, i64, u64)| *start < to && start + length > from;
            let shaded = tile.shade.as_ref().map_or(0, |shade| shade.jobs);
            prop_assert_eq!(tile.bars.len() + shaded, jobs.iter().filter(inside).count());
        }
    }
}
