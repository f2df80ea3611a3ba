//! The categories of jobs as a grid: a row for each range of runtimes, a column for each range of widths.

use miserly_report::chart::{Axis, Body, Chart, Ramp};
use miserly_run::GroupDoc;

/// The name of the breakdown.
pub(crate) const CATEGORY: &str = "category";

/// A grid of values by category.
pub(crate) struct CategoryGrid {
    rows: Vec<String>,
    columns: Vec<String>,
    cells: Vec<Vec<Option<f64>>>,
}

impl CategoryGrid {
    /// Returns the value of each category. Returns `None` without categories.
    pub(crate) fn new(groups: &[GroupDoc], value: impl Fn(&GroupDoc) -> Option<f64>) -> Option<CategoryGrid> {
        let named: Vec<(&str, &str, Option<f64>)> = groups
            .iter()
            .filter_map(|group| group.group.rsplit_once(' ').map(|(row, column)| (row, column, value(group))))
            .collect();
        let rows = distinct(named.iter().map(|(row, ..)| *row));
        let mut columns = distinct(named.iter().map(|(_, column, _)| *column));
        columns.sort_by_key(|column| least_width(column));
        let cell = |row: &String, column: &String| {
            named.iter().find(|(of, at, _)| of == row && at == column).and_then(|(.., value)| *value)
        };
        let cells = rows.iter().map(|row| columns.iter().map(|column| cell(row, column)).collect()).collect();
        (!rows.is_empty()).then_some(CategoryGrid { rows, columns, cells })
    }

    /// Returns the values in another unit.
    pub(crate) fn divided(mut self, unit: f64) -> CategoryGrid {
        self.cells.iter_mut().flatten().flatten().for_each(|value| *value /= unit);
        self
    }

    /// Returns the largest distance of a value from zero.
    pub(crate) fn farthest(&self) -> f64 {
        self.cells.iter().flatten().flatten().fold(0.0, |most, value| value.abs().max(most))
    }

    pub(crate) fn chart(self, id: &str, title: &str, caption: Option<String>, ramp: Ramp) -> Chart {
        Chart {
            id: id.to_owned(),
            title: title.to_owned(),
            caption,
            x: Axis::category("processors", self.columns),
            y: Axis::category("runtime", self.rows),
            body: Body::Heat { cells: self.cells, ramp, decimals: 1 },
        }
    }
}

/// Returns the least number of processors of a range: `2-8p`, `>32p`.
fn least_width(range: &str) -> u64 {
    let digits: String =
        range.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    let least: u64 = digits.parse().unwrap_or(u64::MAX);
    if range.starts_with('>') { least.saturating_add(1) } else { least }
}

/// Returns each name once, in the order in which they come.
pub(crate) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for name in names {
        if !seen.iter().any(|known| known == name) {
            seen.push(name.to_owned());
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_in_order() {
        let mut widths = [">32p", "9-32p", "1p", "2-8p"];
        widths.sort_by_key(|width| least_width(width));
        assert_eq!(widths, ["1p", "2-8p", "9-32p", ">32p"]);
    }
}
