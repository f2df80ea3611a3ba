//! The submission of `miserly submit`: its options and its environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use jiff::{Timestamp, Zoned};
use miserly_api::model::{Condition, Mail, MailEvent, RawVariable, Submission, When, program_name};
use miserly_api::submit::{Cpus, Directives, Export, SubmitOptions, directives};
use rustix::fs::Mode;

use super::text::{local, plain};
use super::{lines, shell_words, unread};
use crate::args::SubmitArgs;
use crate::colour::message_head;

/// The largest script, in bytes. It is part of the submission.
const LARGEST: u64 = 2 << 20;

/// The seconds from which on an instant counts as past. `--begin now` is a moment before the submission.
const PAST: i64 = 5;

/// The program of a job, as it is written.
#[derive(Clone, Copy)]
pub(super) enum Program<'a> {
    /// A command of a shell.
    Wrapped(&'a str),
    /// A program or a script, and its arguments.
    Command(&'a [OsString]),
}

/// Returns the submission of `miserly submit`.
pub(super) fn submission(args: &SubmitArgs) -> anyhow::Result<Submission> {
    if let Some(file) = &args.lines {
        let mut options = args.options.clone();
        options.submission.array = Some(lines::array(file, args.at_once)?);
        check_letters(&options, !args.json)?;
        let name = Some(script_name(file.as_os_str()));
        return build(options, vec![], Some(lines::script(file)?), name, !args.json);
    }
    let program = args.wrap.as_deref().map_or(Program::Command(&args.command), Program::Wrapped);
    submission_of(program, args.options.clone(), !args.json)
}

/// Returns a submission. The options are those given, else of the script, else the defaults. `warns` about options that mean
/// something else to sbatch.
pub(super) fn submission_of(
    program: Program<'_>,
    options: SubmitOptions,
    warns: bool,
) -> anyhow::Result<Submission> {
    check_letters(&options, warns)?;
    let command = match program {
        Program::Wrapped(command) => {
            unread::refuse(command.as_bytes(), "--wrap")?;
            let script = format!("#!/bin/sh\n{command}\n");
            return build(options, vec![], Some(script), Some("wrap".to_owned()), warns);
        }
        Program::Command(command) => command,
    };
    let Some((program, arguments)) = command.split_first() else { bail!("no program or script is given") };
    let Some(script) = script(Path::new(program))? else {
        let texts = texts(command)?;
        if warns {
            unread::warn_of_argument(command);
            shell_words::warn_of_operators(&texts);
        }
        return build(options, texts, None, None, warns);
    };
    let options = options.or(read_directives(program, &script)?);
    build(options, texts(arguments)?, Some(script), Some(script_name(program)), warns)
}

/// Finds letters of options that mean something else to sbatch.
fn check_letters(options: &SubmitOptions, warns: bool) -> anyhow::Result<()> {
    let directory = options
        .directory
        .as_deref()
        .and_then(Path::to_str)
        .filter(|text| *text == "singleton" || (text.starts_with("after") && text.contains(':')));
    if let Some(text) = directory.filter(|text| !Path::new(text).exists()) {
        bail!("-d {text}: -d is the working folder here; for conditions on other jobs write --after {text}");
    }
    let is_number = |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(name) = options.submission.name.as_deref().filter(is_number)
        && warns
    {
        let warning = message_head("warning");
        note!(
            "{warning} -n {name}: the name of the job is {name}; for {name} processors write --cpus {name}"
        );
    }
    Ok(())
}

/// Warns of options that are rarely meant: an earliest start in the past, and one output file for all jobs of an array.
fn warn_of_options(options: &SubmitOptions) {
    let warning = message_head("warning");
    if let Some(begin) = options.submission.begin.filter(|begin| is_past(*begin)) {
        note!("{warning} --begin {} is in the past; the job may start at once", local(begin));
    }
    if options.submission.array.as_ref().is_none_or(|array| array.count() <= 1) {
        return;
    }
    let Submission { output, error, .. } = &options.submission;
    for (option, path) in [("--output", output), ("--error", error)] {
        if let Some(path) = path.as_deref().filter(|path| is_shared(path)) {
            let path = path.display();
            note!(
                "{warning} {option} {path}: all jobs of the array write to this file, and each start empties it; write %a for the index, such as {path}.%a"
            );
        }
    }
}

/// Returns whether an instant is in the past, and not only by the time of this command.
pub(super) fn is_past(instant: Timestamp) -> bool {
    Timestamp::now().duration_since(instant).as_secs() >= PAST
}

/// Returns whether all jobs of an array have the same file. A device takes all output.
fn is_shared(path: &Path) -> bool {
    let text = path.to_string_lossy().replace("%%", "");
    !text.contains("%a") && !text.contains("%j") && !path.starts_with("/dev")
}

/// Returns the name of a script's job.
fn script_name(program: &OsStr) -> String {
    program_name(&program.to_string_lossy())
}

/// Returns the submission of a job that is never submitted, for a quote.
pub(super) fn hypothetical(options: SubmitOptions) -> anyhow::Result<Submission> {
    let environment = Some(Export::parse("NONE").map_err(anyhow::Error::msg)?);
    build(SubmitOptions { export: environment, ..options }, vec!["true".to_owned()], None, None, false)
}

/// Returns the submission of a script whose text and options are known.
pub(crate) fn submission_of_script(
    options: SubmitOptions,
    text: String,
    name: String,
    arguments: Vec<String>,
) -> anyhow::Result<Submission> {
    build(options, arguments, Some(text), Some(name), false)
}

/// Returns the submission of a program and its arguments.
pub(crate) fn submission_of_command(
    command: &[OsString],
    options: SubmitOptions,
) -> anyhow::Result<Submission> {
    build(options, texts(command)?, None, None, false)
}

/// Returns the text of a script; `-` is standard input.
pub(crate) fn read_script(path: &Path) -> anyhow::Result<String> {
    if path == Path::new("-") {
        return read(std::io::stdin().lock(), "standard input");
    }
    let name = path.display().to_string();
    read(File::open(path).with_context(|| format!("cannot open {name}"))?, &name)
}

fn build(
    options: SubmitOptions,
    command: Vec<String>,
    script: Option<String>,
    name: Option<String>,
    warns: bool,
) -> anyhow::Result<Submission> {
    if warns {
        warn_of_options(&options);
    }
    if let (None, Some(misplaced)) = (options.time, misplaced_time(&command)) {
        bail!(
            "the time limit is missing: {misplaced} stands after the program, so it is an argument of the program; \
             write the options of submit before the program"
        );
    }
    let memory = options.memory().context("the memory exceeds the largest number")?;
    let Cpus { least, most: cpus } = options.cpus.unwrap_or(1.into());
    let resizable = match (least, options.submission.resizable) {
        (Some(least), None) => {
            bail!("--cpus {least}-{cpus} is for a resizable job: add --resizable, or write --cpus {cpus}")
        }
        (least, given) => least.or(given),
    };
    let (surroundings, raw) = environment();
    let (after, conditions) = split(options.after.unwrap_or_default());
    let (gpus, gpu_type) = options.gpus.map(|gpus| (gpus.count, gpus.gpu_type)).unzip();
    let given = options.submission;
    Ok(Submission {
        command,
        script,
        name: given.name.or(name.filter(|name| name != "-")),
        directory: directory(options.directory)?,
        environment_bytes: match &options.export {
            Some(export) => export.raw_environment(raw),
            None => raw,
        },
        environment: match options.export {
            Some(export) => export.environment(surroundings),
            None => surroundings,
        },
        cpus,
        resizable,
        // With fewer processors than tasks, the tasks of the script are not those of the job.
        tasks: given.tasks.filter(|tasks| *tasks <= cpus),
        memory,
        gpus,
        gpu_type: gpu_type.flatten(),
        // At most 10^10, which a double holds exactly. Without a limit, the queue has one or refuses the job.
        time: options.time.unwrap_or(0) as f64,
        queue: options.reservation.or(given.queue),
        after,
        conditions,
        mail: mail(options.mail, options.mail_to),
        umask: umask(),
        ..given
    })
}

/// Returns the wanted mail. An address without events, as in scripts for several systems, asks for none.
fn mail(on: Option<Vec<MailEvent>>, to: Option<String>) -> Option<Mail> {
    on.filter(|on| !on.is_empty()).map(|on| Mail { on, to })
}

/// Returns the numbers of jobs of which any end counts, and all other conditions.
fn split(conditions: Vec<Condition>) -> (Vec<i64>, Vec<Condition>) {
    let (mut after, mut others) = (vec![], vec![]);
    for condition in conditions {
        match condition {
            Condition { when: When::Any, job: Some(job), index: None, name: None } => after.push(job),
            other => others.push(other),
        }
    }
    (after, others)
}

/// Returns an argument of the program that looks like the time limit of the job.
fn misplaced_time(command: &[String]) -> Option<&str> {
    let is_time = |word: &str| {
        let option = word.split('=').next().unwrap_or(word);
        option == "--time" || option == "-t"
    };
    command.iter().map(String::as_str).find(|word| is_time(word))
}

/// Returns the text of a script; `None` for a program.
fn script(program: &Path) -> anyhow::Result<Option<String>> {
    if program == Path::new("-") {
        return read_script(program).map(Some);
    }
    let Ok(mut file) = File::open(program) else { return Ok(None) };
    let (mut mark, name) = (Vec::new(), program.display().to_string());
    // A folder cannot be read, and is no script.
    if file.by_ref().take(2).read_to_end(&mut mark).is_err() {
        return Ok(None);
    }
    if mark != b"#!" {
        return unread::refuse(mark.as_slice().chain(file), &name).map(|()| None);
    }
    read(mark.as_slice().chain(file), &name).map(Some)
}

fn read(input: impl Read, name: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    input.take(LARGEST + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > LARGEST {
        bail!("{name} is larger than {LARGEST} bytes; keep data in files beside the script");
    }
    if !bytes.starts_with(b"#!") {
        unread::refuse(bytes.as_slice(), name)?;
    }
    let text =
        String::from_utf8(bytes).ok().with_context(|| format!("{name}: the script is not UTF-8 text"))?;
    if text.split('\n').next().is_some_and(|line| line.contains('\r')) {
        bail!(
            "{name}: the script has the line ends of DOS (CR LF) or CR alone, so its interpreter would not be found; remove them, such as with dos2unix"
        );
    }
    if !text.starts_with("#!") {
        bail!("{name}: a script begins with #! and its interpreter, such as #!/bin/sh");
    }
    Ok(text)
}

fn read_directives(program: &OsString, script: &str) -> anyhow::Result<SubmitOptions> {
    let name = Path::new(program).display();
    let Directives { options, warnings } = directives(script, &Zoned::now())
        .map_err(|remark| anyhow::anyhow!(plain(&format!("{name}:{remark}"))))?;
    for warning in warnings {
        // A line of the script may have any character.
        note!("{} {}", message_head("warning"), plain(&format!("{name}:{warning}")));
    }
    Ok(options)
}

/// Returns the absolute path of the job's folder.
fn directory(given: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir().context("the current folder does not exist; give --directory")?;
    Ok(given.map_or_else(|| here.clone(), |given| here.join(given)))
}

/// Returns the environment: the variables that are text, and the others.
pub(super) fn environment() -> (BTreeMap<String, String>, Vec<RawVariable>) {
    let (mut texts, mut raw) = (BTreeMap::new(), vec![]);
    for (name, value) in std::env::vars_os() {
        match (name.to_str(), value.to_str()) {
            (Some(name), Some(value)) => drop(texts.insert(name.to_owned(), value.to_owned())),
            _ => raw.push(RawVariable { name: name.into_vec(), value: value.into_vec() }),
        }
    }
    (texts, raw)
}

fn texts(words: &[OsString]) -> anyhow::Result<Vec<String>> {
    let text = |word: &OsString| {
        let text = word.clone().into_string().ok();
        text.with_context(|| format!("the argument {} is not UTF-8 text", word.display()))
    };
    words.iter().map(text).collect()
}

/// Returns the mask of this process. It can only be read by setting it.
fn umask() -> u32 {
    let mask = rustix::process::umask(Mode::from_raw_mode(0o077));
    rustix::process::umask(mask);
    mask.bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_file_name_gives_a_name() {
        let name = |path: &str| script_name(OsStr::new(path));
        assert_eq!(name("scripts/new\nline"), "new?line");
        assert_eq!(name("./two words"), "two words");
    }
}
