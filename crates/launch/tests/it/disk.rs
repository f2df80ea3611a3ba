//! Behaviour on a full disk.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use miserly_launch::{AttemptPhase, Exit, FoundAttempt, LaunchError, ShimCommand, find, launch};
use miserly_test_support::Requirement;
use tempfile::TempDir;

use crate::support::{Test, done, ended, exe, until};

/// A file system of a few hundred kilobytes.
struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// Mounts one, or returns `None` without the permission to mount.
    fn mount() -> Option<SmallDisk> {
        let folder = TempDir::new().unwrap();
        let mut mount = Command::new("mount");
        let status = mount
            .args(["-t", "tmpfs", "-o", "size=256k", "miserly"])
            .arg(folder.path())
            .stderr(Stdio::null())
            .status();
        let mounted = status.is_ok_and(|status| status.success());
        Requirement::Mount
            .is_met(mounted, "needs the right to mount a file system")
            .then(|| SmallDisk { folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn fill(&self) -> PathBuf {
        let path = self.path().join("fill");
        let mut file = File::create(&path).unwrap();
        while file.write_all(&[0; 512]).is_ok() {}
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a shim left by a failed test may still use it.
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
    }
}

#[test]
fn an_end_is_recorded_on_a_full_disk() {
    let Some(disk) = SmallDisk::mount() else { return };
    let test = Test::new("echo here; while [ ! -e go ]; do sleep 0.01; done; exit 6");
    let dir = disk.path().join("7.1");
    let mut shim = launch(exe(), &dir, &test.spec).unwrap();
    test.wait_out("here");
    disk.fill();
    assert!(fs::write(disk.path().join("more"), [0; 8192]).is_err());
    done(&mut shim, &ShimCommand::Status);
    fs::write(test.folder.path().join("go"), "").unwrap();
    assert_eq!(ended(&shim).exit, Exit::Code(6));
}

#[test]
fn an_end_that_cannot_be_recorded_can_be_asked_for_and_is_recorded_later() {
    let Some(disk) = SmallDisk::mount() else { return };
    let test = Test::new("exec 2>/dev/null; echo here; while [ ! -e go ]; do sleep 0.01; done; exit 6");
    let dir = disk.path().join("7.1");
    let mut shim = launch(exe(), &dir, &test.spec).unwrap();
    test.wait_out("here");
    // Simulates a file system without preallocation.
    fs::remove_file(dir.join("end.preallocated")).unwrap();
    let fill = disk.fill();
    fs::write(test.folder.path().join("go"), "").unwrap();
    let end = until(|| match done(&mut shim, &ShimCommand::Status).phase {
        AttemptPhase::Ended(end) => Some(end),
        _ => None,
    });
    assert_eq!(end.exit, Exit::Code(6));
    assert_eq!(shim.end().unwrap(), None);
    fs::remove_file(fill).unwrap();
    assert_eq!(ended(&shim), *end);
}

#[test]
fn a_launch_on_a_full_disk_fails_with_an_error() {
    let Some(disk) = SmallDisk::mount() else { return };
    let fill = disk.fill();
    let test = Test::new("echo ran");
    let dir = disk.path().join("7.1");
    let error = launch(exe(), &dir, &test.spec).unwrap_err();
    assert!(matches!(error, LaunchError::Record(_)), "{error}");
    if dir.exists() {
        assert!(matches!(find(&dir).unwrap(), FoundAttempt::NeverRan));
    }
    fs::remove_file(fill).unwrap();
    assert_eq!(test.out(), "");
}
