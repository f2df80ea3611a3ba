//! Other formats: from what somebody has to a run.

use std::collections::BTreeSet;
use std::fs;

use crate::support::{Lab, gzipped, of_project, parsed, without_timing};

/// A folder with accounting and a workload.
fn lab() -> Lab {
    let lab = Lab::new();
    for name in ["november.sacct", "workload.json"] {
        lab.write(name, fs::read(of_project("tests/data").join(name)).expect("a file of the project"));
    }
    lab
}

#[test]
fn accounting_can_be_checked_and_run() {
    let lab = lab();
    let report = lab.stdout("workload convert slurm november.sacct --procs 64 -o november.swf");
    assert!(report.starts_with("november.sacct: Slurm accounting\n6 jobs written of 6 read"), "{report}");
    let check = lab.document("workload check november.swf --json");
    assert_eq!((&check["read"], &check["left_out"]), (&6.into(), &1.into()));
    let kinds: Vec<_> =
        check["findings"].as_array().into_iter().flatten().map(|found| &found["kind"]).collect();
    assert_eq!(kinds, ["no_runtime", "sizes_differ"]);
    let run = lab.document("simulate november.swf --policy easy --json");
    assert_eq!(run["jobs"]["simulated"], 5);
}

#[test]
fn a_workload_of_batsim_is_clean_and_runs() {
    let lab = lab();
    lab.stdout("workload convert batsim workload.json -o w.swf");
    assert!(lab.stdout("workload check w.swf").contains("; no anomalies\n"));
    assert_eq!(lab.document("simulate w.swf --policy easy --json")["jobs"]["simulated"], 3);
}

#[test]
fn gzipped_or_from_a_pipe_is_the_same() {
    let lab = lab();
    let text = fs::read(lab.path("november.sacct")).expect("a file");
    lab.write("november.sacct.gz", gzipped(&text));
    lab.stdout("workload convert slurm november.sacct -o plain.swf");
    lab.stdout("workload convert slurm november.sacct.gz -o packed.swf");
    lab.fed("workload convert slurm - -o piped.swf", &text);
    let jobs =
        |name| lab.read(name).lines().filter(|line| !line.starts_with(';')).map(str::to_owned).collect();
    let plain: Vec<String> = jobs("plain.swf");
    assert_eq!((&plain, &plain), (&jobs("packed.swf"), &jobs("piped.swf")));
}

/// A log that is written identifies nobody, whether or not the form of its source is named. A log that is only read has the ids.
#[test]
fn written_logs_have_ids_only_if_asked() {
    let lab = lab();
    let users = |name: &str| {
        let text = lab.read(name);
        let jobs = text.lines().filter(|line| !line.starts_with(';'));
        jobs.filter_map(|line| line.split_whitespace().nth(11)?.parse().ok()).collect()
    };
    let header = lab.read("november.sacct").lines().next().map(str::to_owned).expect("a header");
    let row = |job: i64| {
        let (at, user) = (1_700_000_000 + job * 21_600, 501 + job % 3);
        let usage = "00:00:00|00:00:00|32|32|1|00:05:00|32G|60";
        format!("{job}|{at}|{at}|{at}|{}|300|{usage}|COMPLETED|{user}|{user}|cpu|1\n", at + 300)
    };
    lab.write("days.sacct", header + "\n" + &(1..=12).map(row).collect::<String>());
    for command in
        ["convert slurm days.sacct", "convert days.sacct", "slice days.sacct --days 1 --window 2 --procs 64"]
    {
        for (option, least) in [("", 1), ("--keep-ids", 501)] {
            let run = lab.run(&format!("workload {command} {option} -o written.swf"));
            assert_eq!(run.code, Some(0), "{}", run.stderr);
            let users: BTreeSet<i64> = users("written.swf");
            assert_eq!(
                users.into_iter().collect::<Vec<_>>(),
                [0, 1, 2].map(|user| user + least),
                "{command} {option}"
            );
        }
    }
}

#[test]
fn without_a_file_the_log_is_printed_and_the_report_stands_beside_it() {
    let lab = lab();
    let run = lab.run("workload convert slurm november.sacct --json");
    assert_eq!((run.code, parsed(&run.stderr)["written"].as_u64()), (Some(0), Some(6)));
    lab.stdout("workload convert slurm november.sacct -o november.swf");
    assert_eq!(run.stdout, lab.read("november.swf"));
}

#[test]
fn accounting_that_is_cut_in_its_last_line_is_refused() {
    let lab = lab();
    let text = lab.read("november.sacct");
    let lines = text.lines().count();
    lab.write("cut.sacct", &text[..text.len() - 3]);
    let run = lab.run("workload convert slurm cut.sacct -o cut.swf");
    let problem =
        format!("error: cut.sacct:{lines}: the last line has no line end, so the file may be cut in it;");
    assert!(run.code == Some(2) && run.stderr.starts_with(&problem), "{}", run.stderr);
    assert!(!lab.path("cut.swf").exists());
    let report = lab.stdout("workload convert slurm cut.sacct --lenient -o cut.swf");
    assert!(report.contains("5 jobs written of 6 read"), "{report}");
}

#[test]
fn a_machine_that_is_too_small_for_its_accounting_is_warned_of() {
    let lab = lab();
    let run = lab.run("workload convert slurm november.sacct --procs 1 -o small.swf");
    assert_eq!(run.code, Some(0));
    let start = "warning: november.sacct: the machine has 1 processors, but up to ";
    assert!(run.stderr.starts_with(start) && run.stderr.ends_with("; check --procs\n"), "{}", run.stderr);
}

/// Every command that reads a log recognises accounting, plain, gzipped or from a pipe.
#[test]
fn accounting_is_read_wherever_a_log_is() {
    let lab = lab();
    let text = fs::read(lab.path("november.sacct")).expect("a file");
    lab.write("november.gz", gzipped(&text));
    lab.stdout("workload convert slurm november.sacct --keep-ids --procs 64 -o november.swf");
    let options = "-p easy --procs 64 --json";
    let of_log = without_timing(&lab.stdout(&format!("simulate november.swf {options}")));
    for name in ["november.sacct", "november.gz", "-"] {
        let mut command = lab.command(&format!("simulate {name} {options}"));
        let input = fs::File::open(lab.path("november.sacct")).expect("a file");
        let output = command.stdin(input).output().expect("a program that starts");
        let found = without_timing(&String::from_utf8_lossy(&output.stdout));
        assert_eq!((&found["jobs"], &found["metrics"]), (&of_log["jobs"], &of_log["metrics"]), "{name}");
    }
    let told = "november.sacct: Slurm accounting\n6 jobs written of 6 read";
    for command in [
        "simulate november.sacct -p easy --procs 64",
        "compare november.sacct -p easy --procs 64",
        "what-if november.sacct -p easy --procs 64 --new-procs 65 --copies 0",
        "wait-of november.sacct 1 1h -p easy --procs 64 --samples 1",
        "forecast november.sacct -p easy --procs 64 --draws 1",
        "workload describe november.sacct --procs 64",
        "workload check november.sacct --procs 64",
    ] {
        let run = lab.run(command);
        assert_eq!(run.code, Some(0), "{command}: {}", run.stderr);
        assert!(
            run.stderr.starts_with(told) && run.stderr.contains("never_started: 1"),
            "{command}: {}",
            run.stderr
        );
    }
    lab.write("t.toml", "title = \"t\"\n[[trace]]\nname = \"a\"\nfile = \"november.sacct\"\noptions = { procs = 64 }\n[policies]\ne = \"easy\"\n[[runs]]\nname = \"r\"\npolicies = [\"e\"]\n");
    let run = lab.run("experiment run t.toml");
    assert!(run.code == Some(0) && run.stderr.contains("6 jobs written of 6 read"), "{}", run.stderr);
}

/// A command that counts malformed lines of a log counts those of accounting too, and others name the option that does.
#[test]
fn malformed_lines_of_accounting() {
    let lab = Lab::new();
    lab.write(
        "a.sacct",
        "JobID|Submit|Start|End|AllocCPUS|State\n7|0|10|60|1|COMPLETED\n8|0|x|60|1|COMPLETED\n",
    );
    let refused = "error: a.sacct:3: Start is \"x\"; expected: time; --lenient skips and counts such lines\n";
    assert_eq!(lab.run("simulate a.sacct -p easy --procs 4").stderr, refused);
    for command in ["workload check", "workload describe", "simulate -p easy --lenient"] {
        let run = lab.run(&format!("{command} --procs 4 a.sacct"));
        assert!(
            run.code == Some(0) && run.stderr.contains("malformed: 1 - a line that is not"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn a_small_machine_and_a_zone_are_told_wherever_a_log_is_read() {
    let lab = Lab::new();
    lab.write("a.txt", "JobID,Submit,Start,End,NNodes,State\n7,2024-03-01T12:00:00,2024-03-01T12:00:10,2024-03-01T13:00:00,2,COMPLETED\n");
    let run = lab.run("simulate a.txt -p easy --procs 64");
    assert!(run.code == Some(2) && run.stderr.contains("or NNodes with --cpus-per-node"), "{}", run.stderr);
    let run =
        lab.run("simulate a.txt -p easy --procs 64 --cpus-per-node 48 --time-zone Europe/Berlin --json");
    assert!(
        run.stderr.contains("warning: a.txt: the machine has 64 processors, but up to 96 were in use"),
        "{}",
        run.stderr
    );
    let run = lab.run("explain a.txt 7 -p easy --procs 96 --cpus-per-node 48 --time-zone Europe/Berlin");
    assert!(
        run.stdout.contains("2024-03-01 12:00") && !run.stderr.contains("local_time"),
        "{}{}",
        run.stdout,
        run.stderr
    );
}

/// A requeued job, and a number that was given again.
#[test]
fn each_job_with_a_number_is_explained() {
    let lab = Lab::new();
    let rows = "7|0|10|60|1|NODE_FAIL|ann\n7|60|100|160|1|COMPLETED|ann\n8|70|300|360|1|COMPLETED|bob\n";
    lab.write("a.sacct", format!("JobID|Submit|Start|End|AllocCPUS|State|User\n{rows}"));
    let text = lab.run("explain a.sacct 7 -p easy --procs 4 --seconds").stdout;
    assert!(text.starts_with("number 7, submission 1 of 2:\njob 7: 1 processor"), "{text}");
    assert!(text.contains("number 7, submission 2 of 2:") && text.contains("120  ended"), "{text}");
    let both = parsed(&lab.run("explain a.sacct 7 -p easy --procs 4 --json").stdout);
    assert_eq!((&both[0]["submit"], &both[1]["submit"]), (&0.0.into(), &60.0.into()));
    assert_eq!((&both[0]["end"], &both[1]["end"]), (&50.0.into(), &120.0.into()));
    assert!(lab.run("explain a.sacct 8 -p easy --procs 4").stdout.starts_with("job 8:"));
}

#[test]
fn accounting_of_other_systems() {
    let lab = Lab::new();
    let record = |id: u32, start: u32| {
        format!(
            "03/01/2013 00:00:00;E;{id}.bw;ctime=1362096000 start={start} end={} Resource_List.ncpus=4\n",
            start + 60
        )
    };
    let log = record(1, 1_362_096_000) + "03/01/2013 00:00:00;Q;2.bw;queue=q\n" + &record(2, 1_362_096_060);
    lab.write("20130301", &log);
    let run = lab.run("simulate 20130301 -p easy --procs 4 --json");
    assert_eq!(parsed(&run.stdout)["metrics"]["wait"]["max"], 60.0, "{}", run.stderr);
    assert!(run.stderr.starts_with("20130301: PBS accounting\n2 jobs written of 3 read"), "{}", run.stderr);
    let report = lab.stdout("workload convert pbs 20130301 -o p.swf");
    assert!(report.contains("event: 1 - a record of another event"), "{report}");
    assert!(lab.read("p.swf").contains("\n1 0 0 60 4 -1 -1 4 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n2 0 60 60 4 "));
}

/// Users, groups, queues and partitions of a table keep their names wherever a log is read.
#[test]
fn names_of_a_table_are_shown_and_select_jobs() {
    let lab = Lab::new();
    lab.write(
        "t.csv",
        "id,s,b,e,p,u,g,q,c\n1,100,100,200,1,bob,bio,short,low\n2,110,150,210,1,ann,chem,long,high\n3,120,160,220,1,bob,bio,short,high\n",
    );
    lab.write("m.toml", "[columns]\njob = 'id'\nsubmit = 's'\nstart = 'b'\nend = 'e'\nprocs = 'p'\nuser = 'u'\ngroup = 'g'\nqueue = 'q'\npartition = 'c'\n");
    let out = |line: &str| lab.run(&format!("{line} --columns m.toml --procs 2")).stdout;
    for (by, groups) in [
        ("user", ["bob", "ann"]),
        ("group", ["bio", "chem"]),
        ("queue", ["short", "long"]),
        ("partition", ["low", "high"]),
    ] {
        let table = out(&format!("compare t.csv -p fcfs -p easy --by {by}"));
        let has = |group: &&str| table.lines().any(|line| line.starts_with(&format!("{group} ")));
        assert!(groups.iter().all(has), "{table}");
    }
    let described = out("workload describe t.csv");
    for names in ["1 bob (66.7 %), 2 ann (33.3 %)", "1 bio (66.7 %)", "1 short (66.7 %)", "2 high (66.7 %)"] {
        assert!(described.contains(names), "{described}");
    }
    let explained = out("explain t.csv 2 -p easy");
    assert!(
        explained.contains("in the log: group chem, partition high, queue long, user ann"),
        "{explained}"
    );
    let jobs = |filter: &str| {
        parsed(&out(&format!("simulate t.csv -p easy --json {filter}")))["jobs"]["simulated"].clone()
    };
    assert_eq!(jobs("--keep user=bob"), 2);
    assert_eq!(jobs("--keep group!=bio"), 1);
    assert_eq!(jobs("--drop partition=high"), 1);
    let run = lab.run("workload convert t.csv --columns m.toml --keep queue=batch");
    let problem = "error: t.csv: a filter compares queue with \"batch\", but the names in the header of the log are short, long\n";
    assert!(run.code == Some(2) && run.stderr.ends_with(problem), "{}", run.stderr);
}

/// A map of one's own is previewed with the counts of its rules, and a proposal can be written to a file.
#[test]
fn the_jobs_of_a_map_are_previewed() {
    let lab = Lab::new();
    lab.write("t.csv", "id,submit_time,start_time,end_time,cpus,who,state\n1,1700000000,1700000010,1700000070,2,ann,COMPLETED\n2,1700000001,1700000010,1700000005,2,bob,Odd\n3,1700000002,1700000010,1700000070,2,bob,Odd\n");
    let proposed = lab.stdout("workload columns t.csv");
    assert!(proposed.contains("\nuser = \"who\"  # by its name\n"), "{proposed}");
    assert_eq!(lab.stdout("workload columns t.csv -o -"), proposed);
    assert_eq!(lab.stdout("workload columns t.csv -o my.toml"), "");
    assert_eq!(lab.read("my.toml"), proposed);
    let text = lab.stdout("workload columns t.csv --columns my.toml");
    for part in [
        "The first jobs as they are read, sorted by submission, of 2:\n",
        "1 ann",
        "2 jobs written of 3 read",
        "  rule: 1 - end < start\n",
        "  state: 1 - Odd\n  to read them, write in my.toml:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("Proposed"), "{text}");
    let document = lab.document("workload columns t.csv --columns my.toml --json");
    assert_eq!(
        (&document["jobs"][0]["user_name"], &document["report"]["rules"][0]["count"]),
        (&"ann".into(), &1.into())
    );
    assert_eq!(document["report"]["unknown_states"]["most"][0]["state"], "Odd");
}

/// `-` is standard output where an output has that as its default, and is refused elsewhere.
#[test]
fn the_output_named_by_a_dash_is_no_file() {
    let lab = lab();
    let convert = "workload convert slurm november.sacct --procs 64";
    lab.stdout(&format!("{convert} -o november.swf"));
    let log = lab.read("november.swf");
    assert_eq!(lab.run(&format!("{convert} -o -")).stdout, log);
    assert_eq!(lab.run("workload convert november.swf -o -").stdout, log);
    let generated = lab.stdout("workload generate --jobs 5");
    assert_eq!(lab.stdout("workload generate --jobs 5 -o -"), generated);
    lab.stdout("workload generate --jobs 2000 -o long.swf");
    // What is said of the window then goes to standard error.
    let slice = "workload slice long.swf --days 1 --window 1 --cold";
    let said = lab.stdout(&format!("{slice} -o window.swf"));
    let run = lab.run(&format!("{slice} -o -"));
    assert_eq!((run.code, run.stdout), (Some(0), lab.read("window.swf")));
    assert_eq!(run.stderr, said.replace("window.swf:", "-:"));
    assert!(!lab.files().contains(&"-".to_owned()));
}
