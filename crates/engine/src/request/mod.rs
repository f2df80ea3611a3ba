//! Requests of users: who may make them, and those that change jobs.

pub(crate) mod account;
pub(crate) mod extension;
pub(crate) mod handler;
pub(crate) mod job_changes;
pub(crate) mod job_control;
pub(crate) mod message;
pub(crate) mod modify;
pub(crate) mod moves;
pub(crate) mod problems;
pub(crate) mod resize;
pub(crate) mod rights;
pub(crate) mod selection;
pub(crate) mod signals;
pub(crate) mod steps;
pub(crate) mod trial;
