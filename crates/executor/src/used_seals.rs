//! The jobs for which seals were used.
//!
//! A daemon that was taken over could launch a sealed submission again, as another job or as another attempt. So each seal is for
//! one job, or one for each index of an array. The attempts of a job ascend, and none follows one that has ended by itself, unless
//! the submission asks for retries.
//!
//! The file survives restarts. It is appended to after each launch, and written anew at the start, without expired seals.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use miserly_launch::{AttemptEnd, EndCause, Exit};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat, renameat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::AttemptId;
use crate::seal::LIFETIME;

/// The file, in the folder of the state.
const FILE: &str = "executor.used";
const UNFINISHED: &str = "executor.used.new";

/// The number of a seal, and the index in its array or 0.
type Place = (u128, u32);

/// The reason why a seal does not serve for an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UsedProblem {
    /// It was for another job.
    #[error("the credential of the job was used for job {0}; submit it again")]
    Job(i64),
    /// It was for this attempt, or a later one.
    #[error("attempt {0} of the job was launched before")]
    Attempt(u32),
    /// The job needs no other attempt.
    #[error("the job has ended; submit it again")]
    Ended,
}

/// The use of a seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Use {
    job: i64,
    nth: u32,
    /// The instant of the seal, in seconds since 1970.
    issued: i64,
    may_retry: bool,
    has_ended: bool,
}

/// A launch by a seal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SealUse {
    /// The number of the seal.
    pub(crate) serial: u128,
    /// The index in the array of the submission; 0 without an array.
    pub(crate) index: u32,
    /// The instant of the seal, in seconds since 1970.
    pub(crate) issued: i64,
    /// Whether the submission asks for retries.
    pub(crate) may_retry: bool,
}

/// A seal that was claimed for an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claimed {
    place: Place,
    /// Its use before.
    before: Option<Use>,
}

/// The jobs for which seals were used. `W` is the file.
#[derive(Debug)]
pub struct UsedSeals<W = File>(Mutex<Used<W>>);

#[derive(Debug)]
struct Used<W> {
    file: W,
    uses: BTreeMap<Place, Use>,
    places: BTreeMap<i64, Place>,
}

impl UsedSeals {
    /// Reads the file in a folder that only root can change, and writes it anew. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// The file is not one of root's alone, or cannot be read or written.
    pub(crate) fn open(folder: impl AsFd, now: i64) -> io::Result<UsedSeals> {
        let uses = uses(&read(&folder)?, now);
        let text = lines(&uses);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&folder, UNFINISHED, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        renameat(&folder, UNFINISHED, &folder, FILE)?;
        Ok(UsedSeals::with(uses, file))
    }
}

impl<W: Write> UsedSeals<W> {
    /// Returns those in the text of a file, which goes on in `file`. `now` is in seconds since 1970.
    pub fn resumed(text: &str, now: i64, file: W) -> UsedSeals<W> {
        UsedSeals::with(uses(text, now), file)
    }

    fn with(uses: BTreeMap<Place, Use>, file: W) -> UsedSeals<W> {
        let places = uses.iter().map(|(place, seal)| (seal.job, *place)).collect();
        UsedSeals(Mutex::new(Used { file, uses, places }))
    }

    /// Claims a seal for an attempt. Of two launches at the same time one has it.
    ///
    /// # Errors
    /// [`UsedProblem`].
    pub(crate) fn claim(&self, seal: SealUse, attempt: AttemptId) -> Result<Claimed, UsedProblem> {
        let SealUse { serial, index, issued, may_retry } = seal;
        let AttemptId { job, nth } = attempt;
        let (place, mut used) = ((serial, index), self.lock());
        let before = used.uses.get(&place).copied();
        match before {
            Some(used) if used.job != job => return Err(UsedProblem::Job(used.job)),
            Some(used) if used.nth >= nth => return Err(UsedProblem::Attempt(nth)),
            Some(used) if used.has_ended => return Err(UsedProblem::Ended),
            Some(_) | None => {}
        }
        used.uses.insert(place, Use { job, nth, issued, may_retry, has_ended: false });
        Ok(Claimed { place, before })
    }

    /// Keeps a claim whose attempt was launched.
    ///
    /// # Errors
    /// The file cannot be written. The claim counts as long as this process lives.
    pub(crate) fn keep(&self, Claimed { place, .. }: Claimed) -> io::Result<()> {
        let mut used = self.lock();
        let Some(seal) = used.uses.get(&place).copied() else { return Ok(()) };
        used.places.insert(seal.job, place);
        used.set(place, seal)
    }

    /// Gives a claim up whose attempt was not launched.
    pub(crate) fn give_up(&self, Claimed { place, before }: Claimed) {
        let mut used = self.lock();
        match before {
            Some(before) => used.uses.insert(place, before),
            None => used.uses.remove(&place),
        };
    }

    /// Records how an attempt has ended.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn note_end(&self, attempt: AttemptId, end: &AttemptEnd) -> io::Result<()> {
        let by_itself = matches!(end.exit, Exit::Code(_) | Exit::Signal { .. })
            && matches!(end.cause, None | Some(EndCause::Time));
        let mut used = self.lock();
        let Some(place) = used.places.get(&attempt.job).copied().filter(|_| by_itself) else { return Ok(()) };
        match used.uses.get(&place).copied() {
            Some(seal) if seal.nth == attempt.nth && !seal.may_retry && !seal.has_ended => {
                used.set(place, Use { has_ended: true, ..seal })
            }
            _ => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Used<W>> {
        // Each change is one insertion.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Write> Used<W> {
    fn set(&mut self, place: Place, seal: Use) -> io::Result<()> {
        self.uses.insert(place, seal);
        let mut text = String::new();
        line(&mut text, place, seal);
        self.file.write_all(text.as_bytes())
    }
}

fn line(to: &mut String, (serial, index): Place, seal: Use) {
    let Use { job, nth, issued, may_retry, has_ended } = seal;
    let _ = writeln!(
        to,
        "{serial:032x} {index} {job} {nth} {issued} {} {}",
        u8::from(may_retry),
        u8::from(has_ended)
    );
}

/// Returns the uses in the text of a file, without expired seals.
///
/// The last line of a place counts, and an incomplete one at the end does not.
fn uses(text: &str, now: i64) -> BTreeMap<Place, Use> {
    let whole = text.rfind('\n').map_or("", |at| &text[..at]);
    let mut uses: BTreeMap<Place, Use> = whole.lines().filter_map(parse).collect();
    uses.retain(|_, seal| seal.issued.saturating_add(LIFETIME) >= now);
    uses
}

fn lines(uses: &BTreeMap<Place, Use>) -> String {
    let mut text = String::new();
    for (place, seal) in uses {
        line(&mut text, *place, *seal);
    }
    text
}

/// Reads the file.
fn read(folder: impl AsFd) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file: OwnedFd = match openat(&folder, FILE, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(String::new()),
        other => other?,
    };
    let found = fstat(&file)?;
    let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    if !is_file || found.st_uid != geteuid().as_raw() || found.st_mode & 0o077 != 0 {
        return Err(io::Error::other(format!("{FILE} is no file of root's alone (mode 600)")));
    }
    let mut text = String::new();
    File::from(file).read_to_string(&mut text)?;
    Ok(text)
}

fn parse(line: &str) -> Option<(Place, Use)> {
    let mut words = line.split(' ');
    let serial = u128::from_str_radix(words.next()?, 16).ok()?;
    let index = words.next()?.parse().ok()?;
    let (job, nth) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let issued = words.next()?.parse().ok()?;
    let mut flag = || words.next().map(|word| word == "1");
    Some(((serial, index), Use { job, nth, issued, may_retry: flag()?, has_ended: flag()? }))
}

#[cfg(test)]
mod tests {
    use miserly_launch::{BootTime, StoredInstant};

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn open(folder: &tempfile::TempDir, now: i64) -> UsedSeals {
        UsedSeals::open(File::open(folder.path()).unwrap(), now).unwrap()
    }

    fn seal(serial: u128, index: u32) -> SealUse {
        SealUse { serial, index, issued: NOW, may_retry: false }
    }

    fn attempt(job: i64, nth: u32) -> AttemptId {
        AttemptId { job, nth }
    }

    /// Claims a seal, and gives it up.
    fn check(used: &UsedSeals, seal: SealUse, attempt: AttemptId) -> Result<(), UsedProblem> {
        used.claim(seal, attempt).map(|claimed| used.give_up(claimed))
    }

    fn record(used: &UsedSeals, seal: SealUse, attempt: AttemptId) {
        used.keep(used.claim(seal, attempt).unwrap()).unwrap();
    }

    fn end(exit: Exit, cause: Option<EndCause>) -> AttemptEnd {
        let (late, usage, processes, stops) = (None, None, None, 0);
        let (prolog, epilog, checkpoint) = (None, None, None);
        let at = StoredInstant::new(BootTime(0), "one".into());
        AttemptEnd { exit, cause, at, late, usage, processes, stops, prolog, epilog, checkpoint }
    }

    #[test]
    fn a_seal_is_for_one_job_and_its_attempts_ascend() {
        let folder = tempfile::tempdir().unwrap();
        let used = open(&folder, NOW);
        check(&used, seal(1, 0), attempt(7, 1)).unwrap();
        record(&used, seal(1, 0), attempt(7, 1));
        // Also in the next executor.
        for used in [used, open(&folder, NOW)] {
            assert_eq!(check(&used, seal(1, 0), attempt(8, 1)), Err(UsedProblem::Job(7)));
            assert_eq!(check(&used, seal(1, 0), attempt(7, 1)), Err(UsedProblem::Attempt(1)));
            check(&used, seal(1, 0), attempt(7, 2)).unwrap();
            // Another index, and another seal.
            check(&used, seal(1, 1), attempt(8, 1)).unwrap();
            check(&used, seal(2, 0), attempt(8, 1)).unwrap();
        }
    }

    #[test]
    fn of_two_launches_at_the_same_time_one_has_the_seal() {
        let folder = tempfile::tempdir().unwrap();
        let used = open(&folder, NOW);
        let claimed = used.claim(seal(1, 0), attempt(7, 1)).unwrap();
        assert_eq!(used.claim(seal(1, 0), attempt(8, 1)), Err(UsedProblem::Job(7)));
        used.give_up(claimed);
        check(&used, seal(1, 0), attempt(8, 1)).unwrap();
    }

    #[test]
    fn no_attempt_follows_one_that_ended_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let used = open(&folder, NOW);
        let retry = SealUse { may_retry: true, ..seal(3, 0) };
        let all = [(seal(1, 0), 1), (seal(2, 0), 2), (retry, 3), (seal(4, 0), 4)];
        for (seal, job) in all {
            record(&used, seal, attempt(job, 1));
        }
        used.note_end(attempt(1, 1), &end(Exit::Code(0), None)).unwrap();
        used.note_end(attempt(2, 1), &end(Exit::Code(0), Some(EndCause::User))).unwrap();
        used.note_end(attempt(3, 1), &end(Exit::Code(1), None)).unwrap();
        used.note_end(attempt(4, 2), &end(Exit::Code(1), None)).unwrap();
        for used in [used, open(&folder, NOW)] {
            let checked = all.map(|(seal, job)| check(&used, seal, attempt(job, 2)));
            assert_eq!(checked, [Err(UsedProblem::Ended), Ok(()), Ok(()), Ok(())]);
        }
    }

    #[test]
    fn expired_seals_are_forgotten_and_a_torn_line_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        record(&open(&folder, NOW), seal(1, 0), attempt(7, 1));
        let path = folder.path().join(FILE);
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{whole}{}", &whole[..20])).unwrap();
        assert_eq!(open(&folder, NOW + LIFETIME).0.lock().unwrap().uses.len(), 1);
        assert_eq!(open(&folder, NOW + LIFETIME + 1).0.lock().unwrap().uses.len(), 0);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
    }
}
