//! The journal of a world: in memory, or the store of the daemon in a folder.
//!
//! Beside the store is a journal in memory that gets the same commits. The state that a daemon loads after the death of an
//! earlier one must be that of the journal in memory. Only a commit that failed in an unknown way may be there or not.
//!
//! A power failure takes no more from the store than a kill: the folder is in a file system in memory. The tests of
//! `crates/store/src/durable.rs` take away what was not flushed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use jiff::Timestamp;
use miserly_engine::{
    EndedFilter, JobRow, Journal, JournalBatch, JournalContents, JournalError, JournalLine, MemoryJournal,
};
use miserly_launch::fault::of_this_thread;
use miserly_launcher::{Recovered, lose_missing};
use miserly_store::{Recovery, Store, StoreError, back_up};
use tempfile::TempDir;

use crate::effects::Effects;
use crate::site::Machine;

/// The folder for states of worlds, if it exists. Any other one is slower.
const IN_MEMORY: &str = "/dev/shm";

/// The most loads of a state without a commit: many more than a disk that is full for an hour causes, by a try in each second.
const MOST_LOADS: u32 = 20_000;

/// The failure of a commit, after which its outcome is unknown to the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitFault {
    /// Nothing of it is on disk.
    Unwritten,
    /// All of it is on disk.
    Unflushed,
}

/// The journal of a world. Clones are the same journal, which outlives the daemons.
#[derive(Clone, Debug)]
pub(crate) struct WorldJournal {
    memory: MemoryJournal,
    disk: Option<Rc<RefCell<Disk>>>,
    /// The part of the next commit, in thousandths, after which the daemon is killed.
    tears: Rc<Cell<Option<u16>>>,
    /// How often the state was loaded since the last commit.
    loads: Rc<Cell<u32>>,
    effects: Effects,
}

/// A copy of a state.
#[derive(Clone, Debug)]
pub(crate) struct Backup {
    contents: JournalContents,
    /// The file, if the state is a store.
    file: Option<PathBuf>,
}

/// A store in a folder of its own.
struct Disk {
    folder: TempDir,
    /// The store, as long as a daemon has it.
    store: Option<Store>,
    full: bool,
    fault: Option<CommitFault>,
    fails_to_open: bool,
    /// The contents with the commit that is on disk or not.
    unknown: Option<JournalContents>,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.folder.fmt(f)
    }
}

impl WorldJournal {
    /// Returns an empty journal: a store if `stored`.
    pub(crate) fn new(stored: bool, effects: Effects) -> WorldJournal {
        let disk = stored.then(|| Rc::new(RefCell::new(Disk::new())));
        WorldJournal {
            memory: MemoryJournal::default(),
            disk,
            tears: Rc::default(),
            loads: Rc::default(),
            effects,
        }
    }

    /// Returns what is stored for certain.
    pub(crate) fn contents(&self) -> JournalContents {
        self.memory.contents()
    }

    /// Returns the rows of the jobs.
    pub(crate) fn rows(&self) -> BTreeMap<i64, JobRow> {
        let mut rows = BTreeMap::new();
        self.memory.change(|contents| rows.clone_from(&contents.rows));
        rows
    }

    /// Lets commits fail for lack of space, or succeed again.
    pub(crate) fn set_full(&self, full: bool) {
        match &self.disk {
            Some(disk) => disk.borrow_mut().full = full,
            None => self.memory.set_full(full),
        }
    }

    /// Lets the next commit fail, or not.
    pub(crate) fn fail_commit(&self, fault: Option<CommitFault>) {
        if let Some(disk) = &self.disk {
            disk.borrow_mut().fault = fault;
        } else {
            let stored = fault.map(|fault| fault == CommitFault::Unflushed);
            self.memory.change(|contents| contents.fails = stored);
        }
    }

    /// Lets the daemon be killed in the next commit, when a part of its bytes is written, in thousandths; or not.
    pub(crate) fn tear_commit(&self, part: Option<u16>) {
        self.tears.set(part);
    }

    /// Lets the next opening of a store fail, or not.
    pub(crate) fn fail_open(&self, fails: bool) {
        if let Some(disk) = &self.disk {
            disk.borrow_mut().fails_to_open = fails;
        }
    }

    /// Opens it for a daemon. Returns whether it could be opened.
    ///
    /// # Errors
    /// If it cannot be opened although nothing fails, or has another content than it must have.
    pub(crate) fn open(&self) -> Result<bool, String> {
        self.disk.as_ref().map_or(Ok(true), |disk| disk.borrow_mut().open(&self.memory))
    }

    /// Closes it: its daemon is gone.
    pub(crate) fn close(&self) {
        if let Some(disk) = &self.disk {
            drop(disk.borrow_mut().store.take());
        }
    }

    /// Returns a copy of the state, as `miserly backup` makes it.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn back_up(&self) -> Result<Backup, String> {
        let copy = |disk: &Rc<RefCell<Disk>>| {
            let folder = disk.borrow().folder.path().to_owned();
            back_up(&folder, &folder.join("copies")).map_err(|error| format!("there is no backup: {error}"))
        };
        let file = self.disk.as_ref().map(copy).transpose()?;
        Ok(Backup { contents: self.contents(), file })
    }

    /// Puts a backup in the place of the state, as `miserly daemon --restore` does, while no daemon runs.
    ///
    /// # Errors
    /// If it cannot be restored, or a loss is not named.
    pub(crate) fn restore(&self, backup: &Backup, machine: &Machine) -> Result<(), String> {
        let Backup { contents, file } = backup;
        let (mut newer, mut fails) = (0, None);
        self.memory.change(|present| {
            newer = present.commits - contents.commits;
            let (commits, highest) = (present.commits, present.highest);
            // A fault that was drawn is for a commit of a daemon: a restore that fails is repeated.
            fails = present.fails;
            *present = JournalContents { commits, highest, fails: None, ..contents.clone() };
        });
        let failed = |error: StoreError| format!("the backup cannot be restored: {error}");
        settle(&mut self.memory.clone(), contents, machine).map_err(|error| failed(error.into()))?;
        self.memory.change(|present| present.fails = fails);
        let (Some(disk), Some(file)) = (&self.disk, file) else { return Ok(()) };
        let mut disk = disk.borrow_mut();
        let highest = disk.unknown.take().map(|unknown| unknown.highest);
        disk.unknown = highest.map(|highest| JournalContents { highest, ..self.contents() });
        let settle = |store: &mut Store, _: &Recovery| Ok(settle(store, contents, machine)?);
        let Recovery { lost, .. } = Store::restore(disk.folder.path(), file, settle).map_err(failed)?;
        if newer > 0 && lost.is_empty() { Err("the restore names no loss".into()) } else { Ok(()) }
    }
}

/// Corrects the rows of a restored state by the records of the attempts on the machine.
fn settle(
    journal: &mut impl Journal,
    backup: &JournalContents,
    machine: &Machine,
) -> Result<(), JournalError> {
    let wall = |line: &String| serde_json::from_str::<JournalLine>(line).ok()?.wall();
    let recovered = Recovered {
        attempts: machine.last_attempts(),
        wall: backup.lines.iter().rev().find_map(wall),
        ..Recovered::default()
    };
    recovered.settle(journal, |attempt| {
        machine.bring_back(attempt);
        Ok::<_, JournalError>(())
    })?;
    lose_missing(journal, |attempt| machine.has_record(attempt), machine.wall())
}

impl Disk {
    fn new() -> Disk {
        let parent = Some(Path::new(IN_MEMORY)).filter(|parent| parent.is_dir());
        let folder = parent.map_or_else(TempDir::new, TempDir::new_in);
        let folder = folder.unwrap_or_else(|error| panic!("no folder for a state: {error}"));
        Disk { folder, store: None, full: false, fault: None, fails_to_open: false, unknown: None }
    }

    fn open(&mut self, memory: &MemoryJournal) -> Result<bool, String> {
        let fails = std::mem::take(&mut self.fails_to_open);
        let opened = with_faults(if fails { "open:eio:1" } else { "" }, || Store::open(self.folder.path()));
        let store = match opened {
            Ok(store) => store,
            Err(StoreError::Io { .. }) if fails => return Ok(false),
            Err(error) => return Err(format!("the state cannot be opened: {error}")),
        };
        let mut differs = String::new();
        for contents in [Some(memory.contents()), self.unknown.take()].into_iter().flatten() {
            match difference(&store, &contents)
                .map_err(|error| format!("the state cannot be read: {error}"))?
            {
                None => {
                    memory.change(|present| *present = contents);
                    self.store = Some(store);
                    return Ok(true);
                }
                Some(difference) => differs = difference,
            }
        }
        Err(format!("the state on disk is not the last one that was stored: {differs}"))
    }

    fn store(&self) -> Result<&Store, JournalError> {
        self.store.as_ref().ok_or_else(|| JournalError::Failed("the state is closed".into()))
    }

    fn commit(&mut self, memory: &mut MemoryJournal, batch: JournalBatch) -> Result<(), JournalError> {
        let fault = if self.full { None } else { self.fault.take() };
        let faults = match fault {
            _ if self.full => "commit:enospc",
            Some(CommitFault::Unwritten) => "commit:eio:1",
            Some(CommitFault::Unflushed) => "flush:eio:1",
            None => "",
        };
        let Some(store) = &mut self.store else { return self.store().map(drop) };
        match with_faults(faults, || Store::commit(store, &batch)) {
            Ok(()) => memory.commit(batch),
            Err(StoreError::Full) => Err(StoreError::Full.into()),
            Err(error) => {
                self.unknown = Some(with(memory, batch)?);
                Err(error.into())
            }
        }
    }

    /// Writes a part of a commit, unless there is no room.
    fn tear(&mut self, memory: &MemoryJournal, batch: JournalBatch, part: u16) -> Result<(), JournalError> {
        if self.full {
            return Ok(());
        }
        let read = || Files::read(self.folder.path()).map_err(failed);
        let before = read()?;
        let Some(store) = &mut self.store else { return self.store().map(drop) };
        Store::commit(store, &batch)?;
        before.tear(&read()?, self.folder.path(), part).map_err(failed)?;
        self.unknown = Some(with(memory, batch)?);
        Ok(())
    }
}

/// Returns the contents of a journal after one more commit.
fn with(memory: &MemoryJournal, batch: JournalBatch) -> Result<JournalContents, JournalError> {
    let mut other = MemoryJournal::new(memory.contents());
    other.commit(batch)?;
    Ok(other.contents())
}

fn failed(error: io::Error) -> JournalError {
    JournalError::Failed(error.into())
}

/// Calls `then` with faults of the disk.
fn with_faults<T>(lines: &str, then: impl FnOnce() -> T) -> T {
    of_this_thread(lines);
    let result = then();
    of_this_thread("");
    result
}

/// Returns what a store has otherwise than it must have.
fn difference(store: &Store, contents: &JournalContents) -> Result<Option<String>, StoreError> {
    let mut rows = store.live_jobs()?;
    rows.extend(store.ended_from(0, u32::MAX)?);
    rows.sort_by_key(|row| row.number);
    let wanted: Vec<&JobRow> = contents.rows.values().collect();
    if let Some((row, _)) = rows.iter().zip(&wanted).find(|(row, wanted)| row != *wanted) {
        return Ok(Some(format!("job {}", row.number)));
    }
    let mut lines = 0;
    let mut line = None;
    store.journal(1, &mut |stored| {
        if contents.lines.get(lines) != Some(&stored.body) {
            line = Some(stored.number);
            return ControlFlow::Break(());
        }
        lines += 1;
        ControlFlow::Continue(())
    })?;
    let value = contents.values.iter().find(|(key, text)| store.meta(key) != Some(text));
    Ok(match (line, value) {
        (Some(line), _) => Some(format!("line {line}")),
        (None, Some((key, _))) => Some(format!("the value {key}")),
        _ if rows.len() != wanted.len() => Some(format!("{} jobs, not {}", rows.len(), wanted.len())),
        _ if lines != contents.lines.len() => Some(format!("{lines} lines, not {}", contents.lines.len())),
        _ if store.highest_job() != contents.highest => Some("the highest job".into()),
        _ => None,
    })
}

/// The files of a store: the database, its log and the mark.
struct Files {
    database: Vec<u8>,
    log: Vec<u8>,
    mark: Vec<u8>,
}

impl Files {
    const NAMES: [&str; 3] = ["jobs.db", "jobs.db-wal", "mark"];

    fn read(folder: &Path) -> io::Result<Files> {
        let [database, log, mark] = Files::NAMES.map(|name| fs::read(folder.join("store").join(name)));
        Ok(Files { database: database?, log: log?, mark: mark? })
    }

    /// Takes back a part of the bytes that a commit has written to the log: all from a place on, `part` thousandths of the way.
    /// Its mark was not written. A commit whose log is in the database already is only without its mark.
    fn tear(&self, after: &Files, folder: &Path, part: u16) -> io::Result<()> {
        let path = |name| folder.join("store").join(name);
        if after.database == self.database {
            let is_new = |at: &usize| self.log.get(*at) != after.log.get(*at);
            let mut new = (0..after.log.len()).filter(is_new);
            let first = new.next().unwrap_or(0);
            let end = new.next_back().unwrap_or(first);
            let torn = first + (end - first) * usize::from(part.min(999)) / 1000;
            let rest = self.log.get(torn..).unwrap_or_default();
            write_in_place(&path(Files::NAMES[1]), &[&after.log[..torn], rest].concat())?;
        }
        write_in_place(&path(Files::NAMES[2]), &self.mark)
    }
}

fn write_in_place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = fs::File::options().write(true).open(path)?;
    std::os::unix::fs::FileExt::write_all_at(&file, bytes, 0)?;
    file.set_len(bytes.len() as u64)
}

impl Journal for WorldJournal {
    fn live_jobs(&self) -> Result<Vec<JobRow>, JournalError> {
        self.loads.set(self.loads.get() + 1);
        assert!(self.loads.get() < MOST_LOADS, "the state is loaded again and again, and nothing is stored");
        match &self.disk {
            Some(disk) => Ok(disk.borrow().store()?.live_jobs()?),
            None => self.memory.live_jobs(),
        }
    }

    fn job(&self, number: i64) -> Result<Option<JobRow>, JournalError> {
        match &self.disk {
            Some(disk) => Ok(disk.borrow().store()?.job(number)?),
            None => Journal::job(&self.memory, number),
        }
    }

    fn ended_jobs(&self, filter: &EndedFilter) -> Result<Vec<JobRow>, JournalError> {
        match &self.disk {
            Some(disk) => Ok(disk.borrow().store()?.ended_jobs(filter)?),
            None => Journal::ended_jobs(&self.memory, filter),
        }
    }

    fn ended_from(&self, from: i64, limit: u32) -> Result<Vec<JobRow>, JournalError> {
        match &self.disk {
            Some(disk) => Ok(disk.borrow().store()?.ended_from(from, limit)?),
            None => Journal::ended_from(&self.memory, from, limit),
        }
    }

    fn highest_job(&self) -> Result<i64, JournalError> {
        match &self.disk {
            Some(disk) => Ok(disk.borrow().store()?.highest_job()),
            None => self.memory.highest_job(),
        }
    }

    fn last_commit(&self) -> i64 {
        let of_disk = self.disk.as_ref().and_then(|disk| Some(disk.borrow().store.as_ref()?.last_commit()));
        of_disk.unwrap_or_else(|| self.memory.last_commit())
    }

    fn value(&self, key: &str) -> Result<Option<String>, JournalError> {
        match &self.disk {
            Some(disk) => Ok(disk.borrow().store()?.meta(key).map(str::to_owned)),
            None => self.memory.value(key),
        }
    }

    fn visit_lines(&self, visit: &mut dyn FnMut(&str) -> ControlFlow<()>) -> Result<(), JournalError> {
        match &self.disk {
            Some(disk) => disk.borrow().store()?.visit_lines(visit),
            None => self.memory.visit_lines(visit),
        }
    }

    fn commit(&mut self, batch: JournalBatch) -> Result<(), JournalError> {
        self.effects.pass();
        if batch.is_empty() {
            return Ok(());
        }
        if let Some(part) = self.tears.take() {
            if let Some(disk) = &self.disk {
                disk.borrow_mut().tear(&self.memory, batch, part)?;
            }
            self.effects.die();
        }
        match &self.disk {
            Some(disk) => disk.borrow_mut().commit(&mut self.memory, batch)?,
            None => self.memory.commit(batch)?,
        }
        self.loads.set(0);
        self.effects.pass();
        Ok(())
    }

    fn forget(&mut self, numbers: &[i64]) -> Result<(), JournalError> {
        if let Some(disk) = &self.disk
            && let Some(store) = &mut disk.borrow_mut().store
        {
            Store::forget(store, numbers)?;
        }
        self.memory.forget(numbers)
    }

    fn forget_segment(&mut self, before: Timestamp) -> Result<bool, JournalError> {
        if let Some(disk) = &self.disk
            && let Some(store) = &mut disk.borrow_mut().store
        {
            Store::forget_segment(store, before)?;
        }
        self.memory.forget_segment(before)
    }
}
