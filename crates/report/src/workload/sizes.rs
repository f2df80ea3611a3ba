//! Sizes, runtimes by size, and runs of repeated jobs, as text and as JSON (Feitelson 1996, §3).

use miserly_workload::Description;
use miserly_workload::describe::{
    FEW_RUNS, Interest, Interesting, OfSize, Popularity, RunLengths, Runs, SizeBucket, Verdict,
};
use serde_json::{Map, Value, json};

use super::text::{duration, labelled, percent, short};

/// Minimum run lengths for which documents print the order, to show its sensitivity to the choice.
const LEASTS: [u64; 5] = [1, 2, 5, 10, 20];

/// Formats the popularity of sizes, the relation of runtimes to sizes, and the repetition of jobs.
pub(super) fn sizes_text(log: &Description) -> String {
    [popular(&log.sizes.interesting), by_size(&log.runtimes.buckets), run_lengths(&log.run_lengths)].concat()
}

fn popular(kinds: &[Interesting]) -> String {
    if kinds.iter().all(|entry| entry.all.jobs.of == 0) {
        return String::new();
    }
    let line = |name: &str, [jobs, work, times, verdict]: [&str; 4]| {
        format!("{name:28}{jobs:>8}{work:>10}{times:>21}  {verdict}").trim_end().to_owned() + "\n"
    };
    let row = |entry: &Interesting| {
        let work = entry.all.work.map_or_else(|| "-".to_owned(), |work| format!("{:.1} %", 100.0 * work));
        let times =
            entry.all.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{} times", short(ratio)));
        line(
            &format!("  {}", plain(entry.interest)),
            [&percent(entry.all.jobs), &work, &times, &table_2_verdict(entry)],
        )
    };
    let head = line("Sizes of the parallel jobs", ["jobs", "work", "against neighbours", "popular"]);
    head + &kinds.iter().map(row).collect::<String>()
}

fn plain(interest: Interest) -> String {
    interest.name().replace('_', " ")
}

/// Returns the verdict in the notation of Table 2.
fn table_2_verdict(entry: &Interesting) -> String {
    let word = word(entry.verdict());
    if entry.stands_alone() { word.to_owned() } else { format!("({word})") }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::No => "no",
        Verdict::Some => "some",
        Verdict::Yes => "yes",
    }
}

fn by_size(buckets: &[SizeBucket]) -> String {
    if buckets.is_empty() {
        return String::new();
    }
    let item =
        |entry: &SizeBucket| format!("{} on {}", duration(entry.mean_runtime), short(entry.mean_procs));
    let items: Vec<_> = buckets.iter().map(item).collect();
    format!("Mean runtime and size of each tenth of the parallel jobs, by size\n{}", labelled("", &items))
}

fn run_lengths(lengths: &RunLengths) -> String {
    let Some(longest) = lengths.all.longest() else { return String::new() };
    let same = if lengths.by_executable { "same user, executable and size" } else { "same user and size" };
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
    let items = [
        format!("{} runs of {} jobs ({same})", lengths.all.count(), lengths.all.jobs()),
        format!("mean {}", number(lengths.all.mean())),
        format!("longest {longest}"),
        format!("order {}", number(lengths.all.order(FEW_RUNS))),
    ];
    labelled("Repetitions", &items)
}

/// Returns the number of jobs of each size, as bins of width one.
pub(super) fn histogram_json(sizes: &[OfSize]) -> Vec<Value> {
    sizes
        .iter()
        .map(|entry| json!({ "from": entry.procs.get(), "to": entry.procs.get() + 1, "jobs": entry.jobs }))
        .collect()
}

pub(super) fn interesting_json(kinds: &[Interesting]) -> Value {
    let one = |entry: &Interesting| {
        let mut value = popularity(&entry.all);
        value["alone"] = popularity(&entry.alone);
        value["verdict"] = json!(table_2_verdict(entry));
        (entry.interest.name().to_owned(), value)
    };
    Value::Object(kinds.iter().map(one).collect::<Map<_, _>>())
}

fn popularity(entry: &Popularity) -> Value {
    json!({
        "jobs": entry.jobs.count,
        "share": entry.jobs.fraction(),
        "work_share": entry.work,
        "expected": entry.expected,
        "expected_share": (entry.jobs.of > 0).then(|| entry.expected / entry.jobs.of as f64),
        "ratio": entry.ratio(),
        "verdict": word(entry.verdict()),
    })
}

/// Returns each size with the mean runtime of its jobs.
pub(super) fn runtimes_json(sizes: &[OfSize]) -> Vec<(u64, f64)> {
    sizes.iter().filter_map(|entry| Some((entry.procs.get(), entry.mean_runtime()?))).collect()
}

/// Returns the mean size of each bucket with its mean runtime.
pub(super) fn buckets_json(buckets: &[SizeBucket]) -> Vec<(f64, f64)> {
    buckets.iter().map(|entry| (entry.mean_procs, entry.mean_runtime)).collect()
}

pub(super) fn run_lengths_json(lengths: &RunLengths) -> Value {
    json!({
        "by_executable": lengths.by_executable,
        "all": runs(&lengths.all),
        "parallel": runs(&lengths.parallel),
    })
}

fn runs(runs: &Runs) -> Value {
    json!({
        "jobs": runs.jobs(),
        "runs": runs.count(),
        "mean": runs.mean(),
        "longest": runs.longest(),
        "order": runs.order(FEW_RUNS),
        "orders": LEASTS.map(|least| (least, runs.order(least))),
        "lengths": runs.lengths,
    })
}

#[cfg(test)]
mod tests {
    use miserly_workload::{ProcsField, Trace, describe};

    use super::super::text::WIDTH;
    use super::*;

    /// Describes a log on 16 processors with a user who repeats a job and another user in between.
    fn described(executable: i64) -> Description {
        let job = |(number, (user, size, runtime)): (usize, &(u32, u32, u32))| {
            format!(
                "{number} {number} 0 {runtime} {size} -1 -1 {size} -1 -1 1 {user} 1 {executable} 1 1 -1 -1\n"
            )
        };
        let jobs = [(1, 4, 60), (2, 8, 120), (1, 4, 60), (1, 1, 30), (2, 16, 3600), (2, 16, 3600)];
        let lines: String = jobs.iter().enumerate().map(job).collect();
        let trace = Trace::memory("toy", format!("; MaxProcs: 16\n{lines}").into());
        describe(&trace, None, ProcsField::Allocated).unwrap()
    }

    #[test]
    fn as_text() {
        let text = sizes_text(&described(3));
        for part in [
            "  powers of two              100.0 %   100.0 %                    -  yes\n",
            "  squares                     80.0 %    99.2 %                    -  (yes)\n",
            "  multiples of ten             0.0 %     0.0 %                    -  no\n",
            "1m on 4, 1m on 4, 2m on 8, 1h on 16, 1h on 16\n",
            "Repetitions   4 runs of 6 jobs (same user, executable and size), mean 1.5, longest 2, order -\n",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
        assert!(sizes_text(&described(-1)).contains("(same user and size)"));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH && !line.ends_with(' ')), "{text}");
    }

    #[test]
    fn as_json() {
        let log = described(3);
        assert_eq!(histogram_json(&log.sizes.by_size)[1], json!({ "from": 4, "to": 5, "jobs": 2 }));
        let squares = &interesting_json(&log.sizes.interesting)["squares"];
        assert_eq!((&squares["jobs"], &squares["verdict"]), (&json!(4), &json!("(yes)")));
        assert_eq!((&squares["alone"]["jobs"], &squares["ratio"]), (&json!(0), &Value::Null));
        assert_eq!(json!(runtimes_json(&log.sizes.by_size))[0], json!([1, 30.0]));
        assert_eq!(json!(buckets_json(&log.runtimes.buckets))[4], json!([16.0, 3600.0]));
        let runs = run_lengths_json(&log.run_lengths);
        assert_eq!(runs["all"]["lengths"], json!([[1, 2], [2, 2]]));
        assert_eq!(runs["all"]["orders"][0], json!([1, 0.0]));
        assert_eq!((&runs["parallel"]["longest"], &runs["by_executable"]), (&json!(2), &json!(true)));
    }
}
