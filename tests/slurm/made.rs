//! `miserly slurm` on made outputs of Slurm's commands: no cluster is needed.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The clock of the cluster.
const NOW: i64 = 1_795_639_200;

/// A folder with commands that print the files beside them.
struct Made {
    folder: tempfile::TempDir,
}

const SCONTROL: &str = r#"case "$*" in
*config*) cat config ;;
*node*) cat nodes ;;
*partition*) cat partitions ;;
*reservation*) cat reservations ;;
*) cat >/dev/null; cat descriptions ;;
esac"#;

/// Each record begins with the mark that the format has.
const SQUEUE: &str = r#"for word; do format=$word; done
case "$format" in
JobArrayID*) mark=${format#JobArrayID:}; sed "s/@/${mark%%,*}/g" columns ;;
*%A*) sed "s/^/${format%%%i*}/" jobs ;;
'%U|%u') echo '7|ann' ;;
esac"#;

const SBATCH: &str = "cat >/dev/null; echo 'sbatch: Job 12 to start at 1795641000 using 4 processors on nodes a in partition batch' >&2";

impl Made {
    /// Returns two nodes of four processors, one of which has a job of two until `NOW + 500`. A job of all processors waits.
    fn new(reservations: &str) -> Made {
        let made = Made { folder: tempfile::tempdir().unwrap() };
        let commands = [
            ("scontrol", SCONTROL),
            ("squeue", SQUEUE),
            ("sbatch", SBATCH),
            ("sacctmgr", "echo Administrator"),
            ("sdiag", "exit 1"),
            ("sacct", "exit 1"),
        ];
        for (name, script) in commands {
            made.write_command(name, script);
        }
        made.set_version("22.05.8");
        let node = |name: &str, used: u64| {
            format!(
                "NodeName={name} CPUAlloc={used} CPUEfctv=4 CPUTot=4 RealMemory=1000 AllocMem=0 State=IDLE Partitions=batch\n"
            )
        };
        made.write("nodes", &(node("a", 0) + &node("b", 2)));
        made.write(
            "partitions",
            "PartitionName=batch Default=YES State=UP Nodes=a,b MaxTime=1-00:00:00 PriorityTier=1 OverSubscribe=NO QoS=N/A\n",
        );
        made.write("reservations", reservations);
        made.write("descriptions", "");
        made.write("columns", &[1, 2, 3].map(|id| columns(id, ["(null)"; 2], [""; 4])).concat());
        let job = |id: u64, state: &str, cpus: u64, limit: &str, start: &str, reason: &str, on: &str| {
            format!(
                "{id}|{id}|{id}|N/A|batch|{state}|7|{cpus}|1|0|{limit}|{}|{start}|N/A|10|{reason}|(null)|normal|(null)|N/A|{on}|(null)|x\n",
                NOW - 200
            )
        };
        made.write(
            "jobs",
            &(job(1, "RUNNING", 2, "10:00", &(NOW - 100).to_string(), "None", "b")
                + &job(2, "PENDING", 8, "10:00", "N/A", "Resources", "")
                + &job(3, "PENDING", 1, "10:00", "N/A", "QOSMaxGRESPerUser", "")),
        );
        made
    }

    fn set_version(&self, version: &str) {
        self.write(
            "config",
            &format!(
                "Configuration data as of {NOW}\nClusterName = made\nSLURM_VERSION = {version}\nSchedulerType = sched/backfill\n\
                 PriorityType = priority/basic\nSelectType = select/cons_tres\nSelectTypeParameters = CR_CPU\n"
            ),
        );
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Writes a command that executes a line of the shell.
    fn write_command(&self, name: &str, script: &str) {
        self.write(name, &format!("#!/bin/sh\ncd '{}'\n{script}\n", self.folder.path().display()));
        fs::set_permissions(self.path(name), PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn run(&self, arguments: &str) -> Output {
        self.command(env!("CARGO_BIN_EXE_miserly").as_ref(), arguments).output().unwrap()
    }

    /// Returns a run of a copy of the program by a user who is not root.
    fn command_of_user(&self, arguments: &str) -> Command {
        let program = self.path("miserly");
        // The folder of the build may be closed to others.
        // A process writes it: a child of another test would have the open file, and no open file is executed.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_miserly")).arg(&program).status().unwrap();
        assert!(copied.success());
        fs::set_permissions(self.folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let mut command = self.command(&program, arguments);
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(super::drive::OPERATOR.1);
        }
        command
    }

    fn command(&self, program: &Path, arguments: &str) -> Command {
        let path = format!("{}:/usr/bin:/bin", self.folder.path().display());
        let mut command = Command::new(program);
        command
            .arg("slurm")
            .args(arguments.split(' '))
            .env("PATH", path)
            .env("TZ", "UTC")
            .env("COLUMNS", "200")
            .env_remove("SLURM_CONF")
            .current_dir(self.folder.path());
        command
    }

    #[track_caller]
    fn text(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.text(&format!("{arguments} --json"))).unwrap()
    }

    /// Returns the message of a command that fails.
    #[track_caller]
    fn refusal(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

/// Returns the columns of a job without letters: its comments, and its resources by job, socket and task, and memory of each.
fn columns(id: impl std::fmt::Display, comments: [&str; 2], resources: [&str; 4]) -> String {
    let resources = resources.map(|text| if text.is_empty() { "N/A" } else { text });
    let values: Vec<String> = comments.iter().chain(&resources).map(|value| format!("{value}@")).collect();
    format!("{id}@{}\n", values.concat())
}

/// A job as `scontrol show job` prints it.
struct Described<'a> {
    id: u64,
    /// Its state, its processors and its nodes.
    runs: Option<(u64, &'a str)>,
    cpus: u64,
    submit_line: &'a str,
    comment: &'a str,
    /// The fields behind its files.
    resources: &'a str,
}

impl Described<'_> {
    /// Returns the line of 25.05 or of 25.11, as `sprint_job_info` of `src/scontrol/info_job.c` prints it in those branches of Slurm.
    fn line(&self, is_25_11: bool) -> String {
        let Described { id, runs, cpus, submit_line, comment, resources } = self;
        let (state, nodes, allocated) = match runs {
            Some((cpus, node)) => (
                "RUNNING Reason=None",
                format!("NodeList={node} BatchHost={node}"),
                format!("  Nodes={node} CPU_IDs=0-{} Mem=0 GRES= ", cpus - 1),
            ),
            None => ("PENDING Reason=Resources", "NodeList=".to_owned(), String::new()),
        };
        let submit = NOW - 200;
        let identity = if is_25_11 { format!("SLUID=s{id} ") } else { String::new() };
        let submitted = if is_25_11 { format!("SubmitLine={submit_line} ") } else { String::new() };
        let blank = if is_25_11 { "" } else { " " };
        let comment = if comment.is_empty() { String::new() } else { format!("Comment={comment}{blank} ") };
        format!(
            "JobId={id} JobName=x {identity}UserId=ann(7) GroupId=ann(7) MCS_label=N/A Priority=10 Nice=0 Account=(null) QOS=normal \
             JobState={state} Dependency=(null) Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 RunTime=00:01:40 \
             TimeLimit=00:10:00 TimeMin=N/A SubmitTime={submit} EligibleTime={submit} AccrueTime={submit} StartTime={submit} \
             EndTime=Unknown Deadline=N/A SuspendTime=None SecsPreSuspend=0 LastSchedEval={submit} Scheduler=Main Partition=batch \
             AllocNode:Sid=head:1 ReqNodeList=(null) ExcNodeList=(null) {nodes} NumNodes=1 NumCPUs={cpus} NumTasks={cpus} CPUs/Task=1 \
             ReqB:S:C:T=0:0:*:* ReqTRES=cpu={cpus},node=1,billing={cpus} AllocTRES=(null) Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=* \
             JOB_GRES=(null) {allocated}MinCPUsNode=1 MinMemoryNode=0 MinTmpDiskNode=0 Features=(null) DelayBoot=00:00:00 \
             OverSubscribe=OK Contiguous=0 Licenses=(null) LicensesAlloc=(null) Network=(null) Command=/home/ann/x.sh {submitted}WorkDir=/ \
             {comment}StdErr=/o StdIn=/dev/null StdOut=/o {resources}\n"
        )
    }
}

/// Versions without a package to test: what they print by their sources.
#[test]
fn made_outputs_of_25_05_and_25_11_are_read_and_warned_of() {
    let forged = "sbatch --wrap=x OverSubscribe=NO TresPerJob=gres/gpu:9 TresPerNode=gres/gpu:9 MemPerTres=gres/gpu:900 StdErr=/x";
    for (version, is_25_11, differs) in [
        ("25.05.3", false, "by its sources it has the forms of 24.11"),
        (
            "25.11.2",
            true,
            "it differs from 24.11 in the comment of a job (scontrol: one blank ends it; SubmitLine",
        ),
    ] {
        let made = Made::new("No reservations in the system\n");
        made.set_version(version);
        let comment = "two  blanks StdErr=/x TresPerTask=gres/gpu:9";
        let running = Described {
            id: 1,
            runs: Some((2, "b")),
            cpus: 2,
            submit_line: "sbatch x",
            comment: "",
            resources: "",
        };
        let waiting = Described { id: 2, runs: None, cpus: 8, submit_line: forged, comment, resources: "" };
        let by_task = "TresPerTask=cpu=1 ";
        let other =
            Described { id: 3, cpus: 1, submit_line: "sbatch y", comment: "", resources: by_task, ..waiting };
        let lines = |jobs: [&Described<'_>; 3]| jobs.map(|job| job.line(is_25_11)).concat();
        made.write("descriptions", &lines([&running, &waiting, &other]));
        let all = columns(1, ["(null)"; 2], [""; 4])
            + &columns(2, [comment, "(null)"], [""; 4])
            + &columns(3, ["(null)"; 2], ["", "", "cpu=1", ""]);
        made.write("columns", &all);
        // It would have no forecast with GPUs of the whole job, and its nodes to itself.
        let output = made.run("forecast 2 --history 0 --json");
        let warning = String::from_utf8_lossy(&output.stderr);
        assert!(
            warning.contains(&format!("Slurm {version} is not tested")) && warning.contains(differs),
            "{warning}"
        );
        let forecast: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(forecast["jobs"][0]["median"].as_i64().unwrap() - NOW, 500, "{version}: {forecast}");
        let check = made.json("check");
        assert_eq!(check["differences"], serde_json::json!([]), "{version}: {check:#}");
        assert_eq!((&check["described"], &check["exclusive"]), (&3.into(), &0.into()), "{check:#}");
        assert_eq!((&check["standing"], &check["driver_writes"]), (&"known".into(), &"AdminComment".into()));
        let text = made.text("check");
        assert!(text.contains("it is not tested, and its forms are known from its sources"), "{text}");
        assert!(
            text.contains("writes promises into AdminComment: the comments of users stay as they are"),
            "{text}"
        );
        // A driver goes by the columns: what only the line has is a difference.
        made.write("columns", &all.replace("cpu=1", "cpu=1,gres/gpu=1"));
        let refused = made.run("check");
        let text = String::from_utf8_lossy(&refused.stdout).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{text}");
        let found = "DIFFERS: job 3: TresPerTask: squeue prints \"cpu=1,gres/gpu=1\", but scontrol does not";
        assert!(text.contains(found), "{text}");
    }
    let made = Made::new("");
    made.set_version("26.11.0");
    let refused = made.refusal("drive -p conservative --dry-run");
    assert!(refused.contains("26.11.0") && refused.contains("--untested-version"), "{refused}");
}

#[test]
fn a_driver_that_is_no_administrator_writes_into_the_comments_of_users() {
    let made = Made::new("No reservations in the system\n");
    for (level, field, words) in [
        ("Operator", Some("Comment"), "writes promises into Comment"),
        ("None", Some("Comment"), "writes promises into Comment"),
        ("Administrator", Some("AdminComment"), "writes promises into AdminComment"),
        ("", None, ""),
    ] {
        made.write_command("sacctmgr", if level.is_empty() { "exit 1" } else { "cat level" });
        made.write("level", &format!("{level}\n"));
        let output = made.command_of_user("check --json").output().unwrap();
        let check: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(check["driver_writes"].as_str(), field, "{level}: {check:#}");
        let output = made.command_of_user("check").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(words), "{level}: {text}");
    }
}

/// Returns a reservation of both nodes for maintenance, in seconds from now.
fn maintenance(begin: i64, end: i64) -> String {
    format!(
        "ReservationName=maint StartTime={} EndTime={} Duration=00:30:00 Nodes=a,b NodeCnt=2 CoreCnt=8 Features=(null) \
         PartitionName=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES TRES=cpu=8 Users=root Groups=(null) Accounts=(null) \
         Licenses=(null) State=INACTIVE\n",
        NOW + begin,
        NOW + end
    )
}

#[test]
fn a_maintenance_ahead_moves_forecasts_behind_it() {
    let first = |made: &Made| {
        let all = made.json("forecast --history 0");
        assert_eq!(
            all["left_out"]["3"],
            "a limit of its quality of service that is not simulated (QOSMaxGRESPerUser)"
        );
        all["jobs"][0]["median"].as_i64().unwrap() - NOW
    };
    assert_eq!(first(&Made::new("No reservations in the system\n")), 500);
    // The job of ten minutes would end at 1100 s.
    assert_eq!(first(&Made::new(&maintenance(1200, 3000))), 500);
    let behind = first(&Made::new(&maintenance(1000, 3000)));
    assert!((3000..=3030).contains(&behind), "{behind}");
    let easy = Made::new(&maintenance(1000, 3000)).refusal("forecast 2 --history 0 --policy easy");
    assert!(
        easy.contains("it may reach into the reservation maint, which the policy easy does not know"),
        "{easy}"
    );
}

#[test]
fn a_bound_of_95_percent_needs_a_calibration() {
    let made = Made::new("");
    let text = made.text("forecast --history 0");
    assert!(text.contains("LATE CASE") && !text.contains("95 %: BY"), "{text}");
    assert!(text.contains("a late case is not calibrated"), "{text}");
    // Each job started twice as late as simulated.
    let record = |nth: i64| {
        let at = NOW - 100_000 + 1000 * nth;
        let late = at + 300 + nth;
        format!("{nth},batch,{},{at},{late},{late},{late},,{},{}\n", at - 200, 2 * late - at, 2 * late - at)
    };
    let head = "job,partition,submitted,made,median,by_80,by_95,slurm,start,until\n".to_owned();
    made.write("audit.csv", &(head.clone() + &(0..90).map(record).collect::<String>()));
    let all = made.json("forecast --history 0 --calibrate audit.csv");
    let (median, by_95) =
        (all["jobs"][0]["median"].as_i64().unwrap(), all["jobs"][0]["by_95"].as_i64().unwrap());
    // With a minute more, the ratio is 1.83 to 1.87.
    assert!((960..=990).contains(&(median - NOW)) && median <= by_95 && by_95 - NOW <= 990, "{all}");
    assert!(all["jobs"][0]["late"].is_null(), "{all}");
    let text = made.text("forecast --history 0 --calibrate audit.csv");
    assert!(text.contains("95 %: BY") && !text.contains("LATE CASE"), "{text}");
    made.write("audit.csv", &(head + "1,batch\n"));
    let refused = made.refusal("forecast --calibrate audit.csv");
    assert!(refused.contains("audit.csv") && refused.contains("line 2: no record"), "{refused}");
    assert!(made.refusal("forecast --calibrate none.csv").contains("none.csv"), "a missing file");
}

#[test]
fn a_job_that_is_not_submitted_has_a_forecast() {
    let made = Made::new("");
    // It waits for the job of all processors, which runs from 500 s to 1100 s.
    let all = made.json("forecast --cpus 3 --time 2h --history 0");
    assert_eq!(all["jobs"].as_array().unwrap().len(), 1, "{all}");
    let job = &all["jobs"][0];
    assert_eq!((&job["job"], job["median"].as_i64().unwrap() - NOW), (&"new".into(), 1100));
    assert_eq!(job["slurm"], 1_795_641_000_i64);
    // Five minutes fit before it.
    let short = made.json("forecast --cpus 3 --time 5min --partition batch --nodes 1 --history 0");
    assert!(short["jobs"][0]["median"].as_i64().unwrap() - NOW <= 60, "{short}");
    for (arguments, why) in [
        ("forecast --cpus 9 --time 1h --history 0", "it needs 9 processors of 8"),
        ("forecast --cpus 1 --time 1h --nodes 3 --history 0", "the nodes in service cannot hold it"),
        ("forecast --cpus 1 --time 2d --history 0", "the partition batch has jobs of at most 86400 s"),
        ("forecast --cpus 1 --time 1h --partition none --history 0", "no partition none"),
        ("forecast --cpus 1 --time 1h --memory lots --history 0", "--memory lots: write an amount"),
        ("forecast --cpus 1", "--time"),
        ("forecast --memory 1G", "--cpus"),
        ("forecast 2 --cpus 1 --time 1h", "cannot be used with"),
    ] {
        let refused = made.refusal(arguments);
        assert!(refused.contains(why), "{arguments}: {refused}");
    }
}

/// What a job asks for beside its size either counts in its forecast, or is the reason why it has none.
#[test]
fn a_forecast_has_the_nodes_and_limits_of_a_job_or_a_reason() {
    let made = Made::new("");
    let node = |name: &str, used: u64, kind: &str| {
        format!(
            "NodeName={name} CPUAlloc={used} CPUEfctv=4 CPUTot=4 RealMemory=1000 AllocMem=0 State=IDLE Partitions=batch {kind}\n"
        )
    };
    made.write(
        "nodes",
        &(node("a", 0, "ActiveFeatures=old Gres=gpu:t4:2")
            + &node("b", 4, "ActiveFeatures=fast,ib Gres=gpu:a100:2")),
    );
    // The second node is free at 500 s.
    let row = |id: &str,
               number: u64,
               array: &str,
               state: &str,
               cpus: u64,
               start: &str,
               gres: &str,
               on: &str| {
        format!(
            "{id}|{number}|{array}|batch|{state}|7|{cpus}|1|0|10:00|{}|{start}|N/A|10|Resources|(null)|normal|(null)|{gres}|{on}|(null)|x\n",
            NOW - 200
        )
    };
    let start = (NOW - 100).to_string();
    let waits = |number: u64, gres: &str| {
        row(&number.to_string(), number, &format!("{number}|N/A"), "PENDING", 1, "N/A", gres, "")
    };
    let task = |id: &str, number, place: u64, state: &str, start: &str, on: &str| {
        row(id, number, &format!("30|{place}"), state, 1, start, "N/A", on)
    };
    made.write(
        "jobs",
        &(row("1", 1, "1|N/A", "RUNNING", 4, &start, "N/A", "b")
            + &waits(2, "N/A")
            + &waits(3, "gres/gpu:a100:1")
            + &waits(4, "N/A")
            + &waits(5, "N/A")
            + &waits(6, "N/A")
            + &waits(7, "gres/gpu:h100:1")
            + &task("30_1", 31, 1, "RUNNING", &start, "a")
            + &task("30_2", 30, 2, "PENDING", "N/A", "")),
    );
    let described = |id: u64, fields: &str| {
        format!(
            "JobId={id} JobName=x ReqNodeList=(null) ExcNodeList=(null) NumNodes=1 CPUs/Task=1 MinCPUsNode=1 MinMemoryNode=0 {fields} \
             DelayBoot=00:00:00 OverSubscribe=OK Licenses=(null) Command=/x\n"
        )
    };
    let lines = [
        described(1, "Features=(null)"),
        described(2, "Features=fast&ib"),
        described(3, "Features=(null)"),
        described(4, "Features=[old*1&fast*1]"),
        described(5, "Features=(null)").replace("Licenses=(null)", "Licenses=matlab:1"),
        described(6, "Features=(null)").replace("ExcNodeList=(null)", "ExcNodeList=a"),
        described(7, "Features=(null)"),
        described(30, "Features=(null)")
            .replace("JobName", "ArrayJobId=30 ArrayTaskId=2-3%1 ArrayTaskThrottle=1 JobName"),
        described(31, "Features=(null)"),
    ];
    made.write("descriptions", &lines.concat());
    let ids = ["1", "2", "3", "4", "5", "6", "7", "30_1", "30_2"];
    made.write("columns", &ids.map(|id| columns(id, ["(null)"; 2], [""; 4])).concat());
    let all = made.json("forecast --history 0");
    let after = |job: &str| {
        let jobs = all["jobs"].as_array().unwrap();
        let found = jobs.iter().find(|one| one["job"] == job).unwrap_or_else(|| panic!("{job}: {all:#}"));
        found["median"].as_i64().unwrap() - NOW
    };
    // They could start at once on the first node, but for what they ask for.
    assert!(!String::from_utf8_lossy(&made.run("forecast 2 --history 0").stderr).contains("preemption"));
    let config = fs::read_to_string(made.path("config")).unwrap();
    made.write("config", &(config + "PreemptType = preempt/qos\nPreemptMode = GANG,SUSPEND\n"));
    let warning = String::from_utf8_lossy(&made.run("forecast 2 --history 0").stderr).into_owned();
    let why = "no forecast has preemption by PreemptMode=SUSPEND of the cluster";
    assert!(warning.contains(why), "{warning}");
    assert_eq!(["2", "3", "6"].map(after), [500, 500, 500], "{all:#}");
    assert_eq!(after("30_2"), 500, "the other task ends then");
    let why =
        |job: &str| all["left_out"][job].as_str().unwrap_or_else(|| panic!("{job}: {all:#}")).to_owned();
    assert_eq!(why("4"), "it asks for features in a form that is not simulated ([old*1&fast*1])");
    assert_eq!(why("5"), "it asks for licences, which are not simulated (matlab:1)");
    assert_eq!(why("7"), "the nodes in service cannot hold it");
}

#[test]
fn holes_say_what_starts_now_and_for_how_long() {
    let made = Made::new("");
    // At 500 s the job of all processors is planned, at the full minute before.
    let holes = made.json("holes");
    let until = (NOW + 500).div_euclid(60) * 60;
    let expected = serde_json::json!([{
        "partition": "batch", "nodes": 2, "idle": 1, "cpus": 6, "most_cpus": 4, "most_memory": null, "gpus": 0,
        "until": until, "longest": (until - NOW - 30) / 60 * 60,
    }]);
    assert_eq!(holes, expected);
    let text = made.text("holes");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..3], ["PARTITION", "TIME", "LIMIT"], "{text}");
    assert_eq!(
        (rows.len(), rows[1][0], &rows[1][rows[1].len() - 4..]),
        (2, "batch", &["2", "1", "6", "4"][..]),
        "{text}"
    );
    assert!(made.refusal("holes --partition none").contains("no partition none"), "an unknown partition");
    let closed = Made::new(&maintenance(-10, 1000));
    assert_eq!(closed.text("holes"), "nothing can start now\n");
}
