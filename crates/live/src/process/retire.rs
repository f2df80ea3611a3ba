//! Records of ended attempts, kept until a backup of the state contains their ends.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use miserly_attempt::files::{END, STARTED};
use miserly_attempt::retire::{self, PROOFS, Remains};
use miserly_executor::FindFailure;
use miserly_launch::{FoundAttempt, LossCause, LostAttempt, StartRecord, current_boot};
use serde::de::DeserializeOwned;

use crate::store::{ENDED, ended_folders, private_folder};

/// Moves the records of an attempt to [`ENDED`] once its end is on disk. Removes the rest of its
/// folder.
pub(super) fn retire(folder: &Path) {
    retire::retire(&Folder(folder));
}

/// The folder of an attempt that is over.
struct Folder<'a>(&'a Path);

impl Remains for Folder<'_> {
    fn path(&self) -> &Path {
        self.0
    }

    fn has(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }

    fn names(&self) -> io::Result<Vec<OsString>> {
        fs::read_dir(self.0)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn remove(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    fn set_aside(&self) -> io::Result<()> {
        let kept = kept_folder(self.0)?;
        while_backups(&kept, || fs::rename(self.0, &kept))
    }

    fn remove_all(&self) -> io::Result<()> {
        fs::remove_dir_all(self.0)
    }

    fn warn(&self, message: &dyn Display) {
        tracing::warn!("{message}");
    }
}

/// Returns the folder in [`ENDED`] for the record of an attempt.
fn kept_folder(folder: &Path) -> io::Result<PathBuf> {
    let ended = folder.parent().and_then(Path::parent).map(|state| state.join(ENDED));
    match (ended, folder.file_name()) {
        (Some(ended), Some(name)) => Ok(ended.join(name)),
        _ => Err(ErrorKind::InvalidInput.into()),
    }
}

/// Changes something in the folder above `kept`, which a backup renames at any time.
fn while_backups(kept: &Path, change: impl Fn() -> io::Result<()>) -> io::Result<()> {
    for _ in 0..10 {
        kept.parent().map_or(Ok(()), private_folder)?;
        match change() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => return other,
        }
    }
    Err(ErrorKind::NotFound.into())
}

/// Copies the records of an attempt of root to [`ENDED`] once its end is on disk.
pub(super) fn copy(folder: &Path) {
    let proofs: Vec<_> = PROOFS.into_iter().filter(|proof| folder.join(proof).exists()).collect();
    if proofs.is_empty() {
        return;
    }
    let copied =
        kept_folder(folder).and_then(|kept| while_backups(&kept, || copy_to(folder, &proofs, &kept)));
    if let Err(error) = copied {
        tracing::warn!("the record of {} is not kept: {error}", folder.display());
    }
}

fn copy_to(folder: &Path, proofs: &[&str], kept: &Path) -> io::Result<()> {
    // No attempt has this name.
    let making = kept.with_added_extension("new");
    private_folder(&making)?;
    for proof in proofs {
        let copy = making.join(proof);
        fs::copy(folder.join(proof), &copy)?;
        File::open(&copy)?.sync_all()?;
    }
    match fs::rename(&making, kept) {
        // An earlier daemon has copied it.
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => fs::remove_dir_all(&making),
        other => other,
    }
}

/// Returns the state of an attempt without a folder, of which a record is kept. Returns `None` for any other attempt.
///
/// Only a daemon whose state was recovered looks for such an attempt.
///
/// # Errors
/// The record cannot be read.
pub(super) fn find(folder: &Path) -> Result<Option<FoundAttempt>, FindFailure> {
    let (Some(state), Some(name)) = (folder.parent().and_then(Path::parent), folder.file_name()) else {
        return Ok(None);
    };
    if folder.exists() {
        return Ok(None);
    }
    let failed = |error: &dyn ToString| FindFailure::Temporary(error.to_string());
    for kept in ended_folders(state).map_err(|error| failed(&error))? {
        let kept = kept.join(name);
        if let Some(end) = read(&kept.join(END))? {
            return Ok(Some(FoundAttempt::Ended(end)));
        }
        if let Some(started) = read::<StartRecord>(&kept.join(STARTED))? {
            let is_same = current_boot().map_err(|error| failed(&error))? == started.main.boot_id;
            let cause = if is_same { LossCause::Kill } else { LossCause::Reboot };
            return Ok(Some(FoundAttempt::Lost(LostAttempt { started, cause, killed: vec![] })));
        }
    }
    Ok(None)
}

/// Reads a record, or returns `None` if it does not exist.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, FindFailure> {
    let final_failure =
        |error: &dyn ToString| FindFailure::Final(format!("{}: {}", path.display(), error.to_string()));
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| final_failure(&error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FindFailure::Temporary(format!("{}: {error}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_and_end_are_kept_and_all_else_is_removed() {
        let state = tempfile::tempdir().unwrap();
        let attempt = |name: &str, files: &[&str]| {
            let folder = state.path().join("attempts").join(name);
            fs::create_dir_all(&folder).unwrap();
            for file in files {
                fs::write(folder.join(file), file).unwrap();
            }
            retire(&folder);
            assert!(!folder.exists(), "{name}");
            let kept = fs::read_dir(state.path().join(ENDED).join(name)).into_iter().flatten();
            let mut names: Vec<_> =
                kept.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let all = ["spec.json", "started.json", "end.json", "lock"];
        assert_eq!(attempt("1.1", &all), ["end.json", "started.json"]);
        assert_eq!(attempt("2.1", &["spec.json", "started.json"]), ["started.json"]);
        assert!(attempt("3.1", &["void", "lock"]).is_empty());
    }

    #[test]
    fn a_copied_record_is_found_once_the_attempt_is_removed() {
        let state = tempfile::tempdir().unwrap();
        let folder = state.path().join("attempts/7.2");
        let end = r#"{"exit":{"code":3},"cause":null,"at":5,"late":null}"#;
        fs::create_dir_all(&folder).unwrap();
        assert!(find(&folder).unwrap().is_none() && find(&folder.with_file_name("7.1")).unwrap().is_none());
        copy(&folder);
        assert!(!state.path().join(ENDED).exists(), "there is no record yet");
        fs::write(folder.join(END), end).unwrap();
        for _ in 0..2 {
            copy(&folder);
        }
        assert!(find(&folder).unwrap().is_none(), "its own record counts");
        fs::remove_dir_all(&folder).unwrap();
        let kept = state.path().join(ENDED);
        // A backup has it by now.
        let names: Vec<_> = fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["7.2"]);
        fs::create_dir(state.path().join("backups")).unwrap();
        fs::rename(&kept, state.path().join("backups/1.ended")).unwrap();
        let found = find(&folder).unwrap();
        assert!(matches!(&found, Some(FoundAttempt::Ended(end)) if end.at.parts().0.0 == 5), "{found:?}");
        fs::write(state.path().join("backups/1.ended/7.2/end.json"), "{").unwrap();
        assert!(matches!(find(&folder), Err(FindFailure::Final(_))));
    }
}
