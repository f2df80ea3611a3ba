//! One file per command.

pub(crate) mod simulate;

pub(crate) mod compare;

pub(crate) mod wait_of;

pub(crate) mod forecast;

pub(crate) mod what_if;

pub(crate) mod explain;

pub(crate) mod matrix;

pub(crate) mod policies;

pub(crate) mod workload;

mod import;

pub(crate) mod shell;

pub(crate) mod experiment;

pub(crate) mod measured;

pub(crate) mod live;

pub(crate) mod slurm;

mod source;

pub(crate) mod ui;
