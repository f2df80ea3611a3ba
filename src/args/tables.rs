//! The options of tables and pages about runs.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, TypedValueParser};
use miserly_report::TableStyle;
use miserly_sim::Grouping;

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
}

impl RunTableArgs {
    /// Returns how tables print on this output.
    pub(crate) fn style(&self) -> TableStyle {
        TableStyle { all_measures: self.all_measures, ..self.table.style() }
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

/// The parser of a grouping of jobs: a name, which the help lists, or ranges.
#[derive(Clone)]
pub(super) struct GroupingParser;

impl TypedValueParser for GroupingParser {
    type Value = Grouping;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Grouping, clap::Error> {
        let parse = |word: &str| word.parse::<Grouping>();
        parse.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Grouping::ALL.into_iter().map(|named| PossibleValue::new(named.as_str()))))
    }
}

/// Parses a window: two times with two points between them.
pub(super) fn window(text: &str) -> Result<[i64; 2], String> {
    let (from, to) = text.split_once("..").ok_or("no .. found; write FROM..TO, such as 2d..3d")?;
    let time = |text: &str| seconds(text).map_err(|problem| problem.to_string());
    let (from, to) = (time(from)?, time(to)?);
    if from < to { Ok([from, to]) } else { Err("the end of the window must be after its start".into()) }
}
