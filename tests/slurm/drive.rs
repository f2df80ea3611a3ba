//! `miserly slurm drive`: a policy schedules a real cluster.

use std::os::unix::process::CommandExt;

use super::*;

/// A user that is an operator of the accounting, and nothing else.
const OPERATOR: u32 = 65534;

/// A running driver, killed at its end.
struct Driver<'a> {
    cluster: &'a Cluster,
    state: String,
    arguments: Vec<String>,
    child: Child,
}

impl<'a> Driver<'a> {
    /// Starts a driver that runs as an operator.
    fn start(cluster: &'a Cluster, name: &str, arguments: &[&str]) -> Driver<'a> {
        cluster.run("sacctmgr", &["-i", "add", "account", "all"]);
        let operator = ["-i", "add", "user", "nobody", "account=all", "adminlevel=Operator"];
        cluster.run("sacctmgr", &operator);
        until("there is an operator", || {
            cluster.text("sacctmgr", &["-n", "list", "user", "nobody"]).contains("Operator")
        });
        let state = cluster.folder.path().join(name);
        fs::create_dir_all(&state).unwrap();
        std::os::unix::fs::chown(&state, Some(OPERATOR), Some(OPERATOR)).unwrap();
        let state = state.to_str().unwrap().to_owned();
        let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        let child = Driver::spawn(cluster, &state, &arguments);
        let driver = Driver { cluster, state, arguments, child };
        until("the driver holds the nodes", || {
            cluster.text("scontrol", &["show", "reservation"]).contains("miserly")
        });
        driver
    }

    fn spawn(cluster: &Cluster, state: &str, arguments: &Vec<String>) -> Child {
        let log = cluster.folder.path().join("drive.log");
        let log = fs::File::options().create(true).append(true).open(log).unwrap();
        // The folder of the build may be closed to others. What is open is executed.
        let program = cluster.folder.path().join("miserly");
        if !program.exists() {
            fs::copy(env!("CARGO_BIN_EXE_miserly"), &program).unwrap();
            fs::set_permissions(cluster.folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .unwrap();
        }
        Command::new(program)
            .args(["slurm", "drive", "--json", "--state", state, "--slurm-conf", &cluster.configuration])
            .args(arguments)
            .uid(OPERATOR)
            .gid(OPERATOR)
            .current_dir("/")
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn again(&mut self) {
        self.child = Driver::spawn(self.cluster, &self.state, &self.arguments);
    }

    /// What `queue` says.
    fn queue(&self) -> Value {
        self.cluster.json(&["queue", "--json", "--state", &self.state])
    }

    fn job(&self, id: &str) -> Option<Value> {
        let queue = self.queue();
        queue["jobs"].as_array().unwrap().iter().find(|job| job["job"] == id).cloned()
    }

    /// Waits for something. If it does not come, the log of the driver says what did.
    #[track_caller]
    fn until(&self, what: &str, mut is_true: impl FnMut() -> bool) {
        for _ in 0..TRIES {
            if is_true() {
                return;
            }
            sleep(Duration::from_millis(100));
        }
        let queue = self.cluster.text("squeue", &["-r", "-o", "%i %T %r %v %N %k"]);
        panic!("{what}: not within a minute\n{queue}\n{}", self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.cluster.folder.path().join("drive.log")).unwrap()
    }
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.cluster.miserly(&["hand-back"]);
    }
}

/// A source of numbers that is the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

impl Cluster {
    /// The runs of jobs, by the accounting: state, start, end, node list, processors.
    fn runs(&self, jobs: &[String]) -> BTreeMap<String, Vec<Vec<String>>> {
        let format = "JobID,State,Start,End,NodeList,AllocCPUS";
        let text = self.text("sacct", &["-X", "-D", "-P", "-n", "-a", "-S", "now-1hours", "-o", format]);
        let mut runs: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
        for line in text.lines() {
            let values: Vec<String> = line.split('|').map(str::to_owned).collect();
            if jobs.contains(&values[0]) {
                runs.entry(values[0].clone()).or_default().push(values[1..].to_vec());
            }
        }
        runs
    }

    fn comment_of(&self, job: &str) -> String {
        self.text("squeue", &["-h", "-j", job, "-o", "%k"]).trim().trim_matches('"').to_owned()
    }
}

/// Checks that each job ran once, and that each promise was kept, or broken with a cause.
#[track_caller]
fn check(cluster: &Cluster, driver: &Driver<'_>, jobs: &[String], cancelled: &[String]) {
    let unfinished = |runs: &BTreeMap<String, Vec<Vec<String>>>| {
        jobs.iter()
            .filter(|job| runs.get(*job).is_none_or(|runs| runs.iter().any(|run| run[2] == "Unknown")))
            .count()
    };
    until("the accounting knows all jobs", || unfinished(&cluster.runs(jobs)) == 0);
    for (job, runs) in cluster.runs(jobs) {
        let fine = runs[0][0] == "COMPLETED" || cancelled.contains(&job);
        assert!(runs.len() == 1 && fine, "job {job}: {runs:?}\n{}", driver.log());
    }
    let queue = driver.queue();
    for late in queue["late"].as_array().unwrap() {
        assert!(late["broken"].is_string(), "a promise was broken without a cause: {late}\n{}", driver.log());
    }
}

#[test]
fn a_driver_starts_each_job_once_and_resumes_after_each_kill() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let mut driver = Driver::start(&cluster, "kills", &["-p", "conservative"]);
    let mut dice = Dice(7);
    let mut jobs = vec![];
    for round in 0..6 {
        for _ in 0..5 {
            let cpus = format!("-n{}", 1 + dice.roll(12));
            let sleep = format!("sleep {}", 1 + dice.roll(4));
            jobs.push(cluster.submit(&[&cpus, "-t1"], &sleep));
        }
        sleep(Duration::from_millis(300 + dice.roll(2500)));
        if round % 2 == 1 {
            driver.kill();
            driver.again();
        }
    }
    // Nodes of a certain form, and an array.
    jobs.push(cluster.submit(&["-N2", "--ntasks-per-node=3", "-t1"], "sleep 1"));
    let array = cluster.submit(&["-n3", "-t1", "-a", "1-3"], "sleep 1");
    jobs.extend((1..=3).map(|task| format!("{array}_{task}")));
    driver.until("all jobs are done", || cluster.text("squeue", &["-h"]).is_empty());
    check(&cluster, &driver, &jobs, &[]);
    driver.until("the last reading shows it", || driver.queue()["jobs"] == Value::Array(vec![]));
    let queue = driver.queue();
    assert_eq!(queue["started"].as_u64().unwrap(), jobs.len() as u64, "{queue}");
    assert!(queue["promised"].as_u64().unwrap() >= 30, "{queue}");
}

#[test]
fn a_driver_copes_with_what_others_do() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let driver = Driver::start(&cluster, "others", &["-p", "conservative"]);
    let filler = cluster.submit(&["-n32", "-t2"], "sleep 300");
    driver.until("the machine is full", || cluster.state_of(&filler) == "RUNNING");
    // It runs although it has no reservation of its own; the others wait behind it.
    let waits = cluster.submit(&["-n32", "-t1", "--comment", "mine"], "sleep 1");
    let held = cluster.submit(&["-n1", "-t1"], "sleep 1");
    let after = cluster.submit(&["-n1", "-t1", "-d", &format!("afterany:{waits}")], "sleep 1");
    let named = cluster.submit(&["-n2", "-t1", "-w", "node3"], "sleep 1");
    let cancelled = cluster.submit(&["-n4", "-t1"], "sleep 1");
    driver
        .until("a promise is told", || cluster.comment_of(&waits).starts_with("mine | miserly: starts by "));
    cluster.text("scontrol", &["hold", &held]);
    cluster.text("scancel", &[&cancelled]);
    driver.until("the dependency is told", || cluster.comment_of(&after).contains("it waits for other jobs"));
    driver.until("the hold is told", || cluster.comment_of(&held).contains("not planned: it is held"));
    assert_eq!(driver.job(&held).unwrap()["why"], "it is held");
    // The limit of a waiting job, and of the running one.
    cluster.text("scontrol", &["update", &format!("JobId={waits}"), "TimeLimit=2"]);
    let before = cluster.comment_of(&waits);
    cluster.text("scontrol", &["update", &format!("JobId={filler}"), "TimeLimit=20"]);
    driver.until("the promise moves with the limit", || cluster.comment_of(&waits) != before);
    assert!(driver.job(&waits).unwrap()["broken"].as_str().unwrap().contains("limit"), "{}", driver.log());
    // A node goes, and comes back.
    cluster.text("scontrol", &["update", "NodeName=node4", "State=DRAIN", "Reason=test"]);
    cluster.text("scancel", &[&filler]);
    driver.until("a job on the node of its choice runs", || cluster.state_of(&named) != "PENDING");
    driver.until("the wide job waits for the node", || {
        cluster.comment_of(&waits).contains("not planned: too few nodes in service")
    });
    assert_eq!(cluster.state_of(&waits), "PENDING");
    cluster.text("scontrol", &["update", "NodeName=node4", "State=RESUME"]);
    cluster.text("scontrol", &["release", &held]);
    driver.until("all jobs are done", || cluster.text("squeue", &["-h"]).is_empty());
    let jobs = [&waits, &held, &after, &named].map(Clone::clone);
    check(&cluster, &driver, &jobs, &[]);
    assert_eq!(cluster.runs(&jobs)[&named][0][3], "node3");
}

#[test]
fn without_its_driver_a_cluster_schedules_by_itself_and_is_taken_back() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let mut driver = Driver::start(&cluster, "fallback", &["-p", "easy", "--fallback", "1min"]);
    let runs = cluster.submit(&["-n32", "-t5"], "sleep 200");
    driver.until("it runs", || cluster.state_of(&runs) == "RUNNING");
    let next = cluster.submit(&["-n32", "-t5"], "sleep 30");
    let last = cluster.submit(&["-n32", "-t5"], "sleep 1");
    driver.until("the driver knows both", || driver.job(&next).is_some() && driver.job(&last).is_some());
    driver.kill();
    cluster.text("scancel", &[&runs]);
    sleep(Duration::from_secs(10));
    assert_eq!(cluster.state_of(&next), "PENDING", "the reservation has some time left");
    // The reservation ends. Jobs that run in it go on, and others start.
    for _ in 0..3 {
        if cluster.state_of(&next) == "PENDING" {
            sleep(Duration::from_secs(30));
        }
    }
    driver.until("Slurm starts it", || cluster.state_of(&next) == "RUNNING");
    driver.again();
    driver.until("the driver sees it", || driver.job(&next).is_some_and(|job| job["stage"] == "running"));
    let reservation = cluster.text("scontrol", &["show", "reservation"]);
    assert!(reservation.contains("miserly"), "{reservation}");
    cluster.text("scancel", &[&next]);
    driver.until("the last one is done", || cluster.text("squeue", &["-h"]).is_empty());
    check(&cluster, &driver, &[last], &[]);
}

#[test]
fn a_dry_run_changes_nothing_and_a_wrong_call_is_one_clear_line() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let said = |arguments: &[&str]| {
        let output = cluster.miserly(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    };
    let job = cluster.submit(&["-n3", "-t1", "--hold"], "true");
    let plan = cluster.miserly(&["drive", "-p", "easy", "--dry-run"]);
    let plan = String::from_utf8(plan.stdout).unwrap();
    assert!(plan.starts_with("scontrol create reservation ReservationName=miserly Nodes=node1,"), "{plan}");
    assert!(
        plan.contains(&format!("scontrol update JobId={job} Comment=\"miserly: not planned: it is held\"")),
        "{plan}"
    );
    assert!(cluster.text("scontrol", &["show", "reservation"]).contains("No reservations"));
    let folder = cluster.folder.path().join("wrong");
    let state = folder.to_str().unwrap();
    let wrong = said(&["drive", "-p", "easy", "--state", state, "--partition", "none"]);
    assert!(wrong.contains("no partition none; it has batch, long"), "{wrong}");
    let suspends = said(&["drive", "-p", "ss", "--state", state]);
    assert!(suspends.contains("cannot drive a cluster: it needs to suspend jobs"), "{suspends}");
    assert!(!folder.exists(), "a wrong call leaves no folder");
    let none = said(&["queue", "--state", state]);
    assert!(none.contains("no driver has its state in"), "{none}");
    let back = cluster.miserly(&["hand-back"]);
    assert_eq!(
        String::from_utf8(back.stdout).unwrap(),
        "there is no reservation miserly: Slurm schedules by itself\n"
    );
    cluster.cancel_all();
}
