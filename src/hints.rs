//! Hints in the errors of the command line: commands and options of other schedulers, and the ones to write here.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::Cli;
use crate::features::{self, Feature};

/// Commands of Slurm, PBS and pueue, and those of this program in their place.
const COMMANDS: &[(&[&str], &str)] = &[
    (&["sbatch", "qsub", "bsub", "add"], "submit"),
    (&["srun"], "run, or run --pty for a terminal"),
    (&["salloc"], "alloc"),
    (&["sattach"], "attach"),
    (&["squeue", "qstat", "bjobs", "list", "ls", "jobs", "ps"], "queue"),
    (&["sinfo", "pbsnodes", "bhosts"], "status and pools"),
    (&["scancel", "qdel", "bkill", "kill", "remove", "delete", "rm"], "cancel"),
    (&["sacct", "bacct"], "queue --all, show JOB, and usage"),
    (&["seff", "sstat"], "show JOB"),
    (&["sreport"], "usage"),
    (&["sshare"], "pools, which has the shares of a queue with fair share"),
    (&["sprio"], "show JOB, which has the reason for its wait"),
    (&["scontrol"], "show, modify, hold, release, requeue, reservation or reload"),
    (&["qhold"], "hold"),
    (&["qrls"], "release"),
    (&["qalter", "edit"], "modify"),
    (&["sview", "smap"], "top, or ui for a browser"),
    (&["sdiag"], "status and metrics"),
    (&["strigger"], "hook"),
    (&["log", "follow"], "logs, and logs -f to follow"),
    (&["enqueue"], "release"),
    (&["stash"], "hold"),
    (&["restart"], "requeue"),
];

/// Options of Slurm for other commands than `submit`, and those of this program in their place.
const OPTIONS: &[(&str, &[&str], &str)] = &[
    ("queue", &["-j", "--jobs", "--job"], "show and the number, or --array for an array"),
    ("queue", &["--start"], "nothing: the column START has the promised start, and LIKELY the likely one"),
    ("queue", &["-l", "--long"], "--columns, with the names of columns"),
    ("queue", &["-o", "-O", "--format", "--Format"], "--columns, with the names of columns"),
    ("queue", &["-i", "--iterate"], "--watch"),
    ("queue", &["-r", "--array-unique"], "nothing: each job of an array has a line"),
    ("queue", &["-S"], "--sort"),
    ("cancel", &["-s", "--signal"], "signal in place of cancel"),
    ("show", &["-d", "--details"], "--long"),
];

/// Returns the error with a hint for an unknown command or option.
pub(crate) fn with_hints(error: clap::Error) -> clap::Error {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let error = with_feature(with_command(with_nested_commands(without_hidden_commands(error))));
    of_jobs(with_option(error, &words), &words)
}

/// Removes the hidden commands from the suggestions of an error in the command line.
fn without_hidden_commands(mut error: clap::Error) -> clap::Error {
    let suggested = ContextKind::SuggestedSubcommand;
    if let Some(ContextValue::Strings(names)) = error.get(suggested) {
        let hidden: Vec<String> = Cli::command()
            .get_subcommands()
            .filter(|command| command.is_hide_set())
            .map(|command| command.get_name().to_owned())
            .collect();
        let shown = names.iter().filter(|name| !hidden.contains(name)).cloned().collect();
        error.insert(suggested, ContextValue::Strings(shown));
    }
    error
}

/// Suggests `workload convert` where the unknown command is `import`.
fn with_nested_commands(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) {
        let nested = paths_to(&Cli::command(), name);
        if !nested.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(nested));
        }
    }
    error
}

/// Names the command to write in place of one of another scheduler.
fn with_command(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
        && let Some((_, own)) = COMMANDS.iter().find(|(others, _)| others.contains(&name.as_str()))
    {
        let tip = format!("in place of '{name}', write {own}");
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Says how to get a command that this build leaves out.
fn with_feature(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(how) = features::of_command(name).and_then(Feature::how_to_get)
    {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![how.into()]));
    }
    error
}

/// Names the option to write in place of one of Slurm.
fn with_option(mut error: clap::Error, words: &[String]) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return error };
    let option = option.split('=').next().unwrap_or(option).to_owned();
    let types = |command: &str| words.iter().any(|word| word == command);
    let of_other =
        || OPTIONS.iter().find(|(command, others, _)| types(command) && others.contains(&option.as_str()));
    let tip = if ["submit", "run", "alloc"].into_iter().any(types) {
        of_submission(&option).map(|own| format!("in place of '{option}' of sbatch, write {own}"))
    } else {
        of_other().map(|(_, _, own)| format!("in place of '{option}', write {own}"))
    };
    if let Some(tip) = tip {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Names the command for a job of the daemon where the one of a log has got no log.
fn of_jobs(mut error: clap::Error, words: &[String]) -> clap::Error {
    let is_number = |word: &String| word.parse::<u64>().is_ok();
    if error.kind() == ErrorKind::MissingRequiredArgument
        && words.first().is_some_and(|word| word == "explain")
        && words.get(1).is_some_and(is_number)
    {
        let tip = "a job of the daemon is explained by show".to_owned();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Returns the option of a submission in place of one of sbatch.
#[cfg(feature = "daemon")]
fn of_submission(option: &str) -> Option<String> {
    miserly_api::submit::hint(option)
}

/// Without the daemon no command takes a submission.
#[cfg(not(feature = "daemon"))]
fn of_submission(_: &str) -> Option<String> {
    None
}

/// Returns the commands below `command` that have this name, each as typed after the program.
fn paths_to(command: &clap::Command, name: &str) -> Vec<String> {
    let below = |child: &clap::Command| {
        if child.get_name() == name || child.get_visible_aliases().any(|alias| alias == name) {
            return vec![child.get_name().to_owned()];
        }
        paths_to(child, name).iter().map(|path| format!("{} {path}", child.get_name())).collect()
    };
    command.get_subcommands().filter(|child| !child.is_hide_set()).flat_map(below).collect()
}
