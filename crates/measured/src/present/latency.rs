//! The delays of starts, and the cost of a launch.

use miserly_report::chart::{Axis, Body, Chart, DataSeries};
use miserly_report::page::{Block, Section};

use super::{claim, milliseconds, table, words};
use crate::latency::Latencies;
use crate::statistics::Sample;

/// Largest delay of a start that counts as on time, seconds: half of what the daemon tolerates before it moves a window.
const ON_TIME: f64 = 0.125;

/// Returns the section.
pub(super) fn section(latencies: &Latencies) -> Section {
    let Latencies { idle, starved, launch } = latencies;
    let row = |name: &str, sample: &Sample| {
        let figures = [sample.least(), sample.percentile(0.5), sample.percentile(0.99), sample.most()];
        let count = sample.values().len().to_string();
        [name.to_owned(), count].into_iter().chain(figures.map(milliseconds)).collect::<Vec<_>>()
    };
    let rows = vec![
        row("promised start to start of the command, idle machine", idle),
        row("the same, over starved opportunistic work", starved),
        row("request to start of the command, free processors", launch),
    ];
    let header = words(&["", "starts", "least, ms", "p50, ms", "p99, ms", "most, ms"]);
    let text = "The starts of a second apart are of jobs on all processors. Below them an opportunistic job has a thread on each processor, \
        and two burners for each processor starve it. The daemon parks it before each start. \
        The instant of the promise is that of the record of the job, and the start is the first instruction of the command.";
    let series =
        [("idle machine", idle), ("over starved work", starved), ("launch", launch)].map(|(name, sample)| {
            DataSeries::cdf(name, &sample.values().iter().map(|s| 1000.0 * s).collect::<Vec<_>>())
        });
    let chart = Chart {
        id: "latency".into(),
        title: "Delay of the start of a command".into(),
        caption: Some("Share of the starts within so many milliseconds.".into()),
        x: Axis::log("delay, ms"),
        y: Axis::linear("share of the starts").between(0.0, 1.0),
        body: Body::Lines { series: series.to_vec() },
    };
    let on_time = claim(
        "A critical job starts on time over starved opportunistic work: 99 of 100 starts within 0.125 s",
        &[("p99, s", starved.percentile(0.99))],
        |delay| delay[0] <= ON_TIME,
    );
    Section {
        heading: "Delay of a start, and cost of a launch".into(),
        blocks: vec![
            Block::Text(text.into()),
            table("", &header, rows),
            Block::Chart(chart),
            Block::Claims(vec![on_time]),
        ],
    }
}
