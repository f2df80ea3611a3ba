//! `miserly what-if`: changes of a log and their differences.

use crate::support::{Lab, log};

/// Forty jobs of users 1 and 2 on ten processors, each of which has to wait for the one before.
fn lab() -> Lab {
    let jobs: Vec<_> = (0..40).map(|number| (number + 1, 1000 * number, 1100, 6, 3000)).collect();
    let text = log(&jobs);
    let with_user = |(at, line): (usize, &str)| {
        let mut fields: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if line.starts_with(';') || fields.len() < 18 {
            return line.to_owned();
        }
        fields[11] = (at % 2 + 1).to_string();
        fields.join(" ")
    };
    let lines: Vec<String> = text.lines().enumerate().map(with_user).collect();
    let lab = Lab::with_log(&(lines.join("\n") + "\n"));
    lab.write("hosts.toml", "span = \"any\"\n[[host]]\nname = \"h\"\ncount = 5\ncpus = 2\n");
    lab
}

#[test]
fn an_added_job_delays_others_and_changes_no_past() {
    let lab = lab();
    let line = "what-if log.swf -p conservative --cpus 6 --time 50min --at 20000 --copies 4 --jobs rows.csv";
    let text = lab.stdout(line);
    for part in ["a further job of 6 processors for 50m", "the added job", "wait longer", "range"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let document = lab.document(&format!("{line} --json"));
    assert_eq!((&document["all"]["jobs"], &document["all"]["shorter"]), (&40.into(), &0.into()));
    assert!(document["all"]["longer"].as_u64().is_some_and(|jobs| jobs > 0), "{document}");
    assert!(document["job"]["wait"].as_f64() <= document["job"]["promise"].as_f64(), "{document}");
    // No job that was submitted before the added one waits longer.
    let rows = lab.read("rows.csv");
    let mut rows = rows.lines();
    let header = "job_id,submission_time,procs,user,wait_without,wait_with,difference,least,largest";
    assert_eq!(rows.next(), Some(header));
    let mut earlier = 0;
    for row in rows {
        let fields: Vec<&str> = row.split(',').collect();
        if fields[1].parse::<u32>().is_ok_and(|submit| submit < 20_000) {
            assert_eq!(&fields[6..], ["0", "0", "0"], "{row}");
            earlier += 1;
        }
    }
    assert_eq!(earlier, 20);
}

#[test]
fn more_hosts_a_lost_host_more_load_and_a_user_less() {
    let lab = lab();
    let change = |options: &str| lab.document(&format!("what-if log.swf --copies 2 --json {options}"));
    let difference = |options: &str| {
        let document = change(options);
        assert!(document["all"]["range"].is_array(), "{document}");
        document["all"]["difference"].as_f64().unwrap_or(f64::NAN)
    };
    let hosts = "-p easy --machine hosts.toml";
    assert!(difference(&format!("{hosts} --add-hosts 1")) < 0.0);
    assert!(difference(&format!("{hosts} --add-hosts h=1")) < 0.0);
    assert!(difference("-p easy --new-procs 12") < 0.0);
    assert!(difference("-p easy --load 1.5") > 0.0);
    assert!(difference("-p easy --load 1.5 --new-procs 12") < 0.0);
    let document = change("-p easy --without-user 2");
    assert_eq!((&document["only_before"], &document["all"]["jobs"]), (&20.into(), &20.into()));
    assert_eq!(document["all"]["after"], 0.0);
    // Without two hosts no job is left: all are wider than the machine.
    assert_eq!(change(&format!("{hosts} --lose h1,h5 --lose h2"))["only_before"], 40);
    assert_eq!(change(&format!("{hosts} --lose h1,h5"))["all"]["difference"], 0.0);
    assert_eq!(change("-p easy -p conservative")["all"]["difference"], 0.0);
}

/// Wide jobs of an hour among narrow ones of a minute.
fn mixed() -> Lab {
    let job =
        |n: i64| (n + 1, 100 * n, if n % 3 == 0 { 3_600 } else { 60 }, if n % 3 == 0 { 6 } else { 1 }, 3_600);
    Lab::with_log(&log(&(0..60).map(job).collect::<Vec<_>>()))
}

#[test]
fn groups_are_those_of_compare() {
    let lab = mixed();
    let policies = "log.swf -p fcfs -p easy --json";
    let answer = lab.document(&format!("what-if {policies} --copies 0"));
    let groups = answer["groups"].as_str().expect("a grouping");
    assert!(groups.starts_with("runtime:") && groups.contains("+procs:"), "{groups}");
    let compared = lab.document(&format!("compare {policies} --by {groups}"));
    // Without --by the verdict has the same groups.
    assert_eq!(lab.document(&format!("compare {policies}"))["verdicts"], compared["verdicts"]);
    let of = |run: usize| {
        let groups = compared["runs"][run]["by"][groups].as_array().expect("groups");
        let waits =
            groups.iter().map(|group| (&group["group"], &group["jobs"], &group["metrics"]["wait"]["mean"]));
        waits.filter(|(_, jobs, _)| **jobs != 0).collect::<Vec<_>>()
    };
    let by_group = answer["by_group"].as_array().expect("groups");
    let waits = |field: &str| {
        by_group.iter().map(|group| (&group["group"], &group["jobs"], &group[field])).collect::<Vec<_>>()
    };
    assert_eq!((waits("before"), waits("after")), (of(0), of(1)));
    assert!(by_group.len() > 1 && of(0) != of(1), "{answer}");
}

#[test]
fn groups_are_chosen() {
    let lab = mixed();
    let line = "what-if log.swf -p easy --load 2 --copies 0 --json --by";
    let names = |by: &str| {
        let answer = lab.document(&format!("{line} {by}"));
        let groups = answer["by_group"].as_array().expect("groups").iter();
        groups.map(|group| (group["group"].clone(), group["jobs"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(names("procs:1,8"), [("1p".into(), 40.into()), ("2-8p".into(), 20.into())]);
    assert_eq!(names("user"), [("1".into(), 60.into())]);
    let run = lab.run(&format!("{line} size"));
    assert!(run.code == Some(2) && run.stderr.contains("unknown grouping \"size\""), "{}", run.stderr);
}

/// Two jobs on the whole machine, and a third that follows the second one after 50 s.
#[test]
fn users_react_in_both_runs() {
    let text = log(&[(1, 0, 100, 10, 100), (2, 0, 100, 10, 100), (3, 150, 100, 10, 100)]);
    let text = text.trim_end().strip_suffix("-1 -1").expect("no preceding job").to_owned() + "2 50\n";
    let lab = Lab::with_log(&text);
    let answer = |options: &str| {
        let answer =
            lab.document(&format!("what-if log.swf -p easy --new-procs 20 --copies 0 --json {options}"));
        let all = &answer["all"];
        assert_eq!(answer["significant"], serde_json::Value::Null);
        [&all["before"], &all["after"]].map(|wait| wait.as_f64().map(|wait| (3.0 * wait).round()))
    };
    // Job 2 waits for 100 s. As logged, job 3 comes 50 s before it ends, and waits; with feedback it comes 50 s after.
    assert_eq!(answer(""), [Some(150.0), Some(0.0)]);
    assert_eq!(answer("--feedback fields"), [Some(100.0), Some(0.0)]);
    let run = lab.run("what-if log.swf -p easy --load 2 --feedback sessions");
    assert!(run.code == Some(2) && run.stderr.contains("no user has a session"), "{}", run.stderr);
}

#[test]
fn changes_that_are_none() {
    let lab = lab();
    let refused = |line: &str, why: &str| {
        let run = lab.run(&format!("what-if log.swf {line}"));
        assert_eq!(run.code, Some(2), "{line}");
        assert!(run.stderr.contains(why), "{}", run.stderr);
    };
    refused("--load 2", "a log needs the policy in use");
    refused("-p easy", "no change: give a job");
    refused("-p easy -p easy", "no change: give a job");
    refused("-p easy -p fcfs -p conservative", "three policies");
    refused("-p easy --cpus 11 --time 1h", "the job can never run on the machine of 10 processors");
    refused("-p easy --cpus 4", "--time <TIME>");
    refused("-p easy --without-user nobody", "nobody");
    refused(
        "-p easy --without-user 3",
        "no user \"3\"; its header has no names of users; the users are 1, 2",
    );
    refused("-p easy --machine hosts.toml --lose h6", "no host \"h6\"; the first one is \"h1\"");
    refused("-p easy --machine hosts.toml --lose h1,h2,h3,h4,h5", "no host is left");
    refused("-p easy --machine hosts.toml --add-hosts g=2", "no hosts \"g\"; the hosts are h");
    refused("-p easy --machine hosts.toml --add-hosts 1000000", "1000005 hosts in all");
    refused("-p easy --add-hosts 0", "must be a number of hosts");
    refused("-p easy --load 2 --jobs log.swf", "this is the input log");
}
