//! The load of a round: jobs of many kinds, and requests that change them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::RwLockReadGuard;

use miserly_api::client::{Client, ClientError};
use miserly_api::model::{Filter, ProblemCode, Submission, Window};

use super::clocks::{Clocks, Shared};
use super::fault::Fault;
use super::runs::SIGNS;
use crate::support::{Draws, sh};

/// The number of submissions in a round.
const JOBS: u64 = 7;

/// What clients were told and asked for. Instants are on the common clock.
#[derive(Default)]
pub(super) struct Told {
    /// The accepted jobs, in the order of their submission.
    pub(super) accepted: Vec<i64>,
    /// The submissions that were refused, by name.
    pub(super) refused: BTreeMap<String, String>,
    /// The jobs that were to be cancelled, whether the daemon answered or not.
    pub(super) cancelled: BTreeSet<i64>,
    /// The jobs that their user held or requeued, so that they have another promise.
    pub(super) taken_back: BTreeSet<i64>,
    /// The earliest start that each job was promised.
    pub(super) starts: BTreeMap<i64, f64>,
    /// The earliest instant at which a job may run.
    pub(super) begins: BTreeMap<i64, f64>,
    /// The jobs with a deadline.
    pub(super) deadlines: BTreeMap<i64, f64>,
    /// The job that each job waits for.
    pub(super) after: BTreeMap<i64, i64>,
    /// The jobs that do not end by themselves.
    pub(super) endless: BTreeSet<i64>,
    /// The jobs that never run opportunistically.
    pub(super) in_windows: BTreeSet<i64>,
}

impl Told {
    fn promised(&mut self, job: i64, start: f64) {
        let earliest = self.starts.entry(job).or_insert(start);
        *earliest = start.min(*earliest);
    }

    pub(super) fn extend(&mut self, other: Told) {
        self.accepted.extend(other.accepted);
        self.refused.extend(other.refused);
        self.cancelled.extend(other.cancelled);
        self.taken_back.extend(other.taken_back);
        self.begins.extend(other.begins);
        self.deadlines.extend(other.deadlines);
        self.after.extend(other.after);
        self.endless.extend(other.endless);
        self.in_windows.extend(other.in_windows);
        for (job, start) in other.starts {
            self.promised(job, start);
        }
    }
}

/// A client during a fault.
pub(super) struct Load {
    pub(super) client: Client,
    pub(super) folder: PathBuf,
    pub(super) clocks: Shared,
    pub(super) draws: Draws,
    pub(super) fault: Fault,
    /// The beginning of the names of the jobs.
    pub(super) name: String,
}

impl Load {
    /// Submits jobs and changes them, until the daemon is gone. Returns what it was told.
    pub(super) fn run(mut self) -> Told {
        let mut told = Told::default();
        for nth in 0..JOBS {
            match self.submit_and_change(nth, &mut told) {
                Ok(()) => {}
                Err(ClientError::Gone { .. } | ClientError::NoDaemon { .. }) => break,
                Err(ClientError::Refused(problem)) => match problem.code {
                    // It is being terminated.
                    ProblemCode::Unavailable => break,
                    ProblemCode::Storage => assert!(self.fault.fills_the_disk(), "{problem}"),
                    // The queue is not there, or the job never fits.
                    ProblemCode::Refused | ProblemCode::NotFound => {}
                    // A field of the submission is not for this queue.
                    ProblemCode::Malformed if problem.field.is_some() => {}
                    _ => panic!("{:?}: {problem:?}", self.fault),
                },
                Err(error) => panic!("{:?}: {error}", self.fault),
            }
        }
        told
    }

    /// Returns a job of a random kind, and whether it does not end by itself.
    fn job(&mut self, nth: u64, clocks: &Clocks, told: &Told) -> (Submission, bool) {
        let one_in = |draws: &mut Draws, many| draws.below(many) == 0;
        let draws = &mut self.draws;
        let ending = format!("sleep 0.0{nth}; signs e");
        let (body, time) = match draws.below(60) {
            0 => ("trap '' TERM; while :; do sleep 0.5; done".to_owned(), 1.2),
            1 => (format!("kill -STOP $PPID; {ending}"), 2.0),
            _ => (ending, 3.0),
        };
        let endless = time < 2.0;
        let script = format!("{SIGNS} signs b; {body}");
        let mut job = Submission {
            name: Some(format!("{}-{nth}", self.name)),
            directory: self.folder.clone(),
            restartable: one_in(draws, 3),
            no_opportunistic: one_in(draws, 2),
            cpus: if one_in(draws, 5) { 2 } else { 1 },
            queue: if one_in(draws, 3) { Some("other".to_owned()) } else { None },
            begin: if one_in(draws, 8) { Some(clocks.wall_in(draws.fraction())) } else { None },
            deadline: if one_in(draws, 10) {
                Some(clocks.wall_in(5.0 + 60.0 * draws.fraction()))
            } else {
                None
            },
            after: told.accepted.last().filter(|_| one_in(draws, 6)).copied().into_iter().collect(),
            ..sh(&script, time)
        };
        if one_in(draws, 4) {
            (job.script, job.command) = (Some(format!("#!/bin/sh\n{script}\n")), vec![]);
        }
        (job, endless)
    }

    /// Submits a job and changes it in one of several ways.
    fn submit_and_change(&mut self, nth: u64, told: &mut Told) -> Result<(), ClientError> {
        let shared = self.clocks.clone();
        let clocks = shared.read().expect("clocks");
        let (job, endless) = self.job(nth, &clocks, told);
        let accepted = self.client.submit(&job);
        if let Err(ClientError::Refused(_)) = &accepted {
            told.refused.extend(job.name.clone().map(|name| (name, format!("{accepted:?} {job:?}"))));
        }
        let accepted = accepted?;
        let number = accepted.jobs[0].number;
        told.accepted.push(number);
        told.begins.extend(job.begin.map(|begin| (number, clocks.told(begin))));
        told.deadlines.extend(job.deadline.map(|deadline| (number, clocks.told(deadline))));
        told.after.extend(job.after.first().map(|before| (number, *before)));
        told.endless.extend(Some(number).filter(|_| endless));
        told.in_windows.extend(Some(number).filter(|_| job.no_opportunistic));
        if let Some(window) = &accepted.jobs[0].promise {
            told.promised(number, clocks.told(window.start));
            check_deadline(number, window, &job, &clocks);
        }
        self.change(nth, number, told, &clocks)
    }

    fn change(
        &self,
        nth: u64,
        number: i64,
        told: &mut Told,
        clocks: &RwLockReadGuard<'_, Clocks>,
    ) -> Result<(), ClientError> {
        let client = &self.client;
        match nth {
            1 => {
                told.cancelled.insert(number);
                let _ = client.cancel(number, false);
            }
            2 => drop(client.extend(number, 1.0)),
            3 => {
                told.taken_back.insert(number);
                drop(client.requeue(number, false));
            }
            5 => {
                told.taken_back.insert(number);
                let _ = client.hold(number, false).and_then(|_| client.release(number));
            }
            6 => {
                // A plan may move, and come back. The promise stays.
                for job in client.jobs(&Filter::default())? {
                    if let Some(promise) = job.promise {
                        told.promised(job.number, clocks.told(promise.promised.start));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// No window ends after the deadline of its job.
fn check_deadline(number: i64, window: &Window, job: &Submission, clocks: &Clocks) {
    if let Some(deadline) = job.deadline {
        let (end, deadline) = (clocks.told(window.end), clocks.told(deadline));
        assert!(
            end < deadline + 0.01,
            "job {number} was promised an end {} s after its deadline",
            end - deadline
        );
    }
}
