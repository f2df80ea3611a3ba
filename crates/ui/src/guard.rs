//! The check of each request: its address, its key, and its origin.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::answer::{Refusal, with_headers};
use crate::key::{Keys, checksum};

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
    let (headers, proxied) = (request.headers(), guard.is_proxied(request.headers()));
    let refused = if !proxied && !has_own_host(headers) {
        Some("this server answers to 127.0.0.1 and localhost only; open the link that `miserly ui` printed")
    } else if !has_own_origin(headers, proxied) {
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
            let sum = |value: &HeaderValue| checksum(value.as_bytes());
            headers.get(PROXY_HEADER).is_some_and(|value| sum(value) == sum(&proxy.secret))
        };
        self.proxy.as_ref().is_some_and(has)
    }

    fn has_key(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        given.and_then(|text| text.strip_prefix("Bearer ")).is_some_and(|key| self.keys.knows(key))
    }
}

/// Returns whether a request names this machine. An ssh tunnel may give it another port.
fn has_own_host(headers: &HeaderMap) -> bool {
    let own = |host: &str| {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.parse::<u16>().is_ok() => name,
            _ => host,
        };
        ["localhost", "127.0.0.1", "[::1]"].contains(&name)
    };
    host(headers).is_some_and(own)
}

/// Returns whether a request comes from a page of this server, or from no page. A page of another port is another one's.
fn has_own_origin(headers: &HeaderMap, proxied: bool) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let Some((scheme, of_page)) = origin.to_str().ok().and_then(|origin| origin.split_once("://")) else {
        return false;
    };
    (scheme == "http" || (proxied && scheme == "https")) && host(headers) == Some(of_page)
}

fn host(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::HOST)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &'static str, origin: Option<&'static str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static(host));
        headers.extend(origin.map(|origin| (header::ORIGIN, HeaderValue::from_static(origin))));
        headers
    }

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        for own in ["localhost", "localhost:80", "127.0.0.1:8000", "[::1]:8000", "[::1]"] {
            assert!(has_own_host(&headers(own, None)), "{own}");
        }
        for other in ["evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example", "[::2]:80"] {
            assert!(!has_own_host(&headers(other, None)), "{other}");
        }
    }

    #[test]
    fn an_origin_is_the_scheme_and_the_whole_host() {
        let own = |host, origin, proxied| has_own_origin(&headers(host, Some(origin)), proxied);
        assert!(own("127.0.0.1:80", "http://127.0.0.1:80", false));
        assert!(own("jobs.example", "https://jobs.example", true));
        for origin in ["http://127.0.0.1:81", "http://127.0.0.1", "http://localhost:80", "null"] {
            assert!(!own("127.0.0.1:80", origin, false) && !own("127.0.0.1:80", origin, true), "{origin}");
        }
        assert!(!own("127.0.0.1:80", "https://127.0.0.1:80", false));
        assert!(has_own_origin(&headers("127.0.0.1:80", None), false));
    }
}
