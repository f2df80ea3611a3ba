//! The records of attempts, as a restore finds them.

use std::rc::Rc;

use miserly_attempt::StartRecord;
use miserly_attempt::files::{END, STARTED};
use miserly_engine::Attempt;
use miserly_launcher::{LastAttempt, LastAttempts};

use super::disk::Folder;
use super::processes::Main;
use super::{Machine, Place};
use crate::step::SECOND;

impl Machine {
    /// Returns the last attempt of each job, among those with a folder and those whose record was set aside.
    pub(crate) fn last_attempts(&self) -> LastAttempts {
        let started = |folder: &Folder| {
            let record: StartRecord = serde_json::from_slice(folder.content(STARTED)?).ok()?;
            Some(record.instant())
        };
        let mut last = LastAttempts::new();
        let mut add = |attempt: Attempt, folder: &Folder| {
            if last.get(&attempt.job).is_none_or(|other| other.nth < attempt.nth) {
                let has_ended = folder.content(END).is_some();
                let of_job = LastAttempt { nth: attempt.nth, started: started(folder), has_ended };
                last.insert(attempt.job, of_job);
            }
        };
        for place in self.places.borrow().values() {
            if let Some(folder) = &*place.folder.borrow() {
                add(place.attempt, folder);
            }
        }
        self.ended.borrow().iter().for_each(|(attempt, folder)| add(*attempt, folder));
        last
    }

    /// Returns the attempts in their windows whose commands began a moment ago, and last longer.
    pub(crate) fn fresh_commands(&self) -> Vec<Attempt> {
        let places = self.places.borrow();
        let is_fresh = |place: &&Rc<Place>| {
            let begun = self.begun_at(place.attempt).is_some_and(|at| at + SECOND / 2 > self.now());
            let lasts = place.main.borrow().as_ref().is_some_and(|main| main.lasts(SECOND));
            begun && lasts && !place.is_idle.get()
        };
        places.values().filter(is_fresh).map(|place| place.attempt).collect()
    }

    /// Returns whether the command of an attempt runs.
    pub(crate) fn runs(&self, attempt: Attempt) -> bool {
        self.place(attempt).is_some_and(|place| place.main.borrow().as_ref().is_some_and(Main::is_command))
    }

    /// Returns whether an attempt left a record.
    pub(crate) fn has_record(&self, attempt: Attempt) -> bool {
        let has_folder = self.place(attempt).is_some_and(|place| place.folder.borrow().is_some());
        has_folder || self.ended.borrow().contains_key(&attempt)
    }

    /// Puts a record that was set aside back among the folders of attempts.
    pub(crate) fn bring_back(&self, attempt: Attempt) {
        let has_folder = self.place(attempt).is_some_and(|place| place.folder.borrow().is_some());
        if let Some(folder) = self.ended.borrow_mut().remove(&attempt).filter(|_| !has_folder) {
            let place = Rc::new(Place::new(attempt));
            place.folder.replace(Some(folder));
            self.places.borrow_mut().insert(attempt, place);
        }
    }
}
