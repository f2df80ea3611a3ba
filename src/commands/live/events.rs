//! `miserly events`: the changes of jobs while they happen, one line of JSON each.

use std::io;
use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::Context;
use miserly_api::model::DaemonEvent;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::client;
use crate::args::EventsArgs;
use crate::output::print;

pub(crate) fn run(args: &EventsArgs) -> anyhow::Result<ExitCode> {
    // Each event is printed whole, so there is nothing to clean up.
    ctrlc::set_handler(|| std::process::exit(0)).context("cannot handle an interrupt")?;
    let mut printed = Ok(());
    client(&args.ask.daemon)?.events(args.after, |event| {
        printed = event.map_or_else(|| Ok(()), |event| print_event(&event));
        if printed.is_err() || is_unread() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    printed.map(|()| ExitCode::SUCCESS)
}

fn print_event(event: &DaemonEvent) -> anyhow::Result<()> {
    print(&(serde_json::to_string(event)? + "\n"))
}

/// Returns whether the reader of a pipe has gone.
fn is_unread() -> bool {
    let output = io::stdout();
    let mut polled = [PollFd::new(&output, PollFlags::empty())];
    let found = poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    found.is_ok() && polled[0].revents().contains(PollFlags::ERR)
}
