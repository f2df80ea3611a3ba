//! Folders in which logs and machine files are found.

use std::path::{Path, PathBuf};

use miserly_import::{is_pattern, table_files};

/// Returns the first file of that name in the folders, or the first pattern that has files there. An absolute path is returned as it is, if it exists.
pub fn find(file: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    if Path::new(file).is_absolute() {
        return is_there(Path::new(file)).then(|| file.into());
    }
    folders.iter().map(|folder| folder.join(file)).find(|path| is_there(path))
}

/// Returns whether there is such a file or folder, or a file that matches the pattern.
fn is_there(path: &Path) -> bool {
    path.exists() || is_pattern(path) && table_files(path).is_ok()
}

/// Returns the text for a missing log: the folders that were searched, and the remedy.
pub fn looked_in(folders: &[PathBuf]) -> String {
    let looked: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let looked = if looked.is_empty() { "no folder given".into() } else { looked.join(", ") };
    format!("searched: {looked}; give the folder of the logs with --traces or MISERLY_TRACES")
}
