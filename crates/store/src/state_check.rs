//! The check of the history in the background, at the lowest priority.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::error::{Damage, StoreError};
use super::mark::MarkFile;
use super::{check, files, schema};

/// The check of the ended jobs, the journal and the structure of a state, on a thread of its own.
///
/// Its clones share the result.
#[derive(Clone, Debug)]
pub struct StateCheck(Arc<Mutex<Progress>>);

#[derive(Debug, Default)]
struct Progress {
    is_over: bool,
    damages: Vec<Damage>,
}

impl StateCheck {
    /// Starts the check of the state in `folder`. A daemon may use the state at the same time, and is
    /// never blocked. Damage is logged.
    ///
    /// # Errors
    /// If the system has no thread.
    pub fn start(folder: PathBuf) -> io::Result<StateCheck> {
        let check = StateCheck(Arc::default());
        let result = check.clone();
        thread::Builder::new().name("state check".to_owned()).spawn(move || result.run(&folder))?;
        Ok(check)
    }

    /// Returns whether the check is over.
    pub fn is_over(&self) -> bool {
        self.progress().is_over
    }

    /// Returns the damage that was found.
    pub fn damages(&self) -> Vec<Damage> {
        self.progress().damages.clone()
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, folder: &Path) {
        // On Linux this is the priority of this thread.
        if let Err(error) = rustix::process::setpriority_process(None, 19) {
            tracing::warn!("the state is checked at the daemon's own priority: {error}");
        }
        let found =
            schema::connect_to_read(&files::home(folder)).map(|connection| check::history(&connection));
        let mut progress = self.progress();
        progress.is_over = true;
        match found {
            Ok(damages) => {
                for damage in &damages {
                    tracing::error!("the state is damaged: {damage}; `miserly daemon --recover` restores it");
                }
                tracing::info!("the history is checked: {} damages", damages.len());
                progress.damages = damages;
            }
            Err(StoreError::Damaged(damages)) => progress.damages = damages,
            Err(error) => tracing::error!("the history cannot be checked: {error}"),
        }
    }
}

/// Checks the whole state in `folder` at once, and changes nothing. A daemon may use the state at the
/// same time. Returns all damage.
///
/// # Errors
/// If the state is missing, a later version wrote it, or it cannot be read.
pub fn verify(folder: &Path) -> Result<Vec<Damage>, StoreError> {
    let home = files::home(folder);
    std::fs::metadata(&home).map_err(StoreError::io(&home))?;
    let check = || {
        // The mark beside the database is read first: a commit of the meantime makes it no newer.
        let marks = MarkFile::open(&home)?;
        let connection = schema::connect_to_read(&home)?;
        connection.execute_batch("BEGIN")?;
        check::format(&connection, folder)?;
        Ok(check::whole(&connection, &marks)?.damages)
    };
    match check() {
        Err(StoreError::Damaged(damages)) => Ok(damages),
        other => other,
    }
}
