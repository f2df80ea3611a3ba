//! The daemon: the engine under a real clock, with promises that survive a crash of the daemon.
//!
//! - The [`store`] is the engine's journal. Facts are durable before any action or reply depends on
//!   them.
//! - [`process`] is its launcher. Each job runs under a shim that outlives the daemon.
//! - The [`server`] accepts requests on a unix socket. The kernel's credentials identify the users.
//! - [`daemon`] connects them to the engine.

pub use miserly_store::{self as store, FolderError, crash_point};

use miserly_store::folder;

pub mod clock;

pub mod config;

pub mod history;

pub mod process;

pub mod server;

pub mod daemon;

pub mod recover;

pub mod executor_service;

pub mod separation;

mod syscall_filter;

mod engine_handle;

mod forecasts;

mod events;

mod metrics;

mod forecast_store;

pub mod shadow;

mod launcher_parts;

mod job_access;

mod audit;

mod output_file;

pub use output_file::open_output;

mod rereading;

mod claim;

mod hotplug;

mod request_rate;

mod service_manager;

mod timer;

mod users;
