//! Extraction of requests, and the problems of requests that cannot be read.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::{Json, RequestPartsExt};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use miserly_api::model::{Filter, ProblemCode};
use miserly_engine::{Caller, DaemonRequest};
use serde::de::DeserializeOwned;

use super::answer::{Body, Refusal};
use super::service::Service;

/// The properties of a connection. Each of its requests carries them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    pub(super) caller: Caller,
    /// The most bytes of a body.
    pub(super) body: usize,
    /// The time limit for receiving a body.
    pub(super) patience: Duration,
}

/// A JSON body. A missing body counts as an empty object.
pub(super) struct Asked<T>(pub(super) T);

/// The caller of a request, and the service that replies.
pub(super) struct Ask<S> {
    service: S,
    caller: Caller,
}

/// The number of a job, in the path.
pub(super) struct Number(pub(super) i64);

/// The filter of jobs, in the query.
pub(super) struct Which(pub(super) Filter);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refusal> {
        let bytes = read(request).await?;
        let text = if bytes.is_empty() { b"{}" } else { &bytes[..] };
        let read = Json::from_bytes(text).map_err(|error| Refusal::malformed(error.body_text()))?;
        Ok(Asked(read.0))
    }
}

/// Returns the bytes of a body within the limits of size and time.
async fn read(request: Request) -> Result<Bytes, Refusal> {
    let Connection { body, patience, .. } = *connection(request.extensions())?;
    let whole = Limited::new(request.into_body(), body).collect();
    let read = tokio::time::timeout(patience, whole).await.map_err(|_| {
        let message = format!("the body did not come within {} s", patience.as_secs_f64());
        Refusal::new(StatusCode::REQUEST_TIMEOUT, ProblemCode::Malformed, message)
    })?;
    read.map(http_body_util::Collected::to_bytes).map_err(|error| {
        if error.is::<LengthLimitError>() {
            let message = format!("the body is larger than {body} bytes; leave data in files");
            return Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, ProblemCode::Malformed, message);
        }
        Refusal::malformed(format!("the body cannot be read: {error}"))
    })
}

fn connection(extensions: &axum::http::Extensions) -> Result<&Connection, Refusal> {
    let missing = || {
        let message = "nobody knows who asks; this is a defect of the daemon";
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, ProblemCode::Internal, message)
    };
    extensions.get().ok_or_else(missing)
}

impl<S: Service> FromRequestParts<S> for Ask<S> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, service: &S) -> Result<Self, Refusal> {
        connection(&parts.extensions)
            .map(|connection| Ask { service: service.clone(), caller: connection.caller })
    }
}

impl<S: Service> Ask<S> {
    pub(super) async fn about(self, question: DaemonRequest) -> Result<Body, Refusal> {
        self.service.ask(self.caller, question).await.map(Body).map_err(Refusal::from)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Number {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let number = parts.extract::<Path<i64>>().await;
        let message = "a job is named by its number, as in /v1/jobs/12";
        number.map(|Path(number)| Number(number)).map_err(|_| Refusal::malformed(message))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Which {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let filter = parts.extract::<Query<Filter>>().await;
        filter.map(|Query(filter)| Which(filter)).map_err(|error| Refusal::malformed(error.body_text()))
    }
}
