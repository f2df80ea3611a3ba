//! The API: HTTP and JSON on a unix socket.
//!
//! [`bind`] makes the socket and [`serve()`] answers on it with whatever [`Service`] it is given. Who
//! asks is who the kernel says is at the other end, so there is nothing to log in with. Whatever goes wrong is told as a
//! [`Problem`](miserly_api::model::Problem). The document of all routes is at `/v1/openapi.json`.

mod service;

mod serve;

mod socket;

mod routes;

mod documented;

mod asked;

mod answer;

mod slow;

pub use serve::{Limits, serve, serve_within};
pub use service::Service;
pub use socket::{Access, BindError, Bound, bind};
