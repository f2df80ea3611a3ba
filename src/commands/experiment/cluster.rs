//! The runs of an experiment on a Slurm cluster: a job array. Each task makes a part of them.
//!
//! All tasks write into the folder of the experiment, each run under its key. So a task that dies, or a second array, takes
//! nothing away from the others.

use std::env;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, bail};
use miserly_experiments::Session;
use miserly_experiments::experiment::CLUSTER;
use miserly_slurm::{ArrayRequest, Cluster, Slurm};

use crate::args::OnArgs;
use crate::progress::Progress;

/// The time between two looks at an array.
const LOOK: Duration = Duration::from_secs(2);

/// The most looks in a row that fail.
const MOST_FAILED: u32 = 150;

/// The most tasks of an array.
const MOST_TASKS: u64 = 1000;

/// The lines of a task's output that are shown if it fails.
const LINES: usize = 3;

/// The files of the tasks of an array.
pub(super) struct Place<'a> {
    pub(super) file: &'a Path,
    pub(super) folder: &'a Path,
    pub(super) traces: Option<&'a Path>,
}

/// Makes the open runs of a session on a cluster.
pub(super) fn conduct(session: &Session, args: &OnArgs, place: &Place<'_>) -> anyhow::Result<()> {
    let slurm = Slurm { configuration: args.slurm_conf.clone() };
    let cluster = Cluster::read(&slurm)?;
    if let Some(partition) = &args.partition {
        cluster.check_partition(partition)?;
    }
    let most = cluster.configuration.array_size.saturating_sub(1).clamp(1, MOST_TASKS);
    let count = session.runs().min(usize::try_from(most).unwrap_or(usize::MAX)).max(1);
    let open = session.open_parts(count);
    if open.is_empty() {
        return Ok(());
    }
    let logs = place.folder.join(CLUSTER);
    fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
    let array = match going_on(&slurm, &logs)? {
        Some(array) => {
            note!("array {array} goes on");
            array
        }
        None => submit(&slurm, args, place, &logs, &open, count)?,
    };
    follow(session, &slurm, &array)?;
    let missing = session.open_parts(count);
    let Some(first) = missing.first() else { return Ok(()) };
    let log = logs.join(format!("{array}_{first}.log"));
    let said = fs::read_to_string(&log).unwrap_or_default();
    let last: Vec<&str> = said.lines().rev().take(LINES).collect();
    let said: Vec<&str> = last.into_iter().rev().collect();
    bail!(
        "{} of {count} parts are not complete; the same command makes them again. The end of {}: {}",
        missing.len(),
        log.display(),
        if said.is_empty() { "(nothing)".to_owned() } else { said.join(" / ") }
    )
}

/// Returns the array of an earlier call that has not ended.
fn going_on(slurm: &Slurm, logs: &Path) -> anyhow::Result<Option<String>> {
    let Ok(array) = fs::read_to_string(logs.join("array")) else { return Ok(None) };
    let array = array.trim().to_owned();
    let is_number = !array.is_empty() && array.bytes().all(|letter| letter.is_ascii_digit());
    Ok(if is_number && !slurm.array(&array)?.is_over() { Some(array) } else { None })
}

fn submit(
    slurm: &Slurm,
    args: &OnArgs,
    place: &Place<'_>,
    logs: &Path,
    open: &[usize],
    count: usize,
) -> anyhow::Result<String> {
    let whole = |path: &Path| path.canonicalize().with_context(|| format!("cannot find {}", path.display()));
    let program = env::current_exe().context("cannot find this program")?;
    let [file, folder] = [whole(place.file)?, whole(place.folder)?];
    let mut words = vec![program, "experiment".into(), "run".into(), file, "--output".into(), folder.clone()];
    if let Some(traces) = place.traces {
        words.extend(["--traces".into(), whole(traces)?]);
    }
    let quoted = words.iter().map(|word| {
        let word = word.to_str().with_context(|| format!("{} is not UTF-8", word.display()))?;
        Ok(shlex::try_quote(word)?.into_owned())
    });
    let quoted = quoted.collect::<anyhow::Result<Vec<String>>>()?.join(" ");
    // A task has the processors that its options give it.
    let script = format!(
        "#!/bin/sh\nexport RAYON_NUM_THREADS=\"${{SLURM_CPUS_PER_TASK:-1}}\"\n\
         exec {quoted} --part \"$SLURM_ARRAY_TASK_ID/{count}\"\n"
    );
    let partition = args.partition.iter().map(|name| format!("--partition={name}"));
    let options: Vec<String> = partition.chain(args.sbatch.iter().cloned()).collect();
    let output = whole(logs)?.join("%A_%a.log").display().to_string();
    let request = ArrayRequest {
        name: "miserly-experiment",
        script,
        tasks: open,
        folder: &folder,
        output,
        options: &options,
    };
    let array = slurm.submit_array(&request)?;
    fs::write(logs.join("array"), format!("{array}\n")).context("cannot write the number of the array")?;
    note!("array {array}: {} tasks; if this command is interrupted, the array goes on", open.len());
    Ok(array)
}

/// Shows the progress of an array until it has ended.
fn follow(session: &Session, slurm: &Slurm, array: &str) -> anyhow::Result<()> {
    let mut stored = session.stored();
    let progress = Progress::with_unit("runs", (session.runs() - stored) as u64);
    let mut failed = 0;
    loop {
        let is_over = match slurm.array(array) {
            Ok(state) => {
                failed = 0;
                state.is_over()
            }
            // A restart of the controller is no end.
            Err(error) if failed == MOST_FAILED => return Err(error.into()),
            Err(_) => {
                failed += 1;
                false
            }
        };
        let now = session.stored();
        progress.add(now.saturating_sub(stored) as u64);
        stored = now;
        if is_over {
            return Ok(());
        }
        sleep(LOOK);
    }
}
