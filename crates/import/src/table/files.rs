//! The files of a table: one, those that match a pattern, or those of a folder.

use std::path::{Path, PathBuf};
use std::{fs, io};

use miserly_workload::Trace;

use crate::error::ImportError;

/// The ends of names of tables, before that of a compression.
const ENDS: [&str; 10] = ["csv", "tsv", "psv", "txt", "dat", "json", "jsonl", "ndjson", "parquet", "pq"];

/// No file of a table is there.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A folder cannot be read.
    #[error("cannot read {path}: {error}")]
    Folder {
        /// The folder.
        path: String,
        /// Cause.
        error: io::Error,
    },
    /// Nothing matches.
    #[error("{path}: no file matches the pattern")]
    NoMatch {
        /// The pattern.
        path: String,
    },
    /// A folder has no tables.
    #[error("{path}: a folder without tables; their names end in {}, with .gz or .zst behind", ENDS.join(", "))]
    NoTable {
        /// The folder.
        path: String,
    },
}

/// Returns whether a name is a pattern, and not that of a file.
pub fn is_pattern(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains(['*', '?', '['])) && !path.exists()
}

/// Opens the file with that name, the files that match a pattern, or those of a folder.
///
/// # Errors
/// A file or folder cannot be read, or nothing matches.
pub fn open_log(path: &Path) -> Result<Trace, ImportError> {
    if path.is_dir() || is_pattern(path) {
        return Ok(Trace::of_files(path.display().to_string(), table_files(path)?));
    }
    Ok(Trace::open(path)?)
}

/// Returns the files of a folder, or those that match a pattern with `*`, `?` and `[abc]`, sorted by name.
///
/// # Errors
/// A folder is unreadable, or no file is there.
pub fn table_files(path: &Path) -> Result<Vec<PathBuf>, FilesError> {
    let name = || path.display().to_string();
    if path.is_dir() {
        let mut files = entries(path)?;
        files.retain(|file| file.is_file() && is_table(file));
        return if files.is_empty() { Err(FilesError::NoTable { path: name() }) } else { Ok(files) };
    }
    let mut found = vec![PathBuf::new()];
    for part in path.components() {
        let part = part.as_os_str();
        let pattern = part.to_str().filter(|part| part.contains(['*', '?', '[']));
        let mut next = vec![];
        for folder in found {
            let Some(pattern) = pattern else {
                next.push(folder.join(part));
                continue;
            };
            let here = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
            if !here.is_dir() {
                continue;
            }
            for entry in entries(here)? {
                let Some(file) = entry.file_name().and_then(|file| file.to_str()) else { continue };
                if (!file.starts_with('.') || pattern.starts_with('.'))
                    && matches(pattern.as_bytes(), file.as_bytes())
                {
                    next.push(folder.join(file));
                }
            }
        }
        found = next;
    }
    found.retain(|file| file.is_file());
    if found.is_empty() { Err(FilesError::NoMatch { path: name() }) } else { Ok(found) }
}

/// Returns the entries of a folder, sorted by name.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, FilesError> {
    let failed = |error| FilesError::Folder { path: folder.display().to_string(), error };
    let entries = fs::read_dir(folder).map_err(failed)?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    paths.sort();
    Ok(paths)
}

fn is_table(file: &Path) -> bool {
    let Some(name) = file.file_name().and_then(|name| name.to_str()) else { return false };
    let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    let end = plain.rsplit_once('.').map_or("", |(_, end)| end);
    !name.starts_with('.') && ENDS.iter().any(|known| end.eq_ignore_ascii_case(known))
}

/// Returns whether a name matches a pattern.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let Some((&first, rest)) = pattern.split_first() else { return name.is_empty() };
    if first == b'*' {
        return (0..=name.len()).any(|at| matches(rest, &name[at..]));
    }
    let Some((&byte, behind)) = name.split_first() else { return false };
    match first {
        b'?' => matches(rest, behind),
        b'[' => match rest.iter().skip(1).position(|&byte| byte == b']') {
            Some(end) => in_set(&rest[..=end], byte) && matches(&rest[end + 2..], behind),
            None => byte == b'[' && matches(rest, behind),
        },
        _ => byte == first && matches(rest, behind),
    }
}

/// Returns whether a set such as `a-z_` or `!0-9` has a byte.
fn in_set(set: &[u8], byte: u8) -> bool {
    let (set, is_negated) = match set.strip_prefix(b"!").or_else(|| set.strip_prefix(b"^")) {
        Some(set) => (set, true),
        None => (set, false),
    };
    let mut rest = set;
    let mut found = false;
    while let Some((&from, behind)) = rest.split_first() {
        if let [b'-', to, behind @ ..] = behind {
            found |= (from..=*to).contains(&byte);
            rest = behind;
        } else {
            found |= from == byte;
            rest = behind;
        }
    }
    found != is_negated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let check = |pattern: &str, name: &str, expect| {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expect, "{pattern} {name}");
        };
        check("*.parquet", "21_03.parquet", true);
        check("*.parquet", "21_03.csv", false);
        check("2?_*[13].csv", "21_03.csv", true);
        check("2?_*[13].csv", "21_04.csv", false);
        check("[a-c]", "b", true);
        check("[!a-c]", "b", false);
        check("[a", "[a", true);
        check("", "", true);
        check("a*b*c", "aXbYbZc", true);
    }
}
