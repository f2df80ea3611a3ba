//! Policies with suspension, as written and as reference settings, with workloads.

use miserly_core::{Machine, Span};
use miserly_oracle::{NaiveDisk, NaiveLimit, NaiveRule, NaiveSuspension};
use miserly_sim::Job;
use proptest::prelude::*;

use crate::support::{SEED, jobs_in, machine, workload};

/// A policy that suspends.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) naive: NaiveSuspension,
}

impl Setting {
    /// As one writes it on the command line.
    pub(super) fn written(&self) -> String {
        let mut params = match &self.naive.rule {
            NaiveRule::Xfactor { factor, limit, period } => by_xfactor(*factor, *limit, *period),
            NaiveRule::Remaining => vec![],
            NaiveRule::Slices { slice } => vec![format!("slice={slice}s")],
        };
        if let Some(NaiveDisk { rate, read, .. }) = self.naive.disk {
            params.push(format!("overhead={}, rate={rate}", if read { "write+read" } else { "write" }));
        }
        params.push(format!("migrate={}", self.naive.migrates));
        params.push(format!("place={}", if self.naive.spares { "spare" } else { "lowest" }));
        format!("{}({})", self.name(), params.join(", "))
    }

    fn name(&self) -> &'static str {
        match self.naive.rule {
            NaiveRule::Xfactor { limit: None, .. } => "ss",
            NaiveRule::Xfactor { .. } => "tss",
            NaiveRule::Remaining => "srt",
            NaiveRule::Slices { .. } => "is",
        }
    }
}

fn by_xfactor(factor: Option<u64>, limit: Option<NaiveLimit>, period: Option<Span>) -> Vec<String> {
    let or = |value: Option<String>, word: &str| value.unwrap_or_else(|| word.into());
    let mut params = vec![
        format!("sf={}", or(factor.map(decimal), "inf")),
        format!("period={}", or(period.map(|period| format!("{period}s")), "none")),
    ];
    if let Some(NaiveLimit { factor, means }) = limit {
        params.push(format!("limit={}", decimal(factor)));
        let means = means.map(|means| format!("'{}'", means.map(decimal).join(" ")));
        params.push(format!("means={}", or(means, "learned")));
    }
    params
}

fn decimal(millionths: u64) -> String {
    format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
}

/// Returns any of these policies, for jobs with times in units of `unit` seconds.
fn setting(unit: i64) -> impl Strategy<Value = Setting> {
    let disk = (prop::sample::select(vec![2000u64, 50_000, 400_000, 1_000_000_000]), any::<bool>());
    let disk = disk.prop_map(|(rate, read)| NaiveDisk { rate, read, seed: SEED });
    let disk = prop_oneof![Just(None), disk.prop_map(Some)];
    (rule(unit), disk, any::<bool>(), any::<bool>()).prop_map(|(rule, disk, migrates, spares)| Setting {
        naive: NaiveSuspension { rule, disk, migrates, spares },
    })
}

fn rule(unit: i64) -> impl Strategy<Value = NaiveRule> {
    let secs = move |count: i64| Span::from_secs(count * unit).unwrap();
    let factor =
        prop::sample::select(vec![1_000_000u64, 1_000_001, 1_050_000, 1_500_000, 2_000_000, 5_000_000]);
    let factor = prop_oneof![12 => factor.prop_map(Some), 1 => Just(None)];
    let period = prop::sample::select(vec![Some(1), Some(3), Some(7), Some(60), None]);
    let means = prop::array::uniform16(prop::sample::select(vec![1_000_000u64, 1_200_000, 2_500_000]));
    let limit = (prop::sample::select(vec![500_000u64, 1_000_000, 1_500_000]), prop::option::of(means))
        .prop_map(|(factor, means)| NaiveLimit { factor, means });
    let xfactor = (factor, prop::option::of(limit), period);
    prop_oneof![
        4 => xfactor.prop_map(move |(factor, limit, period)| {
            NaiveRule::Xfactor { factor, limit, period: period.map(secs) }
        }),
        1 => Just(NaiveRule::Remaining),
        2 => prop::sample::select(vec![1, 2, 5, 12]).prop_map(move |slice| NaiveRule::Slices { slice: secs(slice) }),
    ]
}

/// A crowded machine of one host, with memory or without, and a policy for it. Times are in tenths,
/// seconds or minutes.
pub(super) fn cases() -> impl Strategy<Value = (Machine, Vec<Job>, Setting)> {
    let memory = prop_oneof![2 => Just(None), 1 => (4u64..14).prop_map(Some)];
    memory.prop_flat_map(cases_on)
}

/// The same on machines without memory.
pub(super) fn plain_cases() -> impl Strategy<Value = (Machine, Vec<Job>, Setting)> {
    cases_on(None)
}

fn cases_on(memory: Option<u64>) -> impl Strategy<Value = (Machine, Vec<Job>, Setting)> {
    let units = prop::sample::select(vec![(300_000, 1), (1_000_000, 1), (60_000_000, 60)]);
    (units, any::<bool>()).prop_flat_map(move |((ticks, unit), overruns)| {
        (workload(overruns), setting(unit)).prop_map(move |((procs, quads), setting)| {
            let machine = memory.map_or(Machine::plain(procs), |memory| machine(&[(procs, memory)]));
            (machine, jobs_in(ticks, &quads), setting)
        })
    })
}
