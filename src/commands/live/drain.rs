//! `miserly drain`: nothing new is started, until it is.

use std::process::ExitCode;

use super::{client, tell};
use crate::args::DrainArgs;

pub(crate) fn run(args: &DrainArgs) -> anyhow::Result<ExitCode> {
    let handed = client(&args.ask.daemon)?.drain(!args.undo)?;
    let says = if args.undo {
        "jobs are started again\n"
    } else {
        "no job is started any more; those that run go on. `miserly drain --undo` lets jobs start again\n"
    };
    tell(args.ask.json, &handed, || says.to_owned())?;
    Ok(ExitCode::SUCCESS)
}
