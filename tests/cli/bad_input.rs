//! Bad input: one clear message on standard error, nothing on standard output, exit code 2.

use std::process::Stdio;

use miserly_test_support::Draws;

use crate::support::{Lab, gzipped, line, log, small_log};

/// A folder with something wrong in every file but `log.swf`.
fn lab() -> Lab {
    let (lab, good) = (Lab::with_log(&small_log()), line((1, 0, 10, 1, 10)));
    lab.write("empty.swf", "");
    lab.write("header.swf", "; MaxProcs: 10\n; Note: nothing\n");
    lab.write("page.html", "<html>\n");
    lab.write("fixed.txt", "JobID    JobName     Submit     Start\n-------- ------- ---------- ---------\n");
    lab.write("columns.txt", "JobIDRaw|Start|End|AllocCPUS|State\n");
    lab.write("nosize.swf", &good);
    lab.write("f17.swf", format!("; MaxProcs: 10\n{good}{}", good.replacen("-1 ", "", 1)));
    lab.write("f4.swf", "; MaxProcs: 10\n1 0 0 30\n");
    lab.write("fraction.swf", good.replacen(" 10 ", " 10.5 ", 1));
    lab.write("letters.swf", good.replace(" 10 ", " 1O "));
    lab.write("huge.swf", good.replacen('0', "1000000000000000000", 1));
    let packed =
        gzipped(log(&(0..500).map(|job| (job, 7 * job, job * job, 1, 10)).collect::<Vec<_>>()).as_bytes());
    lab.write("short.swf.gz", &packed[..packed.len() / 2]);
    lab.write("shorter.swf.gz", &packed[..5]);
    lab.write("hurt.swf.gz", [&packed[..50], &[0xff; 50], &packed[100..]].concat());
    lab.write("log.swf.xz", b"\xfd7zXZ\0\0\x04");
    lab.write("log.swf.bz2", b"BZh91AY&SY");
    let mut tar = [0; 1024];
    tar[..7].copy_from_slice(b"log.swf");
    tar[257..262].copy_from_slice(b"ustar");
    lab.write("log.tar", tar);
    lab.write("log.tar.gz", gzipped(&tar));
    lab.write("elf.swf", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0\x01\0\n\0\0\n\x01");
    lab.write("noise.swf", noise(4_000).as_slice());
    lab.write("zeros.swf", vec![0; 200_000]);
    lab.write("bad.toml", "span = \"any\"\n[[host]]\nname = \"a\"\ncpus = 0\n");
    std::fs::create_dir(lab.path("folder")).expect("a folder");
    std::fs::create_dir(lab.path("folder.csv")).expect("a folder");
    lab
}

/// Bytes as from a disk that is not a log: every value, no pattern.
fn noise(count: usize) -> Vec<u8> {
    let mut draws = Draws::new(12_345);
    (0..count).map(|_| draws.bits().to_be_bytes()[0]).collect()
}

/// One line that is refused, and the first line of what is said. What follows it, if anything, is the usage.
#[track_caller]
fn check(line: &str, expect: &str) {
    let run = lab().run(line);
    let mut said = run.stderr.lines();
    assert_eq!(said.next(), Some(format!("error: {expect}").as_str()), "miserly {line}\n{}", run.stderr);
    let rest: Vec<&str> = said.collect();
    assert!(rest.is_empty() || rest.last() == Some(&"For more information, try '--help'."), "{}", run.stderr);
    assert!(!run.stderr.contains("panicked") && rest.iter().all(|line| !line.starts_with("error")));
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "miserly {line}");
}

#[test]
fn files_that_are_no_logs() {
    let nothing = "no jobs found; a log in the Standard Workload Format has a line of 18 fields for each job";
    check("simulate empty.swf -p easy", &format!("empty.swf: {nothing}"));
    check("simulate header.swf -p easy", &format!("header.swf: {nothing}"));
    check("simulate - -p easy", &format!("standard input: {nothing}"));
    check("compare empty.swf", &format!("empty.swf: {nothing}"));
    check("workload describe header.swf", &format!("header.swf: {nothing}"));
    check("simulate missing.swf -p easy", "cannot read missing.swf: No such file or directory (os error 2)");
    check("compare log.swf missing.swf", "cannot read missing.swf: No such file or directory (os error 2)");
    check("workload check missing.swf", "cannot read missing.swf: No such file or directory (os error 2)");
    let endings = "csv, tsv, psv, txt, dat, json, jsonl, ndjson, parquet, pq, with .gz or .zst behind";
    let error = format!("folder: a folder without tables; their names end in {endings}");
    check("simulate folder -p easy", &error);
    let size = "no machine size in the header (MaxProcs or MaxNodes); give it with --procs";
    check("simulate nosize.swf -p easy", &format!("nosize.swf: {size}"));
    check("simulate nosize.swf -p easy --lenient", &format!("nosize.swf: {size}"));
}

#[test]
fn packed_files_that_are_damaged() {
    let short = "the gzipped data is truncated; download the file again";
    for command in ["simulate FILE -p easy", "compare FILE", "workload describe FILE", "workload check FILE"]
    {
        let said = lab().run(&command.replace("FILE", "short.swf.gz")).stderr;
        assert!(
            said.starts_with("error: short.swf.gz:") && said.ends_with(&format!(": {short}\n")),
            "{said}"
        );
    }
    check("simulate shorter.swf.gz -p easy", &format!("shorter.swf.gz:1: {short}"));
    check(
        "simulate hurt.swf.gz -p easy --lenient",
        "hurt.swf.gz:1: the gzipped data is damaged (corrupt deflate stream); download the file again",
    );
}

#[test]
fn files_in_other_packings() {
    #[track_caller]
    fn packed(file: &str, name: &str, command: &str) {
        let expect = format!(
            "{file}: compressed with {name}; only gzip and zstd are supported; unpack the log with {command} first"
        );
        check(&format!("simulate {file} -p easy --lenient"), &expect);
        check(&format!("workload describe log.swf {file}"), &expect);
    }
    packed("log.swf.xz", "xz", "xz -dk");
    packed("log.swf.bz2", "bzip2", "bzip2 -dk");
    let archive = "a tar archive; a log is a single file; unpack the archive with tar -xf first";
    check("simulate log.tar.gz -p easy", &format!("log.tar.gz: {archive}"));
    check("workload describe log.tar", &format!("log.tar: {archive}"));
}

#[test]
fn binary_files() {
    let binary = "binary data instead of text; not a log in the Standard Workload Format";
    check("simulate elf.swf -p easy", &format!("elf.swf:1: {binary}"));
    check("compare elf.swf --procs 10", &format!("elf.swf:1: {binary}"));
    check("simulate noise.swf -p easy", &format!("noise.swf:1: {binary}"));
    let line = "more than 65536 bytes without a line end; not a log in the Standard Workload Format";
    check("simulate zeros.swf -p easy", &format!("zeros.swf:1: {line}"));
    check("simulate zeros.swf -p easy --procs 10 --lenient", &format!("zeros.swf:1: {line}"));
    check("workload check zeros.swf", &format!("zeros.swf:1: {line}"));
}

#[test]
fn malformed_lines() {
    let lenient = "--lenient skips and counts such lines";
    let few = format!(
        "f17.swf:3: 17 fields where the format has 18; --missing-fields takes the missing ones as unknown; {lenient}"
    );
    check("simulate f17.swf -p easy", &few);
    check("explain f17.swf 7 -p easy", &few);
    check("compare log.swf f17.swf", &few);
    check(
        "simulate f4.swf -p easy --missing-fields",
        &format!("f4.swf:2: 4 fields where the format has 18; {lenient}"),
    );
    let fraction = "field 4 (runtime) is \"10.5\", which is not a whole number";
    check("simulate fraction.swf -p easy", &format!("fraction.swf:1: {fraction}; {lenient}"));
    let letters = "field 4 (runtime) is \"1O\", which is not a whole number";
    check("simulate letters.swf -p easy", &format!("letters.swf:1: {letters}; {lenient}"));
    let huge = "field 2 (submit) is 1000000000000000000, which is out of range";
    check("simulate huge.swf -p easy --procs 10", &format!("huge.swf:1: {huge}; {lenient}"));
    check("simulate f17.swf -p easy --jobs out.csv", &few);
}

#[test]
fn machines_that_there_are_not() {
    let refused = |option: &str, why: &str| check(&format!("simulate log.swf -p easy {option}"), why);
    refused(
        "--machine o3k",
        "no machine \"o3k\": not built in (o2k), not a number of processors, and not a readable file (No such file or directory (os error 2))",
    );
    refused("--machine 0", "machine 0: must have 1 to 1073741824 processors");
    refused("--machine log.swf", "log.swf:1: key with no value, expected `=`");
    refused("--machine bad.toml", "bad.toml:4: host \"a\": cpus = 0: must be 1 to 1073741824");
    refused(
        "--machine elf.swf",
        "no machine \"elf.swf\": not built in (o2k), not a number of processors, and not a readable file (it is a binary file, not TOML)",
    );
    refused("--procs 5 --machine 5", "the argument '--procs <N>' cannot be used with '--machine <MACHINE>'");
    refused("--span any", "the following required arguments were not provided:");
    refused("--machine 5 --sharing half", "invalid value 'half' for '--sharing <SHARING>'");
    check("compare log.swf --machine bad.toml", "bad.toml:4: host \"a\": cpus = 0: must be 1 to 1073741824");
    check("explain log.swf 1 -p easy --machine 0", "machine 0: must have 1 to 1073741824 processors");
}

#[test]
fn other_formats_are_rejected() {
    let command = "`miserly workload convert slurm --command` prints the command of sacct";
    let form = |text: &str, file: &str| {
        format!(
            "{file}: not a format of logs that is known: a line is \"{text}\"; known are the Standard Workload Format, \
             the output of sacct -P and sacct --json, accounting of PBS, LSF and Grid Engine, and Batsim workloads \
             (docs/import.md)"
        )
    };
    check("compare page.html", &form("<html>", "page.html"));
    check("workload describe page.html", &form("<html>", "page.html"));
    let columns = format!("columns.txt:1: missing columns: Submit; {command}");
    check("compare columns.txt", &columns);
    check("workload check columns.txt", &columns);
    let fixed = "fixed.txt:1: columns of fixed width, as sacct prints them without -P, which cuts values; print it with -P";
    check("explain fixed.txt 7 -p easy", fixed);
    check("workload convert slurm fixed.txt", fixed);
    check(
        "workload convert slurm log.swf",
        "log.swf:1: no header line with names of columns; without one, 18 columns with | are expected, as printed by \
         `miserly workload convert slurm --command`, but there are 1",
    );
    check("workload convert slurm columns.txt", &columns);
    check(
        "workload convert pbs log.swf",
        "log.swf:1: record is \"; MaxProcs: 10\"; expected: MM/DD/YYYY HH:MM:SS;type;id;fields; --lenient skips and counts such lines",
    );
    check("workload convert slurm empty.swf", "empty.swf: holds no jobs");
    check("workload convert slurm zeros.swf", "zeros.swf:1: line too long; the input is not accounting");
    let json = "expected value at line 1 column 1; a Batsim workload is one JSON object with nb_res, jobs and profiles";
    check("workload convert batsim log.swf", &format!("log.swf: {json}"));
    let gone = "cannot read missing.txt: No such file or directory (os error 2)";
    check("workload convert slurm missing.txt", gone);
    check("workload convert batsim missing.txt", gone);
    let short = "the gzipped data is truncated; download the file again";
    check("workload convert slurm shorter.swf.gz", &format!("shorter.swf.gz:1: {short}"));
    check("workload convert batsim shorter.swf.gz", &format!("shorter.swf.gz:1: {short}"));
    let own = "--output log.swf: this is the input log; choose another file";
    check("workload convert slurm log.swf -o log.swf", own);
    check("workload convert batsim log.swf -o log.swf", own);
    check(
        "workload convert slurm log.swf --time-zone Mars/Base",
        "invalid value 'Mars/Base' for '--time-zone <ZONE>': unknown time zone; write it as Europe/Berlin or UTC, or as an offset such as +05:30",
    );
    check("workload convert slurm", "the following required arguments were not provided:");
}

#[test]
fn policies_that_there_are_not() {
    let refused = |policy: &str, why: &str| {
        check(
            &format!("simulate log.swf --policy {policy}"),
            &format!("invalid value '{policy}' for '--policy <POLICY>': {why}"),
        );
    };
    refused(
        "easy(half_life=7d)",
        "policy easy: half_life has no effect, because no order uses usage_share or usage; remove it, or write \
         order=fair-share",
    );
    refused(
        "easy(order=fair-share,half_life=0)",
        "policy easy: half_life cannot be \"0\"; it must be a duration of 1s or more, such as 90, 90s, 15min, 50h or \
         1d12h, or none",
    );
    refused(
        "easy(order='fair_tree')",
        "policy easy: fair_tree in an order and the parameter shares need each other; write both, such as \
         order='fair_tree' with shares='2*u1, 1*u2'",
    );
    refused(
        "easy(order='fair_tree',shares='2*u1,x')",
        "policy easy, shares: character 6: expected shares, a user such as u7, a group such as g7, or a bracket",
    );
    refused("eazy", "no policy \"eazy\", did you mean \"easy\"; `miserly policies` lists them");
    refused(
        "Conservativ",
        "no policy \"Conservativ\", did you mean \"conservative\"; `miserly policies` lists them",
    );
    refused("zzz", "no policy \"zzz\"; `miserly policies` lists them");
    refused("sjf", "no policy \"sjf\"; it is an order of the queue: write easy(order=sjf)");
    refused("random", "no policy \"random\"; it is an order of the queue: write easy(order=random)");
    refused("fifo", "no policy \"fifo\", did you mean \"fcfs\"; `miserly policies` lists them");
    refused("backfill", "no policy \"backfill\", did you mean \"easy\"; `miserly policies` lists them");
    refused("easy(order=wait/estimate)", "policy easy: put the formula in quotes: order='wait/estimate'");
    refused(
        "easy(oder=widest)",
        "policy easy has no parameter \"oder\", did you mean \"order\"; it has order, backfill, hold_head, weight, draw, seed, half_life, shares, passes, predict, correct, book",
    );
    refused(
        "fcfs(backfill=widest)",
        "policy fcfs has no parameter \"backfill\"; it has order, weight, draw, seed, half_life, shares",
    );
    refused(
        "easy(order=short)",
        "policy easy: order cannot be \"short\", did you mean \"shortest\"; it must be one of arrival, shortest, longest, \
         narrowest, widest, smallest, largest, random, random/length, sjf, sqf, saf, lxf, wfp3, unicep, f1, f2, f3, f4, \
         fair-share; or a formula in quotes",
    );
    let form = "write it like easy or easy(backfill=shortest)";
    refused("easy(order=widest", &format!("policy \"easy(order=widest\": a bracket is not closed; {form}"));
    refused("easy)", &format!("policy \"easy)\": a closing bracket has no opening one; {form}"));
    refused("easy(order)", &format!("policy \"easy(order)\": \"order\" has no value; {form}"));
    refused("easy(order=widest,order=widest)", "policy easy: parameter order is given twice");
    check("policies eazy", "no policy \"eazy\", did you mean \"easy\"; `miserly policies` lists them");
    check(
        "compare --policy easy --policy eazy",
        "invalid value 'eazy' for '--policy <POLICY>': no policy \"eazy\", did you mean \"easy\"; `miserly policies` \
         lists them",
    );
}

#[test]
fn the_case_of_a_policy_name_does_not_matter() {
    let lab = Lab::with_log(&small_log());
    assert_eq!(lab.run("simulate log.swf -p EASY --json").code, Some(0));
    assert_eq!(
        lab.document("simulate log.swf -p Easy(order=shortest) --json")["policy"],
        "easy(order=shortest)"
    );
    assert_eq!(lab.document("simulate log.swf -p Soon --json")["policy"], "immediate(preempt=false)");
}

#[test]
fn options_that_make_no_sense() {
    let refused = |option: &str, why: &str| check(&format!("simulate log.swf -p easy {option}"), why);
    refused("--procs 0", "invalid value '0' for '--procs <N>': 0 is not in 1..=1073741824");
    refused("--procs -5", "invalid value '-5' for '--procs <N>': -5 is not in 1..=1073741824");
    refused("--queue batch", "log.swf: no queue \"batch\"; the log has no queues");
    refused("--user alice", "log.swf: no user \"alice\"; its header has no names of users; the users are 1");
    refused(
        "--user 99",
        "log.swf: no job to simulate of 4 (4 other_user); change the filters or the machine",
    );
    refused("--procs 10^9", "invalid value '10^9' for '--procs <N>': invalid digit found in string");
    refused(
        "--drop runtime",
        "invalid value 'runtime' for '--drop <FILTER>': filter \"runtime\" has no comparison; write it like \
         runtime<=0 (signs: <= < >= > = !=)",
    );
    refused(
        "--drop runtme<=0",
        "invalid value 'runtme<=0' for '--drop <FILTER>': filter \"runtme<=0\": no field \"runtme\"; the fields are \
         job, submit, wait, runtime, allocated, cpu_time, used_memory, requested_procs, estimate, requested_memory, \
         status, user, group, executable, queue, partition, preceding_job, think_time, nodes, gpus, gpu_type, \
         job_memory, name, account, features",
    );
    refused(
        "--drop runtime<=1h",
        "invalid value 'runtime<=1h' for '--drop <FILTER>': filter \"runtime<=1h\": \"1h\" is not a whole number",
    );
    refused(
        "--estimates perfect",
        "invalid value 'perfect' for '--estimates <MODEL>': no estimates \"perfect\"; they are trace, trace*F, exact, \
         exact*R, uniform:R (drawn from T to 2RT), uniform:R:mean (from T to (2R-1)T) or tsafrir",
    );
    refused(
        "--estimates uniform",
        "invalid value 'uniform' for '--estimates <MODEL>': uniform needs a factor R: write uniform:R, such as uniform:5",
    );
    refused(
        "--estimates exact*0",
        "invalid value 'exact*0' for '--estimates <MODEL>': factor \"0\": must be a number above 0, with at most six digits before and after the point",
    );
    refused(
        "--estimates uniform:0.5",
        "invalid value 'uniform:0.5' for '--estimates <MODEL>': uniform:0.5: R must be 1 or more",
    );
    let forms = "write seconds, or units such as 90s, 15min, 1d12h, 1:30:00 or 2-12:00:00";
    refused(
        "--from monday",
        &format!("invalid value 'monday' for '--from <T>': \"monday\" is not a duration; {forms}"),
    );
    refused("--to -5", "invalid value '-5' for '--to <T>': \"-5\": a duration is 0 or more");
    refused(
        "--warmup 1y",
        "invalid value '1y' for '--warmup <D>': \"1y\": no unit of time \"y\"; the units are us, ms, s, min, h, d and w",
    );
    refused(
        "--warmup 0.5",
        "invalid value '0.5' for '--warmup <D>': \"0.5\": a duration here is a whole number of seconds",
    );
    refused("--from 1h --to 5", "no job is submitted from 3600 s to 5 s; --to must be above --from");
    refused("--overrun kil", "invalid value 'kil' for '--overrun <OVERRUN>'");
    refused("--porcs 4", "unexpected argument '--porcs' found");
    refused("other.swf", "unexpected argument 'other.swf' found");
}

#[test]
fn outputs_that_cannot_be_written() {
    let ending = "the name must end in .csv or .swf, which gives the format";
    check("simulate log.swf -p easy --jobs out.txt", &format!("--jobs out.txt: {ending}"));
    check("simulate missing.swf -p easy --jobs out", &format!("--jobs out: {ending}"));
    check(
        "simulate log.swf -p easy --jobs nowhere/out.csv",
        "--jobs nowhere/out.csv: the folder nowhere does not exist",
    );
    check("simulate log.swf -p easy --jobs folder.csv", "--jobs folder.csv: is a directory");
    check(
        "workload generate --jobs 5 --output nowhere/out.swf",
        "cannot write nowhere/out.swf: the folder nowhere does not exist",
    );
}

#[test]
fn models_that_make_no_log() {
    check("workload generate --jobs 0", "feitelson96: jobs is 0; it must be between 1 and 100000000");
    check("workload generate --load 0", "feitelson96: load is 0; it must be above 0, and finite");
    check("workload generate --load -1", "feitelson96: load is -1; it must be above 0, and finite");
    check("workload generate --load nan", "feitelson96: load is NaN; it must be above 0, and finite");
    check("workload generate --load inf", "feitelson96: load is inf; it must be above 0, and finite");
    check("workload generate --procs 0", "invalid value '0' for '--procs <P>': 0 is not in 1..=1073741824");
    check(
        "workload generate --set users",
        "invalid value 'users' for '--set <NAME=VALUE>': no = found; write NAME=VALUE, such as size_order=1.2",
    );
    check("workload generate --set users=0", "feitelson96: users is 0; it must be 1 or more");
    check(
        "workload generate --set weight=1",
        "feitelson96 has no parameter \"weight\"; it has jobs, procs, load, seed, size_order, small_max, small_weight, \
         interesting_from, power_of_two_weight, square_weight, multiple_of_ten_weight, full_machine_weight, \
         plus_one_weight, short_mean, long_mean, long_base, long_slope, run_order, run_max, users, repeat_after_end, \
         array_chance, array_max, estimate_max",
    );
    check(
        "workload generate --set array_chance=2",
        "feitelson96: array_chance is 2; it must be between 0 and 1",
    );
    check(
        "workload generate --set array_chance=1 --repeat-after-end",
        "feitelson96: array_chance is 1; it must be 0 with repeat_after_end",
    );
    check("workload generate --model sud --set users=1", "--set: sud has no parameters beyond its options");
    check("workload generate --model sud --repeat-after-end", "--repeat-after-end: sud repeats no jobs");
    check(
        "workload generate --model downey97",
        "no model \"downey97\"; there are feitelson96, sud, sud-feitelson96, lublin99, o2k",
    );
    let of_month = "o2k has a fixed machine and the jobs of a month; choose another --month";
    for option in ["--jobs", "--procs", "--load"] {
        check(&format!("workload generate --model o2k {option} 1"), &format!("{option}: {of_month}"));
    }
    check("workload generate --month 2000-01", "--month: feitelson96 has no months; only o2k has");
    let months = "there are 1999-10, 1999-11, 1999-12, 2000-01, 2000-02, 2000-03";
    check(
        "workload generate --model o2k --month 1999-09",
        &format!(
            "invalid value '1999-09' for '--month <MONTH>': no month \"1999-09\" in the paper; {months}"
        ),
    );
}

#[test]
fn jobs_and_commands_that_there_are_not() {
    check("explain log.swf 9 -p easy", "log.swf: no job 9; the job number is field 1 of a line");
    let skipped = "is not simulated; miserly simulate prints the number of skipped jobs by reason";
    check("explain log.swf 4 -p easy", &format!("log.swf:5: job 4 {skipped}"));
    check("explain log.swf 2 -p easy --drop job=2", &format!("log.swf:3: job 2 {skipped}"));
    check(
        "explain log.swf two -p easy",
        "invalid value 'two' for '<JOB>': the job must be a number: field 1 of its line",
    );
    check("simulat log.swf", "unrecognized subcommand 'simulat'");
    let tips = lab().run("simulat log.swf").stderr;
    assert!(tips.contains("'simulate'") && !tips.contains("shim"), "{tips}");
    check("import log.swf", "unrecognized subcommand 'import'");
    let tips = lab().run("import log.swf").stderr;
    assert!(tips.contains("tip: a similar subcommand exists: 'workload convert'"), "{tips}");
    check(
        "reproduce feitelson-1997",
        "no paper \"feitelson-1997\"; the papers are zotkin-2000, chiang-2001, kettimuthu-2002, feitelson-1996, tsafrir-2007, gaussier-2015, zhang-2020, miser-1999",
    );
    check(
        "reproduce zotkin --only none",
        "no such part; the parts of zotkin-2000 are 1-easy, 2-offline, 3-shadow, 4-conservative, 5-workload, 6-guarantees, 7-starvation",
    );
    check("man simulat", "no command \"simulat\"; miserly --help lists them");
    check("man workload make", "no command \"make\"; miserly workload --help lists them");
    check("completions csh", "invalid value 'csh' for '<SHELL>'");
    check("simulate log.swf", "the following required arguments were not provided:");
}

#[test]
fn queues_by_the_names_of_the_header() {
    let lab = Lab::new();
    let of_queue =
        |text: String, queue: &str| text.replace(" 1 1 -1 -1 -1 ", &format!(" 1 1 -1 -1 {queue} "));
    let jobs: Vec<String> = (1..=4)
        .map(|job| of_queue(line((job, job, 10, 1, 10)), if job % 2 == 0 { "1" } else { "2" }))
        .collect();
    lab.write("log.swf", format!("; MaxProcs: 10\n; Queue: 1 short\n; Queue: 2 batch\n{}", jobs.concat()));
    let simulated = |queue: &str| {
        let document = lab.document(&format!("simulate log.swf -p easy --json --by queue --queue {queue}"));
        (document["jobs"]["simulated"].as_u64(), document["settings"]["queues"].to_string())
    };
    assert_eq!(simulated("batch"), (Some(2), "[2]".to_owned()));
    assert_eq!(simulated("SHORT,batch"), (Some(4), "[1,2]".to_owned()));
    assert_eq!(simulated("2"), (Some(2), "[2]".to_owned()));
    let table = lab.stdout("simulate log.swf -p easy --by queue");
    assert!(table.contains("\nbatch ") && table.contains("\nshort "), "{table}");
    let table = lab.stdout("compare log.swf -p easy -p fcfs --by queue");
    assert!(table.contains("\nbatch "), "{table}");
    let run = lab.run("simulate log.swf -p easy --queue gpu");
    assert_eq!(run.stderr, "error: log.swf: no queue \"gpu\"; the queues are 1 short, 2 batch\n");
}

#[test]
fn jobs_that_are_left_out_are_warned_of() {
    let lab = Lab::with_log(&small_log());
    let wide = "warning: log.swf: 1 of 4 jobs are wider than the machine (10 processors) and left out\n";
    for command in ["simulate log.swf -p easy", "compare log.swf", "simulate log.swf -p easy --json"] {
        let run = lab.run(command);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), wide), "{command}");
    }
    let run = lab.run("simulate log.swf -p easy --warmup 5000d");
    let warmup = "warning: log.swf: no job is measured: all were submitted within the warm-up; give a shorter --warmup\n";
    assert_eq!((run.code, run.stderr), (Some(0), format!("{wide}{warmup}")));
    let run = lab.run("compare log.swf --user 99");
    let none = "error: log.swf: no job to simulate of 4 (4 other_user); change the filters or the machine\n";
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(2), "", none));
    for jobs in ["jobs.csv", "jobs.swf"] {
        let run = lab.run(&format!("simulate log.swf -p easy --user 99 --jobs {jobs}"));
        assert_eq!(
            (run.code, run.stderr.as_str(), lab.path(jobs).exists()),
            (Some(2), none, false),
            "{jobs}"
        );
    }
}

#[test]
fn a_check_with_errors_fails() {
    let lab = lab();
    assert_eq!(lab.run("workload check empty.swf").code, Some(1));
    assert_eq!(lab.run("workload check f17.swf --procs 10").code, Some(1));
    assert_eq!(lab.run("workload check log.swf").code, Some(0));
}

#[test]
fn a_closed_standard_error_is_no_panic() {
    let lab = lab();
    lab.write("small.toml", "title = \"t\"\n[[trace]]\nname = \"a\"\nmodel = \"feitelson96\"\njobs = 10\n[[runs]]\nname = \"r\"\npolicies = [\"easy\"]\n");
    for (command, code) in [
        ("experiment run small.toml", 0),
        ("simulate log.swf -p easy", 0),
        ("simulate missing.swf -p easy", 2),
        ("simulat", 2),
        ("show 1 --json", 1),
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let mut command_line = lab.command(command);
        let status = command_line.stdout(Stdio::null()).stderr(full).status().expect("a program that starts");
        assert_eq!(status.code(), Some(code), "{command}");
    }
}

#[test]
fn a_job_is_added_to_a_log_with_jobs_only() {
    let lab = Lab::with_log(&small_log());
    let run = lab.run("wait-of log.swf 2 1h --user 99");
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(2), "error: log.swf: no job of the log is in the run\n")
    );
}
