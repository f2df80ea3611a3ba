//! The daemon's API: its JSON model, a client, and the options of a submission.
//!
//! Clients and the daemon share this crate. A client builds without the server, the engine and the
//! state store.
//!
//! # Features
//! - `client` (default): the client over the unix socket.
//! - `options`: the options of a submission, on a command line and in the directives of a script.
//! - `openapi`: schemas of the model for the OpenAPI document.

pub mod model;

#[cfg(feature = "client")]
pub mod client;

pub mod socket;

pub mod submit;
