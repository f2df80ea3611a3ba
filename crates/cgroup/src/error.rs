//! Errors of control groups.

use std::io;
use std::path::{Path, PathBuf};

use crate::setting::{EXCLUSIVE, PARTITION};

/// An error of a control group.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// The kernel refused an operation on a file or folder.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Error of the kernel.
        error: io::Error,
    },
    /// The folder is not a group of cgroup v2.
    #[error("{} is not in a file system of cgroup v2", .0.display())]
    NoGroup(PathBuf),
    /// The kernel has another value than was written.
    #[error("{}: {written:?} was written, and the kernel has {found:?}", path.display())]
    Differs {
        /// The file.
        path: PathBuf,
        /// The written value.
        written: String,
        /// The value of the kernel.
        found: String,
    },
    /// A file of the kernel has an unknown form.
    #[error("{}: {text:?} is not understood", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// Its content.
        text: String,
    },
}

impl CgroupError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> CgroupError + '_ {
        |error| CgroupError::Io { path: path.to_owned(), error }
    }

    /// Returns the file or folder.
    pub fn path(&self) -> &Path {
        match self {
            CgroupError::Io { path, .. }
            | CgroupError::NoGroup(path)
            | CgroupError::Differs { path, .. }
            | CgroupError::Unknown { path, .. } => path,
        }
    }

    /// Returns whether the processors of a group could not be set.
    pub fn is_about_cpus(&self) -> bool {
        self.path().file_name().is_some_and(|name| name.to_string_lossy().starts_with("cpuset.cpus"))
    }

    /// Returns whether the processors of a group are its own but not taken from others: the partition failed.
    pub fn is_about_partition(&self) -> bool {
        let is_one = |name: &std::ffi::OsStr| name == PARTITION || name == EXCLUSIVE;
        self.path().file_name().is_some_and(is_one)
    }

    /// Returns whether the file or folder does not exist.
    pub fn is_missing(&self) -> bool {
        // A group that is removed while a file of it is open gives ENODEV.
        const ENODEV: i32 = 19;
        matches!(self, CgroupError::Io { error, .. }
            if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(ENODEV))
    }
}
