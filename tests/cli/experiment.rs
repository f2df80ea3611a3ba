//! Experiments: resumed, interrupted, on one thread or several, and what is wrong with them said where it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::support::{Lab, experiment_with, parsed, small_log};

/// A few runs of a log that a model makes, with a table, a chart and a claim.
const SMALL: &str = r#"
title = "Small"

[[trace]]
name = "made"
model = "feitelson96"
jobs = 400

[policies]
BF = "easy"

[[runs]]
name = "all"
policies = ["BF", "conservative(order=random)"]
estimates = ["exact", "uniform:5"]
seeds = [1, 2]
record = { details = true, gantt = [0, 86400] }

[[table]]
title = "Waits"
value = "metrics.wait.mean"
rows = [{ label = "exact", model = "exact" }, { label = "off by five", model = "uniform" }]
columns = [{ label = "BF", policy = "BF" }, { label = "random", policy = "conservative(order=random)" }]
paper = [[1.0, nan], [2.0, 3.0]]

[[chart]]
title = "Queue"
kind = "series"
value = "waiting"
lines = [{ label = "BF", policy = "BF", model = "exact" }]

[[chart]]
title = "Jobs"
kind = "gantt"
value = "gantt"
lines = [{ label = "BF", policy = "BF", model = "exact" }]

[[claim]]
text = "estimates matter"
holds = "a != b"
let.a = { value = "metrics.wait.mean", policy = "BF", model = "exact" }
let.b = { value = "metrics.wait.mean", policy = "BF", model = "uniform" }
"#;

/// Every file below a folder, with its bytes.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below").to_string_lossy().into_owned();
                files.insert(name, fs::read(&path).expect("a file"));
            }
        }
    }
    files
}

/// Says which files differ, rather than how.
#[track_caller]
fn same(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>) {
    let names = a.keys().chain(b.keys());
    let differ: Vec<&String> = names.filter(|name| a.get(*name) != b.get(*name)).collect();
    assert!(differ.is_empty(), "{differ:?}");
}

/// Returns the result of each claim or reading of one whose line starts so.
fn results<'a>(page: &'a str, claim: &str) -> Vec<&'a str> {
    const RESULTS: [&str; 4] = ["holds", "does not hold", "not decided", "cannot be tested"];
    let lines =
        page.lines().filter(|line| line.strip_prefix("| ").is_some_and(|line| line.starts_with(claim)));
    lines.filter_map(|line| line.split('|').map(str::trim).find(|cell| RESULTS.contains(cell))).collect()
}

#[test]
fn an_experiment_shows_its_tables_charts_and_claims() {
    let lab = Lab::new();
    lab.write("small.toml", SMALL);
    let run = lab.run("experiment run small.toml");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    // Exact estimates draw nothing under BF, so one seed is enough there: 1 + 2 + 2 + 2.
    assert!(run.stderr.contains("small.toml: 7 runs made\n"), "{}", run.stderr);
    for part in ["# Small", "## Waits", "BF ours", "| off by five |", "±", "SHA-256"] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    assert_eq!(results(&run.stdout, "estimates matter"), ["holds"], "{}", run.stdout);
    let files = tree(&lab.path("small-results"));
    for name in
        ["report.html", "report.md", "results.csv", "index.json", "charts/queue.svg", "charts/jobs.svg"]
    {
        assert!(files.contains_key(name), "{name}: {:?}", files.keys());
    }
    assert_eq!(files["report.md"], run.stdout.as_bytes());
    let rows = String::from_utf8(files["results.csv"].clone()).expect("text");
    assert_eq!(rows.lines().count(), 1 + 7, "{rows}");
    assert!(
        rows.starts_with("runs,trace,policy,estimates,model,factor,machine,load,seed,reading,key,"),
        "{rows}"
    );
}

/// Readings of two conventions: an order of events, and another log in place of the first.
const READINGS: &str = r#"
[[trace]]
name = "other"
model = "feitelson96"
jobs = 200

[[reading]]
name = "one at a time"
convention = "event order"
options = { event-order = "sequential" }

[[reading]]
name = "another log"
convention = "log"
traces = { made = "other" }

[[claim]]
text = "the log has 400 jobs"
section = "§9"
why = "It is the one that was made."
holds = "n == 400"
let.n = { value = "jobs.measured", policy = "BF", model = "exact" }

[[claim]]
text = "the log has 200 jobs"
holds = "n == 200"
let.n = { value = "jobs.measured", policy = "BF", model = "exact" }

[[claim]]
text = "users like it"
why = "no user was asked"
"#;

#[test]
fn readings_are_combined_and_tried_for_tables_and_claims() {
    let lab = Lab::new();
    lab.write("small.toml", [SMALL, READINGS].concat());
    let run = lab.run("experiment run small.toml");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for (claim, expected) in [
        // Only the readings that turn it.
        ("the log has 400 jobs", ["holds", "does not hold", "does not hold"].as_slice()),
        // All of them: each alone, and both.
        ("the log has 200 jobs", &["does not hold", "does not hold", "holds", "holds"]),
        ("users like it", &["cannot be tested"]),
    ] {
        assert_eq!(results(&run.stdout, claim), expected, "{claim}: {}", run.stdout);
    }
    for part in [
        "| the log has 400 jobs | §9 | n 400.00 | holds | It is the one that was made. Holds in 1 of 3 other readings. |",
        "| the log has 400 jobs | one at a time + another log | n 200.00 | does not hold |",
        "Reading \"another log\": 0 of 3 cells within 5 % of the paper; the cell that moves most is ",
        "Reading \"one at a time + another log\": ",
    ] {
        assert!(run.stdout.contains(part), "{part:?} is missing in\n{}", run.stdout);
    }
    // The log of the reading has no runs of its own.
    assert!(!lab.read("small-results/results.csv").contains("\nall,other,"));
    let twice = READINGS.replace("\"another log\"", "\"one at a time\"");
    lab.write("twice.toml", [SMALL, &twice].concat());
    let error = lab.run("experiment run twice.toml").stderr;
    assert!(error.contains("reading \"one at a time\": the name is used twice"), "{error}");
}

#[test]
fn a_log_of_another_machine_is_an_error() {
    let lab = Lab::new();
    let job = "1 0 0 10 1 -1 -1 1 60 -1 1 7 -1 1 -1 -1 -1 -1";
    lab.write("KTH-SP2-1996-2.swf.gz", format!("; Computer: Cray T3D\n{job}\n"));
    let run = lab.run("reproduce zotkin-2000 --only 3-shadow --traces .");
    assert_eq!(run.code, Some(2), "{}", run.stdout);
    let problem = "is another log than trace \"KTH\": its header has Computer: Cray T3D, without \"IBM SP2\"";
    assert!(run.stderr.contains(problem), "{}", run.stderr);
}

/// Logs alone, without a run: one that a model makes, one that is not there.
const LOGS: &str = r#"
title = "Logs"

[[trace]]
name = "made"
model = "feitelson96"
jobs = 2000
set = { power_of_two_weight = 50, square_weight = 1, run_order = 3 }

[[trace]]
name = "gone"
file = "GONE-1996-1.swf.gz"
optional = true

[[table]]
title = "Popular sizes"
value = "log.sizes.interesting.powers_of_two.verdict"
digits = 0
rows = [{ label = "made", trace = "made" }, { label = "gone", trace = "gone" }]
columns = [{ label = "popular" }, { label = "jobs in runs", value = "log.run_lengths.all.jobs" }]
paper = [[nan, 1990], [nan, 7]]

[[chart]]
title = "Sizes"
kind = "bars"
value = "log.sizes.histogram"
lines = [{ label = "made", trace = "made" }]

[[chart]]
title = "Runtimes"
kind = "points"
value = "log.runtimes.by_size"
lines = [{ label = "each", trace = "made" }, { label = "tenths", trace = "made", value = "log.runtimes.buckets" }]

[[claim]]
text = "the order is that of the model"
holds = "abs(order - 3) < 0.5"
let.order = { value = "log.run_lengths.all.order", trace = "made" }
"#;

#[test]
fn tables_charts_and_claims_of_logs_need_no_runs() {
    let lab = Lab::new();
    lab.write("logs.toml", LOGS);
    let run = lab.run("experiment run logs.toml");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let page = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "| made | yes | - | - | 2 000 | 1 990 | +0.5 % |",
        "| gone | - | - | - | - | 7 | - |",
        "1 of 1 cells within 5 % of the paper",
        "charts/sizes.svg",
        "charts/runtimes.svg",
    ] {
        assert!(page.contains(part), "{part:?} is missing in\n{}", run.stdout);
    }
    assert_eq!(results(&run.stdout, "the order is that of the model"), ["holds"], "{}", run.stdout);
    // A path to neither a number nor a word.
    lab.write("list.toml", LOGS.replace("log.run_lengths.all.jobs", "log.run_lengths.all.lengths"));
    let error = lab.run("experiment run list.toml").stderr;
    assert!(error.contains("\"log.run_lengths.all.lengths\" is not a number or a string"), "{error}");
}

/// Shipped beside the papers' other experiments.
const WORKLOAD: &str = include_str!("../../crates/experiments/papers/feitelson-1996/1-workload.toml");

#[test]
fn without_its_logs_feitelsons_workload_is_told_of_the_model() {
    let lab = Lab::new();
    lab.write("workload.toml", WORKLOAD);
    let run = lab.run("experiment run workload.toml");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for claim in [
        "Model: the order that is set comes out",
        "model: powers of two are popular",
        "model: the tenth of the parallel jobs that are largest run longer",
    ] {
        assert_eq!(results(&run.stdout, claim), ["holds"], "{claim}: {}", run.stdout);
    }
    for part in [
        "charts/figure-7-sizes-in-the-model.svg",
        "charts/figure-7-repetitions-in-the-model.svg",
        "Not drawn, log missing: SDSC Paragon.",
    ] {
        assert!(run.stdout.contains(part), "{part:?} is missing in\n{}", run.stdout);
    }
    assert_eq!(run.stdout.matches("order: log missing").count(), 1, "{}", run.stdout);
}

#[test]
fn runs_that_are_there_are_kept_and_a_new_policy_is_all_that_is_run() {
    let lab = Lab::new();
    lab.write("small.toml", SMALL);
    lab.run("experiment run small.toml -o out");
    let before = tree(&lab.path("out"));
    let again = lab.run("experiment run small.toml -o out");
    assert!(again.stderr.contains("0 runs made, 7 found and kept"), "{}", again.stderr);
    same(&tree(&lab.path("out")), &before);
    lab.write("small.toml", SMALL.replace(r#"policies = ["BF","#, r#"policies = ["fcfs", "BF","#));
    let more = lab.run("experiment run small.toml -o out");
    // First come first served does not look at estimates, but it is not known not to: each model is a run.
    assert!(more.stderr.contains("3 runs made, 7 found and kept"), "{}", more.stderr);
}

#[test]
fn the_number_of_threads_does_not_show() {
    let [one, two, five] = ["1", "2", "5"].map(|threads| {
        // The provenance has the folder of the results.
        let lab = Lab::new();
        lab.write("small.toml", SMALL);
        let mut command = lab.command("experiment run small.toml -o out");
        assert!(command.env("RAYON_NUM_THREADS", threads).status().expect("a program that starts").success());
        tree(&lab.path("out"))
    });
    same(&one, &two);
    same(&one, &five);
}

/// Waits until so many runs are kept, or a minute; says how many there are.
#[track_caller]
fn wait_for_runs(folder: &Path, least: usize) -> usize {
    for _ in 0..30_000 {
        let runs = fs::read_dir(folder).map_or(0, Iterator::count);
        if runs >= least {
            return runs;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("no {least} runs in a minute");
}

/// Enough runs that the program can be caught in the middle of them.
fn long() -> String {
    SMALL.replace("jobs = 400", "jobs = 4000").replace("seeds = [1, 2]", "repetitions = 40")
}

#[test]
fn a_killed_experiment_goes_on_to_the_same_bytes() {
    let [lab, other] = [Lab::new(), Lab::new()];
    lab.write("small.toml", long());
    other.write("small.toml", long());
    other.run("experiment run small.toml -o out");
    let mut child = lab.command("experiment run small.toml -o out").spawn().expect("a program that starts");
    let done = wait_for_runs(&lab.path("out/runs"), 3);
    child.kill().expect("a kill");
    child.wait().expect("an end");
    let resumed = lab.run("experiment run small.toml -o out");
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    assert!(resumed.stderr.contains("found and kept"), "{done} runs were there: {}", resumed.stderr);
    same(&tree(&lab.path("out")), &tree(&other.path("out")));
    let page = lab.read("out/report.html");
    assert!(page.contains("miserly experiment run small.toml -o out"), "the provenance has the folder");
}

#[test]
fn two_at_once_do_not_share_a_folder() {
    let lab = Lab::new();
    lab.write("small.toml", long());
    let mut first = lab.command("experiment run small.toml -o out").spawn().expect("a program that starts");
    wait_for_runs(&lab.path("out/runs"), 1);
    let second = lab.run("experiment run small.toml -o out");
    first.kill().expect("a kill");
    first.wait().expect("an end");
    assert_eq!(second.code, Some(2));
    assert!(second.stderr.contains("another experiment is writing to this folder"), "{}", second.stderr);
}

#[test]
fn a_result_that_was_cut_short_is_made_again() {
    let lab = Lab::new();
    lab.write("small.toml", SMALL);
    lab.run("experiment run small.toml -o out");
    let before = tree(&lab.path("out"));
    let name = before.keys().find(|name| name.starts_with("runs/")).expect("a run");
    lab.write(&format!("out/{name}"), &before[name][..100]);
    let again = lab.run("experiment run small.toml -o out");
    assert!(again.stderr.contains("1 runs made, 6 found and kept"), "{}", again.stderr);
    same(&tree(&lab.path("out")), &before);
}

#[test]
fn a_report_is_made_of_the_folder_alone() {
    let lab = Lab::new();
    lab.write("small.toml", SMALL);
    lab.run("experiment run small.toml -o out");
    let before = tree(&lab.path("out"));
    fs::remove_file(lab.path("out/report.html")).expect("a report");
    fs::remove_file(lab.path("small.toml")).expect("an experiment");
    assert_eq!(lab.run("report out").code, Some(0));
    same(&tree(&lab.path("out")), &before);
}

#[test]
fn an_optional_log_that_is_missing_is_said_and_passed_over() {
    let lab = Lab::new();
    let there =
        "name = \"gone\"\nfile = \"GONE-1996-1.swf.gz\"\nnote = \"ask the archive\"\noptional = true\n";
    let text = SMALL.replace("[policies]", &format!("[[trace]]\n{there}\n[policies]"));
    let rows = "rows = [{ label = \"gone\", trace = \"gone\", model = \"exact\" }, { label = \"made\", trace = \"made\", model = \"exact\" }]";
    let text = text.replace(
        "rows = [{ label = \"exact\", model = \"exact\" }, { label = \"off by five\", model = \"uniform\" }]",
        rows,
    );
    let text = text.replace("model = \"exact\" }]\n\n", "model = \"exact\", trace = \"made\" }]\n\n");
    let text = text.replace("model = \"exact\" }\nlet.b", "model = \"exact\", trace = \"gone\" }\nlet.b");
    let text = text.replace("model = \"uniform\" }\n", "model = \"uniform\", trace = \"made\" }\n");
    lab.write("small.toml", &text);
    let run = lab.run("experiment run small.toml");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stderr.contains("GONE-1996-1.swf.gz (ask the archive) not found, skipping its tables; searched:"),
        "{}",
        run.stderr
    );
    assert!(run.stdout.contains("| estimates matter | a: log missing | not decided |"), "{}", run.stdout);
    lab.write("small.toml", text.replace("optional = true\n", ""));
    let run = lab.run("experiment run small.toml");
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr.contains("small.toml: the log of trace \"gone\" is missing: GONE-1996-1.swf.gz"),
        "{}",
        run.stderr
    );
}

#[track_caller]
fn refused(from: &str, to: &str, expect: &str) {
    let says = experiment_with(SMALL, from, to);
    assert!(says.contains(expect), "{says}");
}

#[test]
fn mistakes_are_said_where_they_are() {
    refused("title = \"Small\"", "titel = \"Small\"", "unknown field `titel`");
    refused("BF = \"easy\"", "BF = \"eazy\"", "experiment.toml:10: ");
    refused("BF = \"easy\"", "BF = \"eazy\"", "easy");
    refused("\"uniform:5\"", "\"uniform:0\"", "experiment.toml:15: ");
    refused(
        "name = \"all\"",
        "name = \"all\"\ntraces = [\"maed\"]",
        "experiment.toml:14: trace \"maed\" is not defined",
    );
    refused(
        "model = \"feitelson96\"",
        "model = \"feitelson69\"",
        "experiment.toml:4: no model \"feitelson69\"",
    );
    refused(
        "{ label = \"BF\", policy = \"BF\" }, { l",
        "{ label = \"BF\", polcy = \"BF\" }, { l",
        "\"polcy\" is not an axis of the runs",
    );
    refused(
        "value = \"metrics.wait.mean\"\nrows",
        "value = \"metrics.weight.mean\"\nrows",
        "experiment.toml:19: the document of a run has no \"metrics.weight.mean\"",
    );
    refused("paper = [[1.0, nan], [2.0, 3.0]]", "paper = [[1.0, nan]]", "2 rows, but paper has 1");
    refused("title = \"Waits\"", "title = \"Waits\"\ndigits = 100000", "digits must be 0 to 17");
    refused("seeds = [1, 2]", "repetitions = 9000000000000000000", "repetitions must be 1 to 100000");
    refused("jobs = 400", "jobs = 400\noptions = { procs = 0 }", "procs must be 1 to");
    refused("seeds = [1, 2]", "seeds = [1, 2]\nrepetitions = 2", "seeds or repetitions, not both");
    refused("policies = [\"BF\", \"conservative(order=random)\"]", "policies = []", "no run");
    refused("gantt = [0, 86400]", "gantt = [5, 5]", "record.gantt must be [from, to]");
    let batches = "options = { batches = { jobs = 10, count = 3, discard = 1 } }";
    refused(
        "seeds = [1, 2]",
        &format!("seeds = [1, 2]\n{batches}"),
        "remove jobs, longest-waits and gantt from record",
    );
    refused("holds = \"a != b\"", "holds = \"a != c\"", "experiment.toml:38: formula");
    refused(
        "{ label = \"exact\", model = \"exact\" }",
        "{ label = \"exact\", model = \"trace\" }",
        "no run has model = trace",
    );
    refused(
        "{ label = \"exact\", model = \"exact\" }",
        "{ label = \"any\" }",
        "the runs differ in estimates; give estimates = ...",
    );
}

/// One mistake that is known before the runs.
#[track_caller]
fn refused_before_the_runs(from: &str, to: &str, expect: &str) {
    let lab = Lab::new();
    assert!(SMALL.contains(from), "{from}");
    lab.write("small.toml", SMALL.replacen(from, to, 1));
    let run = lab.run("experiment run small.toml");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{}", run.stderr);
    assert!(run.stderr.contains(expect), "{}", run.stderr);
    let stored = lab.path("small-results/runs");
    assert!(!stored.exists() || stored.read_dir().expect("a folder").next().is_none(), "a run was made");
}

#[test]
fn repetitions_of_a_log_need_something_that_is_drawn() {
    let lab = Lab::with_log(&small_log());
    let file = |options: &str, policy: &str| {
        format!(
            "title = \"Repeated\"\n[[trace]]\nname = \"log\"\nfile = \"log.swf\"\n[[runs]]\nname = \"all\"\n\
             policies = [\"{policy}\"]\nrepetitions = 3\n{options}\n[[table]]\ntitle = \"Waits\"\n\
             value = \"metrics.wait.mean\"\nrows = [{{ label = \"log\", trace = \"log\" }}]\n\
             columns = [{{ label = \"mean\", policy = \"{policy}\" }}]\n"
        )
    };
    let run = |options: &str, policy: &str, format: &str| {
        lab.write("repeated.toml", file(options, policy));
        lab.run(&format!("experiment run repeated.toml {format}"))
    };
    let refused = run("", "easy", "");
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""));
    for part in ["nothing is drawn at random on the log \"log\"", "options = { shake = \"30s\" }"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert!(run("", "fcfs(order=random)", "").stderr.contains("3 runs made"));
    let shaken = run("options = { shake = \"30s\" }", "easy", "");
    for part in ["± is half the width", "the log as it is may lie outside"] {
        assert!(shaken.stdout.contains(part), "{part}: {}", shaken.stdout);
    }
    let csv = run("options = { shake = \"30s\" }", "easy", "--csv").stdout;
    assert!(csv.starts_with(",mean\nlog,") && csv.contains(" ±"), "{csv}");
}

#[test]
fn an_experiment_file_is_checked_before_its_runs() {
    refused_before_the_runs(
        "metrics.wait.mean\"\nrows",
        "metrics.wiat.mean\"\nrows",
        "has no \"metrics.wiat.mean\"",
    );
    refused_before_the_runs(
        "value = \"metrics.wait.mean\", p",
        "value = \"metrics.wiat\", p",
        "has no \"metrics.wiat\"",
    );
    refused_before_the_runs(
        "value = \"metrics.wait.mean\", p",
        "value = \"metrics.wait\", p",
        "has the wrong type",
    );
    refused_before_the_runs("value = \"waiting\"", "value = \"wating\"", "has no \"details.series.wating\"");
    refused_before_the_runs("details = true, ", "", "no runs have record.details, which this needs");
    refused_before_the_runs(", gantt = [0, 86400]", "", "no runs have record.gantt, which this needs");
    let metrics = "title = \"Small\"\nmetrics = [\"metrics.wiat.mean\"]";
    refused_before_the_runs("title = \"Small\"", metrics, "small.toml:3: the document of a run has no");
    let exact = "{ label = \"exact\", model = \"exact\" }";
    refused_before_the_runs(exact, "{ label = \"exact\", model = \"trace\" }", "no run has model = trace");
    refused_before_the_runs(exact, "{ label = \"exact\", load = 1.5 }", "load = 1.5");
    let line = "policy = \"BF\", model = \"exact\" }]";
    refused_before_the_runs(line, "policy = \"BF\", model = \"trace\" }]", "no run has model = trace");
    let figure = "model = \"uniform\" }\n";
    refused_before_the_runs(figure, "model = \"trace\" }\n", "no run has model = trace");
    let less = "model = \"uniform\", less = { policy = \"BF\" } }\n";
    refused_before_the_runs(figure, less, "let b: less: policy = BF: the runs differ in estimates");
}

#[test]
fn folders_that_hold_no_results_are_no_reports() {
    let lab = Lab::new();
    let run = lab.run("report .");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("experiment.toml"), "{}", run.stderr);
    let run = lab.run("reproduce zotkin-1999");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("no paper \"zotkin-1999\"; the papers are zotkin-2000"), "{}", run.stderr);
}

#[test]
fn a_paper_without_its_logs_says_which_and_goes_on() {
    let lab = Lab::new();
    let mut command = lab.command("reproduce zotkin-2000 --only 3-shadow");
    let run = command.output().expect("a program that starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert_eq!(run.status.code(), Some(0), "{stderr}");
    for once in [
        "KTH-SP2-1996-2.swf.gz",
        "LLNL-T3D-1996-2.swf.gz",
        "https://www.cs.huji.ac.il/labs/parallel/workload/",
    ] {
        assert_eq!(stderr.matches(once).count(), 1, "{once}: {stderr}");
    }
    let last = stdout.lines().last().unwrap_or_default();
    assert!(last.contains(" claims hold; ") && last.contains(" are not decided"), "{last}");
    assert!(stderr.contains("LLNL-T3D-1996-2.swf.gz (Parallel Workloads Archive"), "{stderr}");
    assert!(stdout.contains("| BF R=1 "), "{stdout}");
    assert_eq!(results(&stdout, "KTH: sorting constrained"), ["not decided"], "{stdout}");
}

#[test]
fn pages_of_runs_are_files_of_their_own() {
    let lab = Lab::new();
    lab.stdout("workload generate --jobs 300 -o made.swf");
    lab.stdout("simulate made.swf -p easy --report one.html --window 0..12h");
    lab.stdout("compare made.swf -p easy -p conservative --report two.html");
    for (name, policies) in [("one.html", 1), ("two.html", 2)] {
        let page = lab.read(name);
        assert!(page.starts_with("<!DOCTYPE html>") && !page.contains("src=\"http"), "{name}");
        assert_eq!(page.matches("id=\"chart-jobs-on-processors").count(), policies, "{name}");
    }
    let run = lab.run("simulate made.swf -p easy --report one.html --window 2h..1h");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("end of the window must be after its start"), "{}", run.stderr);
}

/// The summary has the figures of the terminal. All Gantt charts show the same period, and their legends have words.
#[test]
fn a_page_of_runs_has_the_verdict_the_marks_and_the_recorded_schedule() {
    let lab = Lab::new();
    lab.stdout("workload generate --jobs 300 -o made.swf");
    lab.stdout("simulate made.swf -p fcfs --jobs recorded.swf");
    let compare = "compare recorded.swf -p fcfs -p easy --by user --report page.html";
    let printed = lab.stdout(compare);
    let page = lab.read("page.html");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, verdict) = printed.split_once("verdict: ").expect("a verdict");
    let verdict = words(verdict.split("\n\n").next().unwrap_or_default());
    // On a page, a percent sign stays with its number.
    let lead = verdict.replace(" %", "\u{a0}%");
    assert!(page.contains(&format!("<p class=\"lead\">{lead}</p>")), "{lead}");
    assert!(page.contains("<th scope=\"col\" class=\"number\">recorded</th>"));
    let mean = printed.lines().find(|line| line.starts_with("wait, mean")).expect("a row");
    for cell in mean.split_whitespace().skip(2) {
        assert!(page.contains(&format!(">{cell}</td>")), "{cell}");
    }
    assert!(page.contains("* best of the row") && page.contains("<h2>By user</h2>"));
    let periods = page.split("\"range\":").skip(1).map(|rest| rest.split(']').next());
    let periods: Vec<Option<&str>> = periods.collect();
    // The recorded schedule, one for each policy, and their difference.
    assert_eq!(periods.len(), 4);
    assert!(
        page.contains("The schedules show ") && page.contains("id=\"chart-jobs-on-processors-recorded\"")
    );
    assert!(periods.iter().all(|period| *period == periods[0]));
    assert!(page.contains(">started at once ("));
    assert!(!page.contains("not above zero"));
}

/// The page compares two schedules job by job. The sums of its text are those of the jobs' rows.
#[test]
fn a_page_shows_the_difference_of_two_schedules() {
    let lab = Lab::new();
    lab.stdout("workload generate --jobs 300 -o made.swf");
    let policies = "-p fcfs -p easy -p conservative";
    lab.stdout(&format!(
        "compare made.swf {policies} --difference conservative fcfs --report page.html --jobs rows"
    ));
    let page = lab.read("page.html");
    let starts = |policy: &str| -> Vec<(String, f64)> {
        let text = lab.read(&format!("rows/made-{policy}.csv"));
        let head: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        let column = |name: &str| head.iter().position(|column| *column == name).unwrap();
        let (job, start) = (column("job_id"), column("starting_time"));
        let row = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            (cells[job].to_owned(), cells[start].parse().unwrap())
        };
        text.lines().skip(1).map(row).collect()
    };
    let (before, after) = (starts("conservative"), starts("fcfs"));
    assert_eq!((before.len(), after.len()), (300, 300));
    let changes: Vec<f64> =
        after.iter().map(|(job, start)| start - before.iter().find(|(of, _)| of == job).unwrap().1).collect();
    let number = |holds: fn(&f64) -> bool| changes.iter().filter(|change| holds(change)).count();
    let (earlier, later) = (number(|change| *change < 0.0), number(|change| *change > 0.0));
    assert!(later > 0);
    let text =
        format!("Under fcfs instead of conservative, {earlier} jobs start earlier, {later} start later");
    assert!(page.contains(&text), "{text}");
    assert!(
        page.contains("id=\"chart-difference\"") && page.contains("id=\"chart-change-of-the-mean-wait\"")
    );
    assert!(page.contains("The jobs with the largest changes of the start."));
    // By default against easy, and nothing for a single policy.
    lab.stdout("compare made.swf -p fcfs -p easy --report page.html");
    assert!(lab.read("page.html").contains("Under fcfs instead of easy, "));
    lab.stdout("simulate made.swf -p easy --report page.html");
    assert!(!lab.read("page.html").contains("Difference of two schedules"));
    for (options, message) in [
        ("--difference fcfs sorted", "policy sorted is not compared; add it with --policy"),
        ("--difference fcfs fcfs", "the policies fcfs and fcfs are the same"),
    ] {
        let run = lab.run(&format!("compare made.swf {policies} {options} --report page.html"));
        assert_eq!(run.code, Some(2));
        assert!(run.stderr.contains(message), "{}", run.stderr);
    }
}

/// A log with a start has dates, in its own time zone.
#[test]
fn a_page_has_the_dates_of_the_log() {
    let lab = Lab::new();
    lab.stdout("workload generate --jobs 300 -o made.swf");
    lab.stdout("simulate made.swf -p easy --report page.html");
    assert!(lab.read("page.html").contains(">time of the log</text>"));
    let log = lab
        .read("made.swf")
        .replace("; UnixStartTime: 0", "; UnixStartTime: 953017200\n; TimeZoneString: Europe/Berlin");
    lab.write("dated.swf", &log);
    lab.stdout("simulate dated.swf -p easy --report page.html");
    let page = lab.read("page.html");
    assert!(page.contains(">date in 2000, Europe/Berlin</text>"));
    assert!(!page.contains(">time of the log</text>"));
    lab.stdout("simulate dated.swf -p easy --scale-load 1.1 --report page.html");
    assert!(lab.read("page.html").contains(">time of the log</text>"));
}

#[test]
fn pages_of_gang_runs_have_the_matrix() {
    let lab = Lab::new();
    lab.stdout("workload generate --jobs 300 -o made.swf");
    lab.stdout("compare made.swf -p gang -p easy --report page.html");
    let page = lab.read("page.html");
    assert_eq!(page.matches("id=\"chart-slots-by-processors-gang\"").count(), 1);
    assert_eq!(page.matches("id=\"chart-slots-by-processors").count(), 1, "easy has none");
    assert_eq!(page.matches("id=\"chart-jobs-on-processors").count(), 2);
    assert_eq!(page.matches("The slots alternate on the processors.").count(), 1);
    assert!(!page.contains("The record ends before the window does"));
    // Easy promises, gang does not.
    let forecasts = "Quality of promises as forecasts";
    assert!(page.contains(forecasts));
    lab.stdout("simulate made.swf -p gang --report gang.html");
    assert!(!lab.read("gang.html").contains(forecasts));
}

#[test]
fn an_experiment_draws_the_matrix_of_gang_and_of_nobody_else() {
    let matrix = |policy: &str| {
        let chart = "title = \"Jobs\"\nkind = \"gantt\"\nvalue = \"gantt\"";
        let instead = "title = \"Slots\"\nkind = \"matrix\"\nvalue = \"matrix\"";
        SMALL.replace(chart, instead).replace("BF = \"easy\"", &format!("BF = \"{policy}\""))
    };
    let lab = Lab::new();
    lab.write("small.toml", matrix("gang(packing=first-fit)"));
    let run = lab.run("experiment run small.toml -o results");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let page = lab.read("results/report.html");
    assert!(page.contains("id=\"chart-slots\"") && page.contains("class=\"description\""));
    lab.write("small.toml", matrix("easy"));
    let run = lab.run("experiment run small.toml -o other");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("no matrix was recorded: add gantt = [from, to]"), "{}", run.stderr);
}

#[test]
fn the_example_of_the_docs_runs() {
    let docs = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/experiments.md"))
        .expect("the docs");
    let (_, rest) = docs.split_once("```toml\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let lab = Lab::new();
    lab.write("slowdown.toml", example);
    let run = lab.run("experiment run slowdown.toml");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stdout.contains("## Mean bounded slowdown") && run.stdout.contains("| holds |"),
        "{}",
        run.stdout
    );
}

/// Jobs of 100 s on 4 of 8 processors: two at once, and 50 s after them another one of bob.
const TABLE: [&str; 4] = [
    "number,came,began,ended,cores,owner\n",
    "1,2026-01-10 10:00:00,2026-01-10 10:00:00,2026-01-10 10:01:40,4,ann\n",
    "2,2026-01-10 10:00:00,2026-01-10 10:00:00,2026-01-10 10:01:40,4,bob\n",
    "3,2026-01-10 10:02:30,2026-01-10 10:02:30,2026-01-10 10:04:10,4,bob\n",
];

const COLUMNS: &str = r#"
[columns]
job = "number"
submit = "came"
start = "began"
end = "ended"
procs = "cores"
user = "owner"
"#;

const READ: &str = r#"
title = "Read"
[[trace]]
name = "table"
file = "jobs-*.csv"
read = { columns = "my.toml", time-zone = "Europe/Berlin" }
options = { procs = 4 }
[[runs]]
name = "open"
policies = ["fcfs"]
[[runs]]
name = "closed"
policies = ["fcfs"]
options = { feedback = "sessions" }
[[table]]
title = "Waits"
value = "metrics.wait.mean"
rows = [{ label = "open", runs = "open" }, { label = "closed", runs = "closed" }]
columns = [{ label = "fcfs", policy = "fcfs" }]
"#;

#[test]
fn a_table_is_read_and_users_react() {
    let lab = Lab::new();
    let [header, first, second, third] = TABLE;
    lab.write("jobs-1.csv", [header, first, second].concat());
    lab.write("jobs-2.csv", [header, third].concat());
    lab.write("my.toml", COLUMNS);
    lab.write("read.toml", READ);
    let run = |made: &str| {
        let run = lab.run("experiment run read.toml");
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stderr.contains(&format!("read.toml: {made}\n")), "{}", run.stderr);
        run.stdout
    };
    // On 4 processors job 2 waits for 100 s. As logged, job 3 then waits for 50 s; else it comes 50 s after job 2.
    let page = run("2 runs made");
    for row in ["| open   | 50.00 |", "| closed | 33.33 |"] {
        assert!(page.contains(row), "{row}: {page}");
    }
    let alone =
        lab.run("simulate jobs-*.csv --columns my.toml --time-zone Europe/Berlin --procs 4 -p fcfs --json");
    let alone = parsed(&alone.stdout);
    assert_eq!(alone["metrics"]["wait"]["mean"], 50.0);
    // How a log is read is part of a run's key.
    run("0 runs made, 2 found and kept");
    lab.write("my.toml", format!("{COLUMNS}queue = \"owner\"\n"));
    run("2 runs made");
}

#[test]
fn reading_that_is_not_understood_is_refused() {
    let lab = Lab::new();
    lab.write("jobs-1.csv", TABLE.concat());
    lab.write("my.toml", COLUMNS);
    let given = "read = { columns = \"my.toml\", time-zone = \"Europe/Berlin\" }";
    for (read, problem) in [
        (
            "read = { columns = \"my.toml\", preset = \"eagle\" }",
            "read.toml:3: read: give preset or columns, not both",
        ),
        ("read = { preset = \"eagel\" }", "read.toml:3: read: no preset \"eagel\"; there are: "),
        (
            "read = { columns = \"your.toml\" }",
            "read.toml:3: read: the columns your.toml are missing; searched: ",
        ),
        ("read = { columns = \"read.toml\" }", "read.toml:3: read: read.toml:"),
        ("read = { time-zone = \"Berlin\" }", "read: \"Berlin\": unknown time zone"),
        ("read = { submit-at = \"start\" }", "submit-at = \"start\": must be one of submit, eligible"),
        ("read = { cpus-per-node = 0 }", "cpus-per-node must be 1 or more"),
        ("read = { timezone = \"UTC\" }", "unknown field `timezone`"),
        ("", "a table in csv with the columns number, came, "),
    ] {
        lab.write("read.toml", READ.replace(given, read));
        let run = lab.run("experiment run read.toml");
        assert!(run.code == Some(2) && run.stderr.contains(problem), "{read}: {}", run.stderr);
    }
    refused("jobs = 400", "jobs = 400\nread = { missing-fields = true }", "read are of a file; give file");
    refused(
        "seeds = [1, 2]",
        "seeds = [1, 2]\noptions = { feedback = \"user\" }",
        "feedback = \"user\": must be one of fields, sessions",
    );
    let both = "options = { feedback = \"fields\", batches = { jobs = 10, count = 3, discard = 1 } }";
    refused("seeds = [1, 2]", &format!("seeds = [1, 2]\n{both}"), "give feedback or batches, not both");
}

#[test]
fn tables_are_drawn_as_bars_with_intervals() {
    let lab = Lab::new();
    lab.write("small.toml", SMALL);
    assert_eq!(lab.run("experiment run small.toml -o plain").code, Some(0));
    assert!(!lab.path("plain/charts/waits-bars.svg").exists());
    let run = lab.run("experiment run small.toml --bars");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("waits-bars.svg"), "{}", run.stdout);
    let picture = lab.read("small-results/charts/waits-bars.svg");
    // Two rows of two columns. Exact estimates draw nothing under BF, so that bar has no interval.
    let bars: Vec<&str> =
        picture.split("<title>").skip(2).filter_map(|text| text.split("</title>").next()).collect();
    assert_eq!((bars.len(), picture.matches("class=\"whisker\"").count()), (4, 3), "{bars:?}");
    let with_interval = |bar: &&&str| bar.contains(" to ");
    assert_eq!(bars.iter().filter(with_interval).count(), 3, "{bars:?}");
    assert!(bars.iter().any(|bar| bar.starts_with("exact, BF: ") && !bar.contains(" to ")), "{bars:?}");
    // The folder alone gives the same page.
    let before = tree(&lab.path("small-results"));
    assert_eq!(lab.run("report small-results --bars").code, Some(0));
    same(&tree(&lab.path("small-results")), &before);
}

#[test]
fn machines_loads_and_chosen_figures() {
    let lab = Lab::new();
    lab.write(
        "grid.toml",
        r#"
title = "Grid"
metrics = ["metrics.wait.mean", "settings.procs", "settings.scale_load"]
[[trace]]
name = "made"
model = "feitelson96"
jobs = 200
[[runs]]
name = "all"
policies = ["easy"]
machines = [128, 256]
loads = [0.5, 1, 2]
[[chart]]
title = "Wait by load"
kind = "line"
x = "load"
value = "metrics.wait.mean"
lines = [{ label = "128", machine = 128 }, { label = "256", machine = 256 }]
[[claim]]
text = "the load matters"
holds = "double != single"
let.single = { value = "metrics.wait.mean", machine = 128, load = 1 }
let.double = { value = "metrics.wait.mean", machine = 128, load = 2 }
"#,
    );
    let run = lab.run("experiment run grid.toml");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stderr.contains("6 runs made") && run.stdout.contains("| holds |"),
        "{} {}",
        run.stderr,
        run.stdout
    );
    let rows = lab.read("grid-results/results.csv");
    let head = "runs,trace,policy,estimates,model,factor,machine,load,seed,reading,key,written,";
    assert!(
        rows.starts_with(&format!("{head}metrics.wait.mean,settings.procs,settings.scale_load\n")),
        "{rows}"
    );
    assert!(rows.lines().any(|row| row.contains(",256,0.5,1,") && row.ends_with(",256,0.5")), "{rows}");
    lab.write("grid.toml", lab.read("grid.toml").replace("\"settings.procs\"", "\"settings.prox\""));
    let run = lab.run("experiment run grid.toml");
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr.contains("grid.toml:3: the document of a run has no \"settings.prox\""),
        "{}",
        run.stderr
    );
}

#[test]
fn options_that_exclude_each_other_across_log_and_block_are_refused() {
    let off_line = "jobs = 400\noptions = { offline = true }";
    let raised = "seeds = [1, 2]\nloads = [2]";
    let lab = Lab::new();
    lab.write("small.toml", SMALL.replace("jobs = 400", off_line).replace("seeds = [1, 2]", raised));
    let run = lab.run("experiment run small.toml");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("small.toml:13: give offline or scale-load, not both"), "{}", run.stderr);
}

#[test]
fn a_claim_that_comes_to_no_number_is_not_decided() {
    let lab = Lab::new();
    for formula in ["(a - a) / (b - b)", "a / 0"] {
        lab.write("small.toml", SMALL.replace("a != b", formula));
        let run = lab.run("experiment run small.toml");
        assert_eq!(results(&run.stdout, "estimates matter"), ["not decided"], "{}", run.stdout);
    }
}

#[test]
fn blocks_that_are_set_otherwise_are_not_averaged() {
    let lab = Lab::new();
    let more = "[[runs]]\nname = \"off-line\"\npolicies = [\"BF\"]\nestimates = [\"exact\"]\noptions = { offline = true }\n[[table]]";
    lab.write("small.toml", SMALL.replace("[[table]]", more));
    let run = lab.run("experiment run small.toml");
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr.contains("blocks of runs \"all\" and \"off-line\" both have such runs"),
        "{}",
        run.stderr
    );
}

#[test]
fn what_is_not_ours_is_not_overwritten() {
    let lab = Lab::new();
    lab.write("small.toml", SMALL);
    let run = lab.run("experiment run small.toml -o .");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("has other files and no results"), "{}", run.stderr);
    assert_eq!(lab.files(), ["small.toml"]);
    lab.stdout("workload generate --jobs 50 -o made.swf");
    let log = lab.read("made.swf");
    let run = lab.run("simulate made.swf -p easy --report made.swf");
    assert_eq!((run.code, lab.read("made.swf")), (Some(2), log));
    assert!(run.stderr.contains("the file name must end in .html"), "{}", run.stderr);
}

#[test]
fn what_is_shown_is_there_as_json() {
    let lab = Lab::new();
    lab.write("small.toml", SMALL);
    let run = lab.run("experiment run small.toml --json");
    let page: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(
        (page["title"].as_str(), page["sections"][0]["heading"].as_str()),
        (Some("Small"), Some("Waits"))
    );
    let papers = lab.document("reproduce --json");
    assert_eq!(papers[0]["name"], "zotkin-2000");
    assert_eq!(papers[0]["parts"].as_array().map(Vec::len), Some(7));
}
