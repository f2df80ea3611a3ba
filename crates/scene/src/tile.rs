//! A part of the chart at a level of detail: bars that are wide enough, and a shade for the others.
//!
//! It costs as much as the jobs in it, so a browser draws a million jobs as it draws a hundred.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::bars::Index;
use crate::palette::mixed;
use crate::{Bar, Bars, ColourBy, Inks, Kind, Legend};

/// The most bars of a tile that are drawn one by one, unless the widest ones alone are more.
const BARS_MOST: usize = 1500;

/// The columns from which on a bar has its name: a shorter one has no room for it.
const NAMED_LEAST: i64 = 20;

/// The most columns of a tile, and the most bands.
const CELLS_MOST: usize = 1024;

/// A part of a group's time, and the size in which it is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
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
    /// What the colours show.
    #[serde(default)]
    pub by: ColourBy,
    /// Whether shades are mixed of the colours of the dark theme.
    #[serde(default)]
    pub dark: bool,
}

/// A part of a chart: wide bars one by one, and the others as a shade.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tile {
    /// The bars.
    pub bars: Vec<TileBar>,
    /// The jobs that are too short at this level of detail; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shade: Option<Shade>,
}

/// A bar of a tile. It is a list in JSON, in the order of the fields: a page may have thousands of them.
#[derive(Clone, Debug, PartialEq)]
pub struct TileBar {
    /// The begin.
    pub from: i64,
    /// The end.
    pub to: i64,
    /// The number of the job.
    pub job: i64,
    /// The kind, in JSON by its place.
    pub kind: Kind,
    /// The place of its colour in the legend.
    pub class: u8,
    /// The rows, as ranges, ends excluded.
    pub rows: Vec<(u32, u32)>,
    /// The number and the name; empty on a short bar.
    pub title: String,
    /// The latest start that was promised, of a job before its end or of one that was late.
    pub promise: Option<i64>,
    /// Whether the job ended without success.
    pub failed: bool,
    /// Whether its promise is at risk, or was not kept.
    pub unkept: bool,
    /// The likely start of a job that waits: the median, and the bound of 95 %.
    pub likely: Option<[i64; 2]>,
}

impl Serialize for TileBar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let TileBar { from, to, job, kind, class, rows, title, promise, failed, unkept, likely } = self;
        let flags = u8::from(*failed) + 2 * u8::from(*unkept);
        (from, to, job, *kind as u8, class, rows, title, promise, flags, likely).serialize(serializer)
    }
}

/// A tile as a stream of differences has it: what repeats from bar to bar is the same text, and what follows from the rest is left out.
///
/// The end of a bar, its promise and its likely start are counted from its begin. Its rows are the first row and the number of rows of each
/// range, one after the other, or the number of its only row. Empty fields at the end are absent. `unpacked` of chart.js reads it.
#[derive(Clone, Debug)]
pub struct PackedTile(pub Tile);

impl Serialize for PackedTile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tile = serializer.serialize_struct("Tile", 2)?;
        tile.serialize_field("bars", &self.0.bars.iter().map(packed).collect::<Vec<_>>())?;
        if let Some(shade) = &self.0.shade {
            tile.serialize_field("shade", shade)?;
        }
        tile.end()
    }
}

/// A field of a packed bar.
#[derive(Serialize)]
#[serde(untagged)]
enum Field<'a> {
    Number(i64),
    Text(&'a str),
    Numbers(Vec<i64>),
    None(()),
}

fn packed(bar: &TileBar) -> Vec<Field<'_>> {
    let TileBar { from, to, job, kind, class, rows, title, promise, failed, unkept, likely } = bar;
    let since = |at: i64| at.saturating_sub(*from);
    let flags = i64::from(*failed) + 2 * i64::from(*unkept);
    let rows = match rows[..] {
        [(low, above)] if above == low + 1 => Field::Number(low.into()),
        _ => Field::Numbers(
            rows.iter().flat_map(|(low, above)| [(*low).into(), (above - low).into()]).collect(),
        ),
    };
    let mut fields = vec![
        Field::Number(*from),
        Field::Number(since(*to)),
        Field::Number(*job),
        Field::Number(*kind as i64),
        Field::Number((*class).into()),
        rows,
    ];
    let last = [
        (!title.is_empty()).then_some(Field::Text(title)),
        promise.map(|promise| Field::Number(since(promise))),
        (flags > 0).then_some(Field::Number(flags)),
        likely.map(|likely| Field::Numbers(likely.map(since).to_vec())),
    ];
    let given = last.iter().rposition(Option::is_some).map_or(0, |place| place + 1);
    fields.extend(last.into_iter().take(given).map(|field| field.unwrap_or(Field::None(()))));
    fields
}

/// How much of each cell is taken by short jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shade {
    /// The bands.
    pub bands: usize,
    /// Runs of cells, column by column from the lowest band: the number of cells, their shade from 0 to 255, and the mean
    /// colour of their jobs, four bits each of red, green and blue.
    pub runs: Vec<(u32, u8, u16)>,
    /// The number of jobs in it.
    pub jobs: usize,
}

impl Bars {
    /// Returns a part of the chart. Returns `None` if the group does not exist, or a size is not allowed.
    ///
    /// It costs O(jobs in the part).
    pub fn tile(&self, request: &TileRequest) -> Option<Tile> {
        let TileRequest { group, from, column, columns, bands, .. } = *request;
        let (index, rows) = (self.indexes.get(group)?, self.groups.get(group)?.rows);
        let sizes = [columns, bands].into_iter().all(|size| (1..=CELLS_MOST).contains(&size));
        if !sizes || column < 1 {
            return None;
        }
        let to = from.saturating_add(column.saturating_mul(i64::try_from(columns).ok()?));
        let least = least_class(index, column, from, to);
        let wide = (least..index.classes()).flat_map(|class| shown(index, class, from, to));
        let bars: Vec<TileBar> = wide.map(|bar| tile_bar(bar, request)).collect();
        let legend = self.legends.iter().find(|legend| legend.by == request.by);
        let mut shading = Shading::new(request, rows, legend);
        for bar in (0..least.min(index.classes())).flat_map(|class| shown(index, class, from, to)) {
            shading.add(bar);
        }
        Some(Tile { bars, shade: shading.shade() })
    }

    /// Returns all bars of a part of the time, whatever their length and number.
    pub(crate) fn within(&self, group: usize, from: i64, to: i64) -> impl Iterator<Item = &Bar> {
        let index = self.indexes.get(group);
        let classes =
            index.into_iter().flat_map(|index| (0..index.classes()).map(move |class| (index, class)));
        classes.flat_map(move |(index, class)| shown(index, class, from, to))
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

pub(crate) fn tile_bar(bar: &Bar, request: &TileRequest) -> TileBar {
    let Bar { job, from, to, kind, rows, classes } = bar;
    let named = to.saturating_sub(*from) / NAMED_LEAST >= request.column;
    let shows_promise = !bar.is_over() || job.unkept;
    let likely = job.likely.filter(|_| job.state.is_before_start());
    TileBar {
        from: *from,
        to: *to,
        job: job.number,
        kind: *kind,
        class: classes[request.by as usize],
        rows: rows.clone(),
        title: if named { job.title() } else { String::new() },
        promise: job.promised_first.or(job.promised).filter(|_| shows_promise),
        failed: job.has_failed(),
        unkept: job.unkept,
        likely: likely.map(|[median, _, last]| [median, last]),
    }
}

/// The colours of the cells of a tile, and how much of each cell is taken.
struct Shading<'a> {
    request: &'a TileRequest,
    rows: u32,
    /// The colours of the legend.
    inks: Vec<Inks>,
    /// Row-milliseconds for each cell, column by column; empty until there is a bar.
    taken: Vec<f64>,
    /// The sums of the colours for each cell, weighted by row-milliseconds.
    colours: Vec<[f32; 3]>,
    jobs: usize,
}

impl<'a> Shading<'a> {
    fn new(request: &'a TileRequest, rows: u32, legend: Option<&Legend>) -> Shading<'a> {
        let inks = legend.into_iter().flat_map(|legend| &legend.entries).map(|entry| entry.inks).collect();
        Shading { request, rows, inks, taken: vec![], colours: vec![], jobs: 0 }
    }

    fn add(&mut self, bar: &Bar) {
        let TileRequest { from, column, columns, bands, by, dark, .. } = *self.request;
        if self.taken.is_empty() {
            self.taken = vec![0.0; columns * bands];
            self.colours = vec![[0.0; 3]; columns * bands];
        }
        self.jobs += 1;
        let inks = self.inks.get(usize::from(bar.classes[by as usize])).copied().unwrap_or_default();
        let colour = inks.fill(dark).parts();
        let (last, column) = (columns as i128 - 1, i128::from(column));
        let relative = |at: i64| i128::from(at) - i128::from(from);
        let (begin, end) = (relative(bar.from), relative(bar.to).max(relative(bar.from) + 1));
        let first = begin.div_euclid(column).clamp(0, last);
        let final_column = (end - 1).div_euclid(column).clamp(0, last);
        for cell in first..=final_column {
            let part = end.min((cell + 1) * column) - begin.max(cell * column);
            if part > 0 {
                self.add_rows(bar, colour, usize::try_from(cell).unwrap_or(0), part as f64);
            }
        }
    }

    /// Adds a part of a bar to a column, in all its bands.
    fn add_rows(&mut self, bar: &Bar, colour: [f32; 3], column: usize, part: f64) {
        let bands = self.request.bands;
        let height = f64::from(self.rows) / bands as f64;
        for &(low, above) in &bar.rows {
            let (low, above) = (f64::from(low), f64::from(above));
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a band, from 0")]
            let (first, last) = ((low / height) as usize, ((above - 1e-9) / height) as usize);
            for band in first..=last.min(bands - 1) {
                let covered = above.min((band + 1) as f64 * height) - low.max(band as f64 * height);
                let weight = covered.max(0.0) * part;
                let cell = column * bands + band;
                self.taken[cell] += weight;
                for (sum, part) in self.colours[cell].iter_mut().zip(colour) {
                    #[expect(clippy::cast_possible_truncation, reason = "a colour needs no more digits")]
                    let weight = weight as f32;
                    *sum += part * weight;
                }
            }
        }
    }

    fn shade(&self) -> Option<Shade> {
        if self.jobs == 0 {
            return None;
        }
        let bands = self.request.bands;
        let whole = f64::from(self.rows) / bands as f64 * self.request.column as f64;
        let mut runs: Vec<(u32, u8, u16)> = vec![];
        for (taken, colour) in self.taken.iter().zip(&self.colours) {
            let (shade, colour) = (level(taken / whole), mixed(*colour, *taken));
            match runs.last_mut() {
                Some((cells, last, same)) if *last == shade && *same == colour => *cells += 1,
                _ => runs.push((1, shade, colour)),
            }
        }
        Some(Shade { bands, runs, jobs: self.jobs })
    }
}

/// Returns a share as a level of 15 from 0 to 255. More levels would be seen by nobody and cost a page twice the bytes.
fn level(share: f64) -> u8 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 15")]
    let step = (share * 15.0).ceil().clamp(0.0, 15.0) as u8;
    17 * step
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Job, Schedule, State};

    fn bars(jobs: &[(i64, i64, u64)]) -> Bars {
        let job = |(number, &(start, length, procs)): (i64, &(i64, i64, u64))| Job {
            number,
            procs,
            state: State::Ended,
            start: Some(start),
            end: Some(start + length),
            ..Job::default()
        };
        Bars::new(&Schedule::of_jobs(8, (1..).zip(jobs).map(job)))
    }

    fn cells(tile: &Tile) -> Vec<u8> {
        let runs = tile.shade.iter().flat_map(|shade| shade.runs.clone());
        runs.flat_map(|(cells, shade, _)| vec![shade; cells as usize]).collect()
    }

    #[test]
    fn a_packed_bar_has_no_empty_end() {
        let bar = TileBar {
            from: 1000,
            to: 1500,
            job: 7,
            kind: Kind::Ran,
            class: 2,
            rows: vec![(3, 4)],
            title: String::new(),
            promise: None,
            failed: false,
            unkept: false,
            likely: None,
        };
        let late = TileBar { rows: vec![(0, 2), (4, 9)], promise: Some(900), unkept: true, ..bar.clone() };
        let tile = Tile { bars: vec![bar, late], shade: None };
        let expected = serde_json::json!({"bars": [[1000, 500, 7, 0, 2, 3], [1000, 500, 7, 0, 2, [0, 2, 4, 5], null, -100, 2]]});
        assert_eq!(serde_json::to_value(PackedTile(tile)).unwrap(), expected);
    }

    #[test]
    fn a_short_job_is_a_shade() {
        let bars = bars(&[(0, 100, 8), (100, 1, 4)]);
        let request =
            TileRequest { group: 0, from: 0, column: 10, columns: 20, bands: 2, ..TileRequest::default() };
        let tile = bars.tile(&request).unwrap();
        assert_eq!(tile.bars.iter().map(|bar| bar.job).collect::<Vec<_>>(), [1]);
        let cells = cells(&tile);
        assert_eq!(cells.len(), 40);
        let taken: Vec<(usize, u8)> = cells.into_iter().enumerate().filter(|(_, shade)| *shade > 0).collect();
        assert_eq!(taken, [(20, 34)], "a tenth of one cell");
        assert_eq!(bars.range, Some((0, 101)));
    }

    #[test]
    fn a_size_that_is_not_allowed_gives_nothing() {
        let bars = bars(&[(0, 1, 1)]);
        let request =
            TileRequest { group: 0, from: 0, column: 1, columns: 1, bands: 1, ..TileRequest::default() };
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
            let request = TileRequest { group: 0, from, column, columns, bands: 4, ..TileRequest::default() };
            let tile = bars(&jobs).tile(&request).unwrap();
            let to = from + column * i64::try_from(columns).unwrap();
            let inside = |(start, length, _): &&(i64, i64, u64)| *start < to && start + length > from;
            let shaded = tile.shade.as_ref().map_or(0, |shade| shade.jobs);
            prop_assert_eq!(tile.bars.len() + shaded, jobs.iter().filter(inside).count());
        }
    }
}
