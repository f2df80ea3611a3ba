//! The programs beside that of the daemon: `miserly-shim`, and `miserly-executor`.
//!
//! A shim as a small program uses less memory. Each program is opened once, so an upgrade changes nothing for a running
//! daemon.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::geteuid;

/// The permission of group or others to write.
const WRITE_OF_OTHERS: u32 = 0o022;

/// A program that is executed often.
#[derive(Clone, Debug)]
pub struct Program {
    /// The path to execute.
    path: PathBuf,
    /// The file of the path, if it is held open.
    file: Option<Arc<OwnedFd>>,
}

/// The reason why a program beside that of the daemon is not used.
#[derive(Debug, thiserror::Error)]
pub enum NoProgram {
    /// It is not there, or may not be read.
    #[error("{path} cannot be opened: {error}", path = path.display())]
    Open {
        /// The program.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Another user could replace its content.
    #[error("{path} is no file of root or of the daemon's user, or others may change it", path = path.display())]
    Unsafe {
        /// The program.
        path: PathBuf,
    },
    /// It does not name its build.
    #[error("{path} cannot be run: {error}", path = path.display())]
    Run {
        /// The program.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// It is of another build.
    #[error("{path} is of another build: {found:?}, and not {own:?}", path = path.display())]
    Other {
        /// The program.
        path: PathBuf,
        /// Its build.
        found: String,
        /// The build of the daemon.
        own: String,
    },
}

impl Program {
    /// Returns the daemon's own program.
    pub fn own(exe: &Path) -> Program {
        Program { path: exe.to_owned(), file: None }
    }

    /// Returns the program with this name beside the daemon's program. Called with `--identity`, it prints `identity`.
    ///
    /// # Errors
    /// It is not there, may be changed by other users, or is of another build.
    pub fn beside(exe: &Path, name: &str, identity: &str) -> Result<Program, NoProgram> {
        let exe = exe.read_link().unwrap_or_else(|_| exe.to_owned());
        let path = exe.with_file_name(name);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = open(&path, flags, Mode::empty())
            .map_err(|error| NoProgram::Open { path: path.clone(), error: error.into() })?;
        let program = Program::from_file(file);
        program.check(&path, identity)?;
        Ok(program)
    }

    /// Returns the program in an open file.
    pub(crate) fn from_file(file: OwnedFd) -> Program {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        Program { path, file: Some(Arc::new(file)) }
    }

    /// Returns its open file, for another process.
    pub(crate) fn open_file(&self) -> io::Result<OwnedFd> {
        match &self.file {
            Some(file) => file.as_fd().try_clone_to_owned(),
            None => Ok(File::open(&self.path)?.into()),
        }
    }

    /// Checks the opened file, and asks it for its identity.
    fn check(&self, path: &Path, own: &str) -> Result<(), NoProgram> {
        let run = |error| NoProgram::Run { path: path.to_owned(), error };
        let file = std::fs::metadata(&self.path).map_err(run)?;
        let is_owned = [0, geteuid().as_raw()].contains(&file.uid());
        if !file.is_file() || !is_owned || file.mode() & WRITE_OF_OTHERS != 0 {
            return Err(NoProgram::Unsafe { path: path.to_owned() });
        }
        let mut command = Command::new(&self.path);
        command.arg("--identity").env_clear().stdin(Stdio::null()).stderr(Stdio::null());
        let output = command.output().map_err(run)?;
        let found = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if found == own {
            Ok(())
        } else {
            Err(NoProgram::Other { path: path.to_owned(), found, own: own.to_owned() })
        }
    }

    /// Returns the path of the program, which this process can execute.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const NAME: &str = "miserly-shim";

    /// Returns the result for a program with this text and mode.
    fn beside(text: &str, mode: u32) -> Result<Program, NoProgram> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        Program::beside(&folder.path().join("miserly"), NAME, "a build")
    }

    #[test]
    fn only_a_program_of_the_same_build_that_others_cannot_change_is_used() {
        let own = |mode| {
            // A copy of a shell would do as well: only the answer counts.
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(NAME);
            fs::copy("/bin/sh", &path).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            Program::beside(&folder.path().join("miserly"), NAME, "a build")
        };
        assert!(matches!(own(0o755), Err(NoProgram::Other { .. })));
        for mode in [0o775, 0o757] {
            assert!(matches!(own(mode), Err(NoProgram::Unsafe { .. })));
        }
        assert!(matches!(beside("no program", 0o755), Err(NoProgram::Run { .. })));
    }

    #[test]
    fn a_link_and_a_folder_are_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let exe = folder.path().join("miserly");
        assert!(matches!(Program::beside(&exe, NAME, "a build"), Err(NoProgram::Open { .. })));
        symlink("/bin/true", folder.path().join(NAME)).unwrap();
        assert!(matches!(Program::beside(&exe, NAME, "a build"), Err(NoProgram::Open { .. })));
        fs::remove_file(folder.path().join(NAME)).unwrap();
        fs::create_dir(folder.path().join(NAME)).unwrap();
        assert!(matches!(Program::beside(&exe, NAME, "a build"), Err(NoProgram::Unsafe { .. })));
    }
}
