//! The columns of squeue and sacct, and their formats.

use miserly_api::model::{Phase, Usage, is_invisible};

use nix::unistd::Group;

use super::facts::{Facts, Part, long_clock, memory, short_clock, stamp};

/// A column of squeue, whose values are of one kind.
pub(super) struct Column<F: 'static> {
    /// The letter in `-o`.
    pub(super) letter: char,
    /// The name in `-O`.
    pub(super) name: &'static str,
    pub(super) header: &'static str,
    pub(super) value: F,
}

/// A column of jobs.
pub(super) type QueueColumn = Column<fn(&Facts) -> String>;

/// A column of steps.
pub(super) type StepColumn = Column<fn(&Facts, Part) -> String>;

const fn column(
    letter: char,
    name: &'static str,
    header: &'static str,
    value: fn(&Facts) -> String,
) -> QueueColumn {
    QueueColumn { letter, name, header, value }
}

const fn of_step(
    letter: char,
    name: &'static str,
    header: &'static str,
    value: fn(&Facts, Part) -> String,
) -> StepColumn {
    StepColumn { letter, name, header, value }
}

/// The letter of a column that only a name selects.
const NO_LETTER: char = ' ';

/// The columns of squeue.
pub(super) const QUEUE: &[QueueColumn] = &[
    column('i', "JobArrayID", "JOBID", id),
    column('A', "JobID", "JOBID", |of| of.job.number.to_string()),
    column('F', "ArrayJobID", "ARRAY_JOB_ID", |of| of.job.array.unwrap_or(of.job.number).to_string()),
    column('K', "ArrayTaskID", "ARRAY_TASK_ID", |of| match (&of.indexes, of.job.index) {
        (Some(indexes), _) => indexes.clone(),
        (None, Some(index)) => index.to_string(),
        (None, None) => "N/A".to_owned(),
    }),
    column('j', "Name", "NAME", |of| of.job.name.clone()),
    column('u', "UserName", "USER", |of| of.job.user.clone()),
    column('U', "UserID", "USER", |of| of.job.uid.to_string()),
    column('P', "Partition", "PARTITION", |of| of.job.queue.clone()),
    column('t', "StateCompact", "ST", |of| of.state().short.to_owned()),
    column('T', "State", "STATE", |of| of.state().name.to_owned()),
    column('M', "TimeUsed", "TIME", |of| short_clock(of.elapsed())),
    column('l', "TimeLimit", "TIME_LIMIT", |of| short_clock(of.limit())),
    column('L', "TimeLeft", "TIME_LEFT", |of| {
        short_clock((of.limit() - of.elapsed()).max(jiff::SignedDuration::ZERO))
    }),
    column('D', "NumNodes", "NODES", |_| "1".to_owned()),
    column('C', "NumCPUs", "CPUS", |of| of.job.cpus.to_string()),
    column('m', "MinMemory", "MIN_MEMORY", |of| memory(of.job.memory)),
    column('b', "tres-per-node", "TRES_PER_NODE", gres),
    column('R', "ReasonList", "NODELIST(REASON)", |of| {
        if of.began().is_some() { of.node().to_owned() } else { format!("({})", of.reason()) }
    }),
    column('N', "NodeList", "NODELIST", |of| of.node().to_owned()),
    column('r', "Reason", "REASON", |of| of.reason().to_owned()),
    column('B', "BatchHost", "EXEC_HOST", |of| {
        if of.began().is_some() { of.host.to_owned() } else { "n/a".to_owned() }
    }),
    column('S', "StartTime", "START_TIME", |of| not_known(&stamp(of.start()))),
    column('e', "EndTime", "END_TIME", |of| not_known(&stamp(of.end()))),
    column('V', "SubmitTime", "SUBMIT_TIME", |of| stamp(Some(of.job.submitted))),
    column('a', "Account", "ACCOUNT", |_| "(null)".to_owned()),
    column('q', "QOS", "QOS", |_| "normal".to_owned()),
    column('k', "Comment", "COMMENT", |of| of.job.comment.clone().unwrap_or_else(|| "(null)".to_owned())),
    column('o', "Command", "COMMAND", |of| {
        let command =
            of.job.command.as_ref().filter(|_| !of.job.script).map(|words| without_breaks(&words.join(" ")));
        command.unwrap_or_else(|| if of.job.script { of.job.name.clone() } else { "(null)".to_owned() })
    }),
    column('Z', "WorkDir", "WORK_DIR", |of| path(of.job.directory.as_deref())),
    column('E', "Dependency", "DEPENDENCY", dependency),
    column('Q', "PriorityLong", "PRIORITY", |of| priority(of).to_owned()),
    column('p', "Priority", "PRIORITY", |of| match priority(of) {
        "0" => "0.00000000000000".to_owned(),
        _ => "0.00000000023283".to_owned(),
    }),
    column('y', "Nice", "NICE", |_| "0".to_owned()),
    column('h', "OverSubscribe", "OVER_SUBSCRIBE", |_| "OK".to_owned()),
    column('f', "Feature", "FEATURES", |_| "(null)".to_owned()),
    column('v', "Reservation", "RESERVATION", |_| "(null)".to_owned()),
    column('w', "WCKey", "WCKEY", |_| "(null)".to_owned()),
    column('W', "Licenses", "LICENSES", |_| "(null)".to_owned()),
    column('n', "ReqNodes", "REQ_NODES", |_| String::new()),
    column('x', "ExcNodes", "EXC_NODES", |_| String::new()),
    column('Y', "SchedNodes", "SCHEDNODES", |_| "(null)".to_owned()),
    column('g', "GroupName", "GROUP", |of| of.group().map_or_else(String::new, |group| group.name)),
    column('c', "MinCPUs", "MIN_CPUS", |of| of.cpus_per_task().to_string()),
    column('d', "MinTmpDisk", "MIN_TMP_DISK", |_| "0".to_owned()),
    column('H', "SocketsPerNode", "SOCKETS_PER_NODE", |_| "*".to_owned()),
    column('I', "CoresPerSocket", "CORES_PER_SOCKET", |_| "*".to_owned()),
    column('J', "ThreadsPerCore", "THREADS_PER_CORE", |_| "*".to_owned()),
    column('z', "SCT", "S:C:T", |_| "*:*:*".to_owned()),
    column('X', "CoreSpec", "CORE_SPEC", |_| "N/A".to_owned()),
    column('G', "GroupID", "GROUP", |of| of.group().map_or_else(String::new, |group| group.gid.to_string())),
    column('O', "Contiguous", "CONTIGUOUS", |_| "0".to_owned()),
    column(NO_LETTER, "stdout", "STDOUT", |of| path(of.job.output.as_deref())),
    column(NO_LETTER, "stderr", "STDERR", |of| path(of.job.error.as_deref())),
    column(NO_LETTER, "exit_code", "EXIT_CODE", |of| of.exit().0.to_string()),
    column(NO_LETTER, "RestartCnt", "RESTART_COUNT", |of| of.job.runs.saturating_sub(1).to_string()),
    column(NO_LETTER, "PendingTime", "PENDING_TIME", |of| {
        of.began().unwrap_or(of.now).duration_since(of.job.submitted).as_secs().max(0).to_string()
    }),
    column(NO_LETTER, "Deadline", "DEADLINE", |of| not_known(&stamp(of.job.deadline))),
    column(NO_LETTER, "EligibleTime", "ELIGIBLE_TIME", eligible),
    column(NO_LETTER, "tres-alloc", "TRES_ALLOC", tres),
    column(NO_LETTER, "Cluster", "CLUSTER", |_| super::CLUSTER.to_owned()),
    column(NO_LETTER, "NumTasks", "TASKS", |of| of.tasks().to_string()),
    column(NO_LETTER, "cpus-per-task", "CPUS_PER_TASK", |of| of.cpus_per_task().to_string()),
    column(NO_LETTER, "BatchFlag", "BATCH_FLAG", |of| u8::from(of.job.script).to_string()),
    column(NO_LETTER, "Requeue", "REQUEUE", |of| u8::from(of.job.restartable).to_string()),
];

/// The columns of squeue for steps.
pub(super) const STEPS: &[StepColumn] = &[
    of_step('i', "StepID", "STEPID", |of, part| of.id() + &part.suffix()),
    of_step('j', "StepName", "NAME", |_, part| part.name()),
    of_step('P', "Partition", "PARTITION", |of, _| of.job.queue.clone()),
    of_step('u', "UserName", "USER", |of, _| of.job.user.clone()),
    of_step('U', "UserID", "UID", |of, _| of.job.uid.to_string()),
    of_step('M', "TimeUsed", "TIME", |of, part| short_clock(of.elapsed_of(part))),
    of_step('l', "TimeLimit", "TIME_LIMIT", |_, part| {
        part.limit().map_or_else(|| "UNLIMITED".to_owned(), short_clock)
    }),
    of_step('S', "StartTime", "START_TIME", |of, part| stamp(of.began_of(part))),
    of_step('N', "Nodes", "NODELIST", |of, _| of.host.to_owned()),
    of_step('A', "NumTasks", "TASKS", |_, part| part.tasks().to_string()),
    of_step('b', "tres-per-node", "TRES_PER_JOB", |_, _| "(null)".to_owned()),
    of_step(NO_LETTER, "StepState", "STATE", |of, part| of.state_of(part).name.to_owned()),
    of_step(NO_LETTER, "NumCPUs", "NUM_CPUS", |of, part| of.cpus_of(part).to_string()),
    of_step(NO_LETTER, "JobID", "JOB_ID", |of, _| of.job.number.to_string()),
    of_step(NO_LETTER, "ArrayJobID", "ARRAY_JOB_ID", |of, _| of.job.array.unwrap_or(0).to_string()),
    of_step(NO_LETTER, "ArrayTaskID", "ARRAY_TASK_ID", |of, _| {
        of.job.index.map_or_else(|| "N/A".to_owned(), |index| index.to_string())
    }),
    of_step(NO_LETTER, "Cluster", "CLUSTER", |_, _| super::CLUSTER.to_owned()),
    of_step(NO_LETTER, "Container", "CONTAINER", |_, _| "(null)".to_owned()),
    of_step(NO_LETTER, "Network", "NETWORK", |_, _| "(null)".to_owned()),
    of_step(NO_LETTER, "ResvPorts", "RESERVED_PORTS", |_, _| "(null)".to_owned()),
];

/// Returns the column with this letter or this name.
pub(super) fn selected<F>(
    columns: &'static [Column<F>],
    letter: Option<char>,
    name: &str,
) -> Option<&'static Column<F>> {
    columns.iter().find(|column| match letter {
        Some(letter) => column.letter == letter && letter != NO_LETTER,
        None => column.name.eq_ignore_ascii_case(name),
    })
}

/// A column of sacct: name, width, and the value of a row.
pub(super) struct AccountingColumn {
    pub(super) name: &'static str,
    /// A negative width aligns to the left.
    pub(super) width: isize,
    pub(super) value: fn(&Facts, Part) -> String,
}

const fn accounted(name: &'static str, width: isize, value: fn(&Facts, Part) -> String) -> AccountingColumn {
    AccountingColumn { name, width, value }
}

/// The columns of sacct.
pub(super) const ACCOUNTING: &[AccountingColumn] = &[
    accounted("Account", 10, |_, _| String::new()),
    accounted("AdminComment", 19, |_, _| String::new()),
    accounted("AllocCPUS", 10, allocated),
    accounted("AllocNodes", 10, |of, _| u8::from(of.began().is_some()).to_string()),
    accounted("AllocTRES", 10, |of, part| match part {
        _ if of.began().is_none() => String::new(),
        Part::Job => tres_by_name(of),
        Part::Script | Part::Step(_) => tres_of_step(of, part),
    }),
    accounted("AssocID", 7, |_, _| "0".to_owned()),
    accounted("AveCPU", 10, |of, part| of_script(of, part, |usage| long_clock(cpu_time(usage)))),
    accounted("AveDiskRead", 14, |of, part| of_script(of, part, |usage| amount(usage.io_read))),
    accounted("AveDiskWrite", 14, |of, part| of_script(of, part, |usage| amount(usage.io_written))),
    accounted("AveRSS", 10, |of, part| of_script(of, part, |usage| kilobytes(usage.memory_peak))),
    accounted("AveVMSize", 10, |_, _| String::new()),
    accounted("Cluster", 10, |_, _| super::CLUSTER.to_owned()),
    accounted("Comment", 14, |of, part| {
        of.job.comment.clone().filter(|_| !part.is_step()).unwrap_or_default()
    }),
    accounted("ConsumedEnergy", 14, |_, _| "0".to_owned()),
    accounted("ConsumedEnergyRaw", 17, |_, _| "0".to_owned()),
    accounted("CPUTime", 10, |of, part| long_clock(of.elapsed_of(part).saturating_mul(cpus(of, part)))),
    accounted("CPUTimeRAW", 10, |of, part| {
        (of.elapsed_of(part).as_secs() * i64::from(cpus(of, part))).to_string()
    }),
    accounted("DerivedExitCode", 15, |_, part| if part.is_step() { String::new() } else { "0:0".to_owned() }),
    accounted("Elapsed", 10, |of, part| long_clock(of.elapsed_of(part))),
    accounted("ElapsedRaw", 10, |of, part| of.elapsed_of(part).as_secs().to_string()),
    accounted("Eligible", 19, |of, part| match part {
        Part::Job => stamp(Some(of.eligible())),
        Part::Script | Part::Step(_) => stamp(of.began_of(part)),
    }),
    accounted("End", 19, |of, part| stamp(of.ended_of(part))),
    accounted("ExitCode", 8, |of, part| {
        let (code, signal) = of.exit_of(part);
        format!("{code}:{signal}")
    }),
    accounted("Flags", 20, |_, _| String::new()),
    accounted("GID", 6, |of, part| group(of, part).map_or_else(String::new, |group| group.gid.to_string())),
    accounted("Group", 9, |of, part| group(of, part).map_or_else(String::new, |group| group.name)),
    accounted("JobID", -12, |of, part| of.id() + &part.suffix()),
    accounted("JobIDRaw", -12, |of, part| of.job.number.to_string() + &part.suffix()),
    accounted("JobName", 10, |of, part| if part.is_step() { part.name() } else { of.job.name.clone() }),
    accounted("Layout", 9, |_, part| if part.is_step() { "Unknown".to_owned() } else { String::new() }),
    accounted("MaxDiskRead", 12, |of, part| of_script(of, part, |usage| amount(usage.io_read))),
    accounted("MaxDiskWrite", 12, |of, part| of_script(of, part, |usage| amount(usage.io_written))),
    accounted("MaxRSS", 10, |of, part| of_script(of, part, |usage| kilobytes(usage.memory_peak))),
    accounted("MaxRSSNode", 10, |of, part| if part.is_step() { of.node().to_owned() } else { String::new() }),
    accounted("MaxRSSTask", 10, |_, part| if part.is_step() { "0".to_owned() } else { String::new() }),
    accounted("MaxVMSize", 10, |_, _| String::new()),
    accounted("NCPUS", 10, allocated),
    accounted("NNodes", 8, |_, _| "1".to_owned()),
    accounted("NodeList", 15, |of, _| {
        if of.began().is_some() { of.host.to_owned() } else { "None assigned".to_owned() }
    }),
    accounted("NTasks", 8, |_, part| match part {
        Part::Job => String::new(),
        Part::Script => "1".to_owned(),
        Part::Step(step) => step.tasks.to_string(),
    }),
    accounted("Partition", 10, |of, part| if part.is_step() { String::new() } else { of.job.queue.clone() }),
    accounted("Planned", 10, |of, part| if part.is_step() { String::new() } else { long_clock(waited(of)) }),
    accounted("Priority", 10, |_, part| if part.is_step() { String::new() } else { "1".to_owned() }),
    accounted("QOS", 10, |_, _| String::new()),
    accounted("Reason", 22, |of, part| if part.is_step() { String::new() } else { of.reason().to_owned() }),
    accounted("ReqCPUS", 8, |of, part| of.cpus_of(part).to_string()),
    accounted("ReqMem", 10, |of, part| if part.is_step() { String::new() } else { memory(of.job.memory) }),
    accounted("ReqNodes", 8, |_, _| "1".to_owned()),
    accounted("ReqTRES", 10, |of, part| if part.is_step() { String::new() } else { tres_by_name(of) }),
    accounted("Reservation", 20, |_, _| String::new()),
    accounted("Reserved", 10, |of, part| if part.is_step() { String::new() } else { long_clock(waited(of)) }),
    accounted("Start", 19, |of, part| stamp(of.began_of(part))),
    accounted("State", 10, |of, part| match (of.state_of(part).name, part) {
        ("CANCELLED", Part::Job) => format!("CANCELLED by {}", of.job.uid),
        (name, _) => name.to_owned(),
    }),
    accounted("Submit", 19, |of, part| match part {
        Part::Job => stamp(Some(of.job.submitted)),
        Part::Script | Part::Step(_) => stamp(of.began_of(part)),
    }),
    accounted("SubmitLine", 20, |_, _| String::new()),
    accounted("Suspended", 10, |_, _| "00:00:00".to_owned()),
    accounted("SystemCPU", 10, |of, part| used(of, part, |usage| clock_of(usage.system))),
    accounted(
        "Timelimit",
        10,
        |of, part| if part.is_step() { String::new() } else { long_clock(of.limit()) },
    ),
    accounted("TimelimitRaw", 12, |of, part| {
        if part.is_step() { String::new() } else { (of.limit().as_secs() / 60).to_string() }
    }),
    accounted("TotalCPU", 10, |of, part| used(of, part, |usage| clock_of(usage.user + usage.system))),
    accounted("TRESUsageInTot", 14, |_, _| String::new()),
    accounted("UID", 6, |of, part| if part.is_step() { String::new() } else { of.job.uid.to_string() }),
    accounted("User", 9, |of, part| if part.is_step() { String::new() } else { of.job.user.clone() }),
    accounted("UserCPU", 10, |of, part| used(of, part, |usage| clock_of(usage.user))),
    accounted("WCKey", 10, |_, _| String::new()),
    accounted("WCKeyID", 8, |_, part| if part.is_step() { String::new() } else { "0".to_owned() }),
    accounted(
        "WorkDir",
        10,
        |of, part| if part.is_step() { String::new() } else { path(of.job.directory.as_deref()) },
    ),
];

/// Returns the columns of a format such as `JobID,State%20`, with their widths; negative ones align to the left.
///
/// # Errors
/// A column that sacct does not have.
pub(super) fn accounting_columns(format: &str) -> Result<Vec<(&'static AccountingColumn, isize)>, String> {
    let mut columns = vec![];
    for part in format.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, width) = part.split_once('%').map_or((part, None), |(name, width)| (name, Some(width)));
        let exact = ACCOUNTING.iter().find(|column| column.name.eq_ignore_ascii_case(name));
        let begins = |column: &&AccountingColumn| {
            column.name.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name))
        };
        let found = exact.or_else(|| ACCOUNTING.iter().find(begins));
        let column = found.ok_or_else(|| format!("Invalid field requested: \"{name}\""))?;
        let width = width.and_then(|width| width.parse::<isize>().ok());
        columns.push((column, width.map_or(column.width, |width| width.clamp(-WIDEST, WIDEST))));
    }
    Ok(columns)
}

/// Returns a cell of sacct in its width. A longer text is cut, and ends with +.
pub(super) fn cell(text: &str, width: isize) -> String {
    let size = width.unsigned_abs();
    let text = if text.chars().count() > size {
        text.chars().take(size.saturating_sub(1)).chain(['+']).collect()
    } else {
        text.to_owned()
    };
    if width < 0 { format!("{text:<size$}") } else { format!("{text:>size$}") }
}

/// Returns the number as Slurm writes it. A method of [`Facts`] is of one lifetime only.
fn id(of: &Facts) -> String {
    of.id()
}

/// Returns the priority: a job that is held has none.
pub(super) fn priority(of: &Facts) -> &'static str {
    if matches!(of.job.phase, Phase::Held) { "0" } else { "1" }
}

/// Returns the instant from which the job may start. A job that is held has none.
pub(super) fn eligible(of: &Facts) -> String {
    let at = Some(of.eligible());
    stamp(at.filter(|_| !matches!(of.job.phase, Phase::Held)))
}

fn not_known(text: &str) -> String {
    if text == "Unknown" { "N/A".to_owned() } else { text.to_owned() }
}

fn gres(of: &Facts) -> String {
    if of.job.gpus > 0 { format!("gres:gpu:{}", of.job.gpus) } else { "N/A".to_owned() }
}

/// Returns the resources as Slurm writes them together.
pub(super) fn tres(of: &Facts) -> String {
    let gpus = if of.job.gpus > 0 { format!(",gres/gpu={}", of.job.gpus) } else { String::new() };
    format!("cpu={0},mem={1},node=1,billing={0}{gpus}", of.job.cpus, memory(of.job.memory))
}

/// Returns the resources in the order of their names, as the accounting has them.
pub(super) fn tres_by_name(of: &Facts) -> String {
    let gpus = if of.job.gpus > 0 { format!(",gres/gpu={}", of.job.gpus) } else { String::new() };
    format!("billing={0},cpu={0}{gpus},mem={1},node=1", of.job.cpus, memory(of.job.memory))
}

/// Returns the resources of a step.
fn tres_of_step(of: &Facts, part: Part) -> String {
    format!("cpu={},mem={},node=1", of.cpus_of(part), memory(of.job.memory))
}

/// Returns the group of a job, which its steps do not show.
fn group(of: &Facts, part: Part) -> Option<Group> {
    if part.is_step() { None } else { of.group() }
}

/// Returns the jobs that have to end first.
pub(super) fn dependency(of: &Facts) -> String {
    let kind = |job: &i64| {
        if of.job.after_ok.contains(job) {
            "afterok"
        } else if of.job.after_not_ok.contains(job) {
            "afternotok"
        } else {
            "afterany"
        }
    };
    let text: Vec<String> =
        of.job.after.iter().map(|job| format!("{}:{job}(unfulfilled)", kind(job))).collect();
    if text.is_empty() { "(null)".to_owned() } else { text.join(",") }
}

/// The widest column.
const WIDEST: isize = 4096;

/// Parses the width of a column.
pub(super) fn cell_width(text: &str) -> Option<usize> {
    text.parse::<usize>().ok().map(|width| width.min(WIDEST.unsigned_abs()))
}

/// Returns a text of a user without line breaks, which would begin the row of another job, and without characters that change
/// how others are shown.
pub(super) fn without_breaks(text: &str) -> String {
    text.replace(is_invisible, "?")
}

/// Returns a file in one line.
pub(super) fn path(path: Option<&std::path::Path>) -> String {
    path.map_or_else(|| "(null)".to_owned(), |path| without_breaks(&path.display().to_string()))
}

fn cpus(of: &Facts, part: Part) -> i32 {
    if of.began().is_some() { i32::try_from(of.cpus_of(part)).unwrap_or(i32::MAX) } else { 0 }
}

fn allocated(of: &Facts, part: Part) -> String {
    cpus(of, part).to_string()
}

fn waited(of: &Facts) -> jiff::SignedDuration {
    of.began().unwrap_or(of.now).duration_since(of.job.submitted).max(jiff::SignedDuration::ZERO)
}

fn used(of: &Facts, part: Part, text: impl Fn(&Usage) -> String) -> String {
    // The usage of a step is part of that of the script.
    let usage = of.job.usage.as_ref().filter(|_| !matches!(part, Part::Step(_)));
    usage.map_or_else(|| "00:00:00".to_owned(), |usage| text(&usage.total))
}

fn of_script(of: &Facts, part: Part, text: impl Fn(&Usage) -> String) -> String {
    let usage = of.job.usage.as_ref().filter(|_| matches!(part, Part::Script));
    usage.map(|usage| text(&usage.total)).unwrap_or_default()
}

fn cpu_time(usage: &Usage) -> jiff::SignedDuration {
    jiff::SignedDuration::try_from_secs_f64(usage.user + usage.system).unwrap_or_default()
}

/// Returns processor time as sacct prints it: `00:01.250`, or without decimals from an hour on.
fn clock_of(secs: f64) -> String {
    let span = jiff::SignedDuration::try_from_secs_f64(secs).unwrap_or_default();
    if span.as_secs() >= 3600 {
        return long_clock(span);
    }
    format!("{:02}:{:02}.{:03}", span.as_secs() / 60, span.as_secs() % 60, span.subsec_millis())
}

fn kilobytes(bytes: Option<u64>) -> String {
    bytes.map(|bytes| format!("{}K", bytes / 1024)).unwrap_or_default()
}

fn amount(bytes: Option<u64>) -> String {
    bytes.map(|bytes| format!("{:.2}M", bytes as f64 / 1_048_576.0)).unwrap_or_default()
}
