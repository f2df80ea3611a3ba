//! Slurm's commands as names of the program.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use miserly_api::model::Phase;

use crate::support::{Daemon, SOON, has_two_cpus, queue, until};

/// A daemon, and the names in a folder of its own.
struct Names {
    daemon: Daemon,
}

impl Names {
    fn new(more: &str) -> Names {
        let daemon = Daemon::new(&(queue("miser") + more));
        let folder = daemon.path("names");
        let output = Command::new(env!("CARGO_BIN_EXE_miserly"))
            .args(["slurm-names", "install", "--replace"])
            .arg(&folder)
            .output()
            .expect("a program that starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        fs::create_dir(daemon.path("work")).expect("a folder");
        Names { daemon }
    }

    fn with_defaults() -> Names {
        Names::new("default-time = \"5min\"\ndefault-memory = \"16MiB\"\nmax-time = \"1d\"\n")
    }

    fn command(&self, name: &str, words: &[&str]) -> Command {
        let folder = self.daemon.path("names");
        let mut command = Command::new(folder.join(name));
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display());
        command.args(words).current_dir(self.daemon.path("work")).env("PATH", path);
        for (variable, _) in std::env::vars().filter(|(name, _)| name.starts_with("SLURM_")) {
            command.env_remove(variable);
        }
        command.env("MISERLY_SOCKET", &self.daemon.socket).env("TZ", "UTC").stdin(Stdio::null());
        command
    }

    fn run(&self, line: &str) -> Output {
        let words = line.split_whitespace().collect::<Vec<_>>();
        self.command(words[0], &words[1..]).output().expect("a program that starts")
    }

    /// Returns the output of a command that succeeds.
    #[track_caller]
    fn prints(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Checks that a command fails as Slurm's do, with these words.
    #[track_caller]
    fn fails(&self, line: &str, words: &str) {
        self.fails_with(1, line, words);
    }

    #[track_caller]
    fn fails_with(&self, code: i32, line: &str, words: &str) {
        let output = self.run(line);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {message}");
        assert!(message.contains(words), "{line}: {message}");
        assert!(output.stdout.is_empty(), "{line}: {}", text(&output.stdout));
    }

    /// Submits a command of a shell, and returns the number of its job.
    #[track_caller]
    fn batch(&self, options: &[&str], script: &str) -> i64 {
        let words = [&["--parsable"], options, &["--wrap", script]].concat();
        let output = self.command("sbatch", &words).output().expect("a program that starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).trim().parse().expect("a number")
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.daemon.path("work").join(name)).unwrap_or_default()
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.daemon.path("work").join(name), content).expect("a file that can be written");
    }

    /// Waits until the job runs.
    #[track_caller]
    fn runs(&self, job: i64) {
        until("the job runs", SOON, || matches!(self.daemon.job(job).phase, Phase::Running(_)).then_some(()));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_batch_job_from_its_submission_to_its_accounting() {
    let names = Names::with_defaults();
    names.write(
        "job.sh",
        "#!/bin/sh\n#SBATCH -J train -t 2:30 --mem=20M # a comment\n#SBATCH --output=%x-%j.log --comment='a b'\necho $1 \
         $SLURM_JOB_ID ${SLURM_NTASKS-none} $SLURM_JOB_NUM_NODES $SLURM_PROCID $SLURM_RESTART_COUNT.\nexit 3\n",
    );
    assert_eq!(names.prints("sbatch job.sh first"), "Submitted batch job 1\n");
    let ended = names.daemon.wait(1);
    assert_eq!((ended.time, ended.memory), (150.0, 20 << 20));
    assert_eq!(names.read("train-1.log"), "first 1 none 1 0 .\n");
    assert_eq!(
        names.prints("sacct -P -j 1 -o JobID,JobIDRaw,JobName,State,ExitCode,Timelimit,ReqMem,Comment"),
        "JobID|JobIDRaw|JobName|State|ExitCode|Timelimit|ReqMem|Comment\n\
         1|1|train|FAILED|3:0|00:02:30|20M|a b\n1.batch|1.batch|batch|FAILED|3:0|||\n"
    );
    assert_eq!(names.prints("sacct -n -X -j 1 -o jobid%4,state"), "   1     FAILED \n");
    assert_eq!(
        names.prints("sacct -nPX --name train --format=JobIdRaw,State -S now-2days -E now"),
        "1|FAILED\n"
    );
    assert_eq!(names.prints("sacct -nPX --name other"), "");
    assert_eq!(names.prints("sacct -nP -j 1.batch -o State"), "FAILED\n");
    assert_eq!(names.prints("squeue -h"), "");
    assert_eq!(
        names.prints("squeue -h -t all -o %i|%T|%t|%r|%u"),
        format!("1|FAILED|F|NonZeroExitCode|{}\n", ended.user)
    );
    let shown = names.prints("scontrol show job 1");
    assert!(shown.contains("JobState=FAILED Reason=NonZeroExitCode"), "{shown}");
    assert!(shown.contains("ExitCode=3:0") && shown.contains("TimeLimit=00:02:30"), "{shown}");
    let document: serde_json::Value = serde_json::from_str(&names.prints("sacct -j 1 --json")).expect("JSON");
    assert_eq!(document["jobs"][0]["state"]["current"], "FAILED");
    assert_eq!(document["jobs"][0]["exit_code"]["return_code"], 3);
}

#[test]
fn the_command_line_precedes_variables_and_those_the_script() {
    let names = Names::with_defaults();
    names.write("job.sh", "#!/bin/sh\n#SBATCH --job-name=script --time=3 --comment=script\n");
    let output = names
        .command("sbatch", &["--job-name", "line", "job.sh"])
        .env("SBATCH_TIMELIMIT", "4")
        .env("SBATCH_JOB_NAME", "variable")
        .output()
        .expect("a program that starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let job = names.daemon.job(1);
    assert_eq!((job.name.as_str(), job.time, job.comment.as_deref()), ("line", 240.0, Some("script")));
}

#[test]
fn arrays_and_dependencies() {
    let names = Names::with_defaults();
    let array = names.batch(
        &["-a", "0-2", "-o", "%A_%a.%u"],
        "echo $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID; exit $SLURM_ARRAY_TASK_ID",
    );
    let after = names.batch(&["-d", &format!("afterany:{array}"), "-J", "last"], "true");
    let never = names.batch(&["-d", &format!("afterok:{array}")], "true");
    let alone = names.batch(&["-d", "singleton", "-J", "last"], "true");
    for job in array..=alone {
        names.daemon.wait(job);
    }
    let user = names.daemon.job(array).user;
    assert_eq!(names.read(&format!("{array}_2.{user}")), format!("{array} 2\n"));
    assert_eq!(
        names.prints(&format!("sacct -nPX -j {array},{after},{never},{alone} -o JobID,State%30,ExitCode")),
        format!(
            "{array}_0|COMPLETED|0:0\n{array}_1|FAILED|1:0\n{array}_2|FAILED|2:0\n{after}|COMPLETED|0:0\n{never}|CANCELLED by {}|0:0\n{alone}|COMPLETED|0:0\n",
            names.daemon.job(array).uid
        )
    );
    assert_eq!(names.prints(&format!("sacct -nPX -j {array}_1 -o JobIDRaw")), format!("{}\n", array + 1));
}

#[test]
fn a_queue_in_all_its_forms() {
    let names = Names::with_defaults();
    let all = crate::support::cpus().len().to_string();
    let first = names.batch(&["-n", &all, "-t", "60", "-J", "long"], "sleep 600");
    names.runs(first);
    let array = names.batch(&["-a", "0-9%1", "-n", &all, "-t", "10"], "true");
    let queue = names.prints("squeue");
    assert!(
        queue.starts_with(
            "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
        ),
        "{queue}"
    );
    assert!(queue.contains(&format!("{array}_[0-9%1]     batch     wrap")), "{queue}");
    assert!(queue.contains("(Resources)"), "{queue}");
    assert_eq!(names.prints("squeue -h -r -o %i").lines().count(), 11);
    assert_eq!(
        names.prints(&format!("squeue -h -j {first} -o %.10i|%-6t|%8j|%l|%D|%C")),
        format!("{first:>10}|R     |long    |1:00:00|1|{all}\n")
    );
    assert_eq!(names.prints("squeue -h --me -t R -O jobarrayid:6,state:9"), format!("{first:<6}RUNNING  \n"));
    assert_eq!(names.prints("squeue -h -n long -o %A"), format!("{first}\n"));
    assert_eq!(names.prints("squeue -h -u nobody -o %A"), "");
    assert_eq!(names.prints("squeue -h -p batch -t PD -r -o %K").lines().next(), Some("0"));
    // The start is the promised one.
    let promised = names.daemon.job(array).promise.expect("a promise").promised.start;
    let start = names.prints("squeue --start -h -o %S");
    assert!(start.starts_with(&promised.strftime("%Y-%m-%dT%H:%M:%S").to_string()), "{start}");
    let shown = names.prints(&format!("scontrol -o show job {array}_0"));
    assert!(shown.contains("Comment=starts by "), "{shown}");
    let test = names.run("sbatch --test-only -t 5 --wrap true");
    assert!(text(&test.stderr).contains("to start at 20"), "{}", text(&test.stderr));
    let document: serde_json::Value = serde_json::from_str(&names.prints("squeue --json")).expect("JSON");
    assert_eq!(document["jobs"].as_array().expect("jobs").len(), 11);
    assert_eq!(document["jobs"][0]["job_state"], "RUNNING");
    assert_eq!(
        names.prints("sinfo -h -o %R|%l|%T|%D|%C"),
        format!("batch|1-00:00:00|allocated|1|{all}/0/0/{all}\n")
    );
    assert!(names.prints("scontrol show partition").contains("DefaultTime=5:00"));
    assert!(names.prints("scontrol show node").contains("State=ALLOCATED"));
    assert!(names.prints("scontrol show config").contains("MinJobAge"));
    assert_eq!(names.prints("scontrol show hostnames a[1-2],b"), "a1\na2\nb\n");
}

#[test]
fn jobs_are_held_changed_signalled_and_cancelled() {
    let names = Names::with_defaults();
    let job = names.batch(&["-H", "-t", "10"], "true");
    assert_eq!(names.prints(&format!("squeue -h -j {job} -o %t|%r")), "PD|JobHeldUser\n");
    names.prints(&format!("scontrol update JobId={job} TimeLimit=20 Name=other MinMemoryNode=32"));
    let changed = names.daemon.job(job);
    assert_eq!((changed.time, changed.name.as_str(), changed.memory), (1200.0, "other", 32 << 20));
    names.prints(&format!("scontrol release {job}"));
    names.daemon.wait(job);
    let trap =
        names.batch(&["-t", "10"], "trap 'echo got; exit 4' USR1; touch ready; while :; do sleep 0.1; done");
    until("it is ready", SOON, || names.daemon.path("work/ready").exists().then_some(()));
    names.prints(&format!("scancel --batch -s USR1 {trap}"));
    names.daemon.wait(trap);
    assert_eq!(names.prints(&format!("sacct -nPX -j {trap} -o ExitCode")), "4:0\n");
    let (one, two) = (names.batch(&["-J", "x", "-H"], "true"), names.batch(&["-J", "y", "-H"], "true"));
    names.prints("scancel -t PENDING -n x");
    assert!(names.daemon.job(one).phase.ended().is_some() && names.daemon.job(two).phase.ended().is_none());
    names.prints(&format!("scancel {two}"));
    // A job that has ended is no error.
    names.prints(&format!("scancel {two}"));
    let uid = names.daemon.job(two).uid;
    assert_eq!(names.prints(&format!("sacct -nPX -j {two} -o State%40")), format!("CANCELLED by {uid}\n"));
}

/// A program with a checkpoint requests its requeue when the early signal comes, and exits by itself.
#[test]
fn a_job_queues_itself_again_at_the_early_signal() {
    let names = Names::with_defaults();
    names.write(
        "task.sh",
        "#!/bin/bash\ntrap '' TERM\ntrap 'scontrol requeue $SLURM_JOB_ID; exit 9' USR2\n\
         [ -n \"$SLURM_RESTART_COUNT\" ] && { echo resumed $SLURM_RESTART_COUNT >> out; exit 0; }\n\
         while :; do sleep 0.1; done\n",
    );
    let script = "srun bash task.sh; echo script $? >> out";
    let job = names.batch(&["-t", "1", "--signal=USR2@58"], script);
    let ended = names.daemon.wait(job);
    assert!(ended.phase.succeeded(), "{:?}", ended.phase);
    assert_eq!(ended.runs, 2);
    assert!(names.read("out").ends_with("resumed 1\nscript 0\n"), "{}", names.read("out"));
}

#[test]
fn steps_run_their_tasks_and_exit_as_the_worst() {
    if !has_two_cpus() {
        return;
    }
    let names = Names::with_defaults();
    names.write(
        "job.sh",
        "#!/bin/bash\n#SBATCH -n 2 -o out\n\
         srun -o step-%s.%t bash -c 'echo $SLURM_PROCID/$SLURM_NTASKS $SLURM_STEP_ID'\n\
         srun -l bash -c 'exit $((SLURM_LOCALID * 7))'; echo code $?\n\
         echo input | srun -n 2 cat | sort\n\
         srun -n 1 bash -c 'kill -9 $$'; echo code $?\n\
         srun -n 3 true; echo code $?\n\
         srun -n 1 no-such-program; echo code $?\n\
         srun -n1 bash -c 'trap \"exit 5\" USR1; touch ready; while :; do sleep 0.1; done' & \n\
         while [ ! -e ready ]; do sleep 0.1; done; kill -USR1 $!; wait $!; echo code $?\n\
         srun -n1 bash -c 'sleep 1000 & echo $! > child; wait' & \n\
         while [ ! -s child ]; do sleep 0.1; done; kill $!; wait $!; echo code $?\n\
         while kill -0 $(cat child); do sleep 0.1; done; echo gone\n\
         srun -n1 -o no/such/folder/out true; echo code $?\n\
         SLURM_JOB_ID=99 srun -n1 touch ran; echo code $?\n",
    );
    let job = names.prints("sbatch --wait --parsable job.sh");
    let rows = names.prints(&format!("sacct -nP -j {} -o JobID,JobName,State,ExitCode,NTasks", job.trim()));
    let steps: Vec<&str> = rows.lines().skip(2).map(|row| row.split_once('.').unwrap().1).collect();
    assert_eq!(
        steps,
        [
            "0|bash|COMPLETED|0:0|2",
            "1|bash|FAILED|7:0|2",
            "2|cat|COMPLETED|0:0|2",
            "3|bash|CANCELLED|0:9|1",
            "4|no-such-program|FAILED|2:0|1",
            "5|bash|FAILED|5:0|1",
            "6|bash|CANCELLED|0:15|1",
            "7|true|FAILED|1:0|1",
        ]
    );
    assert_eq!(names.read("step-0.0") + &names.read("step-0.1"), "0/2 0\n1/2 0\n");
    let out = names.read("out");
    assert!(!names.daemon.path("work/ran").exists());
    for line in [
        "code 7\n",
        "input\ninput\n",
        "code 137\n",
        "task 1: Exited with exit code 7\n",
        "More processors requested than permitted",
        "code 1\n",
        "execve(): no-such-program",
        "code 2\n",
        "code 5\n",
        "code 143\n",
        "gone\n",
        "Unable to create step for job 99",
    ] {
        assert!(out.contains(line), "{line:?} is missing: {out}");
    }
}

#[test]
fn srun_and_salloc_outside_of_a_job_run_one() {
    let names = Names::with_defaults();
    let output = names.run("srun -t 1 bash -c exit");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let words = ["-t", "1", "bash", "-c", "echo $SLURM_JOB_ID; cat; exit 3"];
    let output = names.command("srun", &words).output().expect("a program that starts");
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(3), "2\n"));
    let output =
        names.command("salloc", &["-t", "1", "printenv", "SLURM_JOB_ID"]).output().expect("a program");
    assert_eq!(text(&output.stdout), "3\n", "{}", text(&output.stderr));
    if has_two_cpus() {
        let output = names
            .command("srun", &["-n", "2", "-t", "1", "printenv", "SLURM_PROCID"])
            .output()
            .expect("a program");
        let mut lines: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
        lines.sort();
        assert_eq!(lines, ["0", "1"], "{}", text(&output.stderr));
    }
}

#[test]
fn a_job_that_does_not_start_at_once_is_given_up() {
    let names = Names::with_defaults();
    let first = names.batch(&["--exclusive"], "sleep 60");
    names.runs(first);
    names.fails_with(
        1,
        "srun --immediate -t 1 true",
        "Unable to allocate resources: Requested resources are busy",
    );
    names.fails("salloc -I1 -t 1 true", "Unable to allocate resources");
    let states = names.prints("sacct -n -X -P -a -o JobID,State");
    assert!(states.contains("2|DEADLINE") && states.contains("3|DEADLINE"), "{states}");
}

#[test]
fn what_cannot_be_is_refused_in_words_that_help() {
    let names = Names::with_defaults();
    names.fails("sbatch -N 4 --wrap true", "a job runs on one machine");
    let usage = "unrecognized option '--no-such'\nTry \"sbatch --help\"";
    names.fails_with(255, "sbatch --no-such --wrap true", usage);
    names.fails("squeue -?", "invalid option -- '?'");
    names.fails("sbatch -L matlab --wrap true", "--licenses: there are no licenses");
    names.fails("sbatch -p nope --wrap true", "Invalid partition name specified");
    names.fails("sbatch -t 2-0 --wrap true", "allows at most 1d");
    names.fails_with(255, "sbatch -t ten --wrap true", "Invalid --time specification");
    names.fails_with(255, "sbatch --mem=x --wrap true", "Invalid --mem specification: x");
    names.fails("sbatch -d after:1 --wrap true", "--dependency=after:1");
    names.fails("sbatch -o no/such/folder/out --wrap true", "the folder no/such/folder does not exist");
    names.fails("sbatch missing.sh", "Unable to open file missing.sh");
    names.fails("sbatch --wrap true argument", "Script arguments not permitted with --wrap option");
    names.fails("squeue -j 99", "slurm_load_jobs error: Invalid job id specified");
    names.fails("scontrol show job 99", "slurm_load_jobs error: Invalid job id specified");
    assert!(names.run("scancel 99").status.success());
    let output = names.run("scancel -v 99");
    assert!(text(&output.stderr).contains("Kill job error on job id 99: Invalid job id specified"));
    let output = names.run("scontrol show node no-such");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b"Node no-such not found\n"[..]));
    names.fails("sbatch --gres gpu:99999999999999999999 --wrap true", "Invalid generic resource");
    names.fails("srun --immediate=soon true", "--immediate=soon: write a number of seconds");
    names.fails("scancel", "No job identification provided");
    names.fails("scancel --name= --me", "--name: the value is empty");
    names.fails("squeue -u no-such-user", "Invalid user: no-such-user");
    names.fails("squeue -t moving", "Invalid job state specified: moving");
    names.fails("sacct -o what", "Invalid field requested: \"what\"");
    names.write("plain.sh", "echo\n");
    names.fails("sbatch plain.sh", "a script begins with #!");
    names.write("job.sh", "#!/bin/sh\n\n#SBATCH --no-such\n");
    names.fails("sbatch job.sh", "line 3 of the script: unrecognized option '--no-such'");
    // What has no effect is said with --verbose.
    let output = names.run("sbatch -v -A lab -H --wrap true");
    let message = text(&output.stderr);
    assert!(
        message.contains("--account=lab has no effect: the configuration of the daemon has no such table"),
        "{message}"
    );
    assert!(message.contains("no start is promised"), "{message}");
}

#[test]
fn a_queue_without_a_default_time_names_the_line_to_write() {
    let names = Names::new("");
    names.fails("sbatch --wrap true", "default-time = \"1h\"");
    names.prints("sbatch -t 1 --wrap true");
}

#[test]
fn without_a_daemon_the_words_are_those_of_slurm() {
    let mut names = Names::with_defaults();
    names.daemon.stop();
    for line in ["squeue", "sacct", "sbatch --wrap true", "sinfo", "scontrol show job 1", "scancel 1"] {
        let output = names.run(line);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {message}");
        assert!(message.contains("Unable to contact slurm controller"), "{line}: {message}");
    }
}

#[test]
fn links_are_not_made_beside_another_slurm() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let install = |path: &Path, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_miserly"));
        command.args(["slurm-names", "install"]).args(more).arg(folder.path().join("names"));
        command.env("PATH", path).output().expect("a program that starts")
    };
    let (empty, other) = (folder.path().join("empty"), folder.path().join("other"));
    for path in [&empty, &other] {
        fs::create_dir(path).expect("a folder");
    }
    symlink("/bin/true", other.join("squeue")).expect("a link");
    let refused = install(&other, &[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("is another squeue"), "{}", text(&refused.stderr));
    assert!(!folder.path().join("names/sbatch").exists());
    assert!(install(&empty, &[]).status.success());
    // Again, over its own links.
    assert!(install(&empty, &[]).status.success());
    fs::remove_file(folder.path().join("names/sacct")).expect("a link");
    fs::write(folder.path().join("names/sacct"), "").expect("a file");
    assert!(text(&install(&empty, &[]).stderr).contains("a file of this name exists"));
    assert!(install(&empty, &["--replace"]).status.success());
    assert!(folder.path().join("names/sacct").is_symlink());
}
