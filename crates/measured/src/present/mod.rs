//! The page of a measurement.

mod machine;

mod load;

mod copies;

mod day;

mod latency;

mod pools;

use std::collections::BTreeMap;

use miserly_kernels::Kernel;
use miserly_report::decimals;
use miserly_report::page::{Block, Claim, ClaimVerdict, Page, Section, TableCell, TableData};

pub(crate) use self::machine::Circumstances;
use crate::bench::Bench;
use crate::interactive::{CopyTimes, Machine};
use crate::latency::Latencies;
use crate::load::LoadTimes;
use crate::pools::Pools;
use crate::throughput::Throughput;

/// The results of the parts that were measured.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) load: Option<LoadTimes>,
    pub(crate) interactive: Option<BTreeMap<(Kernel, Machine), CopyTimes>>,
    pub(crate) throughput: Option<Throughput>,
    pub(crate) latency: Option<Latencies>,
    pub(crate) pools: Option<Pools>,
}

/// Returns the page.
pub(crate) fn page(bench: &Bench<'_>, circumstances: &Circumstances, results: &Results) -> Page {
    let mut sections = vec![machine::machine(bench, circumstances), machine::kernels()];
    sections.extend(results.pools.iter().flat_map(pools::sections));
    sections.extend(results.load.iter().flat_map(|load| load::sections(load, circumstances)));
    sections.extend(results.interactive.iter().map(copies::interactive));
    sections.extend(results.throughput.iter().map(|part| copies::throughput(part, &bench.site)));
    sections.extend(results.throughput.iter().map(day::section));
    sections.extend(results.latency.iter().map(latency::section));
    if machine::is_disturbed(bench) {
        leave_undecided(&mut sections);
    }
    sections.push(machine::disturbance(bench));
    let mechanisms = vec![Block::Claims(bench.checks.claims())];
    sections.push(Section { heading: "Mechanisms".into(), blocks: mechanisms });
    Page {
        title: crate::TITLE.into(),
        lead: Some(
            "The experiments of section 5 on real processes of one machine, under a daemon of their own. \
             Times differ from run to run and from machine to machine."
                .into(),
        ),
        sections,
        provenance: machine::provenance(bench),
    }
}

/// Withdraws the verdicts on times: they may come from other programs.
fn leave_undecided(sections: &mut [Section]) {
    for block in sections.iter_mut().flat_map(|section| &mut section.blocks) {
        if let Block::Claims(claims) = block {
            for claim in claims {
                claim.verdict = ClaimVerdict::Unknown;
            }
        }
    }
}

/// Returns a table with a row of headings. All columns but the first are numbers.
fn table(caption: &str, header: &[String], rows: Vec<Vec<String>>) -> Block {
    let cell = |(column, text): (usize, String)| {
        if column == 0 { TableCell::text(text) } else { TableCell::number(text) }
    };
    Block::Table(TableData {
        caption: Some(caption.into()).filter(|text: &String| !text.is_empty()),
        header: vec![header.to_vec()],
        rows: rows.into_iter().map(|row| row.into_iter().enumerate().map(cell).collect()).collect(),
    })
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Returns seconds, or a dash.
fn seconds(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| decimals(value, 2))
}

/// Returns milliseconds, or a dash.
fn milliseconds(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| decimals(1000.0 * value, 1))
}

/// Returns a share as a percentage, or a dash.
fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{} %", decimals(100.0 * value, 1)))
}

/// Returns a claim over figures, which is not decided if one is missing.
fn claim(text: impl Into<String>, figures: &[(&str, Option<f64>)], holds: impl Fn(&[f64]) -> bool) -> Claim {
    let values: Option<Vec<f64>> = figures.iter().map(|(_, value)| *value).collect();
    let verdict = match values {
        Some(values) if holds(&values) => ClaimVerdict::Holds,
        Some(_) => ClaimVerdict::DoesNotHold,
        None => ClaimVerdict::Unknown,
    };
    let shown = |(name, value): &(&str, Option<f64>)| {
        format!("{name}: {}", value.map_or_else(|| "-".into(), |value| decimals(value, 3)))
    };
    let figures = figures.iter().map(shown).collect::<Vec<_>>().join("; ");
    Claim { text: text.into(), verdict, figures, ..Claim::default() }
}

/// Returns the claim as one of the paper's section 5.1. `why` is the reason if it is not found to hold.
fn of_paper(claim: Claim, why: &str) -> Claim {
    let why = if claim.verdict == ClaimVerdict::Holds { String::new() } else { why.to_owned() };
    Claim { section: "§5.1".into(), why, ..claim }
}

/// Returns the claims of a section, if there are any.
fn claims(claims: Vec<Claim>) -> Option<Block> {
    (!claims.is_empty()).then_some(Block::Claims(claims))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_busy_machine_no_claim_is_decided() {
        let claims = vec![claim("less", &[("a", Some(1.0))], |v| v[0] < 2.0)];
        let mut sections = [Section { heading: "Times".into(), blocks: vec![Block::Claims(claims)] }];
        leave_undecided(&mut sections);
        let Block::Claims(claims) = &sections[0].blocks[0] else { panic!("no claims") };
        assert_eq!(claims[0].verdict, ClaimVerdict::Unknown);
    }

    #[test]
    fn a_claim_with_a_missing_figure_is_not_decided() {
        let verdict = |value| claim("less", &[("a", Some(1.0)), ("b", value)], |v| v[0] < v[1]).verdict;
        assert_eq!(verdict(Some(2.0)), ClaimVerdict::Holds);
        assert_eq!(verdict(Some(0.5)), ClaimVerdict::DoesNotHold);
        assert_eq!(verdict(None), ClaimVerdict::Unknown);
    }
}
