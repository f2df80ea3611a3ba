//! The cells of a chart: which jobs take a part of the time and the rows, and how much of it.

use miserly_view::{Kind, Tile, TileBar, TileRequest};

/// The kinds, by their number in a tile.
const KINDS: [Kind; 7] =
    [Kind::Ran, Kind::Running, Kind::Promised, Kind::Planned, Kind::Likely, Kind::Idle, Kind::Suspended];

/// A cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cell {
    /// The part that is taken, by each kind.
    taken: [f64; KINDS.len()],
    /// The job with the largest part, and this part.
    most: (i64, f64),
}

/// The cells of a group of rows.
#[derive(Debug)]
pub(super) struct Cells {
    pub(super) columns: usize,
    pub(super) bands: usize,
    all: Vec<Cell>,
}

impl Cell {
    /// Returns the kind with the largest part, and whether at least half of the cell is taken. `None` if it is empty.
    pub(super) fn kind(&self) -> Option<(Kind, bool)> {
        let largest =
            (0..KINDS.len()).max_by(|one, other| self.taken[*one].total_cmp(&self.taken[*other]))?;
        let sum: f64 = self.taken.iter().sum();
        (sum > 0.0).then(|| (KINDS[largest], sum >= 0.5))
    }

    /// Returns the job with the largest part; 0 if it is not known.
    pub(super) fn job(&self) -> i64 {
        self.most.0
    }

    fn add(&mut self, kind: usize, job: i64, part: f64) {
        if let Some(taken) = self.taken.get_mut(kind) {
            *taken += part;
        }
        if part > self.most.1 {
            self.most = (job, part);
        }
    }
}

impl Cells {
    /// Returns the cells of a tile of a group with `rows` rows.
    pub(super) fn new(tile: &Tile, request: &TileRequest, rows: u32, now: i64) -> Cells {
        let TileRequest { columns, bands, .. } = *request;
        let mut cells = Cells { columns, bands, all: vec![Cell::default(); columns * bands] };
        for bar in &tile.bars {
            cells.add_bar(bar, request, rows);
        }
        if let Some(shade) = &tile.shade {
            let runs = shade.runs.iter().flat_map(|(length, shade, _)| (0..*length).map(|_| *shade));
            for (place, shade) in runs.enumerate().take(columns * bands).filter(|(_, shade)| *shade > 0) {
                let (column, band) = (place / bands, place % bands);
                let at = request.from.saturating_add(request.column.saturating_mul(to_i64(column)));
                let kind = if at > now { Kind::Promised } else { Kind::Ran };
                cells.at_mut(column, band).add(kind as usize, 0, f64::from(shade) / 255.0);
            }
        }
        cells
    }

    /// Returns a cell. Band 0 has the first rows.
    pub(super) fn at(&self, column: usize, band: usize) -> Cell {
        self.all.get(column * self.bands + band).copied().unwrap_or_default()
    }

    fn at_mut(&mut self, column: usize, band: usize) -> &mut Cell {
        &mut self.all[column * self.bands + band]
    }

    fn add_bar(&mut self, bar: &TileBar, request: &TileRequest, rows: u32) {
        let TileBar { from, to, job, kind, rows: ranges, .. } = bar;
        let height = f64::from(rows.max(1)) / self.bands as f64;
        let width = request.column as f64;
        let (begin, end) = ((from - request.from) as f64 / width, (to - request.from) as f64 / width);
        for &(low, above) in ranges {
            let (low, above) = (f64::from(low) / height, f64::from(above) / height);
            for column in cover(begin, end, self.columns) {
                for band in cover(low, above, self.bands) {
                    let part = part(begin, end, column) * part(low, above, band);
                    self.at_mut(column, band).add(*kind as usize, *job, part);
                }
            }
        }
    }
}

/// Returns the places of unit length that a range covers, also in part.
fn cover(from: f64, to: f64, most: usize) -> std::ops::Range<usize> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    let (first, above) = (from.max(0.0) as usize, (to - 1e-9).max(-1.0).floor() as i64 + 1);
    first..usize::try_from(above).unwrap_or(0).min(most)
}

/// Returns the part of a place that a range covers.
fn part(from: f64, to: f64, place: usize) -> f64 {
    (to.min(place as f64 + 1.0) - from.max(place as f64)).max(0.0)
}

fn to_i64(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
