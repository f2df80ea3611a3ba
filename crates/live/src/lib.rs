//! Real time: the library's policies under a real clock, with promises that survive it.
//!
//! The daemon is four things side by side. The [`store`] has every fact on disk before anybody is told of it. The [`engine`]
//! feeds the same [`System`](miserly_core::System) that the simulator runs with what happens on the machine, and does what comes
//! back. The API lets people talk to it over a unix socket, as whoever the kernel says they are. And each job runs under a shim of
//! its own, which outlives them all.

pub mod model;

pub mod service;

pub mod clock;

pub mod store;

pub mod config;

pub mod history;

pub mod engine;

pub mod process;

pub mod daemon;

pub mod recover;

mod timer;

pub mod api;

pub mod client;

pub mod submit;

mod users;
