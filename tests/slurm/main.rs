//! `miserly slurm` on a real Slurm cluster of several nodes, which these tests start and stop (`tests/slurm/cluster`).

#![allow(clippy::unwrap_used)] // A helper of a test fails as the test does.

mod drive;
mod experiment;
mod made;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use miserly_test_support::Requirement;
use serde_json::Value;

/// The number of nodes, and their processors. The long tests take others.
const NODES: usize = 4;
const CPUS: u64 = 8;

/// The GPUs of each node.
const GPUS: u64 = 2;

/// Returns a number of the environment.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

/// The longest time for something to happen, in tries of a tenth of a second.
const TRIES: usize = 600;

/// The cluster of all tests; `None` where there can be none.
static CLUSTER: LazyLock<Option<Mutex<Cluster>>> = LazyLock::new(Cluster::start);

/// A running cluster. It is stopped by a process that waits for the end of this one.
struct Cluster {
    configuration: String,
    folder: tempfile::TempDir,
    _stop: (Child, ChildStdin),
}

impl Cluster {
    fn start() -> Option<Mutex<Cluster>> {
        if Requirement::Slurm.is_left_out() {
            return None;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm/cluster");
        let folder = tempfile::Builder::new().prefix("miserly-slurm").tempdir().unwrap();
        let up = Command::new(&script)
            .arg("up")
            .arg(folder.path())
            .args(
                [number("MISERLY_SLURM_NODES", NODES as u64), number("MISERLY_SLURM_CPUS", CPUS)]
                    .map(|n| n.to_string()),
            )
            .env("MISERLY_SLURM_GPUS", number("MISERLY_SLURM_GPUS", GPUS).to_string())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&up.stderr);
        if up.status.code() == Some(3) {
            Requirement::Slurm.is_met(false, &format!("needs a Slurm cluster: {}", said.trim()));
            return None;
        }
        let stop = format!("cat >/dev/null; {} down {}", script.display(), folder.path().display());
        let mut stop =
            Command::new("setsid").args(["sh", "-c", &stop]).stdin(Stdio::piped()).spawn().unwrap();
        let pipe = stop.stdin.take().unwrap();
        assert!(up.status.success(), "{said}");
        let configuration = String::from_utf8_lossy(&up.stdout).trim().to_owned();
        Some(Mutex::new(Cluster { configuration, folder, _stop: (stop, pipe) }))
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        Command::new(program)
            .args(arguments)
            .env("SLURM_CONF", &self.configuration)
            .env("COLUMNS", "200")
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }

    #[track_caller]
    fn text(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.run(program, arguments);
        assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn miserly(&self, arguments: &[&str]) -> Output {
        let all: Vec<&str> = ["slurm"].iter().chain(arguments).copied().collect();
        self.run(env!("CARGO_BIN_EXE_miserly"), &all)
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.miserly(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Submits a job and returns its number.
    #[track_caller]
    fn submit(&self, options: &[&str], script: &str) -> String {
        let head = ["--parsable", "-o", "/dev/null"];
        let all: Vec<&str> = head.iter().chain(options).copied().chain(["--wrap", script]).collect();
        self.text("sbatch", &all).trim().to_owned()
    }

    fn state_of(&self, job: &str) -> String {
        self.text("squeue", &["-h", "-t", "all", "-j", job, "-o", "%T"]).trim().to_owned()
    }

    fn cancel_all(&self) {
        // A driver of a test before this one may still hold the nodes.
        until("the nodes are Slurm's", || {
            self.miserly(&["hand-back"]);
            // It stays for a while after its end.
            !self.text("scontrol", &["show", "reservation"]).contains("State=ACTIVE")
        });
        self.run("scontrol", &["update", "NodeName=ALL", "State=RESUME"]);
        self.text("scancel", &["-u", "root"]);
        until("no job is left", || self.text("squeue", &["-h"]).is_empty());
    }
}

#[track_caller]
fn until(what: &str, is_true: impl FnMut() -> bool) {
    assert!(comes(is_true), "{what}: not within a minute");
}

/// Returns whether something happens within a minute.
fn comes(mut is_true: impl FnMut() -> bool) -> bool {
    (0..TRIES).any(|_| {
        let came = is_true();
        if !came {
            sleep(Duration::from_millis(100));
        }
        came
    })
}

/// The cluster, for one test at a time.
fn cluster() -> Option<MutexGuard<'static, Cluster>> {
    CLUSTER.as_ref().map(|cluster| cluster.lock().unwrap_or_else(PoisonError::into_inner))
}

#[test]
fn the_mirror_has_what_slurm_has() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let runs = cluster.submit(&["-n8", "-N2", "-t5", "-J", "a | b"], "sleep 100");
    until("a job runs", || cluster.state_of(&runs) == "RUNNING");
    let held = cluster.submit(&["-n1", "-t1-2", "--hold"], "true");
    let after = cluster.submit(&["-n1", "-d", &format!("afterok:{runs}")], "true");
    let array = cluster.submit(&["-n32", "-t10", "-a", "1-3"], "true");
    let status = cluster.json(&["status", "--json"]);
    assert_eq!(status["configuration"]["cluster"], "test");
    let jobs = status["jobs"].as_object().unwrap();
    assert_eq!(jobs.len(), 6, "{jobs:#?}");
    let job = &jobs[&runs];
    assert_eq!((job["name"].as_str(), job["state"].as_str()), (Some("a | b"), Some("running")));
    assert_eq!((&job["cpus"], &job["limit"]["seconds"]), (&8.into(), &300.into()));
    assert_eq!(job["on"].as_array().unwrap().len(), 2);
    assert_eq!((&jobs[&held]["priority"], &jobs[&held]["limit"]["seconds"]), (&0.into(), &93_600.into()));
    assert!(jobs[&after]["after"].as_str().unwrap().contains(&runs));
    let tasks = jobs.values().filter(|job| job["array"][0] == array.parse::<u64>().unwrap());
    assert_eq!(tasks.count(), 3);
    let nodes = status["nodes"].as_object().unwrap();
    assert_eq!((nodes.len(), &nodes["node1"]["cpus"]), (NODES, &CPUS.into()));
    let used: u64 = nodes.values().map(|node| node["cpus_used"].as_u64().unwrap()).sum();
    assert_eq!(used, 8);
    assert_eq!(status["partitions"]["long"]["nodes"], serde_json::json!(["node4"]));
    let text = cluster.miserly(&["status"]).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("batch*") && text.contains("JobHeldUser 1") && text.contains("Dependency 1"),
        "{text}"
    );
    let check = cluster.json(&["check", "--probe", "--json"]);
    assert_eq!(check["differences"], serde_json::json!([]), "{check:#}");
    assert_eq!(check["described"], 6, "{check:#}");
    let probe = check["probe"].as_u64().unwrap().to_string();
    until("the probe is gone", || !cluster.text("squeue", &["-h", "-o", "%i"]).contains(&probe));
    let said = check["test_only"].as_str().unwrap();
    assert!(said.contains("to start at"), "{said}");
    // The database learns of a start a moment later.
    until("the accounting is compared", || cluster.json(&["check", "--json"])["accounted"] == 1);
    cluster.cancel_all();
}

#[test]
fn a_watch_shows_each_change_and_survives_a_restart() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let mut watch = Command::new(env!("CARGO_BIN_EXE_miserly"))
        .args(["slurm", "watch", "--slurm-conf", &cluster.configuration])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = |wanted: &dyn Fn(&Value) -> bool| -> Value {
        loop {
            let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if wanted(&line) {
                return line;
            }
        }
    };
    next(&|line| line["node"] == "node4");
    let job = cluster.submit(&["-n32", "-t5"], "sleep 300");
    until("the job runs", || cluster.state_of(&job) == "RUNNING");
    next(&|line| line["job"] == job.as_str());
    cluster.text("scontrol", &["update", "NodeName=node3", "State=DRAIN", "Reason=test"]);
    assert_eq!(next(&|line| line["change"] == "node")["usable"], false);
    cluster.text("scontrol", &["reconfigure"]);
    // Before the node has registered again, Slurm 24.11 refuses this, and mostly does it nevertheless.
    until("the node resumes", || {
        cluster.run("scontrol", &["update", "NodeName=node3", "State=RESUME"]);
        !cluster.text("scontrol", &["show", "node", "node3"]).contains("DRAIN")
    });
    assert_eq!(next(&|line| line["change"] == "node")["usable"], true);
    cluster.text("scontrol", &["update", &format!("JobId={job}"), "TimeLimit=3"]);
    next(&|line| line["change"] == "updated" && line["job"] == job.as_str());
    // The controller goes away, and comes back with its state.
    cluster.text("scontrol", &["shutdown", "slurmctld"]);
    until("the controller is gone", || !cluster.run("squeue", &["-h"]).status.success());
    sleep(Duration::from_secs(3));
    cluster.text("slurmctld", &[]);
    until("the controller is back", || cluster.run("squeue", &["-h"]).status.success());
    until("it knows the job", || cluster.state_of(&job) == "RUNNING");
    cluster.text("scancel", &[&job]);
    // No change was invented while it was away.
    let gone = next(&|line| line["job"] == job.as_str() && line["from"] != "completing");
    assert_eq!(gone["from"], "running", "{gone}");
    watch.kill().unwrap();
    watch.wait().unwrap();
    cluster.cancel_all();
}

#[test]
fn the_accounting_becomes_a_log() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let jobs: Vec<String> =
        (0..3).map(|nth| cluster.submit(&["-n2", "-t3"], &format!("sleep {nth}"))).collect();
    until("they end", || jobs.iter().all(|job| cluster.state_of(job) == "COMPLETED"));
    let out = cluster.folder.path().join("out.swf");
    let log = || {
        let arguments = ["log", "--since", "2020-01-01", "--keep-ids", "-o", out.to_str().unwrap(), "--json"];
        let output = cluster.miserly(&arguments);
        output.status.success().then(|| serde_json::from_slice::<Value>(&output.stdout).unwrap())
    };
    // slurmdbd learns of an end a moment later.
    let rows = || -> BTreeMap<String, Vec<String>> {
        let text = fs::read_to_string(&out).unwrap_or_default();
        let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let lines = text.lines().filter(|line| !line.starts_with(';'));
        lines.map(fields).map(|fields| (fields[0].clone(), fields)).collect()
    };
    until("the log has them", || log().is_some() && jobs.iter().all(|job| rows().contains_key(job)));
    let report = log().unwrap();
    assert_eq!(report["procs"], NODES as u64 * CPUS, "{report}");
    // Nothing is lost in silence.
    let left_out = report["read"].as_u64().unwrap() - report["written"].as_u64().unwrap();
    let lines =
        cluster.text("sacct", &["-X", "-D", "-n", "-P", "-a", "-S", "2020-01-01", "-o", "JobIDRaw,State"]);
    assert_eq!(report["read"].as_u64().unwrap(), lines.lines().count() as u64);
    let unfinished =
        lines.lines().filter(|line| line.ends_with("PENDING") || line.ends_with("RUNNING")).count();
    let never = lines.lines().filter(|line| line.contains("CANCELLED")).count();
    assert!(left_out >= unfinished as u64 && left_out <= (unfinished + never) as u64, "{report}\n{lines}");
    let row = &rows()[&jobs[2]];
    assert_eq!((row[4].as_str(), row[8].as_str(), row[11].as_str()), ("2", "180", "0"), "{row:?}");
    assert!((2..=5).contains(&row[3].parse::<i64>().unwrap()), "{row:?}");
}

#[test]
fn forecasts_stand_beside_those_of_slurm_and_are_audited() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let first = cluster.submit(&["-n32", "-t1"], "sleep 10");
    until("the first job runs", || cluster.state_of(&first) == "RUNNING");
    let second = cluster.submit(&["-n32", "-t1"], "sleep 1");
    let held = cluster.submit(&["-n1", "-t1", "--hold"], "true");
    let wide = cluster.submit(&["-n16", "-t1"], "sleep 1");
    let said = cluster.json(&["forecast", "--json", "--history", "0"]);
    let jobs: Vec<&str> =
        said["jobs"].as_array().unwrap().iter().map(|job| job["job"].as_str().unwrap()).collect();
    assert_eq!(jobs, [&second, &wide], "{said}");
    assert_eq!(said["left_out"][&held], "it is held");
    // Without history, limits are runtimes: the second one starts a minute after the first.
    let start = cluster.json(&["status", "--json"])["jobs"][&first]["start"].as_i64().unwrap();
    assert_eq!(said["jobs"][0]["median"].as_i64().unwrap(), start + 60, "{said}");
    let one = cluster.miserly(&["forecast", &second, "--history", "0"]);
    assert!(one.status.success(), "{one:?}");
    for (job, why) in [(held.as_str(), "it is held"), ("999999", "no such job")] {
        let refused = cluster.miserly(&["forecast", job, "--history", "0"]);
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && text.contains(why), "{text}");
    }
    let rows = cluster.folder.path().join("audit.csv");
    let path = rows.to_str().unwrap();
    let summary = cluster.json(&["audit", "--for", "25s", "--history", "0", "--jobs", path, "--json"]);
    assert_eq!(summary["jobs"], 2, "{summary}");
    // Jobs that end earlier than their limits start earlier than said.
    assert_eq!(summary["simulated"], serde_json::json!([2, 2, 2]));
    assert_eq!(fs::read_to_string(rows).unwrap().lines().count(), 3);
    cluster.cancel_all();
}

#[test]
fn a_forecast_knows_the_nodes_of_a_partition() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    // The queues of the twin are in the order of the first jobs, which another test expects to be of this partition.
    let before = cluster.submit(&["-p", "batch", "-n1", "-t1"], "true");
    until("it ends", || cluster.state_of(&before) == "COMPLETED");
    // The partition has the last node.
    let first = cluster.submit(&["-p", "long", "-n6", "-t2"], "sleep 60");
    until("the first job runs", || cluster.state_of(&first) == "RUNNING");
    let second = cluster.submit(&["-p", "long", "-n4", "-t1"], "sleep 1");
    // The other nodes are idle.
    let said = cluster.json(&["forecast", "--json", "--history", "0"]);
    let start = cluster.json(&["status", "--json"])["jobs"][&first]["start"].as_i64().unwrap();
    assert_eq!(said["jobs"][0]["job"], second.as_str(), "{said}");
    assert_eq!(said["jobs"][0]["median"].as_i64().unwrap(), start + 120, "{said}");
    cluster.cancel_all();
}

#[test]
fn the_twin_and_the_shadow_run_the_accounting_again() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    // In the accounting times have whole seconds.
    sleep(Duration::from_secs(2));
    let since = jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let jobs: Vec<String> = (0..12)
        .map(|nth| {
            // The second partition has one of the nodes, and a lower tier.
            let (partition, procs) =
                if nth % 4 == 2 { ("long", 1 + nth % 8) } else { ("batch", 4 + 7 * nth % 20) };
            let options = ["-p", partition, &format!("-n{procs}"), "-t1"];
            cluster.submit(&options, &format!("sleep {}", 1 + nth % 3))
        })
        .collect();
    until("they end", || jobs.iter().all(|job| cluster.state_of(job) == "COMPLETED"));
    let twin = || cluster.json(&["twin", "--since", &since, "--json"]);
    until("the accounting has them", || twin()["jobs"] == 12);
    let said = twin();
    let policy = said["policy"].as_str().unwrap();
    // The first job is of the higher tier. All jobs are of one association.
    let tiers = "(if(queue == 1, 10, 0) + if(queue == 2, 1, 0)) * 4294967296";
    let parts = "1000 * min(wait / 604800, 1) + 100 * (procs / 32 + 1 / 4) / 2 + 10 * fair_tree";
    // Other tests may have added accounts.
    let order = format!("slurm(order='{tiers} + max(floor({parts}), 1)', half_life=604800s, shares='1*g1");
    assert!(policy.starts_with(&order), "{said}");
    // The interval has the mean length of a cycle in addition.
    let cycles = policy.contains("us, bf_first=") && policy.contains("bf_interval=2");
    assert!(policy.contains("', priority_calc_period=300s") && cycles, "{said}");
    assert!(!said["left_out"].to_string().contains("fair share"), "{said}");
    // From the states of the cluster it starts jobs as Slurm did.
    let [starts, foreseen] = ["starts", "foreseen"].map(|name| said["cycles"][name].as_u64().unwrap());
    assert!(starts > 0 && 2 * foreseen >= starts, "{said}");
    assert!(!said["left_out"].to_string().contains("partition"), "{said}");
    // Each job ends within seconds, and the cluster is full for most of the time.
    assert!(said["difference_95"].as_i64().unwrap() <= 30, "{said}");
    assert!(said["recorded_mean_wait"].as_f64().unwrap() > 0.0, "{said}");
    // With the same policy and the usage of the accounting, the same period has the same result whenever it is asked.
    let given = |until: &str| {
        cluster.json(&["twin", "--since", &since, "--until", until, "--policy", policy, "--json"])
    };
    let until = jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let first = given(&until);
    sleep(Duration::from_secs(3));
    assert_eq!(given(&until), first);
    assert_eq!(first["twin_mean_wait"], said["twin_mean_wait"], "{first}");
    let shadow = cluster.json(&["shadow", "--policy", "fcfs", "--since", &since, "--json"]);
    assert_eq!(shadow["all"]["jobs"], 12, "{shadow}");
    assert_eq!(shadow["real_policy"], format!("the twin of Slurm {}", version(&cluster)), "{shadow}");
    assert_eq!((&shadow["without_nodes"], &shadow["policy"]), (&false.into(), &"fcfs".into()), "{shadow}");
    // The base line is what `twin` prints, and the same cluster with more nodes or another cycle is one option away.
    assert_eq!(shadow["twin_audit"]["twin_mean_wait"], said["twin_mean_wait"], "{shadow}");
    let changed =
        |options: &[&str]| cluster.json(&[&["shadow", "--since", &since, "--json"], options].concat());
    let more = changed(&["--add-nodes", "4"]);
    let wait = |shadow: &Value, name: &str| shadow["all"][name].as_f64().unwrap();
    assert_eq!(more["all"]["mean_wait"], shadow["all"]["mean_wait"], "{more}");
    assert!(wait(&more, "shadow_mean_wait") < wait(&more, "mean_wait"), "{more}");
    let slower = changed(&["--set", "bf_interval=60", "--set", "long:PriorityTier=20"]);
    assert_eq!(slower["policy"], "bf_interval=60, long:PriorityTier=20", "{slower}");
    assert_ne!(slower["all"]["shadow_mean_wait"], slower["all"]["mean_wait"], "{slower}");
    let same = cluster.miserly(&["shadow", "--since", &since, "--set", "PriorityWeightAge=1000"]);
    let problem = String::from_utf8_lossy(&same.stderr).into_owned();
    assert!(same.status.code() == Some(2) && problem.contains("changes nothing in the twin"), "{problem}");
    let none = cluster.miserly(&["twin", "--since", "2036-01-01"]);
    assert_eq!(none.status.code(), Some(2), "{none:?}");
    assert_eq!(String::from_utf8_lossy(&none.stderr).lines().count(), 1, "{none:?}");
}

/// The accounting has options of a script only in the script.
#[test]
fn the_twin_has_the_options_in_scripts() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    sleep(Duration::from_secs(2));
    let since = jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let script = cluster.folder.path().join("one-node.sh");
    let submit = |cpus: u64, seconds: u64| {
        fs::write(&script, format!("#!/bin/sh\n#SBATCH --nodes=1-1 -o /dev/null\n\nsleep {seconds}\n"))
            .unwrap();
        let options = ["--parsable", "-t1", &format!("-n{cpus}"), script.to_str().unwrap()];
        cluster.text("sbatch", &options).trim().to_owned()
    };
    // Three of the processors of each node are idle. The last job needs six of one node.
    let mut jobs: Vec<String> = (0..NODES).map(|_| submit(5, 15)).collect();
    until("they run", || jobs.iter().all(|job| cluster.state_of(job) == "RUNNING"));
    jobs.push(submit(6, 1));
    until("they end", || jobs.iter().all(|job| cluster.state_of(job) == "COMPLETED"));
    let twin = || cluster.json(&["twin", "--since", &since, "--json"]);
    until("the accounting has them", || twin()["jobs"] == NODES as u64 + 1);
    let said = twin();
    // On several nodes it would have started at once.
    assert!(said["difference_95"].as_i64().unwrap() <= 5, "{said}");
    assert!(said["recorded_mean_wait"].as_f64().unwrap() > 1.5, "{said}");
}

/// Returns the version of the controller.
fn version(cluster: &Cluster) -> String {
    let status = cluster.json(&["status", "--json"]);
    status["configuration"]["version"].as_str().unwrap().to_owned()
}

#[test]
fn what_cannot_be_read_is_one_clear_line() {
    let miserly = |arguments: &[&str], path: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_miserly"));
        command.args(arguments);
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let nowhere = miserly(&["slurm", "status"], Some(folder.path().to_str().unwrap()));
    assert!(
        nowhere.contains("scontrol: not found; Slurm's client commands have to be installed"),
        "{nowhere}"
    );
    // Another program of that name.
    let fake = folder.path().join("scontrol");
    fs::write(&fake, "#!/bin/sh\necho nonsense\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&fake, mode).unwrap();
    let nonsense = miserly(&["slurm", "forecast"], Some(&format!("{}:/bin", folder.path().display())));
    assert!(nonsense.contains("scontrol: no ClusterName in \"nonsense\\n\""), "{nonsense}");
    let Some(cluster) = cluster() else { return };
    let configuration = cluster.folder.path().join("empty.conf");
    fs::write(&configuration, "ClusterName=none\nSlurmctldHost=localhost\nSlurmctldPort=1\n").unwrap();
    let refused = miserly(&["slurm", "status", "--slurm-conf", configuration.to_str().unwrap()], None);
    assert!(refused.contains("scontrol failed: ") && refused.lines().count() == 1, "{refused}");
}
