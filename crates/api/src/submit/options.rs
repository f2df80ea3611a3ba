//! The options of directives.

/// The setting that an option changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Name,
    Cpus,
    CpusPerTask,
    Tasks,
    Nodes,
    Memory,
    MemoryPerCpu,
    Gpus,
    Gres,
    Time,
    Queue,
    Reservation,
    Begin,
    Deadline,
    After,
    Dependency,
    Array,
    Restartable,
    Retry,
    Signal,
    Mail,
    MailTo,
    NotRestartable,
    NoOpportunistic,
    Hold,
    Input,
    Output,
    Error,
    Directory,
    Export,
}

/// An option: its long name, its letter, and its setting.
pub(super) type Row = (&'static str, Option<char>, Subject);

/// The options of `#MISERLY`, which are those of `miserly submit`.
pub(super) const OWN: &[Row] = &[
    ("name", Some('n'), Subject::Name),
    ("cpus", Some('c'), Subject::Cpus),
    ("memory", Some('m'), Subject::Memory),
    ("memory-per-cpu", None, Subject::MemoryPerCpu),
    ("gpus", Some('G'), Subject::Gpus),
    ("time", Some('t'), Subject::Time),
    ("queue", None, Subject::Queue),
    ("reservation", None, Subject::Reservation),
    ("begin", None, Subject::Begin),
    ("deadline", None, Subject::Deadline),
    ("after", None, Subject::After),
    ("array", Some('a'), Subject::Array),
    ("restartable", None, Subject::Restartable),
    ("retry", None, Subject::Retry),
    ("signal", None, Subject::Signal),
    ("mail", None, Subject::Mail),
    ("mail-to", None, Subject::MailTo),
    ("no-opportunistic", None, Subject::NoOpportunistic),
    ("hold", None, Subject::Hold),
    ("input", Some('i'), Subject::Input),
    ("output", Some('o'), Subject::Output),
    ("error", Some('e'), Subject::Error),
    ("directory", Some('d'), Subject::Directory),
    ("export", None, Subject::Export),
];

/// The options of `#SBATCH`, under Slurm's names.
pub(super) const SLURM: &[Row] = &[
    ("job-name", Some('J'), Subject::Name),
    ("cpus-per-task", Some('c'), Subject::CpusPerTask),
    ("ntasks", Some('n'), Subject::Tasks),
    ("nodes", Some('N'), Subject::Nodes),
    ("mem", None, Subject::Memory),
    ("mem-per-cpu", None, Subject::MemoryPerCpu),
    ("gpus", Some('G'), Subject::Gpus),
    ("gres", None, Subject::Gres),
    ("time", Some('t'), Subject::Time),
    ("partition", Some('p'), Subject::Queue),
    ("reservation", None, Subject::Reservation),
    ("begin", Some('b'), Subject::Begin),
    ("deadline", None, Subject::Deadline),
    ("dependency", Some('d'), Subject::Dependency),
    ("array", Some('a'), Subject::Array),
    ("requeue", None, Subject::Restartable),
    ("no-requeue", None, Subject::NotRestartable),
    ("signal", None, Subject::Signal),
    ("mail-type", None, Subject::Mail),
    ("mail-user", None, Subject::MailTo),
    ("hold", Some('H'), Subject::Hold),
    ("input", Some('i'), Subject::Input),
    ("output", Some('o'), Subject::Output),
    ("error", Some('e'), Subject::Error),
    ("chdir", Some('D'), Subject::Directory),
    ("export", None, Subject::Export),
];

/// Returns the options of `#MISERLY`, long and short, in the order of the manual.
pub fn own_options() -> impl Iterator<Item = (&'static str, Option<char>)> {
    OWN.iter().map(|&(long, short, _)| (long, short))
}

/// Options of sbatch that scripts do not have as a rule, and what to write in their place.
const OTHERS: &[(&[&str], &str)] = &[
    (&["--parsable"], "--quiet, which prints only the job number"),
    (&["--test-only"], "--quote, which prints the promise and submits nothing"),
    (&["-W"], "--wait"),
    (&["--gres"], "--gpus, the number of GPUs"),
    (&["--ntasks-per-node", "--tasks-per-node"], "--cpus, the processors of the whole job"),
    (
        &[
            "-A",
            "--account",
            "-C",
            "--constraint",
            "--exclusive",
            "-q",
            "--qos",
            "-w",
            "--nodelist",
            "-x",
            "--exclude",
            "--licenses",
        ],
        "nothing: there is no such option",
    ),
];

/// Returns what to write in place of an option of sbatch that `miserly submit` does not have. `option` has its dashes.
pub fn hint(option: &str) -> Option<String> {
    let option = option.split('=').next().unwrap_or(option);
    if let Some((_, own)) = OTHERS.iter().find(|(others, _)| others.contains(&option)) {
        return Some((*own).to_owned());
    }
    let found = if let Some(long) = option.strip_prefix("--") {
        SLURM.iter().find(|row| row.0 == long)?
    } else {
        let letter = option.strip_prefix('-')?.chars().next()?;
        SLURM.iter().find(|row| row.1 == Some(letter))?
    };
    let of_own = |subject: Subject| OWN.iter().find(|row| row.2 == subject).map(|row| format!("--{}", row.0));
    match found.2 {
        Subject::Tasks | Subject::CpusPerTask => Some("--cpus, the processors of the whole job".to_owned()),
        Subject::Nodes => Some("nothing: a job runs on one machine".to_owned()),
        Subject::NotRestartable => Some("nothing: a job runs once unless it is --restartable".to_owned()),
        Subject::Dependency => of_own(Subject::After),
        subject => of_own(subject),
    }
}

impl Subject {
    /// Returns whether the option takes no value.
    const fn is_flag(self) -> bool {
        matches!(
            self,
            Subject::Restartable | Subject::NotRestartable | Subject::NoOpportunistic | Subject::Hold
        )
    }
}

/// An option as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written<'a> {
    /// A known option and its value; a flag's value is empty.
    Known(Subject, &'a str),
    /// An unknown option.
    Unknown(&'a str),
}

/// Returns the next option in the words of a line, from the options in `rows`.
///
/// # Errors
/// A missing or superfluous value, or a word that belongs to no option.
pub(super) fn next<'a>(
    words: &mut std::iter::Peekable<std::slice::Iter<'a, String>>,
    rows: &[Row],
) -> Result<Option<Written<'a>>, String> {
    let Some(word) = words.next() else { return Ok(None) };
    let (name, attached, row) = if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        (&word[..name.len() + 2], value, rows.iter().find(|row| row.0 == name))
    } else if let Some(letter) = word.strip_prefix('-').and_then(|short| short.chars().next()) {
        let value = &word[1 + letter.len_utf8()..];
        let name = &word[..=letter.len_utf8()];
        (name, (!value.is_empty()).then_some(value), rows.iter().find(|row| row.1 == Some(letter)))
    } else {
        return Err(format!("{word:?} belongs to no option"));
    };
    let Some(&(_, _, subject)) = row else {
        if attached.is_none() {
            words.next_if(|value| !value.starts_with('-'));
        }
        return Ok(Some(Written::Unknown(name)));
    };
    let value = match (subject.is_flag(), attached) {
        (true, None) => "",
        (true, Some(_)) => return Err(format!("{name} takes no value")),
        (false, Some(value)) => value,
        (false, None) => words.next().ok_or_else(|| format!("{name} needs a value"))?,
    };
    Ok(Some(Written::Known(subject, value)))
}
