//! The folders of attempts on a disk that keeps flushed content, and a part of the rest.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use miserly_attempt::Files;
use miserly_attempt::files::{Flush, LOCK};
use miserly_attempt::retire::Remains;
use miserly_engine::Attempt;

use super::{Machine, Place, earlier};

/// A file.
#[derive(Clone, Debug)]
struct File {
    content: Rc<[u8]>,
    /// Whether the content is on disk.
    is_flushed: bool,
    /// Whether it has room for a record on a full disk.
    has_room: bool,
}

type Names = BTreeMap<String, File>;

/// The folder of an attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct Folder {
    names: Names,
    /// The names on disk.
    durable: Names,
    /// The names after each change since then. The disk keeps the changes in their order.
    pending: Vec<Names>,
    /// Whether the name of the folder is on disk.
    pub(super) is_durable: bool,
}

impl Folder {
    fn change(&mut self, change: impl FnOnce(&mut Names) -> io::Result<()>) -> io::Result<()> {
        change(&mut self.names)?;
        self.pending.push(self.names.clone());
        Ok(())
    }

    /// Returns the content of a file.
    pub(super) fn content(&self, name: &str) -> Option<&[u8]> {
        Some(&self.names.get(name)?.content)
    }

    fn flush(&mut self) {
        self.pending.clear();
        self.durable.clone_from(&self.names);
    }

    /// Returns the folder after a power failure, by a draw.
    pub(super) fn after_power_failure(mut self, draw: u64) -> Option<Folder> {
        if !self.is_durable && draw & 1 == 0 {
            return None;
        }
        let kept = usize::try_from((draw >> 1) % (self.pending.len() as u64 + 1)).unwrap_or(0);
        self.names = match kept.checked_sub(1) {
            Some(last) => self.pending.swap_remove(last),
            None => self.durable,
        };
        for (nth, file) in self.names.values_mut().enumerate() {
            if !file.is_flushed && (draw >> (32 + nth)) & 1 == 0 {
                file.content = Rc::default();
            }
            file.is_flushed = true;
        }
        Some(Folder { durable: self.names.clone(), names: self.names, pending: vec![], is_durable: true })
    }
}

/// A process that uses a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum User {
    Daemon,
    Shim,
}

/// The open folder of an attempt.
pub(super) struct OpenFolder {
    machine: Rc<Machine>,
    place: Rc<Place>,
    user: User,
    path: PathBuf,
}

/// The lock of an attempt. It is free when no clone is left.
#[derive(Clone)]
#[expect(dead_code, reason = "its end is its effect")]
pub(super) struct Lock(Rc<Held>);

struct Held(Rc<Place>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.is_locked.set(false);
    }
}

/// Returns the path of a folder.
pub(super) fn path(attempt: Attempt) -> PathBuf {
    format!("/attempts/{}.{}", attempt.job, attempt.nth).into()
}

impl OpenFolder {
    pub(super) fn new(machine: &Rc<Machine>, place: &Rc<Place>, user: User) -> OpenFolder {
        let (machine, place) = (Rc::clone(machine), Rc::clone(place));
        OpenFolder { path: path(place.attempt), machine, place, user }
    }

    pub(super) fn place(&self) -> &Rc<Place> {
        &self.place
    }

    /// Passes a place at which the process can die.
    fn effect(&self) {
        match self.user {
            User::Daemon => self.machine.effects.pass(),
            User::Shim => self.place.effect(),
        }
    }

    fn with<T>(&self, then: impl FnOnce(&mut Folder) -> io::Result<T>) -> io::Result<T> {
        self.place.folder.borrow_mut().as_mut().map_or(Err(io::ErrorKind::NotFound.into()), then)
    }

    fn change(&self, change: impl FnOnce(&mut Names) -> io::Result<()>) -> io::Result<()> {
        self.effect();
        let changed = self.with(|folder| folder.change(change));
        self.effect();
        changed
    }

    fn full_error(&self) -> io::Result<()> {
        if self.machine.full.get() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

fn take(names: &mut Names, name: &str) -> io::Result<File> {
    names.remove(name).ok_or_else(|| io::ErrorKind::NotFound.into())
}

impl Files for OpenFolder {
    type Lock = Lock;

    fn path(&self) -> &Path {
        &self.path
    }

    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self
            .place
            .folder
            .borrow()
            .as_ref()
            .and_then(|folder| Some(folder.names.get(name)?.content.to_vec())))
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        Ok(self.place.folder.borrow().as_ref().is_some_and(|folder| folder.names.contains_key(name)))
    }

    fn store(&self, name: &str, temporary: &str, content: &[u8], flush: Flush) -> io::Result<()> {
        let is_earlier = self.user == User::Shim && self.place.habit.get().version.is_some();
        let content: Rc<[u8]> =
            if is_earlier { earlier::record(name, content).into() } else { content.into() };
        self.change(|names| {
            let has_room = names.get(temporary).is_some_and(|file| file.has_room);
            if !has_room {
                self.full_error()?;
            }
            let file = File { content, is_flushed: flush != Flush::Nothing, has_room };
            names.insert(temporary.to_owned(), file);
            Ok(())
        })?;
        self.rename(temporary, name)?;
        if flush == Flush::Folder {
            self.flush()?;
            self.machine.flush_folders();
        }
        Ok(())
    }

    fn preallocate(&self, name: &str) -> io::Result<()> {
        self.change(|names| {
            self.full_error()?;
            if names.contains_key(name) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            names.insert(name.to_owned(), File { content: Rc::default(), is_flushed: false, has_room: true });
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.change(|names| take(names, name).map(drop))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change(|names| {
            let file = take(names, from)?;
            names.insert(to.to_owned(), file);
            Ok(())
        })
    }

    fn flush(&self) -> io::Result<()> {
        self.with(|folder| {
            folder.flush();
            Ok(())
        })
    }

    fn make_lock(&self) -> io::Result<()> {
        if self.exists(LOCK)? {
            return Ok(());
        }
        self.change(|names| {
            self.full_error()?;
            names.insert(LOCK.to_owned(), File { content: Rc::default(), is_flushed: true, has_room: false });
            Ok(())
        })
    }

    fn take_lock(&self) -> io::Result<Option<Lock>> {
        self.make_lock()?;
        self.effect();
        Ok((!self.place.is_locked.replace(true)).then(|| Lock(Rc::new(Held(Rc::clone(&self.place))))))
    }

    fn is_locked(&self, folder: &str) -> io::Result<bool> {
        let places = self.machine.places.borrow();
        Ok(places.values().any(|place| path(place.attempt).ends_with(folder) && place.is_locked.get()))
    }

    fn is_removed(&self) -> bool {
        self.place.folder.borrow().is_none()
    }
}

impl Remains for OpenFolder {
    fn path(&self) -> &Path {
        &self.path
    }

    fn has(&self, name: &str) -> bool {
        self.exists(name).unwrap_or(false)
    }

    fn names(&self) -> io::Result<Vec<OsString>> {
        self.with(|folder| Ok(folder.names.keys().map(OsString::from).collect()))
    }

    fn remove(&self, name: &OsStr) -> io::Result<()> {
        Files::remove(self, &name.to_string_lossy())
    }

    fn set_aside(&self) -> io::Result<()> {
        self.effect();
        // No daemon dies between the two: it is one rename.
        let record = self.with(|folder| Ok(folder.clone()))?;
        self.machine.ended.borrow_mut().insert(self.place.attempt, record);
        self.remove_all()
    }

    fn remove_all(&self) -> io::Result<()> {
        self.effect();
        let folder = self.place.folder.take().ok_or(io::ErrorKind::NotFound)?;
        if folder.is_durable {
            self.machine.removed.borrow_mut().insert(self.place.attempt, folder);
        }
        self.machine.forgotten(&self.place);
        self.effect();
        Ok(())
    }

    fn warn(&self, message: &dyn Display) {
        self.machine.note(message.to_string());
    }
}
