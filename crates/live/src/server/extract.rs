//! Extraction of requests, and the problems of requests that cannot be read.

use std::error::Error;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::{Json, RequestPartsExt};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use miserly_api::model::{OutputRequest, ProblemCode};
use miserly_engine::{DaemonReply, DaemonRequest};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::event_stream;
use super::hand_over::{HandOver, check_upgrade};
use super::response::{ErrorResponse, ReplyBody};
use super::seats::Seat;
use super::service::{Client, OutputPart, Service};
use super::write_timeout::Endless;

/// The size of a body, in bytes, above which it is parsed on a thread of its own.
const LARGE: usize = 64 << 10;

/// The size of the rest of a too large request that is read and discarded, in limits of a body.
pub(super) const DISCARDED: usize = 8;

/// The properties of a connection. Each of its requests carries them.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) seat: Seat,
    /// The most bytes of a body.
    pub(super) body: usize,
    /// The time limit for receiving a body.
    pub(super) timeout: Duration,
    /// Whether its response has no end.
    pub(super) endless: Endless,
    /// The relay that gets it after the response.
    pub(super) hand_over: HandOver,
    /// Whether the server ends.
    pub(super) stopping: watch::Receiver<bool>,
}

/// A JSON body. A missing body counts as an empty object.
pub(super) struct JsonBody<T>(pub(super) T);

/// The caller of a request, and the service that replies.
pub(super) struct Dispatcher<S> {
    service: S,
    client: Client,
    seat: Seat,
    endless: Endless,
    hand_over: HandOver,
    stopping: watch::Receiver<bool>,
}

/// The number of a job, in the path.
pub(super) struct JobNumber(pub(super) i64);

/// The filter of jobs, in the query.
pub(super) struct Filtered<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Send + 'static> FromRequest<S> for JsonBody<T> {
    type Rejection = ErrorResponse;

    async fn from_request(request: Request, _: &S) -> Result<Self, ErrorResponse> {
        let seat = connection(request.extensions())?.seat.clone();
        let bytes = read(request).await?;
        if bytes.len() <= LARGE {
            return parse(&bytes);
        }
        let _turn = seat.turn().await;
        on_a_thread(move || parse(&bytes)).await?
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<JsonBody<T>, ErrorResponse> {
    let text = if bytes.is_empty() { b"{}" } else { bytes };
    let read = Json::from_bytes(text).map_err(|error| ErrorResponse::malformed(error.body_text()))?;
    Ok(JsonBody(read.0))
}

/// Returns the result of work that would keep other clients waiting.
async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ErrorResponse> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        let message = format!("the request could not be processed: {error}");
        ErrorResponse::new(StatusCode::INTERNAL_SERVER_ERROR, ProblemCode::Internal, message)
    })
}

/// Returns the bytes of a body within the limits of size and time.
async fn read(request: Request) -> Result<Bytes, ErrorResponse> {
    let Connection { body, timeout, .. } = *connection(request.extensions())?;
    let whole = collect(request.into_body(), body);
    let read = tokio::time::timeout(timeout, whole).await.map_err(|_| {
        let message = format!("the body did not come within {} s", timeout.as_secs_f64());
        ErrorResponse::new(StatusCode::REQUEST_TIMEOUT, ProblemCode::Malformed, message)
    })?;
    read.map_err(|error| {
        if error.is::<LengthLimitError>() {
            let message = format!("the body is larger than {body} bytes; leave data in files");
            return ErrorResponse::new(StatusCode::PAYLOAD_TOO_LARGE, ProblemCode::Malformed, message);
        }
        ErrorResponse::malformed(format!("the body cannot be read: {error}"))
    })
}

/// Returns a body of at most `limit` bytes. Reads some more before it fails: a client that still sends
/// does not see the response.
async fn collect(mut body: Body, limit: usize) -> Result<Bytes, Box<dyn Error + Send + Sync>> {
    let error = match Limited::new(&mut body, limit).collect().await {
        Ok(whole) => return Ok(whole.to_bytes()),
        Err(error) => error,
    };
    if error.is::<LengthLimitError>() {
        let rest = Limited::new(body, DISCARDED * limit).collect();
        let _ = rest.await;
    }
    Err(error)
}

fn too_many_wait() -> ErrorResponse {
    let message =
        "too many of your requests wait for the ends of jobs; try again when some of them have ended";
    ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, ProblemCode::Unavailable, message)
}

fn too_many_streams() -> ErrorResponse {
    let message = "you have too many streams of events; close one of them first";
    ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, ProblemCode::Unavailable, message)
}

fn connection(extensions: &axum::http::Extensions) -> Result<&Connection, ErrorResponse> {
    let missing = || {
        let message = "the caller is unknown; this is a defect of the daemon";
        ErrorResponse::new(StatusCode::INTERNAL_SERVER_ERROR, ProblemCode::Internal, message)
    };
    extensions.get().ok_or_else(missing)
}

impl<S: Service> FromRequestParts<S> for Dispatcher<S> {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, service: &S) -> Result<Self, ErrorResponse> {
        connection(&parts.extensions).map(|connection| Dispatcher {
            service: service.clone(),
            client: connection.client.clone(),
            seat: connection.seat.clone(),
            endless: connection.endless.clone(),
            hand_over: connection.hand_over.clone(),
            stopping: connection.stopping.clone(),
        })
    }
}

impl<S: Service> Dispatcher<S> {
    /// Returns the reply to a request of the caller.
    pub(super) async fn dispatch(self, request: DaemonRequest) -> Result<ReplyBody, ErrorResponse> {
        // As long as it waits for a job, the connection needs no seat.
        let _waiting = match request {
            DaemonRequest::Wait(_) => Some(self.seat.wait().ok_or_else(too_many_wait)?),
            _ => None,
        };
        // The turn ends when the reply is text.
        let _turn = match request {
            DaemonRequest::Wait(_) => None,
            DaemonRequest::Quote(_) | DaemonRequest::WhatIf(_) => Some(self.seat.quote_turn().await),
            _ if request.only_reads() => Some(self.seat.turn().await),
            _ => None,
        };
        match self.service.handle(self.client, request).await? {
            DaemonReply::Jobs(jobs) => {
                let text = on_a_thread(move || serde_json::to_vec(&jobs)).await?;
                Ok(ReplyBody::Text(text.map_err(|error| ErrorResponse::malformed(error.to_string()))?.into()))
            }
            reply => Ok(ReplyBody::Value(reply)),
        }
    }
}

impl<S: Service> Dispatcher<S> {
    /// Returns a stream of events.
    pub(super) async fn events(self, headers: &HeaderMap) -> Result<Response, ErrorResponse> {
        let streaming = self.seat.stream().ok_or_else(too_many_streams)?;
        // A snapshot takes as long as a list. The turn ends when it is text.
        let turn = self.seat.turn().await;
        let source = self.service.events(self.client, event_stream::requested(headers)).await?;
        drop(turn);
        self.endless.begin();
        Ok(event_stream::response(source, streaming, self.stopping))
    }

    /// Attaches the client to a job: the connection is that of the job's relay after the response.
    pub(super) async fn attach(self, job: i64, headers: &HeaderMap) -> Result<Response, ErrorResponse> {
        check_upgrade(headers)?;
        let relay = self.service.relay(self.client, job).await?;
        Ok(self.hand_over.begin(relay))
    }

    /// Returns a part of an output file.
    pub(super) async fn output(self, job: i64, request: OutputRequest) -> Result<OutputPart, ErrorResponse> {
        let _turn = self.seat.turn().await;
        Ok(self.service.output(self.client, job, request).await?)
    }

    /// Returns the metrics.
    pub(super) async fn metrics(self) -> Result<String, ErrorResponse> {
        let _turn = self.seat.turn().await;
        Ok(self.service.metrics(self.client, self.seat.counts()).await?)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for JobNumber {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ErrorResponse> {
        let number = parts.extract::<Path<i64>>().await;
        let message = "a job is named by its number, as in /v1/jobs/12";
        number.map(|Path(number)| JobNumber(number)).map_err(|_| ErrorResponse::malformed(message))
    }
}

impl<S: Send + Sync, T: DeserializeOwned + 'static> FromRequestParts<S> for Filtered<T> {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ErrorResponse> {
        let filter = parts.extract::<Query<T>>().await;
        filter
            .map(|Query(filter)| Filtered(filter))
            .map_err(|error| ErrorResponse::malformed(error.body_text()))
    }
}
