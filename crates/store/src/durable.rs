//! Flushes the files of a store again before anything of them is believed.
//!
//! After a failed `fsync` the kernel keeps the written pages and marks them clean. A process that
//! reads them sees the commit, and a later `fsync` succeeds without writing it. Only bytes that are
//! written anew reach the disk. So [`flush`] rewrites the write-ahead log and the mark in place, and
//! flushes them. It comes before the check: the check sees what is on disk by then.
//!
//! The database needs no rewriting. `SQLite` copies a commit from its log until an `fsync` of the
//! database has succeeded, and keeps it in the log until then.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use miserly_launch::fault::FaultPoint;

use super::error::StoreError;
use super::mark::MarkFile;
use super::{files, schema};

/// The number of bytes that are rewritten at a time.
const PART: usize = 1 << 20;

/// A disk that makes the content of a file durable: [`rewrite`], except in tests.
pub(super) type Disk<'d> = &'d dyn Fn(&Path) -> io::Result<()>;

/// Makes the files of a store durable as they can be read now, and their names.
///
/// # Errors
/// [`StoreError::Full`] if the file system needs space for that. If a file cannot be read or
/// written.
pub(super) fn flush(folder: &Path, home: &Path, disk: Disk<'_>) -> Result<(), StoreError> {
    for name in [format!("{}-wal", schema::DATABASE), MarkFile::NAME.to_owned()] {
        let path = home.join(name);
        match disk(&path) {
            Ok(()) => {}
            // The check reports a file that should be there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::write(&path, error)),
        }
    }
    files::sync(home)?;
    files::sync(folder)
}

/// Writes every byte of a file again, and flushes it.
pub(super) fn rewrite(path: &Path) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(path)?;
    FaultPoint::Open.pass()?;
    let (mut part, mut at) = (vec![0; PART], 0);
    loop {
        let length = file.read_at(&mut part, at)?;
        if length == 0 {
            return file.sync_all();
        }
        file.write_all_at(&part[..length], at)?;
        at += length as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs;
    use std::path::PathBuf;

    use miserly_engine::JournalBatch;

    use super::super::{Store, check};
    use super::*;

    fn batch(line: &str) -> JournalBatch {
        JournalBatch { lines: vec![line.to_owned()], ..JournalBatch::default() }
    }

    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for name in ["jobs.db", "jobs.db-wal", "mark"] {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }

    /// A state whose last commit is in the page cache only, and the content of its disk.
    struct Unflushed {
        folder: tempfile::TempDir,
        on_disk: tempfile::TempDir,
    }

    impl Unflushed {
        fn new() -> Unflushed {
            let [folder, on_disk] = [0; 2].map(|_| tempfile::tempdir().unwrap());
            let mut store = Store::open(folder.path()).unwrap();
            store.commit(&batch("durable")).unwrap();
            copy(&files::home(folder.path()), &files::home(on_disk.path()));
            // The `fsync` of this commit failed: its pages are clean, and not on the disk.
            store.commit(&batch("unflushed")).unwrap();
            Unflushed { folder, on_disk }
        }

        /// Returns the disk: it gets the bytes of a file when they are rewritten.
        fn disk(&self) -> impl Fn(&Path) -> io::Result<()> {
            let to = files::home(self.on_disk.path());
            move |path| {
                rewrite(path).and_then(|()| fs::copy(path, to.join(path.file_name().unwrap())).map(drop))
            }
        }

        fn lines_after_a_power_failure(&self) -> i64 {
            Store::open(self.on_disk.path()).unwrap().last_line()
        }
    }

    #[test]
    fn an_unflushed_commit_is_lost_with_the_power() {
        assert_eq!(Unflushed::new().lines_after_a_power_failure(), 1);
    }

    #[test]
    fn a_commit_that_an_opened_store_shows_is_on_disk() {
        let state = Unflushed::new();
        let store = Store::open_on(state.folder.path(), &state.disk(), check::opening).unwrap();
        assert_eq!((store.last_line(), state.lines_after_a_power_failure()), (2, 2));
    }

    #[test]
    fn a_store_that_cannot_be_flushed_does_not_open() {
        let state = Unflushed::new();
        let failing = |_: &Path| Err(io::Error::from_raw_os_error(5));
        let result = Store::open_on(state.folder.path(), &failing, check::opening).map(drop);
        assert!(matches!(result, Err(StoreError::Io { .. })), "{result:?}");
        let full = |_: &Path| Err(io::Error::from(io::ErrorKind::StorageFull));
        let result = Store::open_on(state.folder.path(), &full, check::opening).map(drop);
        assert!(matches!(result, Err(StoreError::Full)), "{result:?}");
        assert_eq!(Store::open(state.folder.path()).unwrap().last_line(), 2);
    }

    #[test]
    fn the_log_is_flushed_before_the_mark() {
        let state = Unflushed::new();
        let order = RefCell::new(vec![]);
        let disk = |path: &Path| {
            order.borrow_mut().push(path.to_owned());
            rewrite(path)
        };
        drop(Store::open_on(state.folder.path(), &disk, check::opening).unwrap());
        let home = files::home(state.folder.path());
        let expected: Vec<PathBuf> = ["jobs.db-wal", "mark"].iter().map(|name| home.join(name)).collect();
        assert_eq!(*order.borrow(), expected);
    }
}
