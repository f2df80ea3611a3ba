//! `miserly slurm` on made outputs of Slurm's commands: no cluster is needed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
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
            ("sdiag", "exit 1"),
            ("sacct", "exit 1"),
        ];
        for (name, script) in commands {
            let script = format!("#!/bin/sh\ncd '{}'\n{script}\n", made.folder.path().display());
            made.write(name, &script);
            fs::set_permissions(made.path(name), PermissionsExt::from_mode(0o755)).unwrap();
        }
        made.write(
            "config",
            &format!(
                "Configuration data as of {NOW}\nClusterName = made\nSLURM_VERSION = 22.05.8\nSchedulerType = sched/backfill\n\
                 PriorityType = priority/basic\nSelectType = select/cons_tres\nSelectTypeParameters = CR_CPU\n"
            ),
        );
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

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn run(&self, arguments: &str) -> Output {
        let path = format!("{}:/usr/bin:/bin", self.folder.path().display());
        Command::new(env!("CARGO_BIN_EXE_miserly"))
            .arg("slurm")
            .args(arguments.split(' '))
            .env("PATH", path)
            .env("TZ", "UTC")
            .env("COLUMNS", "200")
            .env_remove("SLURM_CONF")
            .current_dir(self.folder.path())
            .output()
            .unwrap()
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
