//! Records of ended attempts, kept until a backup of the state contains their ends.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::remove;
use crate::store::{ENDED, private_folder};

/// The records that prove how an attempt ended, or that it began. The first one present is kept.
const PROOFS: [&str; 2] = ["end.json", "started.json"];

/// Moves the record of an attempt to [`ENDED`] once its end is on disk. Removes the rest of its
/// folder.
///
/// A recovery from a backup that is older than the end finds the record there. So the job does not
/// run twice.
pub(super) fn retire(folder: &Path) {
    let proof = PROOFS.into_iter().find(|proof| folder.join(proof).exists());
    let Some(proof) = proof else { return remove(folder) };
    if let Err(error) = reduce(folder, proof).and_then(|()| set_aside(folder)) {
        tracing::warn!("the record of {} is removed early: {error}", folder.display());
        remove(folder);
    }
}

/// Removes all files of a folder but one.
fn reduce(folder: &Path, kept: &str) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() != kept {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn set_aside(folder: &Path) -> io::Result<()> {
    let ended = folder.parent().and_then(Path::parent).map(|state| state.join(ENDED));
    let (Some(ended), Some(name)) = (ended, folder.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    // A backup renames the folder at any time.
    for _ in 0..10 {
        private_folder(&ended)?;
        match fs::rename(folder, ended.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => return other,
        }
    }
    Err(ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_of_an_end_is_kept_and_all_else_is_removed() {
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
            kept.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(attempt("1.1", &["spec.json", "started.json", "end.json", "lock"]), ["end.json"]);
        assert_eq!(attempt("2.1", &["spec.json", "started.json"]), ["started.json"]);
        assert!(attempt("3.1", &["void", "lock"]).is_empty());
    }
}
