//! The submission of `miserly submit`: its options and its environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use jiff::Zoned;
use miserly_api::model::Submission;
use miserly_api::submit::{Directives, SubmitOptions, directives};
use rustix::fs::Mode;

use crate::args::SubmitArgs;

/// The largest script, in bytes. It is part of the submission.
const LARGEST: u64 = 2 << 20;

/// Returns the submission. The options are those of the command line, else of the script, else the
/// defaults.
pub(super) fn submission(args: &SubmitArgs) -> anyhow::Result<Submission> {
    let Some((program, arguments)) = args.command.split_first() else { bail!("what is to be run?") };
    let said = args.options.options();
    let Some(script) = script(Path::new(program))? else {
        return build(said, texts(&args.command)?, None, None);
    };
    let said = said.or(read_directives(program, &script)?);
    let name = Path::new(program).file_name().map(|name| name.to_string_lossy().into_owned());
    build(said, texts(arguments)?, Some(script), name)
}

fn build(
    said: SubmitOptions,
    command: Vec<String>,
    script: Option<String>,
    name: Option<String>,
) -> anyhow::Result<Submission> {
    let Some(time) = said.time else {
        bail!(
            "for how long? Say --time, such as --time 2h, or have a line `#MISERLY --time 2h` in the script; when that time is \
             over, the job is ended"
        );
    };
    let cpus = said.cpus.unwrap_or(1);
    let memory = said.memory.map(|memory| memory.of_job(cpus).context("more memory than can be counted"));
    let surroundings = environment();
    Ok(Submission {
        command,
        script,
        name: said.name.or(name.filter(|name| name != "-")),
        directory: directory(said.directory)?,
        environment: match said.export {
            Some(export) => export.environment(surroundings),
            None => surroundings,
        },
        cpus,
        memory: memory.transpose()?,
        // At most 10^10, which a double holds exactly.
        time: time as f64,
        queue: said.queue,
        begin: said.begin,
        deadline: said.deadline,
        after: said.after.unwrap_or_default(),
        array: said.array,
        restartable: said.restartable.unwrap_or_default(),
        no_opportunistic: said.no_opportunistic.unwrap_or_default(),
        hold: said.hold.unwrap_or_default(),
        output: said.output,
        error: said.error,
        umask: umask(),
    })
}

/// Returns the text of a script; `None` for a program.
fn script(program: &Path) -> anyhow::Result<Option<String>> {
    if program == Path::new("-") {
        return read(std::io::stdin().lock(), "standard input").map(Some);
    }
    let Ok(mut file) = File::open(program) else { return Ok(None) };
    let mut mark = Vec::new();
    // A folder cannot be read, and is no script.
    if file.by_ref().take(2).read_to_end(&mut mark).is_err() || mark != b"#!" {
        return Ok(None);
    }
    let name = program.display().to_string();
    read(mark.as_slice().chain(file), &name).map(Some)
}

fn read(input: impl Read, name: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    input.take(LARGEST + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > LARGEST {
        bail!("{name} is larger than {LARGEST} bytes; keep data in files beside the script");
    }
    let text =
        String::from_utf8(bytes).ok().with_context(|| format!("{name} is a script that is no UTF-8 text"))?;
    if !text.starts_with("#!") {
        bail!("{name}: a script begins with #! and its interpreter, such as #!/bin/sh");
    }
    Ok(text)
}

fn read_directives(program: &OsString, script: &str) -> anyhow::Result<SubmitOptions> {
    let name = Path::new(program).display();
    let Directives { options, warnings } =
        directives(script, &Zoned::now()).map_err(|remark| anyhow::anyhow!("{name}:{remark}"))?;
    for warning in warnings {
        eprintln!("warning: {name}:{warning}");
    }
    Ok(options)
}

/// Returns the absolute path of the job's folder.
fn directory(said: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir().context("the folder that you are in is gone; say --directory")?;
    Ok(said.map_or_else(|| here.clone(), |said| here.join(said)))
}

/// Returns the environment, without values that are not UTF-8: JSON cannot hold them.
fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

fn texts(words: &[OsString]) -> anyhow::Result<Vec<String>> {
    let text = |word: &OsString| {
        let text = word.clone().into_string().ok();
        text.with_context(|| format!("the argument {} is no UTF-8 text", word.display()))
    };
    words.iter().map(text).collect()
}

/// Returns the mask of this process. It can only be read by setting it.
fn umask() -> u32 {
    let mask = rustix::process::umask(Mode::from_raw_mode(0o077));
    rustix::process::umask(mask);
    mask.bits()
}
