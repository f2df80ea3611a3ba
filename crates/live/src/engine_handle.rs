//! The service behind the daemon's socket.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use miserly_api::model::{
    self, JobView, OutputRequest, Phase, Problem, ProblemCode, StateDamage, Status, Submission, WaitReason,
};
use miserly_cgroup::{Pressure, Resource, Stall};
use miserly_engine::{Caller, Credential, DaemonReply, DaemonRequest, Input, Requester, Snapshots};
use miserly_executor::{ResealRequest, SealError};
use miserly_launch::RelaySocket;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Semaphore, oneshot};

use crate::audit::OperatorAction;
use crate::claim::Claim;
use crate::clock::BootClock;
use crate::crash_point::{self, CrashPoint};
use crate::events::{EventReader, Events};
use crate::forecasts::Forecasts;
use crate::job_access::JobAccess;
use crate::metrics::Metrics;
use crate::process::{JobGroups, LauncherNotes};
use crate::request_rate::RequestRate;
use crate::rereading::Readings;
use crate::server::{Client, ConnectionCounts, OutputPart, Service, StreamRequest};
use crate::shadow::Shadows;
use crate::store::{Damage, DamageSite, Readers, StateCheck};
use crate::{process, users};

/// The most submissions that are sealed at once. A look at the system's databases may wait for the network.
const SEALS: usize = 4;

/// The service behind the daemon's socket: the engine at the other end of a channel, and its
/// snapshots for requests that only read.
#[derive(Clone, Debug)]
pub(crate) struct EngineHandle {
    pub(crate) inputs: UnboundedSender<Input>,
    pub(crate) snapshots: Snapshots,
    pub(crate) ended: Readers,
    pub(crate) clock: BootClock,
    pub(crate) claim: Claim,
    pub(crate) rate: RequestRate,
    pub(crate) readings: Readings,
    pub(crate) check: StateCheck,
    pub(crate) notes: LauncherNotes,
    pub(crate) groups: JobGroups,
    pub(crate) forecasts: Forecasts,
    pub(crate) shadows: Shadows,
    pub(crate) events: Events,
    pub(crate) metrics: Metrics,
    /// One simulation on request at a time, whoever asks.
    pub(crate) simulating: Arc<Semaphore>,
    /// Seals submissions, if jobs run as their users.
    pub(crate) sealer: Option<Sealer>,
    pub(crate) access: JobAccess,
}

/// Has submissions sealed by the executor.
#[derive(Clone, Debug)]
pub(crate) struct Sealer {
    executor: miserly_executor::Client,
    turns: Arc<Semaphore>,
}

impl Sealer {
    pub(crate) fn new(executor: miserly_executor::Client) -> Sealer {
        Sealer { executor, turns: Arc::new(Semaphore::new(SEALS)) }
    }

    /// Returns the credential of a submission for the user at the other end of a connection.
    async fn credential(
        &self,
        connection: Option<Arc<OwnedFd>>,
        submission: &Submission,
    ) -> Result<Credential, Problem> {
        let submission = submission.clone();
        self.sealed(connection, move |executor, connection| executor.seal(connection, &submission)).await
    }

    /// Returns the credential of the changed submission of a job.
    async fn changed_credential(
        &self,
        connection: Option<Arc<OwnedFd>>,
        request: ResealRequest,
    ) -> Result<Credential, Problem> {
        self.sealed(connection, |executor, connection| executor.reseal(connection, request)).await
    }

    async fn sealed(
        &self,
        connection: Option<Arc<OwnedFd>>,
        seal: impl FnOnce(&miserly_executor::Client, BorrowedFd<'_>) -> Result<String, SealError> + Send + 'static,
    ) -> Result<Credential, Problem> {
        let unavailable = |message: String| Problem::new(ProblemCode::Unavailable, message);
        let connection = connection.ok_or_else(|| unavailable("the client is unknown".to_owned()))?;
        // Nobody closes the semaphore.
        let _turn = self.turns.acquire().await;
        let executor = self.executor.clone();
        match tokio::task::spawn_blocking(move || seal(&executor, connection.as_fd())).await {
            Ok(Ok(text)) => Ok(text.into()),
            Ok(Err(SealError::Refused(message))) => Err(Problem::new(ProblemCode::Forbidden, message)),
            Ok(Err(SealError::Unavailable(message))) => Err(unavailable(format!("{message}; try again"))),
            Err(error) => Err(unavailable(error.to_string())),
        }
    }
}

impl Service for EngineHandle {
    type Events = EventReader;

    fn needs_connections(&self) -> bool {
        self.sealer.is_some()
    }

    async fn events(&self, client: Client, request: StreamRequest) -> Result<EventReader, Problem> {
        self.rate.count(client.caller.uid)?;
        let caller = self.with_needed_account(client.caller).await;
        self.events.open(caller, request).await
    }

    async fn relay(&self, client: Client, job: i64) -> Result<RelaySocket, Problem> {
        self.rate.count(client.caller.uid)?;
        // Not as an operator: who attaches to a job acts as its user.
        let caller = client.caller;
        let job = self.job(caller.clone(), job).await?;
        let access = self.access.clone();
        on_a_thread(move || access.relay(&caller, &job)).await
    }

    async fn output(&self, client: Client, job: i64, request: OutputRequest) -> Result<OutputPart, Problem> {
        self.rate.count(client.caller.uid)?;
        let caller = self.with_needed_account(client.caller).await;
        let job = self.job(caller, job).await?;
        let access = self.access.clone();
        on_a_thread(move || access.output(&job, request)).await
    }

    async fn metrics(&self, client: Client, connections: ConnectionCounts) -> Result<String, Problem> {
        self.rate.count(client.caller.uid)?;
        let handle = self.clone();
        let text = move || {
            // The snapshot first: no event of it is later than now.
            let snapshot = handle.snapshots.latest();
            let state = snapshot.metrics(handle.clock.read());
            let programs = handle.notes.program_failures();
            handle.metrics.text(&state, handle.forecasts.record(), programs, connections)
        };
        tokio::task::spawn_blocking(text).await.unwrap_or_else(|error| {
            Err(Problem::new(ProblemCode::Internal, format!("the metrics could not be made: {error}")))
        })
    }

    async fn handle(&self, client: Client, request: DaemonRequest) -> Result<DaemonReply, Problem> {
        let Client { caller, connection } = client;
        self.rate.count(caller.uid)?;
        let mut request = request;
        let caller = match &mut request {
            DaemonRequest::Submit(submission) => {
                let caller = with_account(caller).await?;
                match &self.sealer {
                    Some(sealer) => {
                        // The seal names the queue.
                        if submission.queue.is_none() {
                            submission.queue = self.snapshots.latest().default_queue().map(ToOwned::to_owned);
                        }
                        let credential = Some(sealer.credential(connection, submission).await?);
                        Caller { credential, ..caller }
                    }
                    None => caller,
                }
            }
            DaemonRequest::Modify { job, changes, .. } => {
                let caller = self.with_needed_account(caller).await;
                let change = self.snapshots.latest().sealed_change(&caller, *job, changes);
                match (&self.sealer, change) {
                    (Some(sealer), Some((credential, before, after))) => {
                        let credential = credential.content().to_owned();
                        let request = ResealRequest { credential, before, after };
                        let credential = Some(sealer.changed_credential(connection, request).await?);
                        Caller { credential, ..caller }
                    }
                    _ => caller,
                }
            }
            DaemonRequest::Quote(_) | DaemonRequest::WhatIf(_) | DaemonRequest::Limits => {
                with_account(caller).await?
            }
            _ => self.with_needed_account(caller).await,
        };
        if self.is_read(&request) {
            return self.read(caller, request).await;
        }
        let action = OperatorAction::of(&self.snapshots.latest(), &caller, &request);
        // In the log of a daemon for one user, that user's own actions tell nothing.
        let own = self.sealer.is_none() && caller.uid == rustix::process::getuid().as_raw();
        let (sender, reply) = oneshot::channel();
        let gone = || Problem::new(ProblemCode::Unavailable, "the daemon is going away");
        let (request, requester) = (Box::new(request), Box::new(ReplyChannel(sender)));
        self.inputs.send(Input::Request { caller, request, requester }).map_err(|_| gone())?;
        let outcome = reply.await.map_err(|_| gone())?;
        if let Some(action) = action.filter(|_| !own) {
            action.log(&outcome);
        }
        outcome
    }
}

impl EngineHandle {
    /// Returns a caller with the account if the rights depend on it: it may be an operator. If nobody can tell now, it is none.
    async fn with_needed_account(&self, caller: Caller) -> Caller {
        if self.snapshots.latest().needs_account(&caller) {
            return with_account(caller.clone()).await.unwrap_or(caller);
        }
        caller
    }

    /// Returns what a caller may see of a job.
    async fn job(&self, caller: Caller, job: i64) -> Result<Box<JobView>, Problem> {
        match self.read(caller, DaemonRequest::Job(job)).await? {
            DaemonReply::Job(job) => Ok(job),
            other => Err(Problem::new(ProblemCode::Internal, format!("no job but {other:?}"))),
        }
    }

    /// Returns whether a request is answered from a snapshot. The end of an unfinished job is not in one.
    fn is_read(&self, request: &DaemonRequest) -> bool {
        match request {
            DaemonRequest::Wait(job) => !self.snapshots.latest().is_unfinished(*job),
            other => other.only_reads(),
        }
    }

    /// Adds to the status what the engine does not know.
    fn complete(&self, status: &mut Status) {
        status.shared_cpus = self.claim.shared();
        status.mailer = Some(self.events.has_mailer());
        status.reading = Some(self.readings.last());
        status.checking = !self.check.is_over();
        status.damage.extend(self.check.damages().into_iter().map(shown));
        status.launcher = self.notes.sentences();
        status.pressure = pressure(&self.groups);
        status.forecasts = self.forecasts.record();
    }

    /// Answers a request from the latest snapshot, on a thread of its own.
    async fn read(&self, caller: Caller, request: DaemonRequest) -> Result<DaemonReply, Problem> {
        let handle = self.clone();
        // A quote goes without a forecast in place of waiting. Nobody closes the semaphore.
        let turn = match &request {
            DaemonRequest::WhatIf(_) | DaemonRequest::Shadow(_) => {
                Arc::clone(&self.simulating).acquire_owned().await.ok()
            }
            DaemonRequest::Quote(_) => Arc::clone(&self.simulating).try_acquire_owned().ok(),
            _ => None,
        };
        let answer = move || {
            let turn = turn;
            // The snapshot first: no event of it is later than now.
            let snapshot = handle.snapshots.latest();
            let now = handle.clock.read();
            if let DaemonRequest::Quote(submission) = &request {
                let (mut quote, copy) =
                    snapshot.quote(now, &caller, submission, &process::check, &handle.ended)?;
                let forecast = |(copy, job)| handle.forecasts.of_copy(copy, job, now.wall);
                quote.forecast = copy.filter(|_| turn.is_some()).and_then(forecast);
                return Ok(DaemonReply::Quote(quote));
            }
            if let DaemonRequest::WhatIf(question) = &request {
                let copies = snapshot.what_if(now, &caller, question, &process::check, &handle.ended)?;
                let answer = handle.forecasts.answer(copies, now.wall)?;
                return Ok(DaemonReply::WhatIf(Box::new(answer)));
            }
            if let DaemonRequest::Shadow(filter) = &request {
                let report = handle.shadows.report(&snapshot, &caller, filter.since)?;
                return Ok(DaemonReply::Shadow(Box::new(report)));
            }
            let mut reply = snapshot.answer(now, &caller, &request, &handle.ended, &process::check)?;
            match &mut reply {
                DaemonReply::Status(status) => handle.complete(status),
                DaemonReply::Job(job) => {
                    complete_job(&handle.forecasts, &handle.notes.parked_jobs(), job);
                }
                DaemonReply::Jobs(jobs) => {
                    let parked = handle.notes.parked_jobs();
                    for job in jobs {
                        complete_job(&handle.forecasts, &parked, job);
                    }
                }
                _ => {}
            }
            Ok(reply)
        };
        on_a_thread(answer).await
    }
}

/// Adds to a job what the engine does not know: its forecast, and that it is parked because memory is short.
/// These are the jobs in `short`.
pub(crate) fn complete_job(forecasts: &Forecasts, short: &BTreeSet<i64>, job: &mut JobView) {
    forecasts.add_to(job);
    if let Phase::Opportunistic { parked, .. } = &mut job.phase
        && short.contains(&job.number)
    {
        *parked = true;
        job.reasons.push(WaitReason::MemoryShort);
    }
}

/// Returns the pressure on the machine and on the jobs, if the kernel reports any.
fn pressure(groups: &JobGroups) -> Option<model::Pressure> {
    let stall = |stall: Stall| {
        let [avg10, avg60, avg300] =
            [stall.avg10, stall.avg60, stall.avg300].map(|hundredths| f64::from(hundredths) / 100.0);
        model::Stall { avg10, avg60, avg300 }
    };
    let on = |cpu: Option<Pressure>, memory: Option<Pressure>| model::PressureOn {
        cpu: cpu.and_then(|cpu| cpu.some).map(stall),
        memory: memory.and_then(|memory| memory.some).map(stall),
        memory_full: memory.and_then(|memory| memory.full).map(stall),
    };
    let machine = on(Pressure::of_machine(Resource::Cpu), Pressure::of_machine(Resource::Memory));
    let jobs = groups.pressure().map(|(cpu, memory)| on(cpu, memory));
    let jobs = jobs.filter(|jobs| *jobs != model::PressureOn::default());
    let reported = machine != model::PressureOn::default() || jobs.is_some();
    reported.then_some(model::Pressure { machine, jobs })
}

fn shown(Damage { site, problem }: Damage) -> StateDamage {
    let job = if let DamageSite::Job(number) = site { Some(number) } else { None };
    StateDamage { part: site.to_string(), job, problem }
}

/// Returns the result of work that may wait for a disk.
async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Problem::new(ProblemCode::Internal, format!("the request could not be answered: {error}")))
    })
}

/// Returns a caller with the account that the user has now. The lookup may wait for the network, so it has a thread of its own.
async fn with_account(caller: Caller) -> Result<Caller, Problem> {
    let uid = caller.uid;
    let found = tokio::task::spawn_blocking(move || users::caller(uid)).await;
    match found.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(found) => Ok(found),
        // These need no account.
        Err(_) if uid == 0 || uid == rustix::process::getuid().as_raw() => Ok(caller),
        Err(error) => {
            let message = format!("user {uid} cannot be looked up now ({error}); try again");
            Err(Problem::new(ProblemCode::Unavailable, message))
        }
    }
}

/// The requester at the server's end of a channel.
#[derive(Debug)]
struct ReplyChannel(oneshot::Sender<Result<DaemonReply, Problem>>);

impl Requester for ReplyChannel {
    fn reply(self: Box<Self>, reply: Result<DaemonReply, Problem>) {
        crash_point::pass(CrashPoint::BeforeReply);
        // The requester may have gone.
        let _ = self.0.send(reply);
    }

    fn is_gone(&self) -> bool {
        self.0.is_closed()
    }
}
