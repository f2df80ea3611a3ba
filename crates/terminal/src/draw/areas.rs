//! The parts of the terminal.

use ratatui::layout::{Rect, Size};

use super::{chart, foot};
use crate::App;
use crate::app::Mode;

/// The parts of the terminal, from the top.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Areas {
    pub(super) head: Rect,
    pub(super) pools: Rect,
    /// The map of the processors, if it is shown in place of the chart and the table.
    pub(super) map: Rect,
    pub(super) chart: Rect,
    pub(super) table: Rect,
    pub(super) sentence: Rect,
    pub(super) foot: Rect,
    /// All but the head and the foot.
    pub(super) body: Rect,
}

/// The least height with a chart.
const WITH_CHART: u16 = 16;

/// The most rows of the chart.
const CHART_MOST: u32 = 16;

impl Areas {
    /// Divides a terminal of this size. A low one has no chart, and a very low one only a head and a table.
    pub(crate) fn new(app: &App, size: Size) -> Areas {
        let Size { width, height } = size;
        let foot = match height {
            0..2 => 0,
            2..5 => u16::from(app.mode != Mode::List),
            5..8 => 1,
            _ => foot::keys_lines(app, width),
        };
        let sentence = match (&app.mode, height) {
            // The effect of a request has all lines that it needs, and on a low terminal its first ones.
            (Mode::Confirm(..), _) => foot::sentence_lines(app, width).min(height.saturating_sub(1 + foot)),
            (_, 0..8) => 0,
            (_, 8..12) => 1,
            _ => foot::sentence_lines(app, width).clamp(2, (height / 6).max(2)),
        };
        let head = height.min(1);
        let pools = if height < 8 { 0 } else { count(app.view.moment.pools.len()).min(height / 6) };
        let pools = pools.min(height.saturating_sub(head + sentence + foot));
        let left = height.saturating_sub(head + pools + sentence + foot);
        let map = if app.processors { left } else { 0 };
        let chart = if height < WITH_CHART || app.processors { 0 } else { chart_rows(app, size) + 1 };
        let chart = chart.min(left);
        let table = left - map - chart;
        let mut y = 0;
        let mut next = |height: u16| {
            let area = Rect::new(0, y, width, height);
            y += height;
            area
        };
        let (head, pools, map, chart) = (next(head), next(pools), next(map), next(chart));
        let (table, sentence, foot) = (next(table), next(sentence), next(foot));
        let body = Rect::new(0, head.bottom(), width, foot.y.saturating_sub(head.bottom()));
        Areas { head, pools, map, chart, table, sentence, foot, body }
    }

    /// Returns the place of the table, with the line of the tabs and that of the columns.
    pub(crate) fn table(&self) -> Rect {
        self.table
    }

    /// Returns the lines of the map that are shown at a time, without its heading.
    pub(crate) fn map_page(&self) -> usize {
        usize::from(self.map.height.saturating_sub(1))
    }

    /// Returns the number of jobs that the table shows at a time.
    pub(crate) fn page(&self) -> usize {
        usize::from(self.table.height.saturating_sub(2))
    }
}

/// Returns the rows of the chart: a quarter of the height, but not more than there are processors.
fn chart_rows(app: &App, Size { width, height }: Size) -> u16 {
    let groups = chart::groups(app, width);
    let rows: u32 = groups.iter().map(|(_, group)| group.rows.max(1)).sum();
    let most = (u32::from(height) / 4).clamp(4, CHART_MOST).max(u32::from(count(groups.len())));
    u16::try_from(rows.min(most)).unwrap_or(0).min(height / 3)
}

fn count(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
