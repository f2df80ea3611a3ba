//! Opening an output file of a job for a reader with other rights than the job's user.
//!
//! The user has chosen the path. So it may name a FIFO, a device, a link or a file of another user.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::geteuid;

/// Opens an output file of a job of user `uid` for reading: a regular file of this user, not through a link at its name.
///
/// Nothing but such a file is opened, so a FIFO gets no reader and a device no access. The owner is not compared if this process
/// has the rights of the user: some network file systems show another one.
///
/// # Errors
/// The file does not exist, cannot be read, or is another one.
///
/// # Example
/// ```
/// let error = miserly_live::open_output(std::path::Path::new("/dev/null"), 0).unwrap_err();
/// assert_eq!(error.to_string(), "it is no regular file");
/// ```
pub fn open_output(path: &Path, uid: u32) -> io::Result<File> {
    // A descriptor of this kind allows no access.
    let place = File::from(open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?);
    let found = place.metadata()?;
    let refused = |text: String| Err(io::Error::new(ErrorKind::InvalidInput, text));
    if found.is_symlink() {
        return refused("it is a symbolic link".to_owned());
    }
    if !found.is_file() {
        return refused("it is no regular file".to_owned());
    }
    if found.uid() != uid && geteuid().as_raw() != uid {
        return refused(format!("it belongs to user {}, and the job is of user {uid}", found.uid()));
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(open(format!("/proc/self/fd/{}", place.as_raw_fd()), flags, Mode::empty())?.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::{chown, symlink};

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    #[test]
    fn a_regular_file_of_the_user_is_opened_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, fifo, gone] = ["file", "link", "fifo", "gone"].map(|name| folder.path().join(name));
        let own = geteuid().as_raw();
        fs::write(&file, "text").unwrap();
        symlink(&file, &link).unwrap();
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let mut text = String::new();
        open_output(&file, own).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        for (path, says) in [
            (link.as_path(), "symbolic link"),
            (&fifo, "no regular file"),
            (folder.path(), "no regular file"),
            (Path::new("/dev/zero"), "no regular file"),
        ] {
            let error = open_output(path, own).unwrap_err();
            assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains(says), "{error}");
        }
        assert_eq!(open_output(&gone, own).unwrap_err().kind(), ErrorKind::NotFound);
        let error = open_output(&file, own + 1).unwrap_err();
        assert!(error.to_string().contains("it belongs to user"), "{error}");
        if geteuid().is_root() {
            chown(&file, Some(61_234), None).unwrap();
            assert!(open_output(&file, 61_234).is_ok());
            assert!(open_output(&file, 61_235).is_err());
        }
    }
}
