//! Tests of the command line, on the program itself.

mod support;

mod document;

mod by;

mod reading;

mod jobs;
mod machine;
mod pools;
mod sweeps;

mod forecast;

mod what_if;

mod workload;

mod import;

mod export;

mod extra;

mod top;

mod experiment;

mod interrupt;

mod policy_tables;

mod architecture;

mod bad_input;
mod batches;

mod live;

mod colour;
mod examples;
mod explain;
mod site;

mod real;
