//! The groups of jobs as a grid: a row for each range of runtimes, a column for each range of widths.

use std::collections::BTreeMap;

use miserly_report::chart::{Axis, Body, Chart, Ramp};
use miserly_run::GroupDoc;

/// A grid of values by group. Groups of one property are rows of a single column.
pub(crate) struct GroupGrid {
    axes: [String; 2],
    rows: Vec<String>,
    columns: Vec<String>,
    cells: Vec<Vec<Option<f64>>>,
}

impl GroupGrid {
    /// Returns the value of each group of this grouping. Returns `None` without groups.
    pub(crate) fn new(
        by: &str,
        groups: &[GroupDoc],
        value: impl Fn(&GroupDoc) -> Option<f64>,
    ) -> Option<GroupGrid> {
        let properties = properties(by);
        let (of_rows, of_columns) = properties.rsplit_once(" and ").unwrap_or((&properties, ""));
        let parts = |group: &str| -> (String, String) {
            let parts = group.rsplit_once(' ').filter(|_| !of_columns.is_empty());
            let (row, column) = parts.unwrap_or((group, "all"));
            (row.to_owned(), column.to_owned())
        };
        let filled: BTreeMap<(String, String), Option<f64>> = groups
            .iter()
            .filter(|group| group.jobs > 0)
            .map(|group| (parts(&group.group), value(group)))
            .collect();
        // All groups have the natural order, also the empty ones.
        let all: Vec<(String, String)> = groups.iter().map(|group| parts(&group.group)).collect();
        let mut rows = distinct(all.iter().map(|(row, _)| row.as_str()));
        let mut columns = distinct(all.iter().map(|(_, column)| column.as_str()));
        rows.retain(|row| filled.keys().any(|(of, _)| of == row));
        columns.retain(|column| filled.keys().any(|(_, at)| at == column));
        let cell = |row: &String, column: &String| filled.get(&(row.clone(), column.clone())).copied()?;
        let cells = rows.iter().map(|row| columns.iter().map(|column| cell(row, column)).collect()).collect();
        let axes = [of_rows, of_columns].map(str::to_owned);
        (!rows.is_empty()).then_some(GroupGrid { axes, rows, columns, cells })
    }

    /// Returns the values in another unit.
    pub(crate) fn divided(mut self, unit: f64) -> GroupGrid {
        self.cells.iter_mut().flatten().flatten().for_each(|value| *value /= unit);
        self
    }

    /// Returns the largest distance of a value from zero.
    pub(crate) fn farthest(&self) -> f64 {
        self.cells.iter().flatten().flatten().fold(0.0, |most, value| value.abs().max(most))
    }

    pub(crate) fn chart(self, id: &str, title: &str, caption: Option<String>, ramp: Ramp) -> Chart {
        let [rows, columns] = self.axes;
        Chart {
            id: id.to_owned(),
            title: title.to_owned(),
            caption,
            x: Axis::category(columns, self.columns),
            y: Axis::category(rows, self.rows),
            body: Body::Heat { cells: self.cells, ramp, decimals: 1 },
        }
    }
}

/// Returns the properties of a grouping in words: `runtime and processors` for the categories, and for ranges of both.
pub(crate) fn properties(by: &str) -> String {
    let word = |part: &str| match part.split_once(':').map_or(part, |(property, _)| property) {
        "procs" => "processors".to_owned(),
        "category" => "runtime and processors".to_owned(),
        "estimate-category" => "estimate, runtime and processors".to_owned(),
        other => other.replace('-', " "),
    };
    by.split('+').map(word).collect::<Vec<_>>().join(" and ")
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
    fn groupings_are_properties() {
        let words = [
            ("category", "runtime and processors"),
            ("procs:1,8+runtime:1h", "processors and runtime"),
            ("estimate-category", "estimate, runtime and processors"),
            ("runtime:1h", "runtime"),
            ("lsf-class", "lsf class"),
        ];
        for (by, expect) in words {
            assert_eq!(properties(by), expect);
        }
    }
}
