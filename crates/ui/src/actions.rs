//! Requests to the daemon on behalf of the user of the page.

use std::path::Path;

use axum::http::StatusCode;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use miserly_api::client::{Client, ClientError, DaemonSocket};
use miserly_api::model::{
    ChangeRequest, ChangedJobs, Filter, JobChange, JobView, Quote, Selection, StateName, Submission,
};
use miserly_view::{Clock, MOVES_NAMED, counted, moved_promises};
use serde::{Deserialize, Serialize};

use crate::answer::Refusal;

/// A change of a job.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Action {
    /// Ends a running job, or withdraws a waiting one.
    Cancel,
    /// Holds a waiting job.
    Hold,
    /// Releases a held job.
    Release,
    /// Extends the time limit of a job.
    Extend {
        /// The seconds.
        by: f64,
    },
}

impl From<Action> for JobChange {
    fn from(action: Action) -> JobChange {
        match action {
            Action::Cancel => JobChange::Cancel,
            Action::Hold => JobChange::Hold,
            Action::Release => JobChange::Release,
            Action::Extend { by } => JobChange::Extend(by),
        }
    }
}

/// The end of the output of a job.
#[derive(Debug, Serialize)]
pub(crate) struct Tail {
    /// The text; bytes that are no text are replaced.
    text: String,
    /// The size of the whole output, bytes.
    size: u64,
    /// Whether the begin is left out.
    cut: bool,
}

/// A job that is not submitted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    cpus: u64,
    /// The time limit, seconds.
    time: f64,
    queue: Option<String>,
}

/// Asks the daemon on a thread that may wait.
async fn ask<T: Send + 'static>(
    socket: DaemonSocket,
    question: impl FnOnce(&Client) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let task = move || {
        let path = socket.path.clone();
        let client =
            Client::from_socket(socket).map_err(|error| ClientError::NoDaemon { socket: path, error })?;
        question(&client)
    };
    let failed = |_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the request to the daemon failed");
    tokio::task::spawn_blocking(task).await.map_err(failed)?
}

impl Action {
    /// Returns the jobs of an array to which it applies.
    fn jobs_of(self, array: i64) -> Selection {
        let states = match self {
            Action::Cancel => vec![],
            Action::Hold => vec![StateName::Waiting],
            Action::Release => vec![StateName::Held],
            Action::Extend { .. } => vec![StateName::Running],
        };
        Selection { states, ..Selection::of_array(array) }
    }
}

/// Changes a job.
pub(crate) async fn change(socket: DaemonSocket, job: i64, action: Action) -> Result<(), Refusal> {
    ask(socket, move |client| Ok(client.change(job, &action.into())?)).await
}

/// Changes the jobs of an array by one request. Returns what became of them, in words.
pub(crate) async fn change_array(
    socket: DaemonSocket,
    array: i64,
    action: Action,
) -> Result<Vec<String>, Refusal> {
    let request =
        ChangeRequest { change: action.into(), select: action.jobs_of(array), move_promises: false };
    ask(socket, move |client| Ok(outcome(&client.change_jobs(&request)?))).await
}

fn outcome(changed: &ChangedJobs) -> Vec<String> {
    let refused = changed.refused.iter().map(|refused| {
        let jobs: Vec<String> = refused.jobs.iter().map(ToString::to_string).collect();
        format!("refused for {}: {}", jobs.join(", "), refused.problem.message)
    });
    let done = format!("{} changed", counted(changed.jobs.len() as u64, "job"));
    std::iter::once(done).chain(refused).collect()
}

/// Returns the promises that a change of a job would move, in words.
pub(crate) async fn preview(socket: DaemonSocket, job: i64, action: Action) -> Result<Vec<String>, Refusal> {
    ask(socket, move |client| {
        let moves = client.preview(job, &action.into())?;
        let (clock, now) = (Clock::Wall(TimeZone::system()), Timestamp::now());
        let text = |at: Timestamp| clock.latest(at.as_millisecond(), now.as_millisecond());
        Ok(moved_promises(&moves, now, MOVES_NAMED, text))
    })
    .await
}

/// Returns how many jobs of an array would change, in words.
pub(crate) async fn preview_array(
    socket: DaemonSocket,
    array: i64,
    action: Action,
) -> Result<Vec<String>, Refusal> {
    ask(socket, move |client| {
        let states = action.jobs_of(array).states;
        let jobs = client.all_jobs(&Filter { array: Some(array), ..Filter::default() })?;
        let admitted =
            |job: &&JobView| states.is_empty() || states.iter().any(|state| state.admits(&job.phase));
        let count = jobs.iter().filter(admitted).count() as u64;
        let what = match action {
            Action::Cancel => "would end or be withdrawn",
            Action::Hold => "would be held",
            Action::Release => "would be released",
            Action::Extend { .. } => "would run longer",
        };
        Ok(vec![format!("{} {what}", counted(count, "job"))])
    })
    .await
}

/// Returns the end of the output of a job, with the rights of this process.
pub(crate) async fn log(socket: DaemonSocket, job: i64) -> Result<Tail, Refusal> {
    ask(socket, move |client| {
        let path = client.job(job)?.output;
        let private = || Refusal::new(StatusCode::FORBIDDEN, "the output of this job is private");
        tail(&path.ok_or_else(private)?).map_err(|error| Refusal::new(StatusCode::NOT_FOUND, error))
    })
    .await
}

fn tail(path: &Path) -> Result<Tail, String> {
    let found = miserly_follow::tail(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let none = || format!("{}: it is no file, so it has no end to show", path.display());
    let miserly_follow::Tail { text, size, cut } = found.ok_or_else(none)?;
    let lines = text.lines().map(|line| miserly_view::plain(&line.replace('\t', "        ")));
    Ok(Tail { text: lines.collect::<Vec<_>>().join("\n"), size, cut })
}

/// Returns the metrics of the daemon.
pub(crate) async fn metrics(socket: DaemonSocket) -> Result<String, Refusal> {
    ask(socket, |client| Ok(client.metrics()?)).await
}

/// Returns the promise that a job would get now.
pub(crate) async fn quote(socket: DaemonSocket, question: Question) -> Result<Quote, Refusal> {
    let submission = Submission {
        command: vec!["true".to_owned()],
        directory: "/".into(),
        cpus: question.cpus,
        time: question.time,
        queue: question.queue,
        ..Submission::default()
    };
    ask(socket, move |client| Ok(client.quote(&submission)?)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_output_has_no_control_characters() {
        let folder = std::env::temp_dir().join(format!("miserly-ui-tail-{}", std::process::id()));
        let text = format!("{}\u{1b}[2Jlast\n", "line\n".repeat(20_000));
        std::fs::write(&folder, text).unwrap();
        let tail = tail(&folder).unwrap();
        std::fs::remove_file(&folder).unwrap();
        assert!(tail.cut && tail.size == 100_009);
        assert!(tail.text.ends_with("line\n\u{fffd}[2Jlast"), "{:?}", &tail.text[tail.text.len() - 30..]);
        assert!(super::tail(Path::new("/dev/null")).unwrap_err().contains("no file"));
    }

    #[test]
    fn a_fifo_is_no_output() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let path = std::env::temp_dir().join(format!("miserly-ui-fifo-{}", std::process::id()));
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let refused = tail(&path).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert!(refused.contains("no file"), "{refused}");
    }
}
