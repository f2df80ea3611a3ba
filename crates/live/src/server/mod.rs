//! The API: HTTP and JSON on a unix socket.
//!
//! [`bind`] creates the socket, and [`serve()`] replies on it with a [`Service`]. The kernel
//! identifies the caller at the other end, so there is no login. Every failure is reported as a
//! [`Problem`](miserly_api::model::Problem). The document of all routes is at `/v1/openapi.json`.

mod service;

mod serve;

mod seats;

mod socket;

mod routes;

mod documented;

mod extract;

mod response;

mod event_stream;

mod write_timeout;

mod hand_over;

pub use event_stream::EventSource;
pub(crate) use routes::openapi_document;
pub use seats::ConnectionCounts;
pub use serve::{Limits, serve, serve_within};
pub use service::{Client, OutputPart, Service, StreamRequest};
pub use socket::{Access, BindError, Bound, bind};
