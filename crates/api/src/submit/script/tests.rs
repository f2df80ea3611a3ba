use super::*;
use crate::model::{Array, EarlySignal, JobSignal, MailEvent, Retry, Submission};
use crate::submit::{Export, after};

fn read(script: &str) -> Result<Directives, Remark> {
    directives(script, &"2026-03-01T08:00:00+00:00[UTC]".parse().unwrap())
}

#[track_caller]
fn check(script: &str, expect: SubmitOptions) {
    let read = read(script).unwrap();
    assert_eq!((read.options, read.warnings), (expect, Vec::new()), "{script}");
}

#[track_caller]
fn refused(script: &str, line: usize, says: &str) {
    let remark = read(script).unwrap_err();
    assert!(remark.line == line && remark.message.contains(says), "{remark}");
}

#[test]
fn own_directives() {
    let script = "#!/bin/sh\n\
        #MISERLY --name 'two words' --cpus=4 -m 8GB\n\
        # a word of explanation\n\
        #MISERLY -t1h30m --queue night --after 3,4 --restartable --retry 3:75   # why not\n\
        \n\
        #MISERLY --begin 2026-03-01T20:00:00Z --deadline=tomorrow --array 0-9:3 --no-opportunistic --hold -G 2 --signal B:USR1@90\n\
        #MISERLY -i in/%a -o out/%j -e err -d /tmp --export ALL,A=1\n\
        echo\n";
    let expect = SubmitOptions {
        cpus: Some(4.into()),
        gpus: Some(2.into()),
        time: Some(5_400),
        after: after("3,4").ok(),
        directory: Some("/tmp".into()),
        export: Some(Export::parse("ALL,A=1").unwrap()),
        submission: Submission {
            name: Some("two words".to_owned()),
            memory: Some(8 << 30),
            queue: Some("night".to_owned()),
            restartable: true,
            retry: Some(Retry { limit: 3, codes: vec![75] }),
            signal: Some(EarlySignal { signal: JobSignal::Usr1, main: true, before: 90.0 }),
            begin: Some("2026-03-01T20:00:00Z".parse().unwrap()),
            deadline: Some("2026-03-02T00:00:00Z".parse().unwrap()),
            array: Some(Array::range(0, 9, 3)),
            no_opportunistic: true,
            hold: true,
            input: Some("in/%a".into()),
            output: Some("out/%j".into()),
            error: Some("err".into()),
            ..Submission::default()
        },
        ..SubmitOptions::default()
    };
    check(script, expect);
}

#[test]
fn directives_of_slurm() {
    let script = "#!/bin/sh\n\
        #SBATCH -J count\n\
        #SBATCH --ntasks=4 --cpus-per-task=2 --nodes=1\n\
        #SBATCH --mem-per-cpu=500 --time=90 -p long\n\
        #SBATCH -o slurm-%j.out --dependency=afterany:7:8 --requeue -H --array=1-3\n\
        #SBATCH -D /scratch --input=in.txt --export=NONE --begin=now+1hour\n";
    let expect = SubmitOptions {
        cpus: Some(8.into()),
        memory_per_cpu: Some(500 << 20),
        time: Some(5_400),
        after: after("7,8").ok(),
        directory: Some("/scratch".into()),
        export: Some(Export::parse("NONE").unwrap()),
        submission: Submission {
            name: Some("count".to_owned()),
            tasks: Some(4),
            queue: Some("long".to_owned()),
            input: Some("in.txt".into()),
            output: Some("slurm-%j.out".into()),
            restartable: true,
            hold: true,
            array: Some(Array::range(1, 3, 1)),
            begin: Some("2026-03-01T09:00:00Z".parse().unwrap()),
            ..Submission::default()
        },
        ..SubmitOptions::default()
    };
    check(script, expect);
}

#[test]
fn dependencies_of_slurm() {
    let read = |text: &str| read(text).unwrap().options.after;
    let kinds = "afterok:12:13,afterany:14,afternotok:5,aftercorr:20";
    assert_eq!(read(&format!("#SBATCH -d {kinds}\n")), after("ok:12,13,any:14,notok:5,each-ok:20").ok());
    assert_eq!(read(&format!("#SBATCH --dependency={kinds}\n")), after(kinds).ok());
}

#[test]
fn own_directives_count_before_slurms() {
    let script = "#MISERLY --cpus 2\n#SBATCH -n 4 -t 5\n";
    let submission = Submission { tasks: Some(4), ..Submission::default() };
    check(
        script,
        SubmitOptions { cpus: Some(2.into()), time: Some(300), submission, ..SubmitOptions::default() },
    );
}

#[test]
fn the_last_of_a_kind_counts() {
    check(
        "#MISERLY -c 2\n#MISERLY -c 3\n",
        SubmitOptions { cpus: Some(3.into()), ..SubmitOptions::default() },
    );
    let restartable = SubmitOptions {
        submission: Submission { restartable: true, ..Submission::default() },
        ..SubmitOptions::default()
    };
    check("#SBATCH --requeue\n#SBATCH --no-requeue\n", SubmitOptions::default());
    check("#SBATCH --requeue --no-requeue\n", SubmitOptions::default());
    let per_cpu = SubmitOptions { memory_per_cpu: Some(1 << 30), ..SubmitOptions::default() };
    check("#SBATCH --mem=4G --mem-per-cpu=1G\n", per_cpu.clone());
    check("#MISERLY -m 4G\n#MISERLY --memory-per-cpu 1G\n", per_cpu);
    check("#SBATCH --no-requeue\n#SBATCH --requeue\n", restartable.clone());
    check("#MISERLY --restartable\n#SBATCH --no-requeue\n", restartable);
}

#[test]
fn a_value_may_begin_with_a_dash() {
    let named = |name: &str| SubmitOptions {
        submission: Submission { name: Some(name.to_owned()), ..Submission::default() },
        ..SubmitOptions::default()
    };
    check("#MISERLY --name -x\n", named("-x"));
    check("#MISERLY -n '-- nightly'\n", named("-- nightly"));
    check("#SBATCH -J -x\n", named("-x"));
}

#[test]
fn a_comment_that_is_none_here_is_a_warning() {
    let comments = ["", "a\tb", &"x".repeat(1025)];
    for comment in comments {
        let read = read(&format!("#SBATCH --comment='{comment}'\n")).unwrap();
        assert_eq!((read.options, read.warnings.len()), (SubmitOptions::default(), 1), "{comment}");
    }
}

#[test]
fn what_is_no_directive() {
    for text in
        ["", "echo", "# MISERLY --cpus 4", "#MISERLYX --cpus 4", "##SBATCH -n 4", "#MISERLY", "#SBATCH # -n"]
    {
        check(text, SubmitOptions::default());
    }
}

#[test]
fn what_slurm_knows_and_we_do_not_is_a_warning() {
    let script = "#SBATCH --mail-type END --gres=gpu:1 -A project\n#SBATCH -x node7 -c 2 -a 0-9%2\n";
    let read = read(script).unwrap();
    let gpus = read.options.gpus.map(|gpus| gpus.count);
    assert_eq!((gpus, read.options.mail.as_deref()), (Some(1), Some(&[MailEvent::End][..])));
    let array = Array { limit: Some(2), ..Array::range(0, 9, 1) };
    assert_eq!((read.options.cpus, read.options.submission.array), (Some(2.into()), Some(array)));
    let warnings: Vec<String> = read.warnings.iter().map(Remark::to_string).collect();
    let expect = ["1: nothing is made of #SBATCH -A", "2: nothing is made of #SBATCH -x"];
    assert_eq!(warnings, expect);
}

#[test]
fn what_makes_no_sense_is_refused_with_its_line() {
    refused("\n#MISERLY --cpu 4", 2, "no option --cpu;");
    refused("#MISERLY -x", 1, "no option -x;");
    refused("#MISERLY --cpus", 1, "--cpus needs a value");
    refused("#MISERLY --cpus 0", 1, "--cpus: \"0\" is no number above 0");
    refused("#MISERLY --cpus many", 1, "many");
    refused("#MISERLY --hold=yes", 1, "takes no value");
    refused("#MISERLY 4", 1, "\"4\" belongs to no option");
    refused("#MISERLY --time 1:30", 1, "--time: \"1:30\" is ambiguous");
    refused("#MISERLY --name 'x", 1, "quote");
    refused("#MISERLY -é", 1, "-é");
    refused("#MISERLY --array 0-9%0", 1, "--array");
    refused("#MISERLY --retry 0", 1, "--retry: write a number");
    refused("#MISERLY --after maybe:3", 1, "--after: \"maybe\"");
    refused("#SBATCH -t UNLIMITED", 1, "--time");
    refused("#SBATCH -N 2", 1, "one machine");
    refused("#SBATCH --mem=0", 1, "--mem: ");
    refused("#SBATCH --mem=0", 1, "above 0");
    refused("#SBATCH -d after:12", 1, "any:JOB");
    refused("#SBATCH -d singleton", 1, "name=NAME");
    refused("#SBATCH --dependency singleton", 1, "--dependency: ");
    refused("#MISERLY -- --cpus 4", 1, "no option --;");
    refused("#SBATCH -n 9999999999999 -c 9999999999999", 1, "more tasks");
}

#[test]
fn directives_that_are_not_read_are_warnings() {
    let script = "#!/bin/sh\n#MISERLY -t 5\n\t#SBATCH --mem=1G\n#SBATCH -n 3\necho\n#MISERLY --cpus 5\n#SBATCH -n 4\r\n\
        cat > other.sh <<END\n#!/bin/sh\n#SBATCH -n 8\nEND\n";
    let read = read(script).unwrap();
    let submission = Submission { tasks: Some(3), ..Submission::default() };
    let expect =
        SubmitOptions { time: Some(5), cpus: Some(3.into()), submission, ..SubmitOptions::default() };
    assert_eq!(read.options, expect);
    let warnings: Vec<String> = read.warnings.iter().map(Remark::to_string).collect();
    let expect = [
        "3: #SBATCH is not read: it is indented",
        "6: #MISERLY is not read: it is after the first command",
        "7: #SBATCH is not read: it is after the first command",
    ];
    assert_eq!(warnings, expect);
}

#[test]
fn the_first_directive_of_any_text() {
    for (text, line) in [
        ("\n#!/bin/sh\n#SBATCH -n 2\n", Some(3)),
        ("\u{feff}#SBATCH -n 2", Some(1)),
        ("  #MISERLY\r\n", Some(1)),
        ("# SBATCH -n 2\n##SBATCH -n 2\n#SBATCHES\n", None),
        ("", None),
    ] {
        assert_eq!(directive_line(text), line, "{text:?}");
    }
}
