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
    Time,
    Queue,
    Begin,
    Deadline,
    After,
    Dependency,
    Array,
    Restartable,
    NotRestartable,
    NoOpportunistic,
    Hold,
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
    ("time", Some('t'), Subject::Time),
    ("queue", None, Subject::Queue),
    ("begin", None, Subject::Begin),
    ("deadline", None, Subject::Deadline),
    ("after", None, Subject::After),
    ("array", Some('a'), Subject::Array),
    ("restartable", None, Subject::Restartable),
    ("no-opportunistic", None, Subject::NoOpportunistic),
    ("hold", None, Subject::Hold),
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
    ("time", Some('t'), Subject::Time),
    ("partition", Some('p'), Subject::Queue),
    ("begin", Some('b'), Subject::Begin),
    ("deadline", None, Subject::Deadline),
    ("dependency", Some('d'), Subject::Dependency),
    ("array", Some('a'), Subject::Array),
    ("requeue", None, Subject::Restartable),
    ("no-requeue", None, Subject::NotRestartable),
    ("hold", Some('H'), Subject::Hold),
    ("output", Some('o'), Subject::Output),
    ("error", Some('e'), Subject::Error),
    ("chdir", Some('D'), Subject::Directory),
    ("export", None, Subject::Export),
];

/// Returns the options of `#MISERLY`, long and short, in the order of the manual.
pub fn own_options() -> impl Iterator<Item = (&'static str, Option<char>)> {
    OWN.iter().map(|&(long, short, _)| (long, short))
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
