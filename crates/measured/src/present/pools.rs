//! Figures 3 and 4: what the kernel reports while jobs come and go.

use miserly_report::chart::{Axis, Body, Chart, DataSeries};
use miserly_report::decimals;
use miserly_report::page::{Block, Section};

use super::table;
use crate::pools::{Pools, Readings};

/// The tables that the tests of the virtual machine compare with the values of its kernel.
const ENFORCED: [&str; 2] =
    [include_str!("../../figures/figure-3.txt"), include_str!("../../figures/figure-4.txt")];

/// Returns the sections.
pub(super) fn sections(pools: &Pools) -> Vec<Section> {
    let Pools { processors, memory, keeps_memory } = pools;
    let text = "One interactive program for each processor, and jobs as wide as the pool. \
        The figures are the processor time that the kernel counted (schedstat), over the time between two looks. \
        A job in its window has what it can use; what is left is for the interactive programs.";
    let figure_3 = vec![
        Block::Text(text.into()),
        Block::Chart(chart("figure-3", "Figure 3: processors in use", "processors", processors)),
        steps("Mean of each step, and what the kernel permits to the jobs at its end", processors, 2),
        Block::Text(
            "The same under enforcement, in a virtual machine with four processors, of which three are in the pool, and \
             systemd. It has mechanisms and no times: its steps follow each other without a measure. The values are the \
             processors that the kernel lets interactive programs use (cpuset.cpus.effective of user.slice)."
                .into(),
        ),
        Block::Chart(enforced_processors()),
    ];
    let kept = if *keeps_memory {
        "In its window the kernel keeps the memory of the job (memory.min)."
    } else {
        "Jobs have no control group with memory here, so the kernel keeps no memory for the job, in its window or before: there is \
         no memory.min to read."
    };
    let figure_4 = vec![
        Block::Text(format!(
            "An interactive program, and a batch job with a part of its memory before its window and the rest in it. The figures \
             are the memory that their processes have for themselves (RssAnon). {kept}"
        )),
        Block::Chart(chart("figure-4", "Figure 4: memory in use", "memory, MB", memory)),
        steps("Mean of each step, MB", memory, 1),
        Block::Text(
            "The same under enforcement, in the virtual machine, in steps of 50 MB (memory.current and memory.min).".into(),
        ),
        Block::Chart(enforced_memory()),
    ];
    vec![
        Section {
            heading: "Figure 3: processors between interactive work and batch".into(),
            blocks: figure_3,
        },
        Section { heading: "Figure 4: memory between interactive work and batch".into(), blocks: figure_4 },
    ]
}

fn chart(id: &str, title: &str, unit: &str, readings: &Readings) -> Chart {
    let named = readings.names.iter().zip(&readings.points);
    let series = named.map(|(name, points)| DataSeries::steps(*name, points.clone()));
    Chart {
        id: id.into(),
        title: title.into(),
        caption: Some("Read from the kernel four times a second.".into()),
        x: Axis::linear("time, s").from_zero(),
        y: Axis::linear(unit).from_zero(),
        body: Body::Lines { series: series.collect() },
    }
}

/// Returns a table of the steps.
fn steps(caption: &str, readings: &Readings, digits: usize) -> Block {
    let mut header = vec!["step".to_owned()];
    header.extend(readings.names.iter().map(|name| (*name).to_owned()));
    header.push("permitted to the jobs".to_owned());
    let row = |step: &crate::pools::Step| {
        let mut cells = vec![step.text.to_owned()];
        cells.extend(step.means.iter().map(|mean| decimals(*mean, digits)));
        cells.push(step.permitted.join("; "));
        cells
    };
    table(caption, &header, readings.steps.iter().map(row).collect())
}

/// Returns the rows of a table of the virtual machine: the letter of the step, and the other columns.
fn rows(text: &str) -> Vec<(String, Vec<String>)> {
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let cells = rows.map(|line| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>());
    cells.filter_map(|cells| Some((cells.first()?.clone(), cells[1..].to_vec()))).collect()
}

/// Returns a chart over the steps of a table of the virtual machine.
fn over_steps(id: &str, title: &str, unit: &str, steps: &[String], lines: &[(&str, Vec<f64>)]) -> Chart {
    // Each value holds until the next step, and the last one as long.
    let points = |values: &Vec<f64>| {
        let last = values.last().copied();
        values.iter().copied().chain(last).enumerate().map(|(nth, value)| (nth as f64, value)).collect()
    };
    let series = lines.iter().map(|(name, values)| DataSeries::steps(*name, points(values)));
    Chart {
        id: id.into(),
        title: title.into(),
        caption: Some(format!("Steps {}.", steps.join(", "))),
        x: Axis::linear("step").from_zero(),
        y: Axis::linear(unit).from_zero(),
        body: Body::Lines { series: series.collect() },
    }
}

fn enforced_processors() -> Chart {
    let rows = rows(ENFORCED[0]);
    let steps: Vec<String> = rows.iter().map(|(step, _)| step.clone()).collect();
    let count = |cells: &Vec<String>| crate::checks::numbers(&cells[0]).len() as f64;
    let interactive: Vec<f64> = rows.iter().map(|(_, cells)| count(cells)).collect();
    let all = interactive.first().copied().unwrap_or(0.0);
    let batch = interactive.iter().map(|count| all - count).collect();
    let lines = [("interactive programs", interactive), ("jobs in their windows", batch)];
    over_steps("figure-3-enforced", "Figure 3 under enforcement", "processors", &steps, &lines)
}

fn enforced_memory() -> Chart {
    let rows = rows(ENFORCED[1]);
    let steps: Vec<String> = rows.iter().map(|(step, _)| step.clone()).collect();
    let column = |nth: usize| -> Vec<f64> {
        rows.iter().filter_map(|(_, cells)| cells.get(nth)?.parse().ok()).collect()
    };
    let lines =
        [("interactive program", column(0)), ("batch job", column(1)), ("kept for the batch job", column(2))];
    over_steps("figure-4-enforced", "Figure 4 under enforcement", "memory, MB", &steps, &lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_the_virtual_machine_have_figures_for_each_step() {
        let Body::Lines { series } = enforced_processors().body else { panic!("no lines") };
        let values: Vec<f64> = series[0].points.iter().map(|point| point.1).collect();
        assert_eq!(values, [4.0, 3.0, 3.0, 2.0, 2.0, 4.0, 4.0, 4.0]);
        let Body::Lines { series } = enforced_memory().body else { panic!("no lines") };
        assert!(series.iter().all(|series| series.points.len() == 6));
        assert_eq!(series[2].points[3], (3.0, 100.0));
    }
}
