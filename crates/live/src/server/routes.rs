//! The routes: each is one request to the service.

use std::sync::Arc;

use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use miserly_api::model::{
    CancelRequest, DrainRequest, ExtendRequest, Filter, JobIds, JobView, Pools, Problem, ProblemCode, Quote,
    Status, Submission, Submitted,
};
use miserly_engine::DaemonRequest;

use super::answer::{Body, Refusal};
use super::asked::{Ask, Asked, Number, Which};
use super::documented::Documented;
use super::service::Service;

type Answer = Result<Body, Refusal>;

/// Returns the router of all routes.
pub(super) fn router<S: Service>(service: S) -> Router {
    let (router, document) = Documented::new()
        .with::<__path_submit, _>(submit::<S>)
        .with::<__path_quote, _>(quote::<S>)
        .with::<__path_jobs, _>(jobs::<S>)
        .with::<__path_job, _>(job::<S>)
        .with::<__path_wait, _>(wait::<S>)
        .with::<__path_cancel, _>(cancel::<S>)
        .with::<__path_hold, _>(hold::<S>)
        .with::<__path_release, _>(release::<S>)
        .with::<__path_requeue, _>(requeue::<S>)
        .with::<__path_extend, _>(extend::<S>)
        .with::<__path_pools, _>(pools::<S>)
        .with::<__path_status, _>(status::<S>)
        .with::<__path_drain, _>(drain::<S>)
        .with::<__path_openapi, _>(openapi)
        .build();
    let document: Arc<str> = serde_json::to_string(&document).unwrap_or_default().into();
    router
        .fallback(nothing_there)
        .method_not_allowed_fallback(not_that_way)
        .layer(Extension(Document(document)))
        .with_state(service)
}

#[derive(Clone)]
struct Document(Arc<str>);

async fn nothing_there(uri: Uri) -> Refusal {
    let message = format!("there is nothing at {}; /v1/openapi.json lists what there is", uri.path());
    Refusal::new(StatusCode::NOT_FOUND, ProblemCode::NotFound, message)
}

async fn not_that_way(method: Method, uri: Uri) -> Refusal {
    let message = format!("{} takes no {method}; /v1/openapi.json lists what it takes", uri.path());
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, ProblemCode::Malformed, message)
}

/// Accepts a job or an array of jobs. The response is sent when the jobs and their promises are on
/// disk.
#[utoipa::path(
    post,
    path = "/v1/jobs",
    request_body = Submission,
    responses(
        (status = 201, description = "accepted", body = Submitted),
        (status = "default", description = "not accepted", body = Problem)
    )
)]
async fn submit<S: Service>(ask: Ask<S>, Asked(submission): Asked<Submission>) -> Answer {
    ask.about(DaemonRequest::Submit(submission)).await
}

/// Returns the promises that a submission would get now. They are not binding.
#[utoipa::path(
    post,
    path = "/v1/quote",
    request_body = Submission,
    responses(
        (status = 200, description = "what would be promised", body = Quote),
        (status = "default", description = "it would be refused", body = Problem)
    )
)]
async fn quote<S: Service>(ask: Ask<S>, Asked(submission): Asked<Submission>) -> Answer {
    ask.about(DaemonRequest::Quote(submission)).await
}

/// Returns jobs, by number.
#[utoipa::path(
    get,
    path = "/v1/jobs",
    params(Filter),
    responses(
        (status = 200, description = "the jobs", body = [JobView]),
        (status = "default", description = "no answer", body = Problem)
    )
)]
async fn jobs<S: Service>(ask: Ask<S>, Which(filter): Which) -> Answer {
    ask.about(DaemonRequest::Jobs(filter)).await
}

/// Returns one job.
#[utoipa::path(
    get,
    path = "/v1/jobs/{n}",
    params(("n" = i64, Path, description = "the job's number")),
    responses(
        (status = 200, description = "the job", body = JobView),
        (status = "default", description = "no answer", body = Problem)
    )
)]
async fn job<S: Service>(ask: Ask<S>, Number(job): Number) -> Answer {
    ask.about(DaemonRequest::Job(job)).await
}

/// Returns one job once it has ended. The response takes as long as the job.
#[utoipa::path(
    get,
    path = "/v1/jobs/{n}/wait",
    params(("n" = i64, Path, description = "the job's number")),
    responses(
        (status = 200, description = "the job, ended", body = JobView),
        (status = "default", description = "no answer", body = Problem)
    )
)]
async fn wait<S: Service>(ask: Ask<S>, Number(job): Number) -> Answer {
    ask.about(DaemonRequest::Wait(job)).await
}

/// Cancels a job, or all jobs of an array.
#[utoipa::path(
    post,
    path = "/v1/jobs/{n}/cancel",
    params(("n" = i64, Path, description = "the job's number, or its array's")),
    request_body = CancelRequest,
    responses(
        (status = 200, description = "on which jobs it was done", body = JobIds),
        (status = "default", description = "not done", body = Problem)
    )
)]
async fn cancel<S: Service>(
    ask: Ask<S>,
    Number(job): Number,
    Asked(CancelRequest { array }): Asked<CancelRequest>,
) -> Answer {
    ask.about(DaemonRequest::Cancel { job, array }).await
}

/// Holds a waiting job. It loses its window.
#[utoipa::path(
    post,
    path = "/v1/jobs/{n}/hold",
    params(("n" = i64, Path, description = "the job's number")),
    responses(
        (status = 200, description = "done", body = JobIds),
        (status = "default", description = "not done", body = Problem)
    )
)]
async fn hold<S: Service>(ask: Ask<S>, Number(job): Number) -> Answer {
    ask.about(DaemonRequest::Hold(job)).await
}

/// Releases a held job. It gets a new window.
#[utoipa::path(
    post,
    path = "/v1/jobs/{n}/release",
    params(("n" = i64, Path, description = "the job's number")),
    responses(
        (status = 200, description = "done", body = JobIds),
        (status = "default", description = "not done", body = Problem)
    )
)]
async fn release<S: Service>(ask: Ask<S>, Number(job): Number) -> Answer {
    ask.about(DaemonRequest::Release(job)).await
}

/// Ends a running job and queues it again.
#[utoipa::path(
    post,
    path = "/v1/jobs/{n}/requeue",
    params(("n" = i64, Path, description = "the job's number")),
    responses(
        (status = 200, description = "done", body = JobIds),
        (status = "default", description = "not done", body = Problem)
    )
)]
async fn requeue<S: Service>(ask: Ask<S>, Number(job): Number) -> Answer {
    ask.about(DaemonRequest::Requeue(job)).await
}

/// Extends a job's window, unless that would break a promise.
#[utoipa::path(
    post,
    path = "/v1/jobs/{n}/extend",
    params(("n" = i64, Path, description = "the job's number")),
    request_body = ExtendRequest,
    responses(
        (status = 200, description = "the job with its longer window", body = JobView),
        (status = "default", description = "not done", body = Problem)
    )
)]
async fn extend<S: Service>(
    ask: Ask<S>,
    Number(job): Number,
    Asked(ExtendRequest { by }): Asked<ExtendRequest>,
) -> Answer {
    ask.about(DaemonRequest::Extend { job, by }).await
}

/// Returns the free capacity of the pools from now on.
#[utoipa::path(
    get,
    path = "/v1/pools",
    responses(
        (status = 200, description = "the pools", body = Pools),
        (status = "default", description = "no answer", body = Problem)
    )
)]
async fn pools<S: Service>(ask: Ask<S>) -> Answer {
    ask.about(DaemonRequest::Pools).await
}

/// Returns the state of the daemon.
#[utoipa::path(
    get,
    path = "/v1/status",
    responses(
        (status = 200, description = "how it is", body = Status),
        (status = "default", description = "no answer", body = Problem)
    )
)]
async fn status<S: Service>(ask: Ask<S>) -> Answer {
    ask.about(DaemonRequest::Status).await
}

/// Makes the daemon reject new jobs, or accept them again.
#[utoipa::path(
    post,
    path = "/v1/drain",
    request_body = DrainRequest,
    responses(
        (status = 200, description = "done", body = JobIds),
        (status = "default", description = "not done", body = Problem)
    )
)]
async fn drain<S: Service>(ask: Ask<S>, Asked(DrainRequest { on }): Asked<DrainRequest>) -> Answer {
    ask.about(DaemonRequest::Drain(on)).await
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
