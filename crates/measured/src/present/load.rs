//! Figure 5 and the table of determinism.

use miserly_kernels::Kernel;
use miserly_report::chart::{Axis, Body, Chart, DataSeries};
use miserly_report::page::{Block, Claim, Section};

use super::{Circumstances, claim, claims, of_paper, percent, seconds, table};
use crate::load::{LoadTimes, Protection};
use crate::statistics::Sample;

/// Largest growth of a flat run time.
const FLAT: f64 = 1.1;
/// Least share of its processors that a job with a priority gets.
const PROTECTED: f64 = 0.97;
/// Least growth of a run time that burners slow down.
const GROWING: f64 = 1.5;

/// Returns the sections of the part.
pub(super) fn sections(times: &LoadTimes, circumstances: &Circumstances) -> Vec<Section> {
    let mut figure = vec![Block::Text(
        "Burners use processor time without end. They may run on all processors, or on those outside of the pool (elsewhere). \
         A job of Miserly in its window has a priority over them, unless it is switched off. \
         Without it and without control groups with confinement, Miserly and affinity alone are alike. \
         To keep burners elsewhere is the administrator's part then: a cpuset of the interactive sessions."
            .into(),
    )];
    for kernel in Kernel::ALL {
        figure.push(Block::Chart(chart(times, kernel)));
        figure.push(means(times, kernel));
    }
    figure.extend(modes(times));
    let priority = &circumstances.priority;
    figure.extend(claims(
        Kernel::ALL.iter().flat_map(|kernel| figure_claims(times, *kernel, priority)).collect(),
    ));
    let mut sections = vec![
        Section { heading: "Figure 5: run time against burners".into(), blocks: figure },
        Section { heading: "Determinism".into(), blocks: determinism(times) },
    ];
    if !times.wide.is_empty() {
        sections.push(wide(times));
    }
    sections
}

fn mean(times: &LoadTimes, kernel: Kernel, load: usize, protection: Protection) -> Option<f64> {
    times.times.get(&(kernel, load, protection)).and_then(Sample::mean)
}

fn chart(times: &LoadTimes, kernel: Kernel) -> Chart {
    let series = |protection: &Protection| {
        let sample = |load: &usize| Some((*load as f64, times.times.get(&(kernel, *load, *protection))?));
        let samples = || times.loads.iter().filter_map(sample);
        let points = samples().filter_map(|(load, sample)| Some((load, sample.mean()?))).collect();
        let band =
            samples().filter_map(|(load, sample)| Some((load, sample.least()?, sample.most()?))).collect();
        DataSeries::line(protection.name(), points).with_band(band)
    };
    Chart {
        id: format!("figure-5-{}", kernel.as_str()),
        title: format!("Figure 5: run time of {}", kernel.as_str()),
        caption: Some("Mean, with the least and the longest run as a band.".into()),
        x: Axis::linear("burners").from_zero(),
        y: Axis::linear("run time, s").from_zero(),
        body: Body::Lines { series: times.protections.iter().map(series).collect() },
    }
}

fn header(times: &LoadTimes, last: &[&str]) -> Vec<String> {
    let loads = times.loads.iter().map(|load| format!("{load} burners"));
    std::iter::once(String::new()).chain(loads).chain(last.iter().map(|word| (*word).to_owned())).collect()
}

fn means(times: &LoadTimes, kernel: Kernel) -> Block {
    let row = |protection: &Protection| {
        let figures = times.loads.iter().map(|load| seconds(mean(times, kernel, *load, *protection)));
        std::iter::once(protection.name().to_owned()).chain(figures).collect()
    };
    let caption = format!("{}: mean run time, s", kernel.as_str());
    table(&caption, &header(times, &[]), times.protections.iter().map(row).collect())
}

/// Returns the least share of its processors that a job got under most burners.
fn received(times: &LoadTimes, kernel: Kernel, protection: Protection) -> Option<f64> {
    times.received.get(&(kernel, *times.loads.last()?, protection))?.least()
}

/// Returns the modes of Miserly beside each other, with those that this measurement has not.
fn modes(times: &LoadTimes) -> [Block; 2] {
    let row = |(protection, priority): &(Protection, String)| {
        let growths = Kernel::ALL.map(|kernel| seconds(growth(times, kernel, *protection)));
        let least = Kernel::ALL.iter().filter_map(|kernel| received(times, *kernel, *protection));
        let least = percent(least.reduce(f64::min));
        [protection.name().to_owned()].into_iter().chain(growths).chain([least, priority.clone()]).collect()
    };
    let growths = Kernel::ALL.map(|kernel| format!("growth of {}", kernel.as_str()));
    let most = times.loads.last().copied().unwrap_or(0);
    let header: Vec<String> = [String::new()]
        .into_iter()
        .chain(growths)
        .chain([
            format!("least share of its processors, {most} burners"),
            "priority, by its status".to_owned(),
        ])
        .collect();
    let caption =
        "Modes of Miserly, burners everywhere: growth of the mean run time, and processor time over run time";
    let groups = match &times.no_groups {
        Some(why) => format!("Not measured: control groups in a folder ({why}); "),
        None => "Not measured: ".to_owned(),
    };
    let text = groups + "control groups of systemd, whose scopes belong to the machine's own daemon.";
    [table(caption, &header, times.modes.iter().map(row).collect()), Block::Text(text)]
}

/// Returns the run time under most burners over that under none.
fn growth(times: &LoadTimes, kernel: Kernel, protection: Protection) -> Option<f64> {
    let (first, last) = (*times.loads.first()?, *times.loads.last()?);
    Some(mean(times, kernel, last, protection)? / mean(times, kernel, first, protection)?)
}

fn figure_claims(times: &LoadTimes, kernel: Kernel, priority: &str) -> Vec<Claim> {
    let name = kernel.as_str();
    let ratio = |protection| growth(times, kernel, protection);
    let at_zero = |protection| mean(times, kernel, 0, protection);
    let none = [("with Miserly", at_zero(Protection::Miserly)), ("without", at_zero(Protection::None))];
    vec![
        of_paper(
            claim(format!("{name}: without burners Miserly costs nothing: at most 5 %"), &none, |means| {
                means[0] <= 1.05 * means[1]
            }),
            "",
        ),
        of_paper(
            claim(
                format!("{name}: without Miserly the run time grows with the burners: by half at least"),
                &[("growth", ratio(Protection::None))],
                |growth| growth[0] >= GROWING,
            ),
            "",
        ),
        of_paper(
            claim(
                format!("{name}: with Miserly and burners elsewhere it does not: by a tenth at most"),
                &[("growth", ratio(Protection::MiserlyAlone))],
                |growth| growth[0] <= FLAT,
            ),
            "",
        ),
        of_paper(
            claim(
                format!("{name}: with Miserly and burners everywhere it does not either"),
                &[("growth", ratio(Protection::Miserly))],
                |growth| growth[0] <= FLAT,
            ),
            &format!("The priority of jobs in their windows here: {priority}."),
        ),
        Claim {
            section: "§4.1".into(),
            ..claim(
                format!(
                    "{name}: with Miserly and most burners everywhere a job gets 97 % of its processors at least"
                ),
                &[("least", received(times, kernel, Protection::Miserly))],
                |least| least[0] >= PROTECTED,
            )
        },
    ]
}

/// Returns the coefficients of variation, by burners and over all of them.
fn determinism(times: &LoadTimes) -> Vec<Block> {
    let mut blocks = vec![Block::Text(
        "The coefficient of variation of the run time of a critical job: of the repetitions at each number of burners, and of all \
         runs at all numbers. The growth is the mean with most burners over the mean without burners."
            .into(),
    )];
    for kernel in Kernel::ALL {
        let row = |protection: &Protection| {
            let sample = |load: &usize| times.times.get(&(kernel, *load, *protection));
            let each = times.loads.iter().map(|load| percent(sample(load).and_then(Sample::variation)));
            let all: Sample =
                times.loads.iter().filter_map(sample).flat_map(|sample| sample.values().to_vec()).collect();
            let last = [percent(all.variation()), seconds(growth(times, kernel, *protection))];
            std::iter::once(protection.name().to_owned()).chain(each).chain(last).collect()
        };
        let caption = format!("{}: coefficient of variation", kernel.as_str());
        let rows = times.protections.iter().map(row).collect();
        blocks.push(table(&caption, &header(times, &["all runs", "growth"]), rows));
    }
    blocks
}

fn wide(times: &LoadTimes) -> Section {
    let mean = |kernel: Kernel, load: usize| times.wide.get(&(kernel, load)).and_then(Sample::mean);
    let ratio = |kernel: Kernel, load: usize| Some(mean(kernel, load)? / mean(kernel, 0)?);
    let row = |kernel: Kernel| {
        let figures = times.wide_loads.iter().map(|load| seconds(mean(kernel, *load)));
        let growth = times.wide_loads.iter().skip(1).map(|load| seconds(ratio(kernel, *load)));
        std::iter::once(kernel.as_str().to_owned()).chain(figures).chain(growth).collect()
    };
    let loads = times.wide_loads.iter().map(|load| format!("{load} burners, s"));
    let growths = times.wide_loads.iter().skip(1).map(|load| format!("growth at {load}"));
    let header: Vec<String> = std::iter::once(String::new()).chain(loads).chain(growths).collect();
    let most = times.wide_loads.last().copied().unwrap_or(0);
    let [ep, bt, cg] = Kernel::ALL.map(|kernel| ratio(kernel, most));
    let order = of_paper(
        claim(
            "The finer the synchronisation, the more a kernel suffers from burners: ep less than bt, bt less than cg",
            &[("ep", ep), ("bt", bt), ("cg", cg)],
            |growth| growth[0] < growth[1] && growth[1] < growth[2],
        ),
        "",
    );
    let text = "Beyond the paper: a thread on each processor, nothing protects them, and all processors have burners. \
        A thread that waits at a barrier spins for the one that a burner displaced.";
    Section {
        heading: "A thread on each processor".into(),
        blocks: vec![
            Block::Text(text.into()),
            table(
                "Mean run time, and its growth over the run time without burners",
                &header,
                Kernel::ALL.map(row).to_vec(),
            ),
            Block::Claims(vec![order]),
        ],
    }
}
