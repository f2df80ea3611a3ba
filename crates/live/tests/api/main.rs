//! The API and its client, over a real socket, before a service that only remembers what it was asked.

mod fake;

mod samples;

mod server;

mod questions;

mod refusals;

mod crowds;

mod users;

mod document;

mod socket;
