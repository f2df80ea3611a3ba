//! Connections that leave the server: their clients attach to jobs.
//!
//! The daemon checks a client and passes the client's own connection to the relay of the job.

use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use miserly_api::model::ATTACH_PROTOCOL as PROTOCOL;
use miserly_launch::RelaySocket;
use tokio::net::UnixStream;

use super::response::ErrorResponse;

/// The relay that gets a connection after the response.
#[derive(Clone, Debug, Default)]
pub(super) struct HandOver(Arc<Mutex<Option<RelaySocket>>>);

impl HandOver {
    /// Returns the response after which the connection is the relay's.
    pub(super) fn begin(&self, relay: RelaySocket) -> Response {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(relay);
        let head = [(header::CONNECTION, "upgrade"), (header::UPGRADE, PROTOCOL)];
        (StatusCode::SWITCHING_PROTOCOLS, head).into_response()
    }

    /// Passes the connection to the relay, if the response was that one. `received` are the bytes after the request: a client
    /// that sends more before it has the response is disconnected.
    pub(super) fn finish(&self, stream: &UnixStream, received: &[u8]) {
        let relay = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(relay) = relay.filter(|_| received.is_empty()) else { return };
        // Its connection is closed, and the client attaches again.
        if let Err(error) = relay.pass(stream.as_fd()) {
            tracing::debug!("a client is not attached: {error}");
        }
    }
}

/// Checks that the client expects another protocol after the response.
pub(super) fn check_upgrade(headers: &HeaderMap) -> Result<(), ErrorResponse> {
    let has = |name, value: &str| {
        let text = headers.get(name).and_then(|text| text.to_str().ok()).unwrap_or_default();
        text.split(',').any(|part| part.trim().eq_ignore_ascii_case(value))
    };
    if has(header::CONNECTION, "upgrade") && has(header::UPGRADE, PROTOCOL) {
        return Ok(());
    }
    let message = format!("the request needs the headers `Connection: upgrade` and `Upgrade: {PROTOCOL}`");
    Err(ErrorResponse::malformed(message))
}
