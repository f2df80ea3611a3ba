//! The check of a prolog or epilog before it runs.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::geteuid;

/// Checks that a file is a program that only this process's user and root can change.
///
/// A shim repeats this check immediately before it runs the program. The folders above are checked when the configuration is
/// read.
///
/// # Errors
/// The reason why the program must not be run.
pub fn check_program(path: &Path) -> io::Result<()> {
    const EXECUTABLE: u32 = 0o111;
    const WRITE_OF_OTHERS: u32 = 0o022;
    let refused = |reason: &str| Err(io::Error::other(format!("{}: {reason}", path.display())));
    let file = path
        .metadata()
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    if !file.is_file() || file.mode() & EXECUTABLE == 0 {
        return refused("it is no executable file");
    }
    if ![0, geteuid().as_raw()].contains(&file.uid()) {
        return refused(&format!("it belongs to user {}; give it to root with `chown root`", file.uid()));
    }
    if file.mode() & WRITE_OF_OTHERS != 0 {
        return refused("other users may write to it; remove that permission with `chmod go-w`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[track_caller]
    fn check(mode: u32, expect: Option<&str>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let problem = check_program(&path).err().map(|error| error.to_string());
        match (problem, expect) {
            (None, None) => {}
            (Some(problem), Some(expect)) => assert!(problem.contains(expect), "{problem}"),
            (problem, _) => panic!("{mode:o}: {problem:?}"),
        }
    }

    #[test]
    fn only_an_executable_file_that_others_cannot_change_is_run() {
        check(0o700, None);
        check(0o755, None);
        check(0o644, Some("no executable file"));
        check(0o775, Some("chmod go-w"));
        check(0o757, Some("chmod go-w"));
        assert!(check_program(Path::new("/")).is_err());
        assert!(check_program(Path::new("/no/such/program")).is_err());
    }
}
