//! The API and its client, over a real socket, with a service that only records its requests.

mod fake;

mod samples;

mod server;

mod questions;

mod refusals;

mod attach;

mod crowds;

mod users;

mod document;

mod events;

mod socket;
