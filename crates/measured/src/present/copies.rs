//! Figures 6 and 7: copies that start together.

use std::collections::BTreeMap;

use miserly_kernels::Kernel;
use miserly_report::chart::{Axis, Body, Chart, DataSeries};
use miserly_report::page::{Block, Claim, Section};

use super::{claim, of_paper, percent, seconds, table, words};
use crate::interactive::{CopyTimes, Machine};
use crate::options::Site;
use crate::throughput::{Batch, Throughput};

/// Returns the section of Figure 6.
pub(super) fn interactive(times: &BTreeMap<(Kernel, Machine), CopyTimes>) -> Section {
    let latency = |kernel, machine| times.get(&(kernel, machine)).and_then(|times| times.latency.mean());
    let total = |kernel, machine| times.get(&(kernel, machine)).and_then(|times| times.total.mean());
    let chart = chart(
        "figure-6",
        "Figure 6: mean latency of five interactive copies",
        "mean latency, s",
        Machine::ALL
            .iter()
            .map(|machine| (machine.name(), Kernel::ALL.map(|kernel| latency(kernel, *machine)))),
    );
    let row = |kernel: Kernel, machine: Machine| {
        let times = times.get(&(kernel, machine));
        vec![
            format!("{}: {}", kernel.as_str(), machine.name()),
            seconds(latency(kernel, machine)),
            percent(times.and_then(|times| times.latency.variation())),
            seconds(total(kernel, machine)),
        ]
    };
    let rows =
        Kernel::ALL.iter().flat_map(|kernel| Machine::ALL.map(|machine| row(*kernel, machine))).collect();
    let header = words(&["", "mean latency, s", "coeff. of variation", "total time, s"]);
    let claims_of = |kernel: Kernel| -> [Claim; 2] {
        let name = kernel.as_str();
        let [idle, all, half] = Machine::ALL.map(|machine| latency(kernel, machine));
        [
            of_paper(
                claim(
                    format!(
                        "{name}: the latency on all processors with an idle Miserly is much lower than on half: by a quarter at least"
                    ),
                    &[("idle Miserly", idle), ("half", half)],
                    |means| means[0] <= 0.75 * means[1],
                ),
                "",
            ),
            claim(
                format!("{name}: an idle Miserly costs interactive copies nothing: at most 5 %"),
                &[("idle Miserly", idle), ("no Miserly", all)],
                |means| means[0] <= 1.05 * means[1],
            ),
        ]
    };
    Section {
        heading: "Figure 6: interactive copies beside an idle Miserly".into(),
        blocks: vec![
            Block::Chart(chart),
            table("Latency is from the common start to the end of each copy.", &header, rows),
            Block::Claims(Kernel::ALL.iter().flat_map(|kernel| claims_of(*kernel)).collect()),
        ],
    }
}

/// Returns the section of Figure 7.
pub(super) fn throughput(part: &Throughput, site: &Site) -> Section {
    let total = |kernel, batch| part.times.get(&(kernel, batch)).and_then(|times| times.total.mean());
    let chart = chart(
        "figure-7",
        "Figure 7: total time of five copies",
        "total time, s",
        Batch::ALL.iter().map(|batch| (batch.name(), Kernel::ALL.map(|kernel| total(kernel, *batch)))),
    );
    let row = |kernel: Kernel, batch: Batch| {
        let times = part.times.get(&(kernel, batch));
        vec![
            format!("{}: {}", kernel.as_str(), batch.name()),
            seconds(total(kernel, batch)),
            percent(times.and_then(|times| times.total.variation())),
            seconds(times.and_then(|times| times.latency.mean())),
        ]
    };
    let rows = Kernel::ALL.iter().flat_map(|kernel| Batch::ALL.map(|batch| row(*kernel, batch))).collect();
    let header = words(&["", "total time, s", "coeff. of variation", "mean latency, s"]);
    let gain = |kernel| {
        let (plain, early) = (total(kernel, Batch::Plain)?, total(kernel, Batch::Opportunistic)?);
        Some(1.0 - early / plain)
    };
    let mut list: Vec<Claim> = Kernel::ALL
        .iter()
        .flat_map(|kernel| {
            let name = kernel.as_str();
            let [plain, promised, early] = Batch::ALL.map(|batch| total(*kernel, batch));
            [
                of_paper(
                    claim(
                        format!("{name}: opportunistic work shortens the total time"),
                        &[("with", early), ("without", promised)],
                        |times| times[0] < times[1],
                    ),
                    "",
                ),
                of_paper(
                    claim(
                        format!(
                            "{name}: with it the total time is not above that of a plain batch, but for 5 %"
                        ),
                        &[("Miserly", early), ("plain", plain)],
                        |times| times[0] <= 1.05 * times[1],
                    ),
                    "",
                ),
            ]
        })
        .collect();
    // One thread has no synchronisation, so the order of the gains would be chance.
    let threads = site.threads() > 1;
    let shown = |kernel| gain(kernel).filter(|_| threads);
    list.push(of_paper(
        claim(
            "The gain over the plain batch is largest for cg, then bt, and none for ep",
            &[("cg", shown(Kernel::Cg)), ("bt", shown(Kernel::Bt)), ("ep", shown(Kernel::Ep))],
            |gains| gains[0] > gains[1] && gains[1] > gains[2] && gains[2].abs() < 0.05,
        ),
        "Not decided with one thread in a kernel.",
    ));
    Section {
        heading: "Figure 7: five copies as a batch".into(),
        blocks: vec![
            Block::Chart(chart),
            table("The total time is from the first submission to the last end.", &header, rows),
            Block::Claims(list),
        ],
    }
}

/// Returns a chart of points by kernel, a series for each variant.
fn chart<'a>(
    id: &str,
    title: &str,
    label: &str,
    variants: impl Iterator<Item = (&'a str, [Option<f64>; 3])>,
) -> Chart {
    // Side by side, because they may be equal.
    let series = |(number, (name, means)): (usize, (&str, [Option<f64>; 3]))| {
        let beside = 0.1 * number as f64 - 0.1;
        let points = means.into_iter().enumerate();
        let points = points.filter_map(|(at, mean)| Some((at as f64 + beside, mean?))).collect();
        DataSeries::points(name, points)
    };
    Chart {
        id: id.into(),
        title: title.into(),
        caption: Some("Means over the repetitions.".into()),
        x: Axis::category("kernel", Kernel::ALL.map(|kernel| kernel.as_str().to_owned()).to_vec()),
        y: Axis::linear(label).from_zero(),
        body: Body::Lines { series: variants.enumerate().map(series).collect() },
    }
}

#[cfg(test)]
mod tests {
    use miserly_report::page::ClaimVerdict;

    use super::*;
    use crate::statistics::Sample;

    #[test]
    fn with_one_thread_the_order_of_the_gains_is_not_decided() {
        let copies =
            |total: f64| CopyTimes { latency: Sample::default(), total: [total].into_iter().collect() };
        let totals = [(Batch::Plain, 4.0), (Batch::Promised, 6.0), (Batch::Opportunistic, 3.0)];
        let times = Kernel::ALL
            .iter()
            .flat_map(|kernel| totals.map(|(batch, total)| ((*kernel, batch), copies(total))))
            .collect();
        let part = Throughput { times, ..Throughput::default() };
        let last = |cpus: u32| {
            let site = Site::new((0..cpus).collect(), None).unwrap();
            let section = throughput(&part, &site);
            let Some(Block::Claims(claims)) = section.blocks.last() else { panic!("no claims") };
            claims.last().unwrap().verdict
        };
        assert_eq!(last(2), ClaimVerdict::Unknown);
        assert_eq!(last(4), ClaimVerdict::DoesNotHold);
    }
}
