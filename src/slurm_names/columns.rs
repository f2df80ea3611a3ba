//! The columns of squeue and sacct, and their formats.

use miserly_api::model::Usage;

use super::facts::{Facts, long_clock, memory, short_clock, stamp};

/// A column of squeue.
pub(super) struct QueueColumn {
    /// The letter in `-o`.
    pub(super) letter: char,
    /// The name in `-O`.
    pub(super) name: &'static str,
    pub(super) header: &'static str,
    pub(super) value: fn(&Facts) -> String,
}

const fn column(
    letter: char,
    name: &'static str,
    header: &'static str,
    value: fn(&Facts) -> String,
) -> QueueColumn {
    QueueColumn { letter, name, header, value }
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
    column('L', "TimeLeft", "TIME_LEFT", |of| short_clock(of.limit() - of.elapsed())),
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
    column('Q', "PriorityLong", "PRIORITY", |_| "1".to_owned()),
    column('p', "Priority", "PRIORITY", |_| "0.00000000023283".to_owned()),
    column('y', "Nice", "NICE", |_| "0".to_owned()),
    column('h', "OverSubscribe", "OVER_SUBSCRIBE", |_| "OK".to_owned()),
    column('f', "Feature", "FEATURES", |_| "(null)".to_owned()),
    column('v', "Reservation", "RESERVATION", |_| "(null)".to_owned()),
    column('w', "WCKey", "WCKEY", |_| "(null)".to_owned()),
    column('W', "Licenses", "LICENSES", |_| "(null)".to_owned()),
    column('n', "ReqNodes", "REQ_NODES", |_| String::new()),
    column('x', "ExcNodes", "EXC_NODES", |_| String::new()),
    column('Y', "SchedNodes", "SCHEDNODES", |_| "(null)".to_owned()),
    column('g', "GroupName", "GROUP", |_| String::new()),
    column('c', "MinCPUs", "MIN_CPUS", |of| of.job.cpus.to_string()),
    column('d', "MinTmpDisk", "MIN_TMP_DISK", |_| "0".to_owned()),
    column('H', "SocketsPerNode", "SOCKETS_PER_NODE", |_| "*".to_owned()),
    column('I', "CoresPerSocket", "CORES_PER_SOCKET", |_| "*".to_owned()),
    column('J', "ThreadsPerCore", "THREADS_PER_CORE", |_| "*".to_owned()),
    column('z', "SCT", "S:C:T", |_| "*:*:*".to_owned()),
    column('O', "Contiguous", "CONTIGUOUS", |_| "0".to_owned()),
    column(NO_LETTER, "stdout", "STDOUT", |of| path(of.job.output.as_deref())),
    column(NO_LETTER, "stderr", "STDERR", |of| path(of.job.error.as_deref())),
    column(NO_LETTER, "exit_code", "EXIT_CODE", |of| of.exit().0.to_string()),
    column(NO_LETTER, "RestartCnt", "RESTART_COUNT", |of| of.job.runs.saturating_sub(1).to_string()),
    column(NO_LETTER, "PendingTime", "PENDING_TIME", |of| {
        of.began().unwrap_or(of.now).duration_since(of.job.submitted).as_secs().max(0).to_string()
    }),
    column(NO_LETTER, "Deadline", "DEADLINE", |of| not_known(&stamp(of.job.deadline))),
    column(NO_LETTER, "EligibleTime", "ELIGIBLE_TIME", |of| {
        stamp(Some(of.job.begin.unwrap_or(of.job.submitted)))
    }),
    column(NO_LETTER, "tres-alloc", "TRES_ALLOC", tres),
    column(NO_LETTER, "Cluster", "CLUSTER", |_| super::CLUSTER.to_owned()),
    column(NO_LETTER, "NumTasks", "TASKS", |_| "1".to_owned()),
    column(NO_LETTER, "cpus-per-task", "CPUS_PER_TASK", |of| of.job.cpus.to_string()),
    column(NO_LETTER, "BatchFlag", "BATCH_FLAG", |of| u8::from(of.job.script).to_string()),
    column(NO_LETTER, "Requeue", "REQUEUE", |of| u8::from(of.job.restartable).to_string()),
];

/// Returns the column of squeue with this letter or this name.
pub(super) fn queue_column(letter: Option<char>, name: &str) -> Option<&'static QueueColumn> {
    QUEUE.iter().find(|column| match letter {
        Some(letter) => column.letter == letter && letter != NO_LETTER,
        None => column.name.eq_ignore_ascii_case(name),
    })
}

/// A column of sacct: name, width, and the values of a job and of the step that is its script.
pub(super) struct AccountingColumn {
    pub(super) name: &'static str,
    pub(super) width: usize,
    /// The value for a job; `script` for its script.
    pub(super) value: fn(&Facts, bool) -> String,
}

const fn accounted(name: &'static str, width: usize, value: fn(&Facts, bool) -> String) -> AccountingColumn {
    AccountingColumn { name, width, value }
}

/// The columns of sacct.
pub(super) const ACCOUNTING: &[AccountingColumn] = &[
    accounted("Account", 10, |_, _| String::new()),
    accounted("AdminComment", 19, |_, _| String::new()),
    accounted("AllocCPUS", 10, allocated),
    accounted("AllocNodes", 10, |of, _| u8::from(of.began().is_some()).to_string()),
    accounted("AllocTRES", 10, |of, _| if of.began().is_some() { tres(of) } else { String::new() }),
    accounted("AssocID", 7, |_, _| "0".to_owned()),
    accounted("AveCPU", 10, |of, script| of_script(of, script, |usage| long_clock(cpu_time(usage)))),
    accounted("AveDiskRead", 14, |of, script| of_script(of, script, |usage| amount(usage.io_read))),
    accounted("AveDiskWrite", 14, |of, script| of_script(of, script, |usage| amount(usage.io_written))),
    accounted("AveRSS", 10, |of, script| of_script(of, script, |usage| kilobytes(usage.memory_peak))),
    accounted("AveVMSize", 10, |_, _| String::new()),
    accounted("Cluster", 10, |_, _| super::CLUSTER.to_owned()),
    accounted("Comment", 14, |of, script| of.job.comment.clone().filter(|_| !script).unwrap_or_default()),
    accounted("ConsumedEnergy", 14, |_, _| "0".to_owned()),
    accounted("ConsumedEnergyRaw", 17, |_, _| "0".to_owned()),
    accounted("CPUTime", 10, |of, _| long_clock(of.elapsed().saturating_mul(cpus(of)))),
    accounted("CPUTimeRAW", 10, |of, _| (of.elapsed().as_secs() * i64::from(cpus(of))).to_string()),
    accounted("DerivedExitCode", 15, |_, script| if script { String::new() } else { "0:0".to_owned() }),
    accounted("Elapsed", 10, |of, _| long_clock(of.elapsed())),
    accounted("ElapsedRaw", 10, |of, _| of.elapsed().as_secs().to_string()),
    accounted("Eligible", 19, |of, script| {
        if script { stamp(of.began()) } else { stamp(Some(of.job.begin.unwrap_or(of.job.submitted))) }
    }),
    accounted("End", 19, |of, _| stamp(of.job.phase.ended())),
    accounted("ExitCode", 8, |of, script| {
        let (code, signal) = if script { of.exit_of_script() } else { of.exit() };
        format!("{code}:{signal}")
    }),
    accounted("Flags", 20, |_, _| String::new()),
    accounted("GID", 6, |_, _| String::new()),
    accounted("Group", 9, |_, _| String::new()),
    accounted("JobID", 12, |of, script| if script { of.id() + ".batch" } else { of.id() }),
    accounted("JobIDRaw", 12, |of, script| {
        let number = of.job.number.to_string();
        if script { number + ".batch" } else { number }
    }),
    accounted("JobName", 10, |of, script| if script { "batch".to_owned() } else { of.job.name.clone() }),
    accounted("Layout", 9, |_, script| if script { "Unknown".to_owned() } else { String::new() }),
    accounted("MaxDiskRead", 12, |of, script| of_script(of, script, |usage| amount(usage.io_read))),
    accounted("MaxDiskWrite", 12, |of, script| of_script(of, script, |usage| amount(usage.io_written))),
    accounted("MaxRSS", 10, |of, script| of_script(of, script, |usage| kilobytes(usage.memory_peak))),
    accounted("MaxRSSNode", 10, |of, script| if script { of.node().to_owned() } else { String::new() }),
    accounted("MaxRSSTask", 10, |_, script| if script { "0".to_owned() } else { String::new() }),
    accounted("MaxVMSize", 10, |_, _| String::new()),
    accounted("NCPUS", 10, allocated),
    accounted("NNodes", 8, |_, _| "1".to_owned()),
    accounted("NodeList", 15, |of, _| {
        if of.began().is_some() { of.host.to_owned() } else { "None assigned".to_owned() }
    }),
    accounted("NTasks", 8, |_, script| if script { "1".to_owned() } else { String::new() }),
    accounted("Partition", 10, |of, script| if script { String::new() } else { of.job.queue.clone() }),
    accounted("Planned", 10, |of, script| if script { String::new() } else { long_clock(waited(of)) }),
    accounted("Priority", 10, |_, script| if script { String::new() } else { "1".to_owned() }),
    accounted("QOS", 10, |_, _| String::new()),
    accounted("Reason", 22, |of, script| if script { String::new() } else { of.reason().to_owned() }),
    accounted("ReqCPUS", 8, |of, _| of.job.cpus.to_string()),
    accounted("ReqMem", 10, |of, script| if script { String::new() } else { memory(of.job.memory) }),
    accounted("ReqNodes", 8, |_, _| "1".to_owned()),
    accounted("ReqTRES", 10, |of, script| if script { String::new() } else { tres(of) }),
    accounted("Reservation", 20, |_, _| String::new()),
    accounted("Reserved", 10, |of, script| if script { String::new() } else { long_clock(waited(of)) }),
    accounted("Start", 19, |of, _| stamp(of.began())),
    accounted("State", 10, |of, _| match of.state().name {
        "CANCELLED" => format!("CANCELLED by {}", of.job.uid),
        name => name.to_owned(),
    }),
    accounted(
        "Submit",
        19,
        |of, script| if script { stamp(of.began()) } else { stamp(Some(of.job.submitted)) },
    ),
    accounted("SubmitLine", 20, |_, _| String::new()),
    accounted("Suspended", 10, |_, _| "00:00:00".to_owned()),
    accounted("SystemCPU", 10, |of, _| used(of, |usage| clock_of(usage.system))),
    accounted("Timelimit", 10, |of, script| if script { String::new() } else { long_clock(of.limit()) }),
    accounted("TimelimitRaw", 12, |of, script| {
        if script { String::new() } else { (of.limit().as_secs() / 60).to_string() }
    }),
    accounted("TotalCPU", 10, |of, _| used(of, |usage| clock_of(usage.user + usage.system))),
    accounted("TRESUsageInTot", 14, |_, _| String::new()),
    accounted("UID", 6, |of, script| if script { String::new() } else { of.job.uid.to_string() }),
    accounted("User", 9, |of, script| if script { String::new() } else { of.job.user.clone() }),
    accounted("UserCPU", 10, |of, _| used(of, |usage| clock_of(usage.user))),
    accounted("WCKey", 10, |_, _| String::new()),
    accounted("WCKeyID", 8, |_, script| if script { String::new() } else { "0".to_owned() }),
    accounted(
        "WorkDir",
        10,
        |of, script| if script { String::new() } else { path(of.job.directory.as_deref()) },
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
        let usual = isize::try_from(column.width).unwrap_or(0);
        let width = width.and_then(|width| width.parse::<isize>().ok());
        columns.push((column, width.map_or(usual, |width| width.clamp(-WIDEST, WIDEST))));
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

fn not_known(text: &str) -> String {
    if text == "Unknown" { "N/A".to_owned() } else { text.to_owned() }
}

fn gres(of: &Facts) -> String {
    if of.job.gpus > 0 { format!("gres:gpu:{}", of.job.gpus) } else { "N/A".to_owned() }
}

/// Returns the resources as Slurm writes them together.
pub(super) fn tres(of: &Facts) -> String {
    let gpus = if of.job.gpus > 0 { format!(",gres/gpu={}", of.job.gpus) } else { String::new() };
    format!("billing={0},cpu={0},mem={1},node=1{gpus}", of.job.cpus, memory(of.job.memory))
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

/// Returns a text of a user without line breaks, which would begin the row of another job.
pub(super) fn without_breaks(text: &str) -> String {
    text.replace(char::is_control, "?")
}

/// Returns a file in one line.
pub(super) fn path(path: Option<&std::path::Path>) -> String {
    path.map_or_else(|| "(null)".to_owned(), |path| without_breaks(&path.display().to_string()))
}

fn cpus(of: &Facts) -> i32 {
    if of.began().is_some() { i32::try_from(of.job.cpus).unwrap_or(i32::MAX) } else { 0 }
}

fn allocated(of: &Facts, _: bool) -> String {
    cpus(of).to_string()
}

fn waited(of: &Facts) -> jiff::SignedDuration {
    of.began().unwrap_or(of.now).duration_since(of.job.submitted).max(jiff::SignedDuration::ZERO)
}

fn used(of: &Facts, text: impl Fn(&Usage) -> String) -> String {
    of.job.usage.as_ref().map_or_else(|| "00:00:00".to_owned(), |usage| text(&usage.total))
}

fn of_script(of: &Facts, script: bool, text: impl Fn(&Usage) -> String) -> String {
    of.job.usage.as_ref().filter(|_| script).map(|usage| text(&usage.total)).unwrap_or_default()
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
