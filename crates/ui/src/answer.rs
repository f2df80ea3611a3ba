//! Answers: JSON, refusals, and the headers of all of them.

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use miserly_api::client::ClientError;
use miserly_api::model::ProblemCode;
use serde::Serialize;

use crate::assets;

/// The reason why a request is refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    message: String,
}

#[derive(Serialize)]
struct Message {
    message: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Refusal {
        Refusal { status, message: message.into() }
    }
}

impl From<ClientError> for Refusal {
    fn from(error: ClientError) -> Refusal {
        let status = match &error {
            ClientError::Refused(problem) => match problem.code {
                ProblemCode::NotFound => StatusCode::NOT_FOUND,
                ProblemCode::Forbidden => StatusCode::FORBIDDEN,
                ProblemCode::Malformed => StatusCode::BAD_REQUEST,
                _ => StatusCode::CONFLICT,
            },
            _ => StatusCode::BAD_GATEWAY,
        };
        Refusal::new(status, error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(Message { message: self.message })).into_response()
    }
}

/// Sets the headers that every answer has: nothing of it is kept, framed, or understood as another type, and a page runs the scripts
/// of this server only.
pub(crate) fn with_headers(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_SECURITY_POLICY, assets::POLICY.clone());
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
