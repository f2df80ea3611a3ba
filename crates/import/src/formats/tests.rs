//! Small files of each format, checked by hand, and the same jobs in every format.

use miserly_workload::Trace;
use miserly_workload::swf::{Field, Record};
use proptest::prelude::*;

use super::import;
use crate::remark::RemarkEffect;
use crate::{Format, ImportError, ImportOptions, ImportedLog};

const KEPT: fn() -> ImportOptions = || ImportOptions { keep_ids: true, ..ImportOptions::default() };

/// Imports a text by its format.
fn read(text: &str, options: &ImportOptions) -> Result<ImportedLog, ImportError> {
    let trace = Trace::memory("a", text.into());
    import(&trace, Format::of(&trace)?, options)
}

/// Returns the fields of each job: number, submission, wait, runtime, processors, requested ones, estimate and status.
fn jobs(log: &ImportedLog) -> Vec<[i64; 8]> {
    use Field::{Allocated, Estimate, Job, RequestedProcs, Runtime, Status, Submit, Wait};
    let of = |record: &Record| {
        [Job, Submit, Wait, Runtime, Allocated, RequestedProcs, Estimate, Status]
            .map(|field| record.get(field))
    };
    log.records.iter().map(of).collect()
}

fn remarks(log: &ImportedLog) -> Vec<(&'static str, u64)> {
    let of = |effect| log.report.remarks.with_effect(effect);
    RemarkEffect::ALL.into_iter().flat_map(of).map(|(remark, tally)| (remark.name(), tally.count)).collect()
}

/// Checks the jobs and the remarks of a text of this format.
#[track_caller]
fn check(
    format: Format,
    text: &str,
    options: &ImportOptions,
    expect: &[[i64; 8]],
    told: &[(&str, u64)],
) -> ImportedLog {
    assert_eq!(Format::of(&Trace::memory("a", text.into())).unwrap(), format);
    let log = read(text, options).unwrap();
    assert_eq!(jobs(&log), expect);
    assert_eq!(remarks(&log), told);
    let left_out: u64 =
        log.report.remarks.with_effect(RemarkEffect::LeftOut).map(|(_, tally)| tally.count).sum();
    assert_eq!(log.report.read, log.report.written + left_out);
    log
}

#[track_caller]
fn refused(text: &str, expect: &str) {
    assert_eq!(read(text, &KEPT()).unwrap_err().to_string(), expect);
}

/// Arrays that wait, and that were cancelled before they ran, are a row each.
#[test]
fn tasks_that_never_ran() {
    let text = "JobID|JobName|Submit|Start|End|Elapsed|NCPUS|Timelimit|State\n\
        123456_[9201-10000%500]|j|2022-01-01T00:00:00|Unknown|Unknown|00:00:00|1|05:00:00|PENDING\n\
        123456_[1,3-7:2]|j|2022-01-01T00:00:00|Unknown|Unknown|00:00:00|1|05:00:00|CANCELLED by 5\n\
        123456_[60-89,91-94]|j|2022-01-01T00:00:00|None|2022-01-01T00:09:00|00:00:00|1|05:00:00|CANCELLED by 5\n\
        123456_17|j|2022-01-01T00:00:00|2022-01-01T01:00:00|2022-01-01T02:00:00|01:00:00|1|05:00:00|COMPLETED\n\
        123456_18.batch|j|2022-01-01T00:00:00|2022-01-01T01:00:00|2022-01-01T02:00:00|01:00:00|1||COMPLETED\n";
    let log = read(text, &ImportOptions::default()).unwrap();
    let waits =
        |wait: i64| jobs(&log).iter().filter(|job| job[2] == wait && job[3] == -1 && job[7] == 5).count();
    assert_eq!((waits(-1), waits(540), log.report.written), (4, 34, 39));
    assert_eq!(
        remarks(&log),
        [("step", 1), ("unfinished", 800), ("never_started", 38), ("cancelled_task", 38), ("local_time", 39)]
    );
    let numbers: std::collections::BTreeSet<i64> =
        read(text, &KEPT()).unwrap().records.iter().map(|record| record.get(Field::Job)).collect();
    assert_eq!(numbers.len(), 39, "each task has a number of its own");
    let quoted =
        "\"JobID\",\"Submit\",\"ElapsedRaw\",\"NCPUS\",\"State\"\n\"7_[1,3-7:2]\",100,0,1,CANCELLED\n";
    assert_eq!(read(quoted, &KEPT()).unwrap().report.written, 4);
    // With the raw number beside it, too.
    let raw = "JobIDRaw|JobID|Submit|Start|End|Elapsed|NCPUS|State\n\
        7|7_[1-3]|100|Unknown|160|0|1|CANCELLED\n9|7_4|100|100|160|60|1|COMPLETED\n";
    let expect = [[9, 0, 0, 60, 1, 1, -1, 1]];
    let log = read(raw, &KEPT()).unwrap();
    assert_eq!((log.report.written, jobs(&log)[0]), (4, expect[0]));
}

/// Days in time limits, fractions, units of memory, jobs that end before they start, and jobs without processors.
#[test]
fn forms_of_values() {
    let text = "JobID|Submit|Start|End|Elapsed|AllocCPUS|State|Timelimit|TotalCPU|ReqMem|NNodes|Suspended\n\
        10|2022-01-01T00:00:00|2022-01-01T00:01:00|2022-01-03T01:25:56|2-01:24:56|8|COMPLETED|2-12|16-11:19:28|4000Mc|1|00:00:00\n\
        13|2022-01-01T00:00:10|2022-01-01T00:00:00|2022-01-01T00:04:25|00:04:25|1|COMPLETED|UNLIMITED|00:03.939|1.50Gn|2|00:00:00\n\
        14|2022-01-01T00:00:20|2022-01-01T00:01:00|2022-01-01T02:01:00|01:00:00|1|COMPLETED|3:00:00|00:03.939|16G|1|01:00:00\n\
        15|2022-01-01T00:00:30|2022-01-01T00:01:00|2022-01-01T00:00:30|00:00:00|1|CANCELLED by 0|3:00:00|00:00:00|16G|1|00:00:00\n\
        16|2022-01-01T00:00:40|Unknown|Unknown|INVALID|1|RUNNING|INVALID|INVALID|16G|1|00:00:00\n\
        17|2022-01-01T00:00:50|2022-01-01T00:01:00|2022-01-01T00:02:00|00:01:00|0|FAILED|3:00:00|00:00:00|16G|1|00:00:00\n\
        18|2022-01-01T00:01:00|2022-01-01T00:01:00|2022-01-01T00:02:00|00:01:00|1|OUT_OF_ME+|3:00:00|00:00:00|16G|1|00:00:00\n";
    let expect = [
        [10, 0, 60, 177_896, 8, 8, 216_000, 1],
        [13, 10, -1, 265, 1, 1, -1, 1],
        [14, 20, 40, 3600, 1, 1, 10_800, 1],
        [15, 30, 30, 0, 1, 1, 10_800, 5],
        [17, 50, 10, 60, -1, -1, 10_800, 0],
        [18, 60, 0, 60, 1, 1, 10_800, 0],
    ];
    let told = [
        ("unfinished", 1),
        ("started_early", 1),
        ("ends_early", 1),
        ("suspended", 1),
        ("no_time_limit", 1),
        ("many_nodes", 1),
        ("local_time", 6),
    ];
    let log = check(Format::Slurm, text, &KEPT(), &expect, &told);
    assert_eq!(log.records[0].get(Field::RequestedMemory), 4_096_000);
    assert_eq!(log.records[1].get(Field::RequestedMemory), 3_145_728, "1.5 GiB on two nodes, one processor");
    assert_eq!(log.records[0].get(Field::CpuTime), 177_896);
}

#[test]
fn output_without_the_parsable_form() {
    let text = "JobID           JobName  Partition              Submit               Start\n\
                ------------ ---------- ---------- ------------------- -------------------\n";
    refused(
        text,
        "a:1: columns of fixed width, as sacct prints them without -P, which cuts values; print it with -P",
    );
    let public = "ConsumedEnergyRaw|CPUTimeRAW|ReqCPUS|ReqMem|ReqNodes|Submit|State\n0|158517504|1|100Mc|1|x|TIMEOUT\n";
    refused(
        public,
        "a:1: missing columns: ElapsedRaw, or Start and End; `miserly workload convert slurm --command` prints the \
         command of sacct",
    );
}

/// Any separator, order and set of columns that suffices, comments, units, and sizes of resources or nodes.
#[test]
fn columns_as_sites_have_them() {
    let expect = [[7, 0, 10, 60, 4, 4, -1, 1], [8, 5, 0, 30, 2048, 2048, -1, 1]];
    let fields = [
        ["State", "AllocCPUS", "End", "Start", "Submit", "JobID"],
        ["COMPLETED", "4", "170", "110", "100", "7"],
        ["COMPLETED", "2K", "135", "105", "105", "8"],
    ];
    for separator in ["|", ",", ";", "\t", ":", "^", "||"] {
        let lines: Vec<String> = fields.iter().map(|line| line.join(separator)).collect();
        let text = format!("# of march\n{}\n# the end\n", lines.join("\r\n"));
        check(Format::Slurm, &text, &KEPT(), &expect, &[]);
    }
    let forced = ImportOptions { delimiter: Some(" ".into()), ..KEPT() };
    let text = fields.map(|line| line.join(" ") + "\n").concat();
    assert_eq!(jobs(&read(&text, &forced).unwrap()), expect);
    let tres = "JobID|Submit|ElapsedRaw|Start|ReqTRES|AllocTRES\n\
        7|100|60|110|billing=4,cpu=2,mem=8G,node=1|cpu=4,gres/gpu=1,mem=8G,node=2\n";
    let log = check(
        Format::Slurm,
        tres,
        &KEPT(),
        &[[7, 0, 10, 60, 4, 2, -1, -1]],
        &[("many_nodes", 1), ("generic_resources", 1)],
    );
    assert_eq!(log.records[0].get(Field::RequestedMemory), 2 << 20);
    let nodes = "Submit,ElapsedRaw,NNodes,State\n100,60,3,COMPLETED\n";
    let options = ImportOptions { cpus_per_node: Some(48), ..KEPT() };
    check(Format::Slurm, nodes, &options, &[[1, 0, -1, 60, 144, 144, -1, 1]], &[("many_nodes", 1)]);
    let missing = read(nodes, &KEPT()).unwrap_err().to_string();
    assert!(missing.contains(
        "missing columns: AllocCPUS, ReqCPUS, AllocTRES or ReqTRES, or NNodes with --cpus-per-node"
    ));
}

/// The workloads of the UB Slurm simulator have submissions, limits in minutes and runtimes, and no starts.
#[test]
fn workloads_of_the_slurm_simulator() {
    let text = "dt;job_id;wall_time;user;wall_limit;n_tasks;ntasks_per_node;account;partition;qos;constraint;mem;gres\n\
        0;1001;0;user5;60;12;12;account2;normal;normal;;;\n5;1002;34;user4;60;24;12;account2;normal;normal;CPU-M;;gpu:1\n";
    let expect = [[1001, 0, -1, 0, -1, 12, 3600, -1], [1002, 5, -1, 34, -1, 24, 3600, -1]];
    check(Format::Slurm, text, &KEPT(), &expect, &[]);
    let events = "\"\",\"sim_job_id\",\"sim_submit\",\"sim_wclimit\",\"sim_duration\",\"sim_tasks\",\"sim_username\",\"sim_submit_ts\"\n\
        \"480\",1001,2017-01-01 00:02:15,30,1201,6,\"user5\",1483246935\n";
    check(Format::Slurm, events, &KEPT(), &[[1001, 0, -1, 1201, -1, 6, 1800, -1]], &[]);
}

/// Two jobs run when the accounting is read. The other two ended long ago without a record of it.
#[test]
fn runaway_jobs_and_impossible_times() {
    let text = "JobID|Submit|Eligible|Start|End|AllocCPUS|Timelimit|State\n\
        1|0|0|0|Unknown|1|60|RUNNING\n\
        2|1000000|1000000|1000000|Unknown|1|2-00:00:00|RUNNING\n\
        3|0|0|0|Unknown|1|UNLIMITED|RUNNING\n\
        4|1000000|1000000|1000000|Unknown|1|UNLIMITED|RUNNING\n\
        5|2678000|2678500|2678100|2678000|1|60|COMPLETED\n";
    let told =
        [("unfinished", 1), ("runaway", 3), ("delayed", 1), ("started_ineligible", 1), ("ends_early", 1)];
    check(Format::Slurm, text, &KEPT(), &[[5, 0, 100, 0, 1, 1, 3600, 1]], &told);
}

/// A requeued job keeps its number, and Slurm gives the number of an old job to a new one.
#[test]
fn requeued_jobs_and_recycled_numbers() {
    let text = "JobID|Submit|Start|End|AllocCPUS|State|User\n\
        7|0|10|60|1|NODE_FAIL|ann\n7|60|100|160|1|COMPLETED|ann\n\
        8|0|10|60|1|COMPLETED|ann\n8|200|300|360|1|COMPLETED|bob\n\
        9|0|10|60|1|COMPLETED|ann\n9|86461|86470|86480|1|COMPLETED|ann\n";
    let log = read(text, &KEPT()).unwrap();
    assert_eq!(remarks(&log), [("run_again", 1), ("recycled", 2)]);
}

const PBS: &str = "\
    03/01/2013 00:00:05;Q;100.bw;queue=normal\n\
    03/01/2013 00:00:06;S;100.bw;user=ann group=phys\n\
    03/01/2013 04:00:00;E;100.bw;user=ann group=phys account=x jobname=a b queue=normal ctime=1362096000 qtime=1362096000 etime=1362096060 start=1362096100 owner=ann@h exec_host=26742/0-31 Resource_List.neednodes=4:ppn=32 Resource_List.nodect=4 Resource_List.nodes=4:ppn=32 Resource_List.walltime=04:00:00 session=1 total_execution_slots=128 unique_node_count=4 end=1362110249 Exit_status=0 resources_used.cput=128:00:00 resources_used.mem=1310720kb resources_used.walltime=03:55:49\n\
    03/02/2013 00:00:00;E;101.bw;user=bob group=phys queue=debug ctime=1362096010 qtime=1362096010 etime=1362096010 start=1362096020 Resource_List.ncpus=8 Resource_List.mem=16gb Resource_List.walltime=120:00:00 end=1362096080 Exit_status=271\n\
    03/02/2013 00:00:00;E;102[3].bw;user=bob queue=debug ctime=1362096020 etime=1362096020 start=1362096020 Resource_List.nodes=2:ppn=8+n7:ppn=4 end=1362096080 Exit_status=0\n\
    03/02/2013 00:00:00;E;102[].bw;user=bob queue=debug ctime=1362096020 etime=1362096020 start=1362096020 end=1362096080 Exit_status=0\n\
    03/02/2013 00:00:00;D;103.bw;requestor=bob@h\n\
    03/02/2013 00:00:00;E;104.bw;user=ann queue=normal ctime=1362096030 start=1362096040 Resource_List.nodect=2 end=1362096050\n";

/// Waits, sizes and memory of three jobs by hand: 128 processors of a log of Blue Waters' kind, 8 of `ncpus`, 20 of a list of
/// nodes.
#[test]
fn accounting_of_pbs() {
    let expect = [
        [100, 0, 100, 14_149, 128, 128, 14_400, 1],
        [101, 10, 10, 60, 8, 8, 432_000, 0],
        [10_000_000_001, 20, 0, 60, 20, 20, -1, 1],
        [104, 30, 10, 10, -1, -1, -1, -1],
    ];
    let told = [
        ("event", 3),
        ("whole_array", 1),
        ("delayed", 1),
        ("no_time_limit", 2),
        ("unknown_state", 1),
        ("many_nodes", 2),
    ];
    let log = check(Format::Pbs, PBS, &KEPT(), &expect, &told);
    let first = &log.records[0];
    assert_eq!((first.get(Field::UsedMemory), first.get(Field::CpuTime)), (10_240, 3600));
    assert_eq!(log.records[1].get(Field::RequestedMemory), 2 << 20);
    assert!(log.comments.contains(&"; UnixStartTime: 1362096000".to_owned()));
    assert!(log.comments.contains(&"; Queue: 1 normal".to_owned()), "{:?}", log.comments);
    let nodes = read(PBS, &ImportOptions { cpus_per_node: Some(32), ..KEPT() }).unwrap();
    assert_eq!(jobs(&nodes)[3][4], 64);
    let cut = PBS.replace("start=1362096100", "start=soon");
    refused(&cut, "a:3: start is \"soon\"; expected: time; --lenient skips and counts such lines");
}

const GRID_ENGINE: &str = "\
    # Version: 8.1.9\n\
    all.q:n1:phys:ann:a:7:sge:0:1000:1010:1070:0:0:60:50:1:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:p:d:mpi:8:0:400.5:0:0:-U x -l h_rt=3600,h_vmem=2G -pe mpi 8:0.0:NONE:1e9:0:0\n\
    all.q:n2:phys:ann:a:7:sge:0:0:1010:1070:0:0:60:50:1:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:p:d:mpi:8:0:400.5:0:0:-l h_rt=3600:0.0:1.n2:1e9:0:0\n\
    long.q:n1:chem:bob:b:8:sge:0:1020:1020:1030:100:137:10:5:1:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:p:d:NONE:1:3:5.2:0:0:NONE:0.0:NONE:0:0:0\n\
    long.q:n1:chem:bob:b:9:sge:0:1040:0:0:8:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:p:d:NONE:1:0:0:0:0:NONE:0.0:NONE:0:0:0\n";

#[test]
fn accounting_of_grid_engine() {
    let expect = [[7, 0, 10, 60, 8, 8, 3600, 1], [10_000_000_001, 20, 0, 10, 1, 1, -1, 0]];
    let told = [("step", 1), ("unfinished", 1), ("no_time_limit", 1)];
    let log = check(Format::GridEngine, GRID_ENGINE, &KEPT(), &expect, &told);
    assert_eq!(log.records[0].get(Field::CpuTime), 50);
    // Univa's milliseconds are not guessed.
    let millis = GRID_ENGINE.replace(":1000:1010:1070:", ":1700000000000:1700000000000:1700000000000:");
    refused(
        &millis,
        "a:2: submission_time is \"1700000000000\"; expected: time; --lenient skips and counts such lines",
    );
}

/// Returns a record of LSF with these values: the end, number, processors, submission, start, hosts, status and index.
fn lsf([end, job, procs, submit, start, status, index]: [i64; 7], hosts: &[&str]) -> String {
    let quoted = hosts.iter().map(|host| format!(" \"{host}\"")).collect::<Vec<_>>().concat();
    let usage = " 0".repeat(19);
    format!(
        "\"JOB_FINISH\" \"10.1\" {end} {job} 500 33816578 {procs} {submit} 0 0 {start} \"ann\" \"normal\" \"select[a \"\"b\"\"]\" \"\" \"\" \
         \"h\" \"/d\" \"\" \"\" \"\" \"\" 0 {}{quoted} {status} 60.0 \"name of it\" \"sleep 1\"{usage} \"\" \"default\" 0 {procs} \
         \"\" \"\" {index} 2048 4096\n",
        hosts.len()
    )
}

#[test]
fn accounting_of_lsf() {
    let text = lsf([170, 7, 4, 100, 110, 64, 0], &["4*n1", "2*n2"])
        + &lsf([190, 8, 2, 120, 130, 32, 5], &["n1", "n1"])
        + "\"JOB_RESIZE\" \"10.1\" 1\n"
        + &lsf([200, 9, 2, 130, 0, 32, 0], &[]);
    let expect = [
        [7, 0, 10, 60, 6, 4, -1, 1],
        [10_000_000_001, 20, 10, 60, 2, 2, -1, 0],
        [9, 30, 70, -1, -1, 2, -1, 0],
    ];
    check(Format::Lsf, &text, &KEPT(), &expect, &[("event", 1), ("never_started", 1)]);
    let short = text.split(" \"sleep").next().unwrap().to_owned() + "\n";
    let error = read(&short, &KEPT()).unwrap_err().to_string();
    assert!(error.starts_with("a:1: JOB_FINISH is \"29 fields\"; expected: the fields up to idx"), "{error}");
}

/// A job in the JSON of 21.08, and the same in that of 23.11.
#[test]
fn json_of_several_versions() {
    let old = r#"{"meta": {}, "jobs": [
        {"job_id": 7, "allocation_nodes": 2, "array": {"job_id": 0, "task": null, "task_id": null},
         "association": {"user": "u"}, "group": "g", "user": "u", "partition": "long", "qos": "normal",
         "required": {"CPUs": 4, "memory": 9223372036854779808}, "state": {"current": "CANCELLED", "reason": "None"},
         "time": {"elapsed": 60, "eligible": 1000, "end": 1070, "start": 1010, "submission": 1000, "suspended": 0,
                  "limit": 10, "total": {"seconds": 120, "microseconds": 5}},
         "tres": {"allocated": [{"type": "cpu", "name": null, "id": 1, "count": 4}], "requested": []},
         "steps": [{"time": {"elapsed": 1}}]}], "errors": []}"#;
    let new = r#"{"jobs": [
        {"job_id": 7, "allocation_nodes": 2, "array": {"job_id": 0, "task_id": {"set": false, "infinite": false, "number": 0}, "task": ""},
         "association": {"user": "u"}, "group": "g", "user": "u", "partition": "long", "qos": "normal",
         "required": {"CPUs": 4, "memory_per_cpu": {"set": true, "infinite": false, "number": 4000},
                      "memory_per_node": {"set": false, "infinite": false, "number": 0}},
         "state": {"current": ["CANCELLED"], "reason": "None"},
         "time": {"elapsed": 60, "eligible": 1000, "end": 1070, "start": 1010, "submission": 1000, "suspended": 0,
                  "limit": {"set": true, "infinite": false, "number": 10}, "total": {"seconds": 120, "microseconds": 5}},
         "tres": {"allocated": [{"type": "cpu", "name": "", "id": 1, "count": 4}]}},
        {"job_id": 8, "array": {"job_id": 8, "task_id": {"set": false, "number": 0}, "task": "1-3"},
         "user": "u", "required": {"CPUs": 1}, "state": {"current": ["CANCELLED"]},
         "time": {"elapsed": 0, "eligible": 0, "end": 1090, "start": 0, "submission": 1080,
                  "limit": {"set": true, "infinite": true, "number": 0}}},
        {"job_id": 9, "state": {"current": ["RUNNING", "COMPLETING"]}, "time": {"submission": 1080, "start": 1081}}
        ], "meta": {"Slurm": {"version": {"major": "23"}}}}"#;
    let first = [7, 0, 10, 60, 4, 4, 600, 5];
    let log = check(Format::SlurmJson, old, &KEPT(), &[first], &[("many_nodes", 1)]);
    assert_eq!(
        (log.records[0].get(Field::RequestedMemory), log.records[0].get(Field::CpuTime)),
        (4_096_000, 30)
    );
    let again = read(new, &KEPT()).unwrap();
    assert_eq!(again.records[0], log.records[0]);
    let task = |number: i64| [10_000_000_000 + number, 80, 10, -1, -1, 1, -1, 5];
    let expect = [first, task(1), task(2), task(3)];
    let told = [
        ("unfinished", 1),
        ("never_started", 3),
        ("cancelled_task", 3),
        ("no_time_limit", 3),
        ("many_nodes", 1),
    ];
    check(Format::SlurmJson, new, &KEPT(), &expect, &told);
    let wrong = "a: job 7: time.end is \"1e+30\"; expected: time";
    refused(&old.replace("1070", "1e30"), wrong);
}

/// A job of a table.
#[derive(Clone, Copy, Debug)]
struct Made {
    submit: i64,
    wait: i64,
    runtime: i64,
    procs: i64,
    limit: i64,
    completed: bool,
}

impl Made {
    fn times(self) -> [i64; 3] {
        let start = self.submit + self.wait;
        [self.submit, start, start + self.runtime]
    }

    fn sacct(self, number: i64, separator: char) -> String {
        let [submit, start, end] = self.times();
        let state = if self.completed { "COMPLETED" } else { "FAILED" };
        [
            number.to_string(),
            submit.to_string(),
            start.to_string(),
            end.to_string(),
            self.procs.to_string(),
            self.limit.to_string(),
            state.to_owned(),
        ]
        .join(&separator.to_string())
            + "\n"
    }

    fn json(self, number: i64) -> String {
        let [submit, start, end] = self.times();
        let state = if self.completed { "COMPLETED" } else { "FAILED" };
        format!(
            r#"{{"job_id": {number}, "association": {{}}, "required": {{"CPUs": {0}}}, "state": {{"current": ["{state}"]}},
             "tres": {{"allocated": [{{"type": "cpu", "count": {0}}}]}},
             "time": {{"submission": {submit}, "start": {start}, "end": {end}, "elapsed": {1}, "limit": {2}}}}}"#,
            self.procs, self.runtime, self.limit
        )
    }

    fn pbs(self, number: i64) -> String {
        let [submit, start, end] = self.times();
        let (hours, minutes) = (self.limit / 60, self.limit % 60);
        format!(
            "03/01/2013 00:00:00;E;{number}.s;ctime={submit} start={start} end={end} Resource_List.ncpus={} \
             Resource_List.walltime={hours:02}:{minutes:02}:00 Exit_status={}\n",
            self.procs,
            i32::from(!self.completed)
        )
    }

    fn grid_engine(self, number: i64) -> String {
        let [submit, start, end] = self.times();
        let zeros = "0:".repeat(17);
        format!(
            "q:n:g:u:j:{number}:a:0:{submit}:{start}:{end}:0:{}:{}:{zeros}p:d:NONE:{}:0:0:0:0:-l h_rt={}:0:NONE:0\n",
            i32::from(!self.completed),
            self.runtime,
            self.procs,
            self.limit * 60
        )
    }

    fn lsf(self, number: i64) -> String {
        let [submit, start, end] = self.times();
        let status = if self.completed { 64 } else { 32 };
        let hosts = format!("{}*n", self.procs);
        lsf([end, number, self.procs, submit, start, status, 0], &[&hosts])
    }
}

fn made() -> impl Strategy<Value = Made> {
    let numbers = (1_000_000_000..1_000_100_000_i64, 0..10_000_i64, 1..10_000_i64, 1..500_i64, 1..2_000_i64);
    (numbers, any::<bool>()).prop_map(|((submit, wait, runtime, procs, limit), completed)| Made {
        submit,
        wait,
        runtime,
        procs,
        limit,
        completed,
    })
}

proptest! {
    /// A random table is the same jobs in every format. LSF has no limits.
    #[test]
    fn the_same_jobs_in_every_form(table in proptest::collection::vec(made(), 1..20)) {
        let numbered = || table.iter().copied().zip(1..);
        let of = |head: &str, line: &dyn Fn(Made, i64) -> String| {
            head.to_owned() + &numbered().map(|(job, number)| line(job, number)).collect::<String>()
        };
        let header = |separator: &str| {
            ["JobID", "Submit", "Start", "End", "AllocCPUS", "Timelimit", "State"].join(separator) + "\n"
        };
        let json: Vec<String> = numbered().map(|(job, number)| job.json(number)).collect();
        let formats = [
            (Format::Slurm, of(&header("|"), &|job, number| job.sacct(number, '|'))),
            (Format::Slurm, of(&header(","), &|job, number| job.sacct(number, ','))),
            (Format::SlurmJson, format!(r#"{{"meta": 1, "jobs": [{}]}}"#, json.join(","))),
            (Format::Pbs, of("", &|job, number| job.pbs(number))),
            (Format::GridEngine, of("", &|job, number| job.grid_engine(number))),
            (Format::Lsf, of("", &|job, number| job.lsf(number))),
        ];
        let first = table.iter().map(|job| job.submit).min().unwrap();
        let mut expect: Vec<[i64; 8]> = numbered()
            .map(|(job, number)| {
                let status = i64::from(job.completed);
                [number, job.submit - first, job.wait, job.runtime, job.procs, job.procs, 60 * job.limit, status]
            })
            .collect();
        expect.sort_by_key(|job| (job[1], job[0]));
        for (format, text) in formats {
            prop_assert_eq!(Format::of(&Trace::memory("a", text.clone().into())).unwrap(), format);
            let mut found = jobs(&read(&text, &KEPT()).unwrap());
            if format == Format::Lsf {
                found.iter_mut().zip(&expect).for_each(|(job, expect)| job[6] = expect[6]);
            }
            prop_assert_eq!(&found, &expect, "{:?}", format);
        }
    }

    /// Any text is refused or imported in every format, and each job is counted.
    #[test]
    fn nothing_panics(text in "[a-zA-Z0-9:;=/|\" \\[\\]{}\n,_.-]{0,300}", prefix in 0..5_usize) {
        let starts = ["03/01/2013 00:00:00;E;", "\"JOB_FINISH\" \"10.1\" 1 2", "{\"jobs\": [{\"job_id\": 1}", "q:n:g:u:j:1:", ""];
        let trace = Trace::memory("a", format!("{}{text}\n", starts[prefix]).into());
        let options = ImportOptions { lenient: true, ..ImportOptions::default() };
        for format in Format::ALL {
            if let Ok(log) = import(&trace, format, &options) {
                let left_out: u64 =
                    log.report.remarks.with_effect(RemarkEffect::LeftOut).map(|(_, tally)| tally.count).sum();
                prop_assert_eq!(log.report.read, log.report.written + left_out);
            }
        }
    }
}
