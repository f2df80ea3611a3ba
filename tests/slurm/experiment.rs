//! `miserly experiment run --on slurm`: the runs of an experiment as a job array.

use super::*;

const EXPERIMENT: &str = r#"
title = "Policies by load"

[[trace]]
name = "made"
model = "feitelson96"
jobs = 300

[[runs]]
name = "all"
policies = ["easy", "conservative", "fcfs"]
estimates = ["exact", "uniform:2"]
repetitions = 6

[[table]]
title = "Mean wait"
value = "metrics.wait.mean"
rows = [{ label = "exact", estimates = "exact" }, { label = "bad", estimates = "uniform:2" }]
columns = [{ label = "EASY", policy = "easy" }, { label = "FCFS", policy = "fcfs" }]
"#;

/// The files of a folder of results, but those of the cluster, without the name of the folder.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for part in ["", "runs", "traces", "charts"] {
        for entry in fs::read_dir(folder.join(part)).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                let name = format!("{part}/{}", entry.file_name().display());
                let text = String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned();
                found.insert(name, text.replace(folder.to_str().unwrap(), "DIR"));
            }
        }
    }
    found
}

#[test]
fn an_experiment_on_a_cluster_has_the_bytes_of_one_machine() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let folder = cluster.folder.path().join("experiment");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("file.toml"), EXPERIMENT).unwrap();
    let run = |output: &str, more: &[&str]| {
        let file = folder.join("file.toml");
        let output = folder.join(output);
        let program = env!("CARGO_BIN_EXE_miserly");
        let words = ["experiment", "run", file.to_str().unwrap(), "-o", output.to_str().unwrap()];
        cluster.run(program, &[&words, more].concat())
    };
    assert!(run("here", &[]).status.success());
    // Interrupted at once: the array goes on, and is taken up.
    let (file, there) = (folder.join("file.toml"), folder.join("there"));
    let mut first = Command::new(env!("CARGO_BIN_EXE_miserly"))
        .args(["experiment", "run", file.to_str().unwrap(), "-o", there.to_str().unwrap(), "--on", "slurm"])
        .env("SLURM_CONF", &cluster.configuration)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the array is there", || there.join("slurm/array").exists());
    first.kill().unwrap();
    first.wait().unwrap();
    let again = run("there", &["--on", "slurm", "--partition", "batch", "--sbatch", "--mem=10"]);
    let said = String::from_utf8(again.stderr).unwrap();
    assert!(again.status.success(), "{said}");
    assert_eq!(files(&folder.join("here")), files(&there), "{said}");
    // Runs that are missing are made again, by the tasks of their parts only.
    let runs: Vec<_> = fs::read_dir(there.join("runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    runs[..2].iter().for_each(|run| fs::remove_file(run).unwrap());
    let rest = run("there", &["--on", "slurm"]);
    let said = String::from_utf8(rest.stderr).unwrap();
    assert!(rest.status.success() && said.contains(": 2 tasks;") && said.contains("2 runs made"), "{said}");
    assert_eq!(files(&folder.join("here")), files(&there));
}

#[test]
fn an_experiment_whose_tasks_fail_says_what_they_said() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let folder = cluster.folder.path().join("failing");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("file.toml");
    fs::write(&file, EXPERIMENT).unwrap();
    let (file, output) = (file.to_str().unwrap(), folder.join("out"));
    let output = output.to_str().unwrap();
    let run = |more: &[&str]| {
        let words = ["experiment", "run", file, "-o", output];
        let output = cluster.run(env!("CARGO_BIN_EXE_miserly"), &[&words, more].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let none = run(&["--on", "slurm", "--partition", "none"]);
    assert!(none.contains("no partition none; it has batch, long"), "{none}");
    let wrong = run(&["--part", "4/3"]);
    assert!(wrong.contains("K/N, with K from 1 to N"), "{wrong}");
    // The tasks may not write.
    let failed = run(&["--on", "slurm", "--sbatch", "--uid=65534"]);
    assert!(failed.contains("parts are not complete; the same command makes them again"), "{failed}");
    cluster.cancel_all();
}
