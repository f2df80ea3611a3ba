//! `miserly slurm drive`: a policy schedules a real cluster.

use std::os::unix::process::CommandExt;

use super::*;

/// A user that is an operator of the accounting, and nothing else. Since 25.11 Slurm takes `nobody` for no user.
pub(super) const OPERATOR: (&str, u32) = ("mail", 8);

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
        let (user, uid) = OPERATOR;
        cluster.run("sacctmgr", &["-i", "add", "user", user, "account=all", "adminlevel=Operator"]);
        cluster.set_level("Operator");
        let state = cluster.folder.path().join(name);
        fs::create_dir_all(&state).unwrap();
        std::os::unix::fs::chown(&state, Some(uid), Some(uid)).unwrap();
        let state = state.to_str().unwrap().to_owned();
        let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        let child = Driver::spawn(cluster, &state, &arguments);
        let driver = Driver { cluster, state, arguments, child };
        until("the driver holds the nodes", || {
            cluster.text("scontrol", &["show", "reservation"]).contains("State=ACTIVE")
        });
        driver
    }

    fn spawn(cluster: &Cluster, state: &str, arguments: &Vec<String>) -> Child {
        let log = fs::File::options().create(true).append(true).open(format!("{state}.log")).unwrap();
        Command::new(program(cluster))
            .args(["slurm", "drive", "--json", "--state", state, "--slurm-conf", &cluster.configuration])
            .args(arguments)
            .uid(OPERATOR.1)
            .gid(OPERATOR.1)
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

    /// The document of `queue`.
    fn queue(&self) -> Value {
        self.cluster.json(&["queue", "--json", "--state", &self.state])
    }

    fn job(&self, id: &str) -> Option<Value> {
        let queue = self.queue();
        queue["jobs"].as_array().unwrap().iter().find(|job| job["job"] == id).cloned()
    }

    /// Waits for something. If it does not come, the log of the driver is shown.
    #[track_caller]
    fn until(&self, what: &str, is_true: impl FnMut() -> bool) {
        if comes(is_true) {
            return;
        }
        let queue = self.cluster.text("squeue", &["-r", "-o", "%i %T %r %v %N %k"]);
        panic!("{what}: not within a minute\n{queue}\n{}", self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(format!("{}.log", self.state)).unwrap()
    }
}

/// Returns the arguments of a driver under a policy, which may have further options behind it.
fn under(policy: &str) -> Vec<&str> {
    ["-p"].into_iter().chain(policy.split_whitespace()).collect()
}

/// Returns a copy of the program that each user may execute. The folder of the build may be closed to others.
fn program(cluster: &Cluster) -> std::path::PathBuf {
    let program = cluster.folder.path().join("miserly");
    if !program.exists() {
        fs::copy(env!("CARGO_BIN_EXE_miserly"), &program).unwrap();
        fs::set_permissions(cluster.folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    program
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
                let runs = runs.entry(values[0].clone()).or_default();
                // The accounting may repeat the row of a run whose start it missed.
                if runs.last().is_none_or(|last| last[..] != values[1..]) {
                    runs.push(values[1..].to_vec());
                }
            }
        }
        runs
    }

    fn comment_of(&self, job: &str) -> String {
        self.text("squeue", &["-h", "-j", job, "-o", "%k"]).trim().trim_matches('"').to_owned()
    }

    /// Returns a column of a job, byte for byte.
    fn column(&self, job: &str, name: &str) -> String {
        let text = self.text("squeue", &["-h", "-j", job, "-O", &format!("{name}:|")]);
        text.strip_suffix("|\n").unwrap_or_else(|| panic!("{text:?}")).to_owned()
    }

    /// Changes the rights of the user of the driver.
    fn set_level(&self, level: &str) {
        let (user, uid) = OPERATOR;
        self.run("sacctmgr", &["-i", "modify", "user", user, "set", &format!("adminlevel={level}")]);
        let known = format!("UserName={user}({uid})");
        until("the controller knows its rights", || {
            let users = self.text("scontrol", &["show", "assoc_mgr", "flags=users"]);
            users
                .lines()
                .any(|line| line.starts_with(&known) && line.contains(&format!("AdminLevel={level}")))
        });
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
    // Processors of a task, nodes of a certain form, and an array.
    jobs.push(cluster.submit(&["-n2", "-c3", "-t1"], "sleep 1"));
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
fn a_policy_of_one_host_for_each_job_drives() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let driver = Driver::start(&cluster, "one", &["-p", "soon"]);
    let wide = cluster.submit(&["-N2", "-n2", "-t1"], "sleep 1");
    let jobs: Vec<String> =
        (1..=8).map(|cpus| cluster.submit(&[&format!("-n{cpus}"), "-t1"], "sleep 3")).collect();
    driver.until("the job of two nodes is told", || {
        cluster.comment_of(&wide).contains("not planned: immediate(preempt=false) gives each job one node")
    });
    driver.until("the others are done", || cluster.text("squeue", &["-h"]).lines().count() == 1);
    cluster.text("scancel", &[&wide]);
    check(&cluster, &driver, &jobs, &[]);
    for (job, runs) in cluster.runs(&jobs) {
        assert!(!runs[0][3].contains(['[', ',']), "job {job}: {runs:?}");
    }
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
    cluster.text("scontrol", &["update", &format!("JobId={filler}"), "TimeLimit=20"]);
    driver.until("the promise moves with the limit", || {
        driver.job(&waits).unwrap()["broken"].as_str().is_some_and(|broken| broken.contains("limit"))
    });
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
fn promises_and_forecasts_are_where_users_look() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let driver = Driver::start(&cluster, "told", &["-p", "conservative"]);
    let filler = cluster.submit(&["-n32", "-t2"], "sleep 300");
    driver.until("the machine is full", || cluster.state_of(&filler) == "RUNNING");
    let waits = cluster.submit(&["-n32", "-t1", "-J", "wide"], "sleep 1");
    let array = cluster.submit(&["-n32", "-t1", "-a", "1,3-5"], "sleep 1");
    driver.until("a likely start is told", || {
        let comment = cluster.comment_of(&waits);
        comment.starts_with("miserly: starts by ") && comment.contains(", likely ")
    });
    driver.until("the tasks of an array share a comment", || {
        cluster.comment_of(&array).starts_with("miserly: the first of these tasks starts by ")
    });
    // They are still one job of Slurm.
    let rows = cluster.text("squeue", &["-h", "-j", &array, "-o", "%i"]);
    assert_eq!(rows.trim(), format!("{array}_[1,3-5]"));
    let queue = |arguments: &[&str]| {
        let output = cluster.run(env!("CARGO_BIN_EXE_miserly"), arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let jobs: Value = serde_json::from_str(&queue(&["queue", "--slurm", "--json"])).unwrap();
    let jobs = jobs.as_array().unwrap();
    assert_eq!(jobs.len(), 6, "{jobs:#?}");
    let job = jobs.iter().find(|job| job["job"] == *waits).unwrap();
    assert_eq!((&job["name"], &job["why"]), (&"wide".into(), &Value::Null), "{job}");
    assert!(job["starts_by"].is_string() && job["likely"].is_string(), "{job}");
    assert!(jobs[0]["start"].is_i64() && jobs[0]["state"] == "running", "{jobs:#?}");
    let text = queue(&["queue", "--slurm", "--name", "wi*"]);
    assert!(text.lines().count() == 2 && text.contains(" by "), "{text}");
    assert_eq!(
        queue(&["queue", "--slurm", "--name", "wi*"]),
        queue(&["queue", "--slurm", "--user", "root", "--name", "wide"])
    );
    assert_eq!(queue(&["slurm", "queue", "-p", "long"]).lines().count(), 1);
    let none = cluster.miserly(&["queue", "-p", "none"]);
    assert_eq!(none.status.code(), Some(2), "{none:?}");
    cluster.text("scancel", &[&filler]);
    let jobs: Vec<String> = ["1", "3", "4", "5"].iter().map(|task| format!("{array}_{task}")).collect();
    driver.until("all jobs are done", || cluster.text("squeue", &["-h"]).is_empty());
    check(&cluster, &driver, &jobs, &[]);
}

#[test]
fn windows_of_miser_are_kept_and_refused() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let driver = Driver::start(&cluster, "windows", &["-p", "miser(horizon=10min)"]);
    let filler = cluster.submit(&["-n32", "-t2"], "sleep 5");
    driver.until("the machine is full", || cluster.state_of(&filler) == "RUNNING");
    let window = cluster.submit(&["-n20", "-t1"], "sleep 1");
    let later = cluster.submit(&["-n1", "-t1", "--begin=now+40"], "sleep 1");
    let long = cluster.submit(&["-n1", "-t30"], "sleep 1");
    let urgent = cluster.submit(&["-n1", "-t1", "--deadline=now+3minutes"], "sleep 1");
    driver.until("a window is promised", || cluster.comment_of(&window).starts_with("miserly: starts by "));
    driver.until("a window beyond the horizon is refused", || {
        cluster.comment_of(&long).contains("no window within the horizon")
    });
    driver.until("a window before the deadline is missing", || {
        cluster.comment_of(&urgent).contains("no window before its deadline")
    });
    driver.until("a window after its begin is promised", || {
        cluster.comment_of(&later).starts_with("miserly: starts by ")
    });
    cluster.text("scancel", &[&long, &urgent]);
    driver.until("all jobs are done", || cluster.text("squeue", &["-h"]).is_empty());
    let jobs = [&filler, &window, &later].map(Clone::clone);
    check(&cluster, &driver, &jobs, &[]);
    let queue = driver.queue();
    assert_eq!((&queue["started"], &queue["kept"]), (&3.into(), &queue["promised"]), "{queue}");
    assert!(queue["promised"].as_u64().unwrap() >= 2, "{queue}");
}

/// Enough processors are free for a job, but not on as many nodes as it asks for. Its promise is the end of the jobs there, and
/// no other job takes these nodes.
#[test]
fn a_promise_waits_for_nodes_of_the_form_of_the_job() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let driver = Driver::start(&cluster, "forms", &["-p", "conservative"]);
    let fill = |limit: &str, seconds: &str| {
        let job = cluster.submit(&["-N1", "-n5", limit], &format!("sleep {seconds}"));
        driver.until("a node is partly taken", || cluster.state_of(&job) == "RUNNING");
        job
    };
    let fillers = [fill("-t1", "30"), fill("-t1", "30"), fill("-t20", "300"), fill("-t20", "300")];
    let promise = |job: &String| driver.job(job).and_then(|job| job["first"].as_i64());
    // Three processors of each node are free, and six are asked for on two nodes.
    let two = cluster.submit(&["-N2", "--ntasks-per-node=6", "-t1"], "sleep 5");
    driver.until("a promise is told", || cluster.comment_of(&two).starts_with("miserly: starts by "));
    let submitted = cluster.json(&["status", "--json"])["jobs"][&two]["submitted"].as_i64().unwrap();
    let promised = promise(&two).unwrap();
    // After the limits of the short jobs, and long before those of the others.
    assert!(
        (submitted + 50..submitted + 180).contains(&promised),
        "{submitted}, {promised}\n{}",
        driver.log()
    );
    let spread = cluster.submit(&["-n12", "-t5"], "sleep 1");
    driver.until("the other job has a promise too", || promise(&spread).is_some());
    driver.until("it has nodes of its form", || cluster.state_of(&two) != "PENDING");
    let runs = cluster.runs(std::slice::from_ref(&two));
    let before = cluster.runs(&fillers[..2]);
    assert!(before.values().flatten().all(|run| run[2] <= runs[&two][0][1]), "{runs:?}, {before:?}");
    driver.until("the other job runs", || cluster.state_of(&spread) != "PENDING");
    cluster.run("scancel", &[&fillers[2], &fillers[3]]);
    driver.until("all jobs are done", || cluster.text("squeue", &["-h"]).is_empty());
    let jobs = [fillers.to_vec(), vec![two.clone(), spread]].concat();
    check(&cluster, &driver, &jobs, &fillers[2..]);
    let queue = driver.queue();
    assert_eq!(queue["late"], Value::Array(vec![]), "{}", driver.log());
    let job = format!("\"job\":\"{two}\"");
    let noted = |event: &str| driver.log().lines().any(|line| line.contains(event) && line.contains(&job));
    assert!(noted("promised"), "{}", driver.log());
    assert!(!noted("promise_broken") && !noted("not_planned"), "{}", driver.log());
}

/// All GPUs are taken and most processors are free. A job with a GPU is promised the end of one that has some, and others start.
#[test]
fn jobs_with_gpus_wait_for_gpus() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let driver = Driver::start(&cluster, "gpus", &["-p", "conservative"]);
    let both = format!("--gres=gpu:{GPUS}");
    let submit =
        |options: &[&str], script: &str| cluster.submit(&[&["-N1", "-n1"], options].concat(), script);
    let first = submit(&[&both, "-t1"], "sleep 300");
    let long: Vec<String> = (1..NODES).map(|_| submit(&[&both, "-t20"], "sleep 300")).collect();
    driver
        .until("all GPUs are taken", || cluster.text("squeue", &["-h", "-t", "R"]).lines().count() == NODES);
    let one = submit(&["--gpus-per-node=1", "-t1"], "sleep 20");
    let two = submit(&[&both, "-t1"], "sleep 1");
    let none = submit(&["-t10"], "sleep 300");
    driver.until("a job without GPUs runs", || cluster.state_of(&none) == "RUNNING");
    let promise = |job: &String| driver.job(job).and_then(|job| job["first"].as_i64());
    driver.until("both others have promises", || promise(&one).is_some() && promise(&two).is_some());
    let submitted = cluster.json(&["status", "--json"])["jobs"][&one]["submitted"].as_i64().unwrap();
    let waits = [&one, &two].map(|job| promise(job).unwrap() - submitted);
    assert!(waits[0] > 30 && waits[1] > waits[0] + 30 && waits[1] < 600, "{waits:?}\n{}", driver.log());
    assert_eq!([&one, &two].map(|job| cluster.state_of(job)), ["PENDING"; 2]);
    cluster.text("scancel", &[&first]);
    driver.until("a GPU is used again", || cluster.state_of(&one) != "PENDING");
    assert_eq!(cluster.state_of(&two), "PENDING", "{}", driver.log());
    driver.until("the last one has both of the node", || cluster.state_of(&two) != "PENDING");
    cluster.run("scancel", &long.iter().chain([&none]).map(String::as_str).collect::<Vec<_>>());
    driver.until("all jobs are done", || cluster.text("squeue", &["-h"]).is_empty());
    let cancelled = [long, vec![first, none]].concat();
    check(&cluster, &driver, &[vec![one.clone(), two.clone()], cancelled.clone()].concat(), &cancelled);
    let runs = cluster.runs(&[one.clone(), two.clone(), cancelled[NODES - 1].clone()]);
    let nodes: std::collections::BTreeSet<&String> = runs.values().map(|runs| &runs[0][3]).collect();
    assert_eq!(nodes.len(), 1, "{runs:?}");
    assert_eq!(driver.queue()["late"], Value::Array(vec![]), "{}", driver.log());
}

/// Each new job has a quantum at once: one ends in it, one is requeued after it although the driver is killed meanwhile, and one is
/// left over when the nodes are handed back. The jobs that are suspended for them get their own processors back.
#[test]
fn immediate_service_suspends_jobs_and_requeues_those_that_are_too_long() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let policy = "immediate(policy=conservative,quantum=20s,after=3s)";
    let mut driver = Driver::start(&cluster, "quanta", &["-p", policy]);
    let fillers: Vec<String> = (1..=4).map(|_| cluster.submit(&["-n8", "-t20"], "sleep 400")).collect();
    let count = |state: &str| fillers.iter().filter(|job| cluster.state_of(job) == state).count();
    driver.until("the machine is full", || count("RUNNING") == 4);
    sleep(Duration::from_secs(5));
    // It would be no job for a quantum: Slurm does not return it to the queue.
    let never = cluster.submit(&["-n2", "-t10", "--no-requeue"], "sleep 1");
    // A job of the same step might lose its quantum with it.
    driver.until("it waits", || driver.job(&never).is_some());
    let ends = cluster.submit(&["-n2", "-t10"], "sleep 3");
    driver.until("a job is suspended for the short one", || count("SUSPENDED") == 1);
    driver.until("the short one runs", || cluster.state_of(&ends) != "PENDING");
    driver.until("it has ended in its quantum", || cluster.text("squeue", &["-h", "-j", &ends]).is_empty());
    driver.until("its victim runs again", || count("RUNNING") == 4);
    sleep(Duration::from_secs(5));
    let long = cluster.submit(&["-n2", "-t10"], "sleep 300");
    driver.until("the long one has a quantum", || cluster.state_of(&long) == "RUNNING");
    let victim = fillers.iter().find(|job| cluster.state_of(job) == "SUSPENDED").unwrap();
    assert_eq!(driver.job(victim).unwrap()["stage"], "suspended");
    driver.until("it has a comment", || cluster.comment_of(victim).contains("is suspended for a short time"));
    driver.until("the driver has seen it", || driver.job(&long).is_some_and(|job| job["stage"] == "quantum"));
    driver.kill();
    driver.again();
    driver.until("the long one waits again", || cluster.state_of(&long) == "PENDING");
    driver.until("all others run again", || count("RUNNING") == 4);
    driver.until("the comment is over", || cluster.comment_of(victim) == "miserly: runs");
    let runs = cluster.runs(std::slice::from_ref(&long));
    let seconds = |at: &str| at.parse::<jiff::civil::DateTime>().unwrap();
    let quantum = seconds(&runs[&long][0][2]).duration_since(seconds(&runs[&long][0][1])).as_secs();
    assert!((15..35).contains(&quantum), "{quantum} s\n{}", driver.log());
    let used = |node: &(String, Value)| node.1["cpus_used"].as_u64().unwrap();
    let nodes = cluster.json(&["status", "--json"])["nodes"].as_object().unwrap().clone();
    assert!(
        nodes.into_iter().all(|node| used(&node) == 8),
        "{}",
        cluster.text("sinfo", &["-N", "-O", "all"])
    );
    assert_eq!(cluster.state_of(&never), "PENDING");

    sleep(Duration::from_secs(5));
    let last = cluster.submit(&["-n2", "-t10"], "sleep 300");
    driver.until("the last one has a quantum", || cluster.state_of(&last) == "RUNNING");
    driver.kill();
    let hand_back =
        || cluster.text(env!("CARGO_BIN_EXE_miserly"), &["slurm", "hand-back", "--state", &driver.state]);
    let victim = fillers.iter().find(|job| cluster.state_of(job) == "SUSPENDED").unwrap();
    let text = hand_back();
    assert!(text.starts_with("Slurm schedules by itself on all nodes but node"), "{text}");
    assert!(
        text.contains(&format!("still suspended, because others use their processors: {victim};")),
        "{text}"
    );
    cluster.text("scancel", &[&last]);
    driver.until("the last one is gone", || cluster.text("squeue", &["-h", "-j", &last]).is_empty());
    let text = hand_back();
    assert!(
        text.contains("1 suspended job resumed"),
        "{text}\n{}",
        cluster.text("squeue", &["-a", "-o", "%i %T %C %N %k"])
    );
    assert_eq!(count("RUNNING"), 4);
}

/// Jobs run on idle nodes ahead of their starts. One ends there, one is requeued in time for a promised start although the driver
/// is killed meanwhile, and one keeps its nodes at its own start.
#[test]
fn idle_nodes_run_jobs_ahead_of_their_starts() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let mut driver = Driver::start(&cluster, "opportunistic", &["-p", "conservative", "--opportunistic"]);
    let filler = cluster.submit(&["-N3", "-n24", "-t3"], "sleep 500");
    driver.until("three nodes are taken", || cluster.state_of(&filler) == "RUNNING");
    let all = cluster.submit(&["-N4", "-n32", "-t1"], "sleep 3");
    let promise = |driver: &Driver<'_>, job: &String| driver.job(job).and_then(|job| job["first"].as_i64());
    driver.until("the whole machine is promised", || promise(&driver, &all).is_some());
    let ends = cluster.submit(&["-N1", "-n8", "-t30"], "sleep 4");
    driver.until("it ran ahead of its start", || cluster.state_of(&ends) != "PENDING");
    driver.until("and ended", || cluster.text("squeue", &["-h", "-j", &ends]).is_empty());
    let never = cluster.submit(&["-N1", "-n8", "-t30", "--no-requeue"], "sleep 1");
    let lost = cluster.submit(&["-N1", "-n8", "-t30"], "sleep 400");
    driver.until("another runs ahead of its start", || {
        cluster.comment_of(&lost).contains("runs on idle nodes")
    });
    assert_eq!(driver.job(&lost).unwrap()["stage"], "opportunistic");
    assert_eq!(cluster.state_of(&never), "PENDING");
    let lost_promise = promise(&driver, &lost).unwrap();
    // The nodes are needed much earlier than planned.
    cluster.run("scancel", &[&filler]);
    driver.until("it is parked", || driver.log().contains("\"parked\""));
    driver.kill();
    driver.again();
    driver.until("the whole machine is used", || cluster.state_of(&all) == "RUNNING");
    driver.until("the lost job runs again", || cluster.state_of(&lost) == "RUNNING");
    driver.until("at its own start", || driver.job(&lost).is_some_and(|job| job["stage"] == "running"));
    driver.until("the job that is not requeued runs", || cluster.state_of(&never) != "PENDING");
    let runs = cluster.runs(&[lost.clone(), all.clone()]);
    assert_eq!(runs[&lost].len(), 2, "{runs:?}");
    assert!(runs[&lost][0][2] <= runs[&all][0][1], "the nodes were left before: {runs:?}");
    let started = cluster.json(&["status", "--json"])["jobs"][&lost]["start"].as_i64().unwrap();
    assert!(started <= lost_promise, "{started}, {lost_promise}");

    // Three nodes are taken, and all are promised. Without that promise, a job that runs on the fourth goes on.
    let filler = cluster.submit(&["-N2", "-n16", "-t3"], "sleep 500");
    driver.until("three nodes are taken again", || cluster.state_of(&filler) == "RUNNING");
    let all = cluster.submit(&["-N4", "-n32", "-t1"], "sleep 3");
    driver.until("all are promised again", || promise(&driver, &all).is_some());
    let keeps = cluster.submit(&["-N1", "-n8", "-t40"], "sleep 20");
    driver.until("a third one runs ahead", || {
        driver.job(&keeps).is_some_and(|job| job["stage"] == "opportunistic")
    });
    cluster.run("scancel", &[&all]);
    driver
        .until("it is at its own start", || driver.job(&keeps).is_some_and(|job| job["stage"] == "running"));
    driver.until("its comment has it", || cluster.comment_of(&keeps) == "miserly: runs");
    cluster.run("scancel", &[&filler, &lost]);
    driver.until("all jobs are done", || cluster.text("squeue", &["-h"]).is_empty());
    check(&cluster, &driver, &[ends, never, keeps], &[]);
    let queue = driver.queue();
    assert_eq!(queue["late"], Value::Array(vec![]), "{}", driver.log());
    assert!(!driver.log().contains("promise_broken"), "{}", driver.log());
}

/// No job is promised the place of another on a node that drains: it will not be free again.
#[test]
fn a_node_that_drains_is_promised_to_no_job() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let driver = Driver::start(&cluster, "draining", &["-p", "conservative"]);
    let short = cluster.submit(&["-N1", "-n8", "-t1"], "sleep 20");
    driver.until("a node is taken", || cluster.state_of(&short) == "RUNNING");
    let long = cluster.submit(&["-N3", "-n24", "-t20"], "sleep 500");
    driver.until("all are taken", || cluster.state_of(&long) == "RUNNING");
    let node = cluster.json(&["status", "--json"])["jobs"][&short]["on"][0].as_str().unwrap().to_owned();
    cluster.run("scontrol", &["update", &format!("NodeName={node}"), "State=DRAIN", "Reason=test"]);
    // Nodes are read less often than jobs.
    sleep(Duration::from_secs(6));
    let waits = cluster.submit(&["-N1", "-n8", "-t1"], "sleep 1");
    driver
        .until("the next job has a promise", || driver.job(&waits).is_some_and(|job| job["first"].is_i64()));
    let document = cluster.json(&["status", "--json"]);
    let ends = |job: &String| document["jobs"][job]["end"].as_i64().unwrap();
    assert!(driver.job(&waits).unwrap()["first"].as_i64().unwrap() >= ends(&long), "{}", driver.log());
    driver.until("the short job ends", || cluster.text("squeue", &["-h", "-j", &short]).is_empty());
    driver.until("the driver sees it", || driver.log().contains("\"gone\""));
    assert_eq!(cluster.state_of(&waits), "PENDING");
    cluster.run("scontrol", &["update", &format!("NodeName={node}"), "State=RESUME"]);
    driver.until("the node is used again", || cluster.state_of(&waits) != "PENDING");
    cluster.run("scancel", &[&long]);
    driver.until("all jobs are done", || cluster.text("squeue", &["-h"]).is_empty());
    check(&cluster, &driver, &[short, waits], &[]);
    assert!(!driver.log().contains("promise_broken"), "{}", driver.log());
}

/// A job of a partition or with names of nodes is promised the end of the jobs there, although other nodes are idle.
#[test]
fn a_promise_is_on_the_nodes_of_the_partition() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let driver = Driver::start(&cluster, "groups", &["-p", "conservative"]);
    // Its only node is node4.
    let filler = cluster.submit(&["-p", "long", "-n8", "-t20"], "sleep 500");
    driver.until("the partition is full", || cluster.state_of(&filler) == "RUNNING");
    let behind = cluster.submit(&["-p", "long", "-n8", "-t1"], "sleep 1");
    let named = cluster.submit(&["-N1", "-n8", "-t1", "-w", "node4"], "sleep 1");
    let elsewhere = cluster.submit(&["-N3", "-n24", "-t1", "-x", "node4"], "sleep 1");
    driver.until("another job has the idle nodes", || cluster.state_of(&elsewhere) != "PENDING");
    let first = |job: &String| driver.job(job).and_then(|job| job["first"].as_i64());
    driver.until("both have a promise", || first(&behind).is_some() && first(&named).is_some());
    let end = cluster.json(&["status", "--json"])["jobs"][&filler]["end"].as_i64().unwrap();
    assert!(
        first(&behind).unwrap() >= end && first(&named).unwrap() > first(&behind).unwrap(),
        "{}",
        driver.log()
    );
    cluster.run("scancel", &[&filler]);
    driver.until("all jobs are done", || cluster.text("squeue", &["-h"]).is_empty());
    let jobs = [behind, named, elsewhere];
    check(&cluster, &driver, &jobs, &[]);
    let runs = cluster.runs(&jobs);
    assert_eq!([&runs[&jobs[0]], &runs[&jobs[1]]].map(|runs| runs[0][3].as_str()), ["node4"; 2]);
    for event in ["not_planned", "promise_broken"] {
        assert!(!driver.log().contains(event), "{}", driver.log());
    }
}

/// Names and comments of users are no commands, and no lines of answers.
#[test]
fn a_user_cannot_speak_through_a_job() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let driver = Driver::start(&cluster, "names", &["-p", "easy"]);
    let victim = cluster.submit(&["-n1", "-t1", "--hold"], "sleep 1");
    let number: u64 = victim.parse().unwrap();
    let command = format!("\u{15}update JobId={victim} Priority=7 Nice=\"");
    let row =
        format!("a\n{victim}|{victim}|{victim}|N/A|batch|RUNNING|0|1|1|0|1:00|1|1|1|1|None|||||node1||x");
    let forged = format!("b\nJobId={victim} JobName=x NumNodes=4-4 OverSubscribe=NO");
    let jobs = [
        cluster.submit(&["-n1", "-t1", "--comment", &command], "sleep 1"),
        cluster.submit(&["-n1", "-t1", "--comment", "grüße\tund \"mehr\""], "sleep 1"),
        cluster.submit(&["-n1", "-t1", "-J", " NumNodes=x"], "sleep 1"),
        cluster.submit(&["-n1", "-t1", "--comment", &forged], "sleep 1"),
    ];
    let broken = cluster.submit(&["-n1", "-t1", "-J", &row], "sleep 1");
    for job in &jobs {
        until("the job is done", || !matches!(cluster.state_of(job).as_str(), "PENDING" | "RUNNING"));
    }
    let status = cluster.json(&["status", "--json"]);
    let held = &status["jobs"][&victim];
    assert_eq!(
        (&held["state"], &held["priority"], &held["number"]),
        (&"pending".into(), &0.into(), &number.into())
    );
    until("it is done", || !matches!(cluster.state_of(&broken).as_str(), "PENDING" | "RUNNING"));
    // The driver ends by itself, and the nodes are Slurm's.
    cluster.miserly(&["hand-back", "--state", &driver.state]);
    let mut driver = driver;
    until("the driver has ended", || driver.child.try_wait().unwrap().is_some_and(|status| status.success()));
    cluster.cancel_all();
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

/// The nodes stay those of a driver that is back at once. Without one, they are handed back long before the reservation ends, and
/// the promises go.
#[test]
fn the_nodes_of_a_driver_that_is_gone_are_handed_back() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let mut driver = Driver::start(&cluster, "gone", &["-p", "conservative", "--fallback", "1h"]);
    let log = format!("{}.back", driver.state);
    let mut back = Command::new(program(&cluster))
        .args(["slurm", "hand-back", "--state", &driver.state, "--when-gone", "10s"])
        .args(["--slurm-conf", &cluster.configuration])
        .uid(OPERATOR.1)
        .gid(OPERATOR.1)
        .current_dir("/")
        .stdout(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let said = || fs::read_to_string(&log).unwrap();
    let runs = cluster.submit(&["-n32", "-t5"], "sleep 300");
    driver.until("it runs", || cluster.state_of(&runs) == "RUNNING");
    let waits = cluster.submit(&["-n32", "-t5", "--comment=mine"], "sleep 300");
    let promised = || cluster.comment_of(&waits).starts_with("mine | miserly: starts by ");
    driver.until("a promise", promised);
    for _ in 0..2 {
        driver.kill();
        sleep(Duration::from_secs(3));
        driver.again();
        sleep(Duration::from_secs(9));
    }
    assert!(promised() && said().is_empty(), "{}\n{}", said(), driver.log());
    driver.kill();
    driver.until("the promise goes", || cluster.comment_of(&waits) == "mine");
    assert_eq!(said(), "Slurm schedules by itself; 0 jobs placed and not started\n");
    cluster.text("scancel", &[&runs]);
    driver.until("Slurm starts it", || cluster.state_of(&waits) == "RUNNING");
    // A driver that is back is no longer gone.
    driver.again();
    let reserved = || cluster.text("scontrol", &["show", "reservation"]).contains("State=ACTIVE");
    driver.until("it takes the nodes again", reserved);
    sleep(Duration::from_secs(12));
    assert!(reserved(), "{}", driver.log());
    driver.kill();
    driver.until("the nodes are handed back again", || said().lines().count() == 2);
    back.kill().unwrap();
    back.wait().unwrap();
    cluster.cancel_all();
}

#[test]
fn a_dry_run_changes_nothing_and_a_wrong_call_is_one_clear_line() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    until("the reservation of a test before is gone", || {
        cluster.text("scontrol", &["show", "reservation"]).contains("No reservations")
    });
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
        plan.contains(&format!(
            "scontrol update JobId={job} \"AdminComment=miserly: not planned: it is held\""
        )),
        "{plan}"
    );
    assert!(cluster.text("scontrol", &["show", "reservation"]).contains("No reservations"));
    let folder = cluster.folder.path().join("wrong");
    let state = folder.to_str().unwrap();
    let wrong = said(&["drive", "-p", "easy", "--state", state, "--partition", "none"]);
    assert!(wrong.contains("no partition none; it has batch, long"), "{wrong}");
    let chooses = said(&["drive", "-p", "ss", "--state", state]);
    assert!(chooses.contains("cannot drive a cluster: it needs to choose processors"), "{chooses}");
    let resizes = said(&["drive", "-p", "eqspatial", "--state", state]);
    assert!(resizes.contains("cannot drive a cluster: it needs to resize jobs"), "{resizes}");
    let classes = said(&["drive", "-p", "lsf", "--state", state]);
    assert!(
        classes.contains("it needs a table of job classes, which a cluster does not have; choose"),
        "{classes}"
    );
    let both = said(&["drive", "-p", "soon", "--opportunistic", "--state", state]);
    assert!(both.contains("requeues jobs itself, so there is no --opportunistic with it"), "{both}");
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

#[test]
fn a_user_without_rights_is_refused_at_once() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let reservation = || cluster.text("scontrol", &["-o", "show", "reservation"]);
    until("the reservation of a test before is gone", || reservation().contains("No reservations"));
    let state = cluster.folder.path().join("rights");
    fs::create_dir_all(&state).unwrap();
    std::os::unix::fs::chown(&state, Some(1), Some(1)).unwrap();
    let refused = || {
        let output = Command::new(program(&cluster))
            .args(["slurm", "drive", "-p", "easy", "--for", "20s", "--slurm-conf", &cluster.configuration])
            .args(["--state".as_ref(), state.as_os_str()])
            .uid(1)
            .gid(1)
            .current_dir("/")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{text}");
        assert!(text.contains("Slurm refuses the reservation miserly"), "{text}");
        assert!(text.contains("is this user an operator?"), "{text}");
    };
    refused();
    assert!(reservation().contains("No reservations"));
    // One that another user has left.
    let words = "create reservation ReservationName=miserly Nodes=ALL StartTime=now Duration=10 Users=root Flags=IGNORE_JOBS,OVERLAP";
    cluster.text("scontrol", &words.split(' ').collect::<Vec<_>>());
    let before = reservation();
    refused();
    assert_eq!(reservation(), before);
    cluster.text("scontrol", &["delete", "ReservationName=miserly"]);
    cluster.cancel_all();
}

#[test]
fn an_array_with_a_limit_runs_as_many_tasks_as_it_may() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let driver = Driver::start(&cluster, "limited", &under("conservative"));
    let array = cluster.submit(&["-a1-6%2", "-n1", "-t1"], "sleep 2");
    let waits_for_place =
        |job: &Value| job["why"].as_str().is_some_and(|why| why.contains("at most 2 at the same"));
    driver.until("a task has no place", || {
        driver.job(&format!("{array}_6")).is_some_and(|job| waits_for_place(&job))
    });
    driver.until("all tasks are done", || cluster.text("squeue", &["-h"]).is_empty());
    let log = driver.log();
    assert!(!log.contains("JobArrayTaskLimit") && !log.contains("promise broken"), "{log}");
}

#[test]
fn a_driver_touches_its_own_reservation_only() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let mut driver = Driver::start(&cluster, "own", &under("conservative"));
    let said = |arguments: &[&str]| {
        let output = cluster.miserly(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{text}");
        text
    };
    let reservation = || cluster.text("scontrol", &["-o", "show", "reservation"]);
    let state = cluster.folder.path().join("second");
    let second = said(&["drive", "-p", "easy", "--state", state.to_str().unwrap()]);
    assert!(second.contains("the reservation miserly is there already"), "{second}");
    let third = said(&["drive", "-p", "easy", "--state", state.to_str().unwrap(), "--reservation", "third"]);
    assert!(third.contains("another driver holds the nodes node"), "{third}");
    assert!(third.contains("by the reservation miserly: "), "{third}");
    assert!(!state.exists(), "a refused driver leaves no state");
    let words = "create reservation ReservationName=upkeep Nodes=node1 StartTime=now+1hours Duration=10 Users=root Flags=MAINT";
    cluster.text("scontrol", &words.split(' ').collect::<Vec<_>>());
    let other = said(&["hand-back", "--reservation", "upkeep"]);
    assert!(other.contains("is not that of a driver, because it has the flags maint"), "{other}");
    assert!(reservation().contains("ReservationName=upkeep"), "{}", reservation());
    cluster.text("scontrol", &["delete", "ReservationName=upkeep"]);

    // The comments of a driver that is gone go with it.
    let long = cluster.submit(&["-n32", "-t5"], "sleep 60");
    let own = cluster.submit(&["-n32", "-t5", "--comment=mine"], "true");
    let comment = |job: &str| cluster.text("squeue", &["-h", "-o", "%k", "-j", job]).trim().to_owned();
    driver.until("it has a promise", || comment(&own).starts_with("mine | miserly: starts by"));
    driver.kill();
    cluster.miserly(&["hand-back", "--state", &driver.state]);
    assert_eq!(comment(&own), "mine");
    cluster.text("scancel", &[&long, &own]);
    cluster.cancel_all();
}

/// Promises are in the comment of administrators as soon as the driver may write there. Then the comments of users stay byte for
/// byte, also without the driver and after it, and the promises that it has left there go.
#[test]
fn an_administrator_leaves_the_comments_of_users_as_they_are() {
    const TEXT: &str = " it's \"mine\"  Extra=foo StdErr=/x | miserly: my own, grüße ";
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let mut driver = Driver::start(&cluster, "administrator", &under("conservative"));
    let filler = cluster.submit(&["-n32", "-t5"], "sleep 300");
    driver.until("the machine is full", || cluster.state_of(&filler) == "RUNNING");
    let former = cluster.submit(&["-n32", "-t5", "--comment=mine"], "true");
    let promised = |job: &str| cluster.comment_of(job).contains("mine | miserly: starts by ");
    driver.until("an operator writes into the comment of the user", || promised(&former));
    driver.kill();
    cluster.set_level("Administrator");
    driver.again();
    let admin = |job: &str| cluster.column(job, "admin_comment");
    driver.until("the former promise goes", || cluster.column(&former, "Comment") == "mine");
    driver.until("there is a new one", || admin(&former).starts_with("miserly: starts by "));
    let text = format!("--comment={TEXT}");
    let own = cluster.submit(&["-n32", "-t5", &text], "true");
    let array = cluster.submit(&["-n32", "-t5", "-a1-3", &text], "true");
    driver.until("a promise", || admin(&own).starts_with("miserly: starts by "));
    driver.until("those of an array", || admin(&array).starts_with("miserly: the first of these tasks "));
    let queue = cluster.run(env!("CARGO_BIN_EXE_miserly"), &["queue", "--slurm", "--json"]);
    let queue: Value = serde_json::from_slice(&queue.stdout).unwrap();
    let by = |id: &str| {
        queue.as_array().unwrap().iter().find(|job| job["job"] == id).unwrap()["starts_by"].clone()
    };
    assert!(by(&own).is_string() && by(&former).is_string(), "{queue}");
    // An administrator of the site has words there too.
    cluster.text("scontrol", &["update", &format!("JobId={own}"), "AdminComment=of the site"]);
    cluster.text("scontrol", &["hold", &own]);
    driver.until("the hold", || admin(&own) == "of the site | miserly: not planned: it is held");
    let untouched = |job: &str| assert_eq!(cluster.column(job, "Comment"), TEXT, "{}", driver.log());
    untouched(&own);
    untouched(&array);
    driver.kill();
    cluster.miserly(&["hand-back", "--state", &driver.state]);
    assert_eq!(
        (admin(&own).as_str(), admin(&former).as_str(), admin(&array).as_str()),
        ("of the site", "", "")
    );
    assert_eq!(cluster.column(&former, "Comment"), "mine");
    let untouched = |job: &str| assert_eq!(cluster.column(job, "Comment"), TEXT);
    untouched(&own);
    untouched(&array);
    // Without the right, promises are in the comments of users again.
    driver.again();
    driver.until("a promise to the administrator", || admin(&former).starts_with("miserly: starts by "));
    cluster.set_level("Operator");
    let after = cluster.submit(&["-n32", "-t5", "--comment=mine"], "true");
    driver.until("a promise to the operator", || promised(&after));
    cluster.cancel_all();
}

/// The processors of all nodes.
fn processors(cluster: &Cluster) -> u64 {
    let nodes = cluster.json(&["status", "--json"])["nodes"].clone();
    nodes.as_object().unwrap().values().map(|node| node["cpus"].as_u64().unwrap()).sum()
}

/// Submits a random job of at most half of the processors. Returns its name and whether it fails.
fn submit_random(cluster: &Cluster, dice: &mut Dice, processors: u64) -> (String, bool) {
    let wide = dice.roll(10) == 0;
    let cpus = 1 + dice.roll(if wide { processors / 2 } else { processors / 16 });
    let fails = dice.roll(10) == 0;
    let seconds = 1 + dice.roll(number("MISERLY_DRIVE_SECONDS", 30));
    let script = format!("sleep {seconds}; exit {}", u8::from(fails));
    let longest = number("MISERLY_DRIVE_LIMIT", 0);
    let limit = if longest > 0 { 1 + dice.roll(longest) } else { 1 + seconds / 30 };
    let (cpus, limit) = (format!("-n{cpus}"), format!("-t{limit}"));
    (cluster.submit(&[&cpus, &limit], &script), fails)
}

/// By hand, as in .ci/testing.md: random jobs while users, nodes, the controller and the driver do as they like.
#[test]
#[ignore = "takes half an hour"]
#[expect(clippy::too_many_lines, reason = "one story")]
fn a_thousand_jobs_with_troubles_of_all_kinds() {
    let Some(cluster) = cluster() else { return };
    cluster.cancel_all();
    let (count, troubles) = (number("MISERLY_DRIVE_JOBS", 1000), number("MISERLY_DRIVE_TROUBLES", 120));
    let policy = std::env::var("MISERLY_DRIVE_POLICY").unwrap_or_else(|_| "conservative".to_owned());
    let mut driver = Driver::start(&cluster, "torture", &under(&policy));
    let mut dice = Dice(number("MISERLY_DRIVE_SEED", 1));
    let all = processors(&cluster);
    let (mut jobs, mut cancelled, mut failing) = (vec![], vec![], vec![]);
    let [mut kills, mut restarts, mut drains] = [0; 3];
    let mut drained: Option<String> = None;
    for number in 0..count {
        let (job, fails) = submit_random(&cluster, &mut dice, all);
        if fails {
            failing.push(job.clone());
        }
        jobs.push(job);
        if dice.roll(4) == 0 {
            sleep(Duration::from_millis(500 + dice.roll(2000)));
        }
        if dice.roll(count) >= troubles {
            continue;
        }
        let victim = jobs[usize::try_from(dice.roll(jobs.len() as u64)).unwrap()].clone();
        match dice.roll(8) {
            0..=2 => {
                kills += 1;
                driver.kill();
                sleep(Duration::from_millis(dice.roll(3000)));
                driver.again();
            }
            3 => {
                restarts += 1;
                // Slurm itself would lose the last submissions.
                sleep(Duration::from_secs(6));
                let pid = fs::read_to_string(cluster.folder.path().join("run/slurmctld.pid")).unwrap();
                cluster.text("kill", &["-9", pid.trim()]);
                sleep(Duration::from_millis(500 + dice.roll(2000)));
                cluster.text("slurmctld", &[]);
                until("the controller is back", || cluster.run("squeue", &["-h"]).status.success());
            }
            4 => {
                cluster.run("scancel", &[&victim]);
                cancelled.push(victim);
            }
            5 => {
                let limit = format!("TimeLimit={}", 1 + dice.roll(3));
                cluster.run("scontrol", &["update", &format!("JobId={victim}"), &limit]);
            }
            6 => {
                cluster.run("scontrol", &["hold", &victim]);
                sleep(Duration::from_millis(dice.roll(3000)));
                cluster.run("scontrol", &["release", &victim]);
            }
            _ => {
                drains += 1;
                let resume = |node: &String| {
                    cluster.run("scontrol", &["update", &format!("NodeName={node}"), "State=RESUME"]);
                };
                drained.as_ref().inspect(|node| resume(node));
                let node =
                    format!("node{}", 1 + dice.roll(super::number("MISERLY_SLURM_NODES", NODES as u64)));
                let drain = ["update", &format!("NodeName={node}"), "State=DRAIN", "Reason=test"];
                cluster.run("scontrol", &drain);
                drained = Some(node);
            }
        }
        eprintln!("{number} jobs, {kills} kills, {restarts} restarts, {drains} drains");
    }
    if let Some(node) = drained {
        cluster.run("scontrol", &["update", &format!("NodeName={node}"), "State=RESUME"]);
    }
    // Some releases came while the controller was away.
    let mut left = usize::MAX;
    for _ in 0..600 {
        let queue = cluster.run("squeue", &["-h", "-r", "-o", "%i %r"]);
        let queue = String::from_utf8(queue.stdout).unwrap();
        // Slurm holds a job itself whose start its controller forgot ("launch failed requeued held").
        for held in queue.lines().filter(|line| line.contains("JobHeld") || line.contains("requeued held")) {
            cluster.run("scontrol", &["release", held.split_whitespace().next().unwrap()]);
        }
        left = queue.lines().count();
        if left == 0 {
            break;
        }
        // So it does with nodes on which such a job still runs.
        if cluster.text("sinfo", &["-h", "-R", "-o", "%E"]).contains("Duplicate jobid") {
            cluster.run("scontrol", &["update", "NodeName=ALL", "State=RESUME"]);
        }
        sleep(Duration::from_secs(2));
    }
    assert_eq!(left, 0, "all jobs are done\n{}", driver.log());
    sleep(Duration::from_secs(10));
    let runs = cluster.runs(&jobs);
    let (mut missing, mut lost_by_slurm) = (vec![], 0);
    for job in &jobs {
        let states: Vec<&str> = runs.get(job).into_iter().flatten().map(|run| run[0].as_str()).collect();
        // Slurm requeues a job if it does not remember its start, and the driver one that ran ahead of its start.
        let states: Vec<&str> = states.into_iter().filter(|state| *state != "REQUEUED").collect();
        let wanted = match states[..] {
            ["COMPLETED"] => !failing.contains(job),
            ["FAILED"] if failing.contains(job) => true,
            ["TIMEOUT"] => true,
            // Slurm was about to start it when its controller was killed.
            [] | ["FAILED" | "NODE_FAIL"] | ["NODE_FAIL", "COMPLETED"] if restarts > 0 => {
                lost_by_slurm += 1;
                true
            }
            [state] => state.starts_with("CANCELLED") && cancelled.contains(job),
            _ => false,
        };
        if !wanted {
            missing.push((job, states));
        }
    }
    let queue = driver.queue();
    let late = queue["late"].as_array().unwrap();
    let without_cause = late.iter().filter(|late| !late["broken"].is_string()).count();
    let noted = |event: &str| driver.log().matches(&format!("\"event\":\"{event}\"")).count();
    let events =
        ["parked", "suspended", "quantum_over"].map(|event| format!("{} {event}", noted(event))).join(", ");
    eprintln!(
        "{} jobs, {} cancelled, {kills} kills of the driver, {restarts} of slurmctld, {drains} drains; \
         {} started with a promise, {} by it; late: {}; lost by Slurm: {lost_by_slurm}; {events}",
        jobs.len(),
        cancelled.len(),
        queue["promised"],
        queue["kept"],
        late.len()
    );
    assert!(lost_by_slurm <= restarts * 3, "{lost_by_slurm} jobs lost by Slurm");
    assert!(missing.is_empty(), "lost, or started twice: {missing:?}\n{}", driver.log());
    assert_eq!(without_cause, 0, "late without a cause: {late:#?}\n{}", driver.log());
}

/// By hand, as in .ci/testing.md: the waits of the same jobs under Slurm's own scheduler and under driven policies.
#[test]
#[ignore = "takes half an hour"]
fn the_same_jobs_under_slurm_and_under_policies() {
    let Some(cluster) = cluster() else { return };
    let count = number("MISERLY_DRIVE_JOBS", 300);
    let policies = [None, Some("easy"), Some("conservative"), Some("conservative --opportunistic")];
    let only = std::env::var("MISERLY_DRIVE_POLICY").ok();
    for policy in policies.into_iter().filter(|policy| only.is_none() || *policy == only.as_deref()) {
        cluster.cancel_all();
        let driver = policy.map(|policy| Driver::start(&cluster, policy, &under(policy)));
        let mut dice = Dice(number("MISERLY_DRIVE_SEED", 1));
        let all = processors(&cluster);
        let mut jobs = vec![];
        for _ in 0..count {
            jobs.push(submit_random(&cluster, &mut dice, all).0);
            sleep(Duration::from_millis(dice.roll(number("MISERLY_DRIVE_PAUSE", 2000))));
        }
        while !cluster.text("squeue", &["-h"]).is_empty() {
            sleep(Duration::from_secs(1));
        }
        sleep(Duration::from_secs(5));
        let format = "JobID,Submit,Start,End,AllocCPUS";
        let text = cluster.text(
            "env",
            &[
                "SLURM_TIME_FORMAT=%s",
                "sacct",
                "-X",
                "-D",
                "-P",
                "-n",
                "-a",
                "-S",
                "now-2hours",
                "-o",
                format,
            ],
        );
        // A requeued job has a row for each run. It waits from its submission to its last start.
        let mut runs: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let mut requeued = 0;
        for line in text.lines() {
            let (job, values) = line.split_once('|').unwrap();
            let values: Vec<f64> = values.split('|').filter_map(|value| value.parse().ok()).collect();
            if values.len() < 4 || !jobs.iter().any(|known| known == job) {
                continue;
            }
            let run = runs.entry(job).or_insert_with(|| values.clone());
            requeued += u64::from(run[1] < values[1]);
            *run = vec![run[0].min(values[0]), values[1], values[2], values[3]];
        }
        let rows: Vec<Vec<f64>> = runs.into_values().collect();
        let waits: Vec<f64> = rows.iter().map(|row| row[1] - row[0]).collect();
        let begin = rows.iter().map(|row| row[0]).fold(f64::MAX, f64::min);
        let end = rows.iter().map(|row| row[2]).fold(0.0, f64::max);
        let work: f64 = rows.iter().map(|row| (row[2] - row[1]) * row[3]).sum();
        eprintln!(
            "{}: {} jobs, {requeued} requeued, mean wait {:.1} s, longest {:.0} s, {:.0} s in all, utilization {:.1} %",
            policy.unwrap_or("Slurm"),
            rows.len(),
            waits.iter().sum::<f64>() / waits.len() as f64,
            waits.iter().copied().fold(0.0, f64::max),
            end - begin,
            100.0 * work / ((end - begin) * all as f64)
        );
        if let Some(driver) = driver {
            let queue = driver.queue();
            eprintln!("  with a promise: {}, by it: {}", queue["promised"], queue["kept"]);
        }
    }
}
