//! Responses in HTTP.

use axum::Json;
use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use miserly_api::model::{Problem, ProblemCode};
use miserly_engine::DaemonReply;

/// A problem and the HTTP status of its response.
#[derive(Debug)]
pub(super) struct ErrorResponse {
    pub(super) status: StatusCode,
    pub(super) problem: Problem,
}

impl ErrorResponse {
    pub(super) fn new(status: StatusCode, code: ProblemCode, message: impl Into<String>) -> ErrorResponse {
        ErrorResponse { status, problem: Problem::new(code, message) }
    }

    /// Returns the response to an unreadable request.
    pub(super) fn malformed(message: impl Into<String>) -> ErrorResponse {
        ErrorResponse::new(StatusCode::BAD_REQUEST, ProblemCode::Malformed, message)
    }
}

impl From<Problem> for ErrorResponse {
    fn from(problem: Problem) -> ErrorResponse {
        let status = match problem.code {
            ProblemCode::Malformed => StatusCode::BAD_REQUEST,
            ProblemCode::Refused => StatusCode::UNPROCESSABLE_ENTITY,
            ProblemCode::NotFound => StatusCode::NOT_FOUND,
            ProblemCode::Forbidden => StatusCode::FORBIDDEN,
            ProblemCode::Conflict => StatusCode::CONFLICT,
            ProblemCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            ProblemCode::Storage => StatusCode::INSUFFICIENT_STORAGE,
            ProblemCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        ErrorResponse { status, problem }
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        (self.status, Json(self.problem)).into_response()
    }
}

/// A reply as the body of a response.
#[derive(Debug)]
pub(super) enum ReplyBody {
    /// A reply that is small.
    Value(DaemonReply),
    /// A reply as JSON.
    Text(Bytes),
}

impl IntoResponse for ReplyBody {
    fn into_response(self) -> Response {
        let reply = match self {
            ReplyBody::Value(reply) => reply,
            ReplyBody::Text(text) => {
                return ([(header::CONTENT_TYPE, "application/json")], text).into_response();
            }
        };
        match reply {
            DaemonReply::Submitted(submitted) => (StatusCode::CREATED, Json(submitted)).into_response(),
            DaemonReply::Quote(quote) => Json(quote).into_response(),
            DaemonReply::WhatIf(answer) => Json(*answer).into_response(),
            DaemonReply::Shadow(report) => Json(*report).into_response(),
            DaemonReply::Moves(moves) => Json(*moves).into_response(),
            DaemonReply::Changed(changed) => Json(*changed).into_response(),
            DaemonReply::Step(step) => Json(step).into_response(),
            DaemonReply::JobIds(jobs) => Json(jobs).into_response(),
            DaemonReply::Job(job) => Json(job).into_response(),
            DaemonReply::Jobs(jobs) => Json(jobs).into_response(),
            DaemonReply::Reservations(reservations) => Json(reservations).into_response(),
            DaemonReply::Pools(pools) => Json(pools).into_response(),
            DaemonReply::Limits(limits) => Json(*limits).into_response(),
            DaemonReply::Status(status) => Json(status).into_response(),
        }
    }
}
