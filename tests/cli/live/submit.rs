use serde_json::{Value, json};

use super::daemon::{Daemon, job};
use crate::support::parsed;

fn accepting() -> Daemon {
    let window = json!({"start": "2026-03-01T10:00:00Z", "end": "2026-03-01T11:30:00Z"});
    Daemon::new(&[
        ("POST /v1/jobs", 201, json!({"jobs": [{"number": 12, "promise": window, "started": false}]})),
        ("POST /v1/quote", 200, json!({"windows": [window, null]})),
        (
            "GET /v1/jobs/12/wait",
            200,
            job(
                12,
                &json!({"phase": {
                    "state": "done", "start": "2026-03-01T10:00:00Z", "end": "2026-03-01T10:01:00Z", "exit": {"code": 3},
                }}),
            ),
        ),
    ])
}

/// What was submitted by a command line.
#[track_caller]
fn submitted(daemon: &Daemon, line: &str) -> Value {
    daemon.stdout(line);
    daemon.requests().pop().expect("a submission").1
}

#[test]
fn a_program_with_options_of_its_own() {
    let daemon = accepting();
    let line = "submit -t 1h30m -c 2 -m 1GB --name n --queue q --after 3,4 -a 0-9:3 --restartable --hold \
        --no-opportunistic -o out%a -e err%a --begin 2126-03-01T20:00:00Z --deadline 2126-03-02T20:00:00Z prog --cpus 7";
    let body = submitted(&daemon, line);
    let expect = json!({
        "command": ["prog", "--cpus", "7"], "time": 5400.0, "cpus": 2, "memory": 1 << 30, "name": "n", "queue": "q",
        "after": [3, 4], "array": {"first": 0, "last": 9, "step": 3}, "restartable": true, "hold": true,
        "no_opportunistic": true, "output": "out%a", "error": "err%a", "begin": "2126-03-01T20:00:00Z",
        "deadline": "2126-03-02T20:00:00Z",
    });
    for (key, value) in expect.as_object().expect("an object") {
        assert_eq!(&body[key], value, "{key}");
    }
    assert!(body.get("script").is_none());
    let here = daemon.lab.path("").canonicalize().expect("a folder");
    assert_eq!(body["directory"].as_str().map(std::path::Path::new), Some(here.as_path()));
    assert_eq!(body["environment"]["TZ"], "UTC");
}

#[test]
fn a_script_says_what_it_needs_and_the_command_line_counts_before_it() {
    let daemon = accepting();
    let script = "#!/bin/sh\n#SBATCH -n 4 --mem-per-cpu=500 -t 10 -J slurms\n#MISERLY --cpus 2\necho hi\n";
    daemon.lab.write("job.sh", script);
    let body = submitted(&daemon, "submit job.sh --seed 1");
    assert_eq!((&body["script"], &body["command"]), (&json!(script), &json!(["--seed", "1"])));
    assert_eq!(
        (&body["cpus"], &body["time"], &body["memory"]),
        (&json!(2), &json!(600.0), &json!(1000 << 20))
    );
    assert_eq!(body["name"], "slurms");
    let body = submitted(&daemon, "submit --time 5s --cpus 1 --export NONE,A=1 -d /tmp job.sh");
    assert_eq!((&body["cpus"], &body["time"], &body["memory"]), (&json!(1), &json!(5.0), &json!(500 << 20)));
    assert_eq!((&body["environment"]["A"], &body["environment"]["TZ"]), (&json!("1"), &Value::Null));
    assert_eq!(body["directory"], "/tmp");
}

#[test]
fn a_range_of_processors_is_for_a_resizable_job() {
    let daemon = accepting();
    for (options, least, most) in [("-c 2-8 --resizable", 2, 8), ("-c 8 --resizable", 1, 8)] {
        let body = submitted(&daemon, &format!("submit -t 1s {options} true"));
        assert_eq!((&body["resizable"], &body["cpus"]), (&json!(least), &json!(most)), "{options}");
    }
    daemon.fails("submit -t 1s --cpus 2-8 true", 2, "add --resizable, or write --cpus 8");
    daemon.fails("submit -t 1s --cpus 8-2 --resizable true", 2, "no range of them, such as 2-8");
}

#[test]
fn a_script_without_a_name_has_its_files() {
    let daemon = accepting();
    daemon.lab.write("job.sh", "#!/bin/sh\n");
    assert_eq!(submitted(&daemon, "submit -t 1s ./job.sh")["name"], "job.sh");
}

#[test]
fn a_warning_names_its_line() {
    let daemon = accepting();
    daemon.lab.write("job.sh", "#!/bin/sh\n#SBATCH -t 1\n#SBATCH --constraint=fast\n");
    let run = daemon.run("submit job.sh");
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(0), "warning: job.sh:3: nothing is made of #SBATCH --constraint\n")
    );
}

#[test]
fn answers() {
    let daemon = accepting();
    let check = |line: &str, expect: &str| assert_eq!(daemon.stdout(line), expect, "{line}");
    check(
        "submit -t 1s true",
        "job 12: starts by 2026-03-01 10:00:00, resources reserved until 2026-03-01 11:30:00 at the latest\n",
    );
    check("submit -q -t 1s true", "12\n");
    check(
        "submit --quote -t 1s true",
        "would be promised now: starts by 2026-03-01 10:00:00, resources reserved until 2026-03-01 11:30:00 at the latest\n\
         would get no promise\n",
    );
    let document = parsed(&daemon.stdout("submit --json -t 1s true"));
    assert_eq!(document["jobs"][0]["number"], 12);
}

#[test]
fn the_numbers_of_an_array_are_a_range() {
    let accepted = |number: i64| json!({"number": number, "index": number - 86, "started": number == 86});
    let jobs: Vec<_> = (86..4086).map(accepted).collect();
    let daemon = Daemon::new(&[("POST /v1/jobs", 201, json!({ "jobs": jobs }))]);
    assert_eq!(daemon.stdout("submit -q -t 1s --array 0-3999 true"), "86-4085\n");
    let text = daemon.stdout("submit -t 1s --array 0-3999 true");
    assert!(text.starts_with("4000 jobs, 86-4085\n  job 86: has started\n  job 4085: "), "{text}");
    let document = parsed(&daemon.stdout("submit --json -t 1s --array 0-3999 true"));
    assert_eq!(document["jobs"].as_array().map(Vec::len), Some(4000));
}

/// Its queue has a default, or refuses it.
#[test]
fn a_job_without_a_time_limit_is_submitted_without_one() {
    let daemon = accepting();
    daemon.stdout("submit --reservation course -p batch true");
    let (_, asked) = daemon.requests().pop().expect("a submission");
    assert_eq!((&asked["time"], &asked["queue"]), (&0.0.into(), &"course".into()));
}

#[test]
fn waiting_for_it_exits_as_it_does() {
    let run = accepting().run("submit --wait -t 1s true");
    assert_eq!((run.code, run.stderr.as_str()), (Some(3), ""));
}

#[test]
fn what_makes_no_sense_is_not_submitted() {
    let daemon = accepting();
    daemon.lab.write("wrong.sh", "#!/bin/sh\n\n#MISERLY --cpu 4\n");
    daemon.lab.write("binary.sh", b"#!\xff\n");
    daemon.fails("submit -t 1:30 true", 2, "\"1:30\" is ambiguous");
    daemon.fails("submit -t 1s -m 4096 true", 2, "4096MiB");
    daemon.fails("submit -t 1s -c 0 true", 2, "is no number above 0");
    daemon.fails("submit -t 1s --begin soon true", 2, "instant");
    daemon.fails("submit -t 1s --array 9-0 true", 2, "FIRST-LAST");
    daemon.fails("submit -t 1s wrong.sh", 2, "wrong.sh:3: no option --cpu");
    daemon.fails("submit -t 1s binary.sh", 2, "UTF-8");
    daemon.fails("submit", 2, "PROGRAM");
    daemon.fails("submit --tiem 1s true", 2, "--tiem");
    daemon.fails("submit -t 1s -", 2, "#!/bin/sh");
    assert!(daemon.requests().is_empty());
}

/// What the job needs as it starts is looked for as it will be then, unless it is to be made until then.
#[test]
fn what_is_not_there_is_not_submitted() {
    let daemon = accepting();
    daemon.lab.write("data", "1 2 3");
    daemon.lab.write("job.sh", "#!/bin/sh\n");
    std::fs::create_dir(daemon.lab.path("folder")).expect("a folder");
    daemon.fails("submit -t 1s -d gone true", 2, "gone: the folder does not exist");
    daemon.fails("submit -t 1s -d data true", 2, "data: the folder does not exist");
    daemon.fails("submit -t 1s -o logs/out true", 2, "--output logs/out: the folder logs does not exist");
    daemon.fails("submit -t 1s -e logs/%j true", 2, "--error logs/%j: the folder logs does not exist");
    daemon.fails("submit -t 1s nowhere", 2, "nowhere: not found in PATH (");
    daemon.fails("submit -t 1s --export NONE,PATH=folder true", 2, "not found in PATH (folder)");
    for program in ["./nowhere", "./data", "./folder", "/nowhere"] {
        daemon.fails(
            &format!("submit -t 1s {program}"),
            2,
            "the program does not exist or is not executable",
        );
    }
    assert!(daemon.requests().is_empty());
    for line in [
        "-o %x/out true",
        "-o folder/out -e /dev/null true",
        "--export NONE true",
        "--export NONE,PATH=:/bin:/usr/bin true",
        "-d folder ./job.sh",
        "--after 3 ./nowhere",
        "--hold -d gone -o logs/out nowhere",
    ] {
        daemon.stdout(&format!("submit -t 1s {line}"));
    }
}

/// `wait-of --daemon` asks for a quote: nothing is submitted.
#[test]
fn the_wait_of_a_job_now() {
    let daemon = accepting();
    let text = daemon.stdout("wait-of --daemon 64 4h --queue long --memory 8GiB");
    let mut lines = text.lines();
    let promise = "would be promised now: starts by 2026-03-01 10:00:00, resources reserved until 2026-03-01 11:30:00 at the latest";
    assert_eq!(lines.next(), Some(promise));
    assert!(lines.any(|line| line.starts_with("waits at most ")), "{text}");
    let document = parsed(&daemon.stdout("wait-of --json --daemon 1 90"));
    assert_eq!(document["windows"][0]["start"], "2026-03-01T10:00:00Z");
    let requests = daemon.requests();
    assert!(requests.iter().all(|(request, _)| request == "POST /v1/quote"), "{requests:?}");
    let asked = &requests[0].1;
    let wanted = json!({"cpus": 64, "time": 14400.0, "queue": "long", "memory": 8_u64 << 30});
    for (field, value) in wanted.as_object().expect("fields") {
        assert_eq!(&asked[field], value, "{field}");
    }
    daemon.fails("wait-of --daemon 0 4h", 2, "--daemon: 0: the size must be a number of processors");
    daemon.fails("wait-of --daemon 4 4x", 2, "no unit of time");
    daemon.fails("wait-of --daemon 4 4h --queue a,b", 2, "--queue: a job has one queue");
    daemon.fails("wait-of --daemon 4 4h -p easy", 2, "'--daemon <SIZE> <TIME>' cannot be used with");
    daemon.fails("wait-of --daemon 4 4h --preset eagle", 2, "'--daemon <SIZE> <TIME>' cannot be used with");
    daemon.fails("wait-of log.swf 4 4h --memory 1GiB", 2, "--memory: needs --daemon");
    daemon.fails("wait-of --daemon 4", 2, "2 values required");
}

/// The message names the remedy, and nothing is submitted.
#[test]
fn submissions_that_cannot_be_meant() {
    #[track_caller]
    fn check(daemon: &Daemon, line: &str, says: &str) {
        let run = daemon.run(line);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{line}");
        assert!(run.stderr.contains(says), "{}", run.stderr);
    }
    let daemon = accepting();
    check(&daemon, "submit sleep 5 --time 10s", "--time stands after the program");
    check(&daemon, "submit sleep 5 --time=10s", "--time=10s stands after the program");
    check(&daemon, "submit sleep 5 -t 10s", "-t stands after the program");
    daemon.lab.write("dos.sh", "#!/bin/sh\r\ntrue\r\n");
    check(&daemon, "submit -t 5s dos.sh", "the line ends of DOS");
    for time in ["500ms", "0.5s", "10000000d"] {
        check(&daemon, &format!("submit -t {time} true"), time);
    }
    assert!(daemon.requests().is_empty());
}

/// An escape sequence of a script does not reach the terminal.
#[test]
fn warnings_have_no_control_characters() {
    let daemon = accepting();
    daemon.lab.write("job.sh", "#!/bin/sh\n#SBATCH -t 1 --odd=\x1b[31m\n");
    let run = daemon.run("submit job.sh");
    assert!(run.stderr.contains("--odd") && !run.stderr.contains('\x1b'), "{:?}", run.stderr);
}

/// The daemon recognises a repeated request.
#[test]
fn each_submission_has_a_name_of_its_own() {
    let daemon = accepting();
    let name = |line| submitted(&daemon, line)["request_id"].as_str().map(str::to_owned);
    let names = [name("submit -t 5s true"), name("submit -t 5s true")];
    assert!(names.iter().all(|name| name.as_ref().is_some_and(|name| name.len() == 32)), "{names:?}");
    assert_ne!(names[0], names[1]);
}

#[test]
fn conditions_and_limits() {
    let daemon = accepting();
    let body =
        submitted(&daemon, "submit -t 1s --after 3,ok:4,name=a,each-ok:5 -a 1,3,5-9:2%4 --retry 2:75 true");
    let expect = json!({
        "after": [3],
        "conditions": [
            {"when": "ok", "job": 4}, {"when": "ok", "name": "a"}, {"when": "each_ok", "job": 5},
        ],
        "array": {
            "first": 1, "last": 1, "step": 1, "limit": 4,
            "more": [{"first": 3, "last": 3, "step": 1}, {"first": 5, "last": 9, "step": 2}],
        },
        "retry": {"limit": 2, "codes": [75]},
    });
    for (key, value) in expect.as_object().expect("an object") {
        assert_eq!(&body[key], value, "{key}");
    }
    let body = submitted(&daemon, "submit -t 1s --dependency afterok:4:5,afterany:6 true");
    assert_eq!(body["after"], json!([6]));
    assert_eq!(body["conditions"], json!([{"when": "ok", "job": 4}, {"when": "ok", "job": 5}]));
    daemon.fails("submit -t 1s --after maybe:3 true", 2, "write any:JOB, ok:JOB, notok:JOB or each-ok:ARRAY");
    daemon.fails("submit -t 1s --dependency singleton true", 2, "name=NAME");
    daemon.fails("submit -t 1s -a 1-5%0 true", 2, "%N");
    daemon.fails("submit -t 1s --retry 0 true", 2, "exit codes");
}

#[test]
fn options_of_sbatch() {
    let daemon = accepting();
    let body = submitted(&daemon, "submit -J n -p q --mem 1G -t 1s -D /tmp -H -b +2h --requeue true");
    let expect = json!({
        "name": "n", "queue": "q", "memory": 1 << 30, "directory": "/tmp", "hold": true, "restartable": true,
    });
    for (key, value) in expect.as_object().expect("an object") {
        assert_eq!(&body[key], value, "{key}");
    }
    let body = daemon.command("submit -t 1s --wrap").arg("echo $A | cat").output().expect("a program");
    assert!(body.status.success(), "{body:?}");
    let body = daemon.requests().pop().expect("a submission").1;
    assert_eq!((&body["script"], &body["name"]), (&json!("#!/bin/sh\necho $A | cat\n"), &json!("wrap")));
    assert_eq!(body["command"], json!([]));
    for (option, own) in [
        ("--ntasks=4", "in place of '--ntasks' of sbatch, write --cpus"),
        ("-N2", "in place of '-N' of sbatch, write nothing: a job runs on one machine"),
        ("--parsable", "write --quiet"),
        ("--test-only", "write --quote"),
        ("--gres=gpu:1", "write --gpus, the number of GPUs"),
        ("--constraint=fast", "write nothing: there is no such option"),
        ("--no-requeue", "write nothing: a job runs once"),
    ] {
        daemon.fails(&format!("submit -t 1s {option} true"), 2, own);
    }
    daemon.fails("submit -t 1s -d afterok:12 true", 2, "write --after afterok:12");
    daemon.fails("submit -t 1s --wrap true true", 2, "cannot be used with");
    daemon.fails("submit -t 1s --wrp true", 2, "a similar argument exists: '--wrap'");
    daemon.fails("submit -t 1s", 2, "<PROGRAM>");
    let run = daemon.run("submit -t 1s -n 4 -c 1 true");
    assert!(run.stderr.contains("for 4 processors write --cpus 4"), "{}", run.stderr);
}

#[test]
fn tasks_of_a_script() {
    let daemon = accepting();
    daemon
        .lab
        .write("job.sh", "#!/bin/sh\n#SBATCH -n 4 -c 2 -t 1\n#SBATCH -d afternotok:7 --array=0-9%2\ntrue\n");
    let body = submitted(&daemon, "submit job.sh");
    assert_eq!((&body["cpus"], &body["tasks"]), (&json!(8), &json!(4)));
    assert_eq!(body["conditions"], json!([{"when": "not_ok", "job": 7}]));
    assert_eq!(body["array"], json!({"first": 0, "last": 9, "step": 1, "limit": 2}));
    assert_eq!(submitted(&daemon, "submit -c 2 job.sh").get("tasks"), None);
}

/// The options would be lost without a word, so the file is refused, as sbatch does.
#[test]
fn options_that_would_not_be_read_are_refused() {
    let daemon = accepting();
    let options = "#SBATCH --cpus-per-task=2 --mem=1G -t 5\n";
    for (name, begin) in [
        ("blank.sh", "\n#!/bin/sh\n"),
        ("mark.sh", "\u{feff}#!/bin/sh\n"),
        ("space.sh", " #!/bin/sh\n"),
        ("comment.sh", "# mine\n#!/bin/sh\n"),
        ("none.sh", ""),
        ("dos.sh", "\r\n#!/bin/sh\r\n"),
    ] {
        daemon.lab.write(name, format!("{begin}{options}true\n"));
        let line = begin.matches('\n').count() + 1;
        daemon.fails(
            &format!("submit --time 10s ./{name}"),
            2,
            &format!("{name}:{line}: these options would not be read"),
        );
        daemon.fails(&format!("submit --time 10s --hold {name}"), 2, "would not be read");
    }
    daemon.lab.write("mac.sh", format!("#!/bin/sh\r{}", options.replace('\n', "\r")));
    daemon.fails("submit --time 10s mac.sh", 2, "the line ends of DOS");
    std::fs::create_dir(daemon.lab.path("bin")).expect("a folder");
    daemon.lab.write("bin/job", format!("#!/bin/sh\n{options}"));
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(daemon.lab.path("bin/job"), executable).expect("a mode");
    daemon.fails("submit -t 10s --export NONE,PATH=bin job", 2, "bin/job:2: these options would not be read");
    daemon.fails("submit -t 10s -d bin ./job", 2, "was not given by its path; submit");
    daemon.lab.write("list", format!("echo a\n{options}"));
    daemon.fails("submit -t 10s --lines list", 2, "line 2 has options");
    assert!(daemon.requests().is_empty());
    let run = daemon.run("submit -t 10s sh bin/job");
    assert!(run.stderr.contains("bin/job:2: these options are not read"), "{}", run.stderr);
}

#[test]
fn a_command_of_a_shell_is_refused_with_its_option() {
    let daemon = accepting();
    for (word, option) in [
        ("echo a | wc", "--wrap 'echo a | wc'"),
        ("a|b", "--wrap 'a|b'"),
        ("sleep 5", "--wrap 'sleep 5'"),
        ("./sim <in", "--wrap './sim <in'"),
        ("cd", "--wrap cd"),
    ] {
        let run = daemon.command("").args(["submit", "-t", "5s", word]).output().expect("a program");
        let text = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!((run.status.code(), run.stdout.len()), (Some(2), 0), "{text}");
        assert!(text.contains("there is no such program") && text.contains(option), "{text}");
    }
    daemon.fails("submit -t 5s --hold a|b", 2, "--wrap 'a|b'");
    assert!(daemon.requests().is_empty());
    let run = daemon.run("submit -t 5s echo a | wc");
    assert!(run.stderr.contains("warning: | is an argument of echo here"), "{}", run.stderr);
    assert_eq!(daemon.run("submit -t 5s echo a b").stderr, "");
}

#[test]
fn options_that_are_rarely_meant_are_warnings() {
    let daemon = accepting();
    let check = |line: &str, says: Option<&str>| {
        let run = daemon.run(line);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        match says {
            Some(says) => assert!(run.stderr.contains(says), "{line}: {}", run.stderr),
            None => assert_eq!(run.stderr, "", "{line}"),
        }
    };
    check("submit -t 5s -o same.out -a 0-3 true", Some("write %a for the index, such as same.out.%a"));
    check("submit -t 5s -o %A-%x%%a -a 0-3 true", Some("--output"));
    check("submit -t 5s -o %a -e same.err -a 0-3 true", Some("--error same.err"));
    check("submit -t 5s -o %j -a 0-3 true", None);
    check("submit -t 5s -o /dev/null -a 0-3 true", None);
    check("submit -t 5s -o same.out -a 3 true", None);
    check("submit -t 5s -o same.out true", None);
    daemon.lab.write("job.sh", "#!/bin/sh\n#SBATCH -o same -a 1-2 --begin 2020-03-08T02:30\n");
    check("submit -t 5s job.sh", Some("--output same"));
    check("submit -t 5s job.sh", Some("--begin 2020-03-08 02:30:00 is in the past"));
    check("submit -t 5s --begin now true", None);
    check("submit -t 5s --begin +1h true", None);
}
