//! Folders in which logs and machine files are found.

use std::path::{Path, PathBuf};

/// Returns the first file of that name in the folders. An absolute path is returned as it is, if it exists.
pub(super) fn find(file: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    if Path::new(file).is_absolute() {
        return Path::new(file).exists().then(|| file.into());
    }
    folders.iter().map(|folder| folder.join(file)).find(|path| path.exists())
}

/// Returns the text for a missing log: the folders that were searched, and the remedy.
pub fn looked_in(folders: &[PathBuf]) -> String {
    let looked: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let looked = if looked.is_empty() { "no folder given".into() } else { looked.join(", ") };
    format!("searched: {looked}; give the folder of the logs with --traces or MISERLY_TRACES")
}
