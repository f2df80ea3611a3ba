//! The routes: each is one request to the service.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use miserly_api::model::{
    BeginStepRequest, CancelRequest, ChangeRequest, ChangedJobs, DaemonEvent, DrainRequest, EndStepRequest,
    ExtendRequest, Filter, HoldStartsRequest, JobChange, JobIds, JobView, LimitsReport, ModifyRequest, Moves,
    OUTPUT_LENGTH, OutputRequest, Pools, Problem, ProblemCode, Quote, RemoveReservation, Reservation,
    ResizeRequest, ShadowFilter, ShadowReport, SignalRequest, Status, StepNumber, Submission, Submitted,
    TakeBackRequest, WhatIf, WhatIfAnswer,
};
use miserly_engine::DaemonRequest;

use super::documented::Documented;
use super::extract::{Dispatcher, Filtered, JobNumber, JsonBody};
use super::response::{ErrorResponse, ReplyBody};
use super::service::Service;

/// Returns all routes and their document.
fn routes<S: Service>() -> (Router<S>, String) {
    let (router, document) = Documented::new()
        .with::<__path_submit, _>(submit::<S>)
        .with::<__path_quote, _>(quote::<S>)
        .with::<__path_what_if, _>(what_if::<S>)
        .with::<__path_shadow, _>(shadow::<S>)
        .with::<__path_jobs, _>(jobs::<S>)
        .with::<__path_job, _>(job::<S>)
        .with::<__path_wait, _>(wait::<S>)
        .with::<__path_change, _>(change::<S>)
        .with::<__path_cancel, _>(cancel::<S>)
        .with::<__path_hold, _>(hold::<S>)
        .with::<__path_release, _>(release::<S>)
        .with::<__path_requeue, _>(requeue::<S>)
        .with::<__path_extend, _>(extend::<S>)
        .with::<__path_signal, _>(signal::<S>)
        .with::<__path_begin_step, _>(begin_step::<S>)
        .with::<__path_end_step, _>(end_step::<S>)
        .with::<__path_resize, _>(resize::<S>)
        .with::<__path_pause, _>(pause::<S>)
        .with::<__path_resume, _>(resume::<S>)
        .with::<__path_modify, _>(modify::<S>)
        .with::<__path_preview, _>(preview::<S>)
        .with::<__path_pools, _>(pools::<S>)
        .with::<__path_reservations, _>(reservations::<S>)
        .with::<__path_reserve, _>(reserve::<S>)
        .with::<__path_remove_reservation, _>(remove_reservation::<S>)
        .with::<__path_limits, _>(limits::<S>)
        .with::<__path_status, _>(status::<S>)
        .with::<__path_attach, _>(attach::<S>)
        .with::<__path_output, _>(output::<S>)
        .with::<__path_events, _>(events::<S>)
        .with::<__path_metrics, _>(metrics::<S>)
        .with::<__path_drain, _>(drain::<S>)
        .with::<__path_hold_starts, _>(hold_starts::<S>)
        .with::<__path_openapi, _>(openapi)
        .build();
    (router, serde_json::to_string(&document).unwrap_or_default())
}

/// Returns the OpenAPI document, as JSON.
pub(crate) fn openapi_document<S: Service>() -> String {
    routes::<S>().1
}

/// Returns the router of all routes.
pub(super) fn router<S: Service>(service: S) -> Router {
    let (router, document) = routes();
    router
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(Extension(Document(document.into())))
        .with_state(service)
}

#[derive(Clone)]
struct Document(Arc<str>);

async fn not_found(uri: Uri) -> ErrorResponse {
    let message = format!("there is nothing at {}; /v1/openapi.json lists what there is", uri.path());
    ErrorResponse::new(StatusCode::NOT_FOUND, ProblemCode::NotFound, message)
}

async fn method_not_allowed(method: Method, uri: Uri) -> ErrorResponse {
    let message = format!("{} takes no {method}; /v1/openapi.json lists what it takes", uri.path());
    ErrorResponse::new(StatusCode::METHOD_NOT_ALLOWED, ProblemCode::Malformed, message)
}

/// Declares an operation: its handler, which dispatches one request, and its part of the document.
macro_rules! operation {
    (
        $(#[$doc:meta])*
        $name:ident($($input:pat => $type:ty),*) -> $request:expr;
        $method:tt $path:tt ($($parameters:tt)*) $status:tt $description:tt $reply:tt
    ) => {
        $(#[$doc])*
        #[utoipa::path(
            $method,
            path = $path,
            $($parameters)*
            responses(
                (status = $status, description = $description, body = $reply),
                (status = "default", description = "the problem; nothing was done", body = Problem)
            )
        )]
        async fn $name<S: Service>(dispatcher: Dispatcher<S>, $($input: $type),*) -> Result<ReplyBody, ErrorResponse> {
            dispatcher.dispatch($request).await
        }
    };
}

operation! {
    /// Accepts a job or an array of jobs. The response is sent when the jobs and their promises are
    /// on disk.
    submit(JsonBody(submission) => JsonBody<Submission>) -> DaemonRequest::Submit(submission);
    post "/v1/jobs" (request_body = Submission,) 201 "the accepted jobs" Submitted
}

operation! {
    /// Returns the promises that a submission would get now. They are not binding.
    quote(JsonBody(submission) => JsonBody<Submission>) -> DaemonRequest::Quote(submission);
    post "/v1/quote" (request_body = Submission,) 200 "the promises" Quote
}

operation! {
    /// Returns how the starts of waiting jobs would change with a further job, another policy, or without a user.
    what_if(JsonBody(question) => JsonBody<WhatIf>) -> DaemonRequest::WhatIf(Box::new(question));
    post "/v1/what-if" (request_body = WhatIf,) 200 "the differences" WhatIfAnswer
}

operation! {
    /// Returns what other policies would have done, on the events of the queues and with the runtimes that came out.
    shadow(Filtered(filter) => Filtered<ShadowFilter>) -> DaemonRequest::Shadow(filter);
    get "/v1/shadow" (params(ShadowFilter),) 200 "the shadows" ShadowReport
}

operation! {
    /// Returns jobs, by number.
    jobs(Filtered(filter) => Filtered<Filter>) -> DaemonRequest::Jobs(filter);
    get "/v1/jobs" (params(Filter),) 200 "the jobs" [JobView]
}

operation! {
    /// Returns one job.
    job(JobNumber(job) => JobNumber) -> DaemonRequest::Job(job);
    get "/v1/jobs/{n}" (params(("n" = i64, Path, description = "the job's number")),) 200 "the job" JobView
}

operation! {
    /// Returns one job once it has ended. The response takes as long as the job.
    wait(JobNumber(job) => JobNumber) -> DaemonRequest::Wait(job);
    get "/v1/jobs/{n}/wait" (params(("n" = i64, Path, description = "the job's number")),)
    200 "the ended job" JobView
}

operation! {
    /// Changes several jobs: those of a list of ranges, or those that a filter admits. All changes are one commit.
    change(JsonBody(request) => JsonBody<ChangeRequest>) -> DaemonRequest::Change(Box::new(request));
    post "/v1/jobs/change" (request_body = ChangeRequest,) 200 "the changed jobs, and those that were refused" ChangedJobs
}

operation! {
    /// Cancels a job, or all jobs of an array.
    cancel(JobNumber(job) => JobNumber, JsonBody(CancelRequest { array }) => JsonBody<CancelRequest>)
    -> DaemonRequest::Cancel { job, array };
    post "/v1/jobs/{n}/cancel"
    (params(("n" = i64, Path, description = "the job's number, or its array's")), request_body = CancelRequest,)
    200 "the cancelled jobs" JobIds
}

operation! {
    /// Holds a waiting job. It loses its window.
    hold(JobNumber(job) => JobNumber, JsonBody(TakeBackRequest { move_promises }) => JsonBody<TakeBackRequest>)
    -> DaemonRequest::Hold { job, move_promises };
    post "/v1/jobs/{n}/hold"
    (params(("n" = i64, Path, description = "the job's number")), request_body = TakeBackRequest,)
    200 "the held job" JobIds
}

operation! {
    /// Releases a held job. It gets a new window.
    release(JobNumber(job) => JobNumber) -> DaemonRequest::Release(job);
    post "/v1/jobs/{n}/release" (params(("n" = i64, Path, description = "the job's number")),)
    200 "the released job" JobIds
}

operation! {
    /// Ends a running job and queues it again.
    requeue(JobNumber(job) => JobNumber, JsonBody(TakeBackRequest { move_promises }) => JsonBody<TakeBackRequest>)
    -> DaemonRequest::Requeue { job, move_promises };
    post "/v1/jobs/{n}/requeue"
    (params(("n" = i64, Path, description = "the job's number")), request_body = TakeBackRequest,)
    200 "the requeued job" JobIds
}

operation! {
    /// Extends a job's window, unless that would break a promise.
    extend(JobNumber(job) => JobNumber, JsonBody(ExtendRequest { by }) => JsonBody<ExtendRequest>)
    -> DaemonRequest::Extend { job, by };
    post "/v1/jobs/{n}/extend"
    (params(("n" = i64, Path, description = "the job's number")), request_body = ExtendRequest,)
    200 "the job with its longer window" JobView
}

operation! {
    /// Changes the most processors that a resizable job wants.
    resize(JobNumber(job) => JobNumber, JsonBody(ResizeRequest { cpus }) => JsonBody<ResizeRequest>)
    -> DaemonRequest::Resize { job, cpus };
    post "/v1/jobs/{n}/resize"
    (params(("n" = i64, Path, description = "the job's number")), request_body = ResizeRequest,)
    200 "the job" JobIds
}

operation! {
    /// Sends a signal to the processes of a running job.
    signal(JobNumber(job) => JobNumber, JsonBody(signal) => JsonBody<SignalRequest>)
    -> DaemonRequest::Signal { job, signal };
    post "/v1/jobs/{n}/signal"
    (params(("n" = i64, Path, description = "the job's number")), request_body = SignalRequest,)
    200 "the job" JobIds
}

operation! {
    /// Records the start of a step of a running job: tasks that its commands start.
    begin_step(JobNumber(job) => JobNumber, JsonBody(step) => JsonBody<BeginStepRequest>)
    -> DaemonRequest::BeginStep { job, step };
    post "/v1/jobs/{n}/steps"
    (params(("n" = i64, Path, description = "the job's number")), request_body = BeginStepRequest,)
    200 "the number of the step" StepNumber
}

operation! {
    /// Records the end of a step of a running job.
    end_step(JobNumber(job) => JobNumber, JsonBody(end) => JsonBody<EndStepRequest>)
    -> DaemonRequest::EndStep { job, end };
    post "/v1/jobs/{n}/steps/end"
    (params(("n" = i64, Path, description = "the job's number")), request_body = EndStepRequest,)
    200 "the number of the step" StepNumber
}

operation! {
    /// Stops the processes of a job in its window. The window goes on.
    pause(JobNumber(job) => JobNumber) -> DaemonRequest::Pause { job, on: true };
    post "/v1/jobs/{n}/pause" (params(("n" = i64, Path, description = "the job's number")),)
    200 "the paused job" JobIds
}

operation! {
    /// Lets the processes of a paused job continue.
    resume(JobNumber(job) => JobNumber) -> DaemonRequest::Pause { job, on: false };
    post "/v1/jobs/{n}/resume" (params(("n" = i64, Path, description = "the job's number")),)
    200 "the job" JobIds
}

operation! {
    /// Changes a waiting job, unless that would break a promise. Returns the promises that moved.
    modify(JobNumber(job) => JobNumber, JsonBody(ModifyRequest { changes, move_promises }) => JsonBody<ModifyRequest>)
    -> DaemonRequest::Modify { job, changes: Box::new(changes), move_promises };
    post "/v1/jobs/{n}/modify"
    (params(("n" = i64, Path, description = "the job's number")), request_body = ModifyRequest,)
    200 "the changed job" Moves
}

operation! {
    /// Returns the promises that a change of a job would move. Nothing changes.
    preview(JobNumber(job) => JobNumber, JsonBody(change) => JsonBody<JobChange>)
    -> DaemonRequest::Preview { job, change: Box::new(change) };
    post "/v1/jobs/{n}/preview"
    (params(("n" = i64, Path, description = "the job's number")), request_body = JobChange,)
    200 "the promises" Moves
}

operation! {
    /// Returns the free capacity of the pools from now on.
    pools() -> DaemonRequest::Pools;
    get "/v1/pools" () 200 "the pools" Pools
}

operation! {
    /// Returns the reservations, by their next time.
    reservations() -> DaemonRequest::Reservations;
    get "/v1/reservations" () 200 "the reservations" [Reservation]
}

operation! {
    /// Reserves a part of a pool for some users, at some times, unless a promise would break. For operators.
    reserve(JsonBody(reservation) => JsonBody<Reservation>) -> DaemonRequest::Reserve(Box::new(reservation));
    post "/v1/reservations" (request_body = Reservation,) 200 "the reservation" [Reservation]
}

operation! {
    /// Removes a reservation without unfinished jobs. For operators.
    remove_reservation(JsonBody(RemoveReservation { name }) => JsonBody<RemoveReservation>)
    -> DaemonRequest::RemoveReservation(name);
    post "/v1/reservations/remove" (request_body = RemoveReservation,) 200 "the removed one" [Reservation]
}

operation! {
    /// Returns the limits of the user of the request, and their use.
    limits() -> DaemonRequest::Limits;
    get "/v1/limits" () 200 "the limits" LimitsReport
}

operation! {
    /// Returns the state of the daemon.
    status() -> DaemonRequest::Status;
    get "/v1/status" () 200 "the state" Status
}

operation! {
    /// Makes the daemon reject new jobs, or accept them again.
    drain(JsonBody(DrainRequest { on }) => JsonBody<DrainRequest>) -> DaemonRequest::Drain(on);
    post "/v1/drain" (request_body = DrainRequest,) 200 "done" JobIds
}

operation! {
    /// Withdraws all shims that wait for windows, so that nothing starts without the daemon; or ends that.
    hold_starts(JsonBody(HoldStartsRequest { on }) => JsonBody<HoldStartsRequest>) -> DaemonRequest::HoldStarts(on);
    post "/v1/hold-starts" (request_body = HoldStartsRequest,) 200 "done" JobIds
}

/// Sends the unfinished jobs, and then each change of a job, as server-sent events. The stream lasts until one side ends it.
///
/// The name of an event is its kind, and its number is that of the commit. With `Last-Event-ID` the stream begins with the
/// changes after that event, if the daemon remembers them, and without a snapshot.
#[utoipa::path(
    get,
    path = "/v1/events",
    params(("Last-Event-ID" = Option<i64>, Header, description = "the number of the last event that the client has")),
    responses(
        (status = 200, description = "events; the data of each is this without its kind", body = DaemonEvent,
         content_type = "text/event-stream"),
        (status = "default", description = "the problem; there is no stream", body = Problem)
    )
)]
async fn events<S: Service>(
    dispatcher: Dispatcher<S>,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    dispatcher.events(&headers).await
}

/// Attaches the client to the input or the terminal of its job, which runs and has an `interaction`.
///
/// After the response the connection is that of the job's relay, and carries its frames. The client sends none before it.
#[utoipa::path(
    post,
    path = "/v1/jobs/{n}/attach",
    params(("n" = i64, Path, description = "the job's number")),
    responses(
        (status = 101, description = "the relay answers from here on"),
        (status = "default", description = "the problem; the client is not attached", body = Problem)
    )
)]
async fn attach<S: Service>(
    dispatcher: Dispatcher<S>,
    JobNumber(job): JobNumber,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    dispatcher.attach(job, &headers).await
}

/// Returns a part of an output file of a job, at most 1 MiB of it. The header `miserly-length` is the length of the whole file.
///
/// The files of a daemon with `user` in its configuration belong to the users of the jobs, and are not read by it.
#[utoipa::path(
    get,
    path = "/v1/jobs/{n}/output",
    params(("n" = i64, Path, description = "the job's number"), OutputRequest),
    responses(
        (status = 200, description = "bytes of the file", body = String, content_type = "application/octet-stream"),
        (status = "default", description = "the problem; there are no bytes", body = Problem)
    )
)]
async fn output<S: Service>(
    dispatcher: Dispatcher<S>,
    JobNumber(job): JobNumber,
    Filtered(request): Filtered<OutputRequest>,
) -> Result<Response, ErrorResponse> {
    let part = dispatcher.output(job, request).await?;
    let head = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (HeaderName::from_static(OUTPUT_LENGTH), part.length.to_string()),
    ];
    Ok((head, part.bytes).into_response())
}

/// The media type of metrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns the metrics of the daemon, as `OpenMetrics` text. They name queues and users, and no job.
#[utoipa::path(
    get,
    path = "/v1/metrics",
    responses(
        (status = 200, description = "the metrics", body = String, content_type = "application/openmetrics-text"),
        (status = "default", description = "the problem; there are no metrics", body = Problem)
    )
)]
async fn metrics<S: Service>(dispatcher: Dispatcher<S>) -> Result<Response, ErrorResponse> {
    let text = dispatcher.metrics().await?;
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response())
}

/// Returns this document.
#[utoipa::path(
    get,
    path = "/v1/openapi.json",
    responses((status = 200, description = "an OpenAPI document", body = serde_json::Value))
)]
async fn openapi(Extension(Document(text)): Extension<Document>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text.to_string()).into_response()
}
