//! Requests to the daemon on behalf of the user of the page.

use std::path::Path;
use std::time::Duration;

use axum::http::StatusCode;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use miserly_api::client::{Client, ClientError, DaemonSocket};
use miserly_api::model::{
    ChangeRequest, ChangedJobs, Filter, JobChange, JobView, ProblemCode, Quote, Selection, StateName,
    Submission,
};
use miserly_view::{
    Clock, Hole, JobDetail, MOVES_NAMED, Moment, PoolNow, counted, job_detail, moved_promises,
};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::time::Instant;

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

/// A part of the output of a job.
#[derive(Debug, Serialize)]
pub(crate) struct Tail {
    /// The text; bytes that are no text are replaced, and control characters but for the ends of lines and returns.
    text: String,
    /// The size of the whole output, bytes.
    size: u64,
    /// Whether something before it is left out.
    cut: bool,
    /// The first byte behind the text.
    end: u64,
}

/// A job that would start now.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Offer {
    queue: String,
    procs: u64,
    minutes: i64,
    /// Whether longer jobs start, too.
    any: bool,
}

/// The promise that a job would get, and whether that is a start at once: the page offers by the same rule.
#[derive(Debug, Serialize)]
pub(crate) struct QuoteAnswer {
    #[serde(flatten)]
    quote: Quote,
    starts_now: bool,
}

/// The time after which a page asks again what starts now. Until then the answers are used for all pages.
pub(crate) const OFFERS_EVERY: Duration = Duration::from_secs(15);

/// The most by which the clock of a page is ahead at its next question.
const EARLY_MOST: Duration = Duration::from_secs(1);

/// The most rooms of each pool on which the daemon is asked.
const OFFERS_MOST: usize = 4;

/// A later start is not one now: the slack of a promise, and the time of a request.
const NOW_MOST: SignedDuration = SignedDuration::from_secs(5);

/// The answers of the daemon on what starts now, which all pages share.
#[derive(Debug, Default)]
pub(crate) struct Offers(Mutex<Option<(Instant, Vec<Offer>)>>);

impl Offers {
    /// Returns the free rooms in which the daemon would start a job now.
    pub(crate) async fn of(&self, socket: DaemonSocket, moment: &Moment) -> Result<Vec<Offer>, Refusal> {
        let mut last = self.0.lock().await;
        if let Some((_, offers)) = last.as_ref().filter(|(at, _)| at.elapsed() + EARLY_MOST < OFFERS_EVERY) {
            return Ok(offers.clone());
        }
        let (rooms, asked) = (rooms(moment), Instant::now());
        let kept = ask(socket, move |client| {
            let mut kept = vec![];
            for offer in rooms {
                if starts_as_offered(client, &offer)? {
                    kept.push(offer);
                }
            }
            Ok(kept)
        })
        .await?;
        *last = Some((asked, kept.clone()));
        Ok(kept)
    }
}

/// Returns whether the daemon would start a job of this size now.
fn starts_as_offered(client: &Client, offer: &Offer) -> Result<bool, ClientError> {
    let question =
        Question { cpus: offer.procs, time: 60.0 * offer.minutes as f64, queue: Some(offer.queue.clone()) };
    match client.quote(&question.submission()) {
        Ok(quote) => Ok(starts_now(&quote, Timestamp::now())),
        // A queue may refuse such a job whatever is free.
        Err(ClientError::Refused(problem)) if !is_of_daemon(problem.code) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns whether a problem says nothing of the request: the daemon has no answer to any one now.
fn is_of_daemon(code: ProblemCode) -> bool {
    matches!(code, ProblemCode::Unavailable | ProblemCode::Storage | ProblemCode::Internal)
}

/// Returns the free rooms of the pools, in minutes.
fn rooms(moment: &Moment) -> Vec<Offer> {
    let of_pool = |pool: &PoolNow| {
        let queue = pool.facts.name.clone();
        let room = move |hole: &Hole| {
            let minutes = hole.until.map(|until| until.saturating_sub(moment.now) / 60_000);
            let offer = Offer {
                queue: queue.clone(),
                procs: hole.procs,
                minutes: minutes.unwrap_or(60),
                any: minutes.is_none(),
            };
            (offer.minutes > 0).then_some(offer)
        };
        pool.holes.iter().filter_map(room).take(OFFERS_MOST).collect::<Vec<Offer>>()
    };
    moment.pools.iter().flat_map(of_pool).collect()
}

/// Returns whether a job with this quote would start at once. A job without a promise or a forecast has no word of the daemon.
fn starts_now(quote: &Quote, now: Timestamp) -> bool {
    let window = quote.windows.first().and_then(|window| window.as_ref()).map(|window| window.start);
    let start = window.or(quote.forecast.map(|forecast| forecast.median));
    start.is_some_and(|start| start.duration_since(now) <= NOW_MOST)
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

impl Question {
    fn submission(&self) -> Submission {
        Submission {
            command: vec!["true".to_owned()],
            directory: "/".into(),
            cpus: self.cpus,
            time: self.time,
            queue: self.queue.clone(),
            ..Submission::default()
        }
    }
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

/// Returns the details of a job.
pub(crate) async fn detail(socket: DaemonSocket, job: i64) -> Result<JobDetail, Refusal> {
    let clock = Clock::Wall(TimeZone::system());
    ask(socket, move |client| Ok(job_detail(&client.job(job)?, &clock))).await
}

/// Returns the end of the output of a job of this process's user, or what follows a byte of it.
pub(crate) async fn log(socket: DaemonSocket, job: i64, from: Option<u64>) -> Result<Tail, Refusal> {
    ask(socket, move |client| {
        let JobView { uid, output, .. } = client.job(job)?;
        // The user of a job chooses the path.
        if uid != rustix::process::geteuid().as_raw() {
            return Err(Refusal::new(StatusCode::FORBIDDEN, "only one's own outputs are shown"));
        }
        let private = || Refusal::new(StatusCode::FORBIDDEN, "the output of this job is private");
        tail(&output.ok_or_else(private)?, from).map_err(|error| Refusal::new(StatusCode::NOT_FOUND, error))
    })
    .await
}

fn tail(path: &Path, from: Option<u64>) -> Result<Tail, String> {
    let found = miserly_follow::part(path, from).map_err(|error| format!("{}: {error}", path.display()))?;
    let none = || format!("{}: it is no file, so it has no end to show", path.display());
    let miserly_follow::Tail { text, size, cut, end } = found.ok_or_else(none)?;
    let part = |text: &str| miserly_view::plain(&text.replace('\t', "        "));
    let line = |line: &str| line.split('\r').map(part).collect::<Vec<_>>().join("\r");
    Ok(Tail { text: text.split('\n').map(line).collect::<Vec<_>>().join("\n"), size, cut, end })
}

/// Returns the metrics of the daemon.
pub(crate) async fn metrics(socket: DaemonSocket) -> Result<String, Refusal> {
    ask(socket, |client| Ok(client.metrics()?)).await
}

/// Returns the promise that a job would get now.
pub(crate) async fn quote(socket: DaemonSocket, question: Question) -> Result<QuoteAnswer, Refusal> {
    ask(socket, move |client| {
        let quote = client.quote(&question.submission())?;
        Ok(QuoteAnswer { starts_now: starts_now(&quote, Timestamp::now()), quote })
    })
    .await
}

#[cfg(test)]
mod tests {
    use miserly_api::model::{ForecastView, Window};
    use miserly_view::{Facts, PoolFacts};

    use super::*;

    #[test]
    fn the_end_of_an_output_has_no_control_characters() {
        let folder = std::env::temp_dir().join(format!("miserly-ui-tail-{}", std::process::id()));
        let text = format!("{}\u{1b}[2Jlast\n", "line\n".repeat(20_000));
        std::fs::write(&folder, text).unwrap();
        let tail = tail(&folder, None).unwrap();
        std::fs::remove_file(&folder).unwrap();
        assert!(tail.cut && tail.size == 100_009);
        assert!(tail.text.ends_with("line\n\u{fffd}[2Jlast\n"), "{:?}", &tail.text[tail.text.len() - 30..]);
        assert!(super::tail(Path::new("/dev/null"), None).unwrap_err().contains("no file"));
    }

    #[test]
    fn room_of_less_than_a_minute_is_not_offered() {
        let offered = |until: Option<i64>| {
            let mut moment = Moment::without_jobs(&facts());
            moment.pools[0].holes = vec![Hole { procs: 8, until, memory: 0 }];
            rooms(&moment).into_iter().map(|offer| (offer.minutes, offer.any)).collect::<Vec<_>>()
        };
        assert_eq!(offered(Some(59_999)), []);
        assert_eq!(offered(Some(60_000)), [(1, false)]);
        assert_eq!(offered(None), [(60, true)]);
    }

    #[test]
    fn only_a_start_at_once_is_offered() {
        let at = |secs| Timestamp::from_second(secs).unwrap();
        let promised =
            |secs| Quote { windows: vec![Some(Window { start: at(secs), end: at(99) })], forecast: None };
        assert!(starts_now(&promised(15), at(10)) && !starts_now(&promised(16), at(10)));
        let likely = |secs| ForecastView { made: at(0), median: at(secs), by_80: None, by_95: None };
        let unpromised = |forecast| Quote { windows: vec![None], forecast };
        assert!(starts_now(&unpromised(Some(likely(10))), at(10)) && !starts_now(&unpromised(None), at(10)));
    }

    fn facts() -> Facts {
        let pool = PoolFacts { name: "batch".into(), cpus: 8, ..PoolFacts::default() };
        Facts { live: true, pools: vec![pool], ..crate::no_facts() }
    }

    #[test]
    fn a_fifo_is_no_output() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let path = std::env::temp_dir().join(format!("miserly-ui-fifo-{}", std::process::id()));
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let refused = tail(&path, None).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert!(refused.contains("no file"), "{refused}");
    }
}
