//! What the daemon passes on of jobs: their relays and their output files.

use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

use miserly_api::model::{JobView, OUTPUT_PART, OutputRequest, Phase, Problem, ProblemCode};
use miserly_engine::{Attempt, Caller};
use miserly_launch::RelaySocket;

use crate::output_file::open_output;
use crate::process::Executor;
use crate::server::OutputPart;

/// Access to jobs with the rights of the daemon.
#[derive(Clone, Debug)]
pub(crate) struct JobAccess {
    executor: Executor,
}

impl JobAccess {
    pub(crate) fn new(executor: Executor) -> JobAccess {
        JobAccess { executor }
    }

    /// Returns the relay of a running job of the caller. `job` is what the caller may see of it.
    ///
    /// # Errors
    /// The caller is not the user of the job, or the job has no relay now.
    pub(crate) fn relay(&self, caller: &Caller, job: &JobView) -> Result<RelaySocket, Problem> {
        let number = job.number;
        let is_own = caller.uid == 0 || (caller.uid == job.uid && job.output.is_some());
        if !is_own {
            let message = format!("job {number} is another user's; only that user and root attach to it");
            return Err(problem(ProblemCode::Forbidden, number, message));
        }
        if !matches!(job.phase, Phase::Running(_) | Phase::Suspended(_) | Phase::Opportunistic { .. }) {
            return Err(problem(ProblemCode::Conflict, number, format!("job {number} does not run now")));
        }
        let attempt = Attempt { job: number, nth: job.attempts };
        let folder = self.executor.attempt_folder(attempt);
        // The relay listens before that.
        if !folder.join("started.json").exists() {
            return Err(problem(
                ProblemCode::Unavailable,
                number,
                format!("job {number} is starting; try again"),
            ));
        }
        RelaySocket::connect(&folder).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                let message = format!(
                    "job {number} has no terminal and takes no input; submit it with `miserly run` to attach to it"
                );
                problem(ProblemCode::Conflict, number, message)
            }
            _ => problem(ProblemCode::Unavailable, number, format!("the relay of job {number}: {error}")),
        })
    }

    /// Returns a part of an output file. `job` is what the caller may see of it.
    ///
    /// # Errors
    /// The caller may not read it, or the daemon cannot.
    pub(crate) fn output(&self, job: &JobView, request: OutputRequest) -> Result<OutputPart, Problem> {
        let number = job.number;
        let Some(path) = (if request.error { &job.error } else { &job.output }) else {
            let message = format!("job {number} is another user's; its output is private");
            return Err(problem(ProblemCode::Forbidden, number, message));
        };
        // The user of the job has chosen the path, and must not read by the rights of another user.
        if self.executor.client().is_some() {
            let message = format!("the output of job {number} belongs to its user; read {}", path.display());
            return Err(problem(ProblemCode::Forbidden, number, message));
        }
        read(path, job.uid, request.from).map_err(|error| {
            let code = match error.kind() {
                ErrorKind::NotFound => ProblemCode::NotFound,
                ErrorKind::InvalidInput => ProblemCode::Conflict,
                _ => ProblemCode::Unavailable,
            };
            problem(code, number, format!("cannot read {}: {error}", path.display()))
        })
    }
}

/// Reads a part of an output file of a user.
fn read(path: &Path, uid: u32, from: u64) -> io::Result<OutputPart> {
    let file = open_output(path, uid)?;
    let length = file.metadata()?.len();
    let size = usize::try_from(length.saturating_sub(from).min(OUTPUT_PART)).unwrap_or(0);
    let mut bytes = vec![0; size];
    let mut read = 0;
    while read < size {
        match file.read_at(&mut bytes[read..], from + read as u64) {
            // The job has shortened it.
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(read);
    Ok(OutputPart { bytes, length })
}

fn problem(code: ProblemCode, job: i64, message: String) -> Problem {
    Problem { job: Some(job), ..Problem::new(code, message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_bounded_and_of_a_regular_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        std::fs::write(&path, vec![b'x'; usize::try_from(OUTPUT_PART).unwrap() + 10]).unwrap();
        let own = rustix::process::geteuid().as_raw();
        let read = |path: &Path, from| read(path, own, from);
        let part = |from| read(&path, from).map(|part| (part.bytes.len() as u64, part.length)).unwrap();
        let length = OUTPUT_PART + 10;
        assert_eq!(part(0), (OUTPUT_PART, length));
        assert_eq!(part(OUTPUT_PART), (10, length));
        assert_eq!([part(length), part(u64::MAX)], [(0, length); 2]);
        assert_eq!(read(folder.path(), 0).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(read(&folder.path().join("gone"), 0).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(read(Path::new("/dev/zero"), 0).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
