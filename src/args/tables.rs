//! The options of tables and pages about runs.

use std::io;
use std::path::PathBuf;

use clap::Args;
pub(crate) use miserly_options::{By, GroupingParser};
use miserly_report::TableStyle;
use miserly_report::page::TableFormat;

use super::values::{page_name, seconds};
use crate::colour::colours;
use crate::output::width;

/// The options of tables.
#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    /// Prints times in seconds, such as 6730.28, instead of 1h52m
    #[arg(long)]
    pub(crate) seconds: bool,
}

impl TableArgs {
    /// Returns how tables print on this output.
    pub(crate) fn style(&self) -> TableStyle {
        let colour = colours(&io::stdout());
        TableStyle { width: Some(width()), seconds: self.seconds, colour, ..TableStyle::default() }
    }
}

/// The options of tables of runs.
#[derive(Debug, Args)]
pub(crate) struct RunTableArgs {
    #[command(flatten)]
    table: TableArgs,

    /// Shows all measures in the table, instead of six
    #[arg(long, conflicts_with = "json")]
    all_measures: bool,

    #[command(flatten)]
    format: FormatArgs,
}

/// The formats of tables for other programs.
#[derive(Debug, Args)]
pub(crate) struct FormatArgs {
    /// Prints the tables as Markdown
    #[arg(long, conflicts_with_all = ["json", "latex", "csv"])]
    markdown: bool,

    /// Prints the tables as LaTeX
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    latex: bool,

    /// Prints the tables as CSV; times are in seconds
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

impl FormatArgs {
    fn style(&self, table: &TableArgs) -> TableStyle {
        let style = table.style();
        TableStyle { seconds: style.seconds || self.csv, ..style }
    }

    /// Returns the format that is asked for, if any.
    pub(crate) fn format(&self) -> Option<TableFormat> {
        let formats = [
            (self.markdown, TableFormat::Markdown),
            (self.latex, TableFormat::Latex),
            (self.csv, TableFormat::Csv),
        ];
        formats.into_iter().find_map(|(asked, format)| asked.then_some(format))
    }
}

/// The options of tables that other programs may read.
#[derive(Debug, Args)]
pub(crate) struct ExportedTableArgs {
    #[command(flatten)]
    table: TableArgs,

    #[command(flatten)]
    format: FormatArgs,
}

impl ExportedTableArgs {
    /// Returns how tables print on this output.
    pub(crate) fn style(&self) -> TableStyle {
        self.format.style(&self.table)
    }

    /// Returns the format for another program, if any.
    pub(crate) fn format(&self) -> Option<TableFormat> {
        self.format.format()
    }
}

impl RunTableArgs {
    /// Returns how tables print on this output.
    pub(crate) fn style(&self) -> TableStyle {
        TableStyle { all_measures: self.all_measures, ..self.format.style(&self.table) }
    }

    /// Returns the format for another program, if any.
    pub(crate) fn format(&self) -> Option<TableFormat> {
        self.format.format()
    }
}

/// The options of a page about one or a few runs.
#[derive(Debug, Args)]
pub(crate) struct ReportFileArgs {
    /// Writes a page with tables and charts, as one self-contained HTML file
    #[arg(long, value_name = "FILE.html", value_parser = page_name)]
    pub(crate) report: Option<PathBuf>,

    /// The period of the page's Gantt charts, in log time, such as 2d..3d [default: the day with the longest queue]
    #[arg(long, value_name = "FROM..TO", value_parser = window, requires = "report")]
    pub(crate) window: Option<[i64; 2]>,
}

/// Parses a window: two times with two points between them.
pub(super) fn window(text: &str) -> Result<[i64; 2], String> {
    let (from, to) = text.split_once("..").ok_or("no .. found; write FROM..TO, such as 2d..3d")?;
    let time = |text: &str| seconds(text).map_err(|problem| problem.to_string());
    let (from, to) = (time(from)?, time(to)?);
    if from < to { Ok([from, to]) } else { Err("the end of the window must be after its start".into()) }
}
