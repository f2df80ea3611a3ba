//! The programs of a queue: prolog, epilog, and those that write jobs out and restart them.

use std::path::Path;
use std::time::Duration;

use miserly_core::Span;
use miserly_executor::{CheckpointRules, QueueRules};
use miserly_launch::{ProgramKind, QueueProgram, check_program};
use miserly_machine_file::file::{CheckpointFile, QueueFile};
use miserly_units::duration;
use rustix::process::geteuid;
use toml::{Spanned, Value};

use super::error::{Problem, of_field};
use super::values::time;
use crate::folder;

/// The longest time limit of a program, and that of a program without one.
const LONGEST: Duration = Duration::from_mins(10);
const DEFAULT: Duration = Duration::from_mins(1);

/// What applies to the programs of all queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramLimits {
    /// The cleanup time, into which an epilog has to fit.
    pub(super) cleanup_time: Span,
    /// Whether the files are checked. A daemon that has given up the rights of root may not be able to; it checked them before.
    pub(super) checks_files: bool,
}

impl ProgramLimits {
    /// Returns those of a configuration with a `user` or without one.
    pub(super) fn new(cleanup_time: Span, has_user: bool) -> ProgramLimits {
        ProgramLimits { cleanup_time, checks_files: !has_user || geteuid().is_root() }
    }

    fn longest(self, kind: ProgramKind) -> Duration {
        match kind {
            ProgramKind::Prolog => LONGEST,
            ProgramKind::Epilog => QueueRules::longest_epilog(length(self.cleanup_time)).min(LONGEST),
            // The policy gives it a time.
            ProgramKind::Checkpoint => Duration::MAX,
        }
    }
}

/// Returns the programs of a queue.
pub(super) fn programs(written: &QueueFile, limits: ProgramLimits) -> Result<QueueRules, Problem> {
    let prolog = (written.prolog.as_ref(), written.prolog_time.as_ref());
    let epilog = (written.epilog.as_ref(), written.epilog_time.as_ref());
    Ok(QueueRules {
        prolog: program(ProgramKind::Prolog, prolog, limits)?,
        epilog: program(ProgramKind::Epilog, epilog, limits)?,
        checkpoint: written.checkpoint.as_ref().map(|written| checkpoint(written, limits)).transpose()?,
    })
}

/// Returns the programs that write jobs out and restart them.
fn checkpoint(written: &Spanned<CheckpointFile>, limits: ProgramLimits) -> Result<CheckpointRules, Problem> {
    let CheckpointFile { command, restart } = written.get_ref();
    let words = |words: &Option<Spanned<Value>>, name: &str| match words {
        Some(words) => argument_list(words, name, limits),
        None => {
            Err(of_field(written, "checkpoint", &format!("{name} is missing: a program, and its arguments")))
        }
    };
    let limit = limits.longest(ProgramKind::Checkpoint);
    let command = queue_program(words(command, "command")?, limit);
    Ok(CheckpointRules { command, restart: words(restart, "restart")? })
}

type Fields<'a> = (Option<&'a Spanned<Value>>, Option<&'a Spanned<Value>>);

fn program(
    kind: ProgramKind,
    (words, limit): Fields<'_>,
    limits: ProgramLimits,
) -> Result<Option<QueueProgram>, Problem> {
    let (name, time_name) = match kind {
        ProgramKind::Prolog => ("prolog", "prolog-time"),
        _ => ("epilog", "epilog-time"),
    };
    let longest = limits.longest(kind);
    let asked = time(limit, time_name)?.map(length);
    if let (Some(asked), Some(written)) = (asked, limit)
        && (asked > longest || asked.is_zero())
    {
        let problem = format!("it is more than 0 and at most {}{}", text(longest), because(kind));
        return Err(of_field(written, time_name, &problem));
    }
    let Some(written) = words else { return Ok(None) };
    if longest.is_zero() {
        return Err(of_field(written, name, &format!("there is no time for it{}", because(kind))));
    }
    Ok(Some(queue_program(argument_list(written, name, limits)?, asked.unwrap_or(DEFAULT))))
}

fn queue_program(argv: Vec<String>, limit: Duration) -> QueueProgram {
    let path = Path::new(&argv[0]).to_owned();
    QueueProgram { path, argv: argv.into_iter().map(Into::into).collect(), limit }
}

/// Returns the words of a program that only the operator can change.
fn argument_list(
    written: &Spanned<Value>,
    name: &str,
    limits: ProgramLimits,
) -> Result<Vec<String>, Problem> {
    let wrong = |problem: &str| of_field(written, name, &problem);
    let argv = argv(written.get_ref()).ok_or_else(|| {
        wrong("it is a list of words, the first one the absolute path of a program, such as [\"/etc/miserly/prolog\", \"gpu\"]")
    })?;
    let path = Path::new(&argv[0]);
    if limits.checks_files {
        folder::check_program(path).map_err(|error| wrong(&error.to_string()))?;
        check_program(path).map_err(|error| wrong(&error.to_string()))?;
    }
    Ok(argv)
}

/// Returns the reason of the longest time limit.
fn because(kind: ProgramKind) -> &'static str {
    match kind {
        ProgramKind::Prolog | ProgramKind::Checkpoint => "",
        ProgramKind::Epilog => ": it ends a second before the cleanup time; set a longer cleanup-time",
    }
}

/// Returns the words of a program: an absolute path, and arguments.
fn argv(value: &Value) -> Option<Vec<String>> {
    let words = value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned));
    let words = words.collect::<Option<Vec<String>>>()?;
    let is_path = words.first().is_some_and(|path| path.starts_with('/'));
    (is_path && !words.iter().any(|word| word.contains('\0'))).then_some(words)
}

fn length(span: Span) -> Duration {
    Duration::from_micros(span.ticks().max(0).unsigned_abs())
}

fn text(length: Duration) -> String {
    duration(Span::from_ticks(i64::try_from(length.as_micros()).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::config::{Configuration, Machine};

    fn parse(text: &str) -> Result<QueueRules, String> {
        let machine = Machine::new((0..16).collect(), 64 << 20);
        let (fields, queue) = text.split_once('|').unwrap_or(("", text));
        let text = format!("{fields}\n[[queue]]\nname = 'a'\n{queue}");
        let configuration = Configuration::parse("daemon.toml", &text, &machine);
        let rules = configuration.map_err(|error| error.to_string())?.rules;
        Ok(rules.programs.get("a").cloned().unwrap_or_default())
    }

    #[track_caller]
    fn refused(text: &str, expect: &str) {
        let problem = parse(text).unwrap_err();
        assert!(problem.contains(expect), "{problem}");
    }

    #[track_caller]
    fn limits(text: &str, prolog: Option<u64>, epilog: Option<u64>) {
        let rules = parse(text).unwrap();
        let limit = |program: Option<QueueProgram>| program.map(|program| program.limit.as_secs());
        assert_eq!((limit(rules.prolog), limit(rules.epilog)), (prolog, epilog));
    }

    #[test]
    fn an_epilog_has_the_cleanup_time_but_a_second() {
        limits("", None, None);
        limits("prolog = ['/bin/true']\nepilog = ['/bin/true']", Some(60), Some(60));
        limits("cleanup-time = '2min'|epilog = ['/bin/true']", None, Some(60));
        limits("cleanup-time = '2min'|epilog = ['/bin/true']\nepilog-time = '119s'", None, Some(119));
        limits("prolog = ['/bin/true']\nprolog-time = '10min'", Some(600), None);
        refused("epilog = ['/bin/true']\nepilog-time = 5", "epilog-time: it is more than 0 and at most 4s");
        refused("epilog-time = '1min'", "set a longer cleanup-time");
        refused("cleanup-time = 1|epilog = ['/bin/true']", "epilog: there is no time for it");
        refused("prolog-time = '601s'", "prolog-time: it is more than 0 and at most 10m");
        refused("prolog-time = 0", "prolog-time: it is more than 0");
        let requeues = "policy = 'immediate'\nepilog = ['/bin/true']";
        refused(requeues, "epilog: policy immediate gives the processors of a job to another one at once");
    }

    #[test]
    fn a_program_is_a_list_of_words_with_an_absolute_path() {
        let rules = parse("prolog = ['/bin/true', 'a b', '']").unwrap();
        assert_eq!(rules.prolog.unwrap().argv, ["/bin/true", "a b", ""]);
        for words in ["'/bin/true'", "[]", "['true']", "['/bin/true', 1]", "['/bin/true', \"\\u0000\"]"] {
            refused(&format!("prolog = {words}"), "prolog: it is a list of words");
        }
    }

    #[test]
    fn a_policy_that_writes_memory_out_needs_programs_and_no_other_one_has_them() {
        let swaps = "policy = 'ss(overhead=write)'\n";
        let table = |words: &str| format!("{swaps}[queue.checkpoint]\n{words}");
        let whole = "command = ['/bin/true', 'a']\nrestart = ['/bin/sh', '-c', 'exit']";
        let checkpoint = parse(&table(whole)).unwrap().checkpoint.unwrap();
        assert_eq!((checkpoint.command.argv.len(), checkpoint.restart.len()), (2, 3));
        refused(
            swaps,
            "4: policy ss with an overhead writes the memory of suspended jobs out: that needs [queue.checkpoint]",
        );
        let other = format!("policy = 'ss'\n[queue.checkpoint]\n{whole}");
        refused(&other, "checkpoint: policy ss writes no memory out; a policy with an overhead does");
        refused(&table("command = ['/bin/true']"), "checkpoint: restart is missing");
        refused(&table("restart = ['/bin/true']"), "checkpoint: command is missing");
        refused(&table("command = ['true']\nrestart = ['/bin/true']"), "command: it is a list of words");
        refused(&table("command = ['/bin/true']\nrestart = ['/no/such/program']"), "restart: ");
        refused(
            &format!("{swaps}shadow = 'easy'\n[queue.checkpoint]\n{whole}"),
            "it writes the memory of suspended jobs out",
        );
        let epilog = format!("epilog = ['/bin/true']\n{}", table(whole));
        refused(&epilog, "epilog: policy ss gives the processors of a job to another one at once");
    }

    #[test]
    fn only_the_operator_can_change_a_program() {
        let home = tempfile::tempdir().unwrap();
        let (folder, link) = (home.path().join("folder"), home.path().join("link"));
        let program = folder.join("program");
        fs::create_dir(&folder).unwrap();
        fs::write(&program, "").unwrap();
        symlink("folder/program", &link).unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let written = |path: &Path| format!("epilog = [{:?}]", path.display().to_string());
        refused(&written(&program), "no executable file");
        mode(&program, 0o755);
        parse(&written(&program)).unwrap();
        parse(&written(&link)).unwrap();
        for (path, bits) in [(&program, 0o757), (&folder, 0o757)] {
            mode(path, bits);
            refused(&written(&program), "other users may write to it");
            refused(&written(&link), "other users may write to it");
            mode(path, 0o755);
        }
        refused(&written(&folder.join("none")), "none");
        refused(&written(&home.path().join("none/program")), "none");
        assert!(!home.path().join("none").exists());
    }
}
