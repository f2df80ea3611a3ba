//! `miserly drain`: makes the daemon reject new jobs, until `--undo`.

use std::process::ExitCode;

use super::{client, print_answer};
use crate::args::DrainArgs;

pub(crate) fn run(args: &DrainArgs) -> anyhow::Result<ExitCode> {
    let handed = client(&args.ask.daemon)?.drain(!args.undo)?;
    let says = if args.undo {
        "new jobs are accepted again\n"
    } else {
        "no new jobs are accepted; those that were keep their promises. `miserly drain --undo` accepts jobs again\n"
    };
    print_answer(args.ask.json, &handed, || says.to_owned())?;
    Ok(ExitCode::SUCCESS)
}
