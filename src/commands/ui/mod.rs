//! `miserly ui`: the live page of a daemon, or the page of simulated runs.

mod run;

use std::process::ExitCode;

use anyhow::{Context, ensure};
use miserly_api::client::find;
use miserly_follow::{Board, follow};
use miserly_ui::{Options, Server};

use crate::args::UiArgs;
use crate::output::print;

pub(crate) fn run(args: &UiArgs) -> anyhow::Result<ExitCode> {
    let mut options = Options { port: args.port, read_only: args.read_only, ..Options::default() };
    let Some(log) = &args.run_log else {
        ensure!(args.policy.is_empty(), "--policy: needs --run and a log");
        let socket = find(args.daemon.socket.as_deref())?;
        options.daemon = Some(socket.clone());
        // Before the daemon is read, so that a port that is taken is reported at once.
        let server = Server::bind(options)?;
        let following = follow(socket).context("cannot read the daemon")?;
        return serve(server, following.board(), args);
    };
    let server = Server::bind(options)?;
    let facts = run::simulated(log, args)?;
    serve(server, &Board::new(facts), args)
}

/// Serves until a signal ends the process.
fn serve(server: Server, board: &Board, args: &UiArgs) -> anyhow::Result<ExitCode> {
    let port = server.address().port();
    print(&format!("{}\n", server.link()))?;
    note!("the link works once; Ctrl-C ends the page");
    if std::env::var_os("SSH_CONNECTION").is_some() && args.run_log.is_none() {
        note!("from another machine, first: ssh -L {port}:127.0.0.1:{port} THIS-MACHINE");
    }
    server.run(board, |next| {
        // Without standard output there is no next link, and the page goes on.
        let _ = print(&format!("{next}\n"));
    })?;
    Ok(ExitCode::SUCCESS)
}
