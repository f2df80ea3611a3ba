//! The check of each request: its address, its key, and its origin.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::answer::{Refusal, with_headers};
use crate::key::Keys;

/// The header of a reverse proxy.
const PROXY_HEADER: HeaderName = HeaderName::from_static("x-miserly-proxy");

/// A reverse proxy that admits users itself. Each of its requests has the header `X-Miserly-Proxy` with a secret.
#[derive(Clone, Debug)]
pub struct Proxy {
    secret: HeaderValue,
}

impl Proxy {
    /// Returns a proxy with this secret; `None` if a header cannot have it.
    pub fn with_secret(secret: &str) -> Option<Proxy> {
        HeaderValue::from_str(secret).ok().map(|secret| Proxy { secret })
    }
}

/// The conditions of a request.
#[derive(Debug)]
pub(crate) struct Guard {
    /// The address on which the server listens.
    pub(crate) address: SocketAddr,
    pub(crate) keys: Keys,
    pub(crate) proxy: Option<Proxy>,
}

/// Refuses requests with another name of this machine: a page of another site may have made its name point here.
pub(crate) async fn check_host(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let refused = if guard.is_proxied(request.headers()) {
        None
    } else if !guard.has_own_host(request.headers()) {
        Some("this server answers to 127.0.0.1 and localhost only; open the link that `miserly ui` printed")
    } else if !guard.has_own_origin(request.headers()) {
        Some("a page of another site may not use this server")
    } else {
        None
    };
    let mut response = match refused {
        Some(why) => Refusal::new(StatusCode::FORBIDDEN, why).into_response(),
        None => next.run(request).await,
    };
    with_headers(response.headers_mut());
    response
}

/// Refuses requests without a key.
pub(crate) async fn check_key(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    if guard.is_proxied(request.headers()) || guard.has_key(request.headers()) {
        return next.run(request).await;
    }
    let why = "this visit has ended, or never began; open the link that `miserly ui` printed last";
    Refusal::new(StatusCode::UNAUTHORIZED, why).into_response()
}

impl Guard {
    /// Returns whether a request comes from the reverse proxy.
    pub(crate) fn is_proxied(&self, headers: &HeaderMap) -> bool {
        let has = |proxy: &Proxy| {
            use sha2::{Digest, Sha256};
            let sum = |value: &HeaderValue| Sha256::digest(value.as_bytes());
            headers.get(PROXY_HEADER).is_some_and(|value| sum(value) == sum(&proxy.secret))
        };
        self.proxy.as_ref().is_some_and(has)
    }

    fn has_own_host(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        host.is_some_and(|host| self.is_own(host))
    }

    fn has_own_origin(&self, headers: &HeaderMap) -> bool {
        let origin = headers.get(header::ORIGIN);
        let own = |origin: &HeaderValue| {
            origin
                .to_str()
                .is_ok_and(|text| text.strip_prefix("http://").is_some_and(|host| self.is_own(host)))
        };
        origin.is_none_or(own)
    }

    /// Returns whether a host with a port is one of this machine. An ssh tunnel may give it another port.
    fn is_own(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.parse::<u16>().is_ok() => name,
            _ => host,
        };
        name == "localhost" || name == "127.0.0.1" || self.address.ip().to_string() == name
    }

    fn has_key(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        given.and_then(|text| text.strip_prefix("Bearer ")).is_some_and(|key| self.keys.knows(key))
    }
}
