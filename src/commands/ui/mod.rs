//! `miserly ui`: the live page of a daemon, or the page of simulated runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use miserly_follow::{Board, follow};
use miserly_ui::{Options, Proxy, Server};

use super::source;
use crate::args::UiArgs;
use crate::output::print;

pub(crate) fn run(args: &UiArgs) -> anyhow::Result<ExitCode> {
    let proxy = args.proxy_secret.as_deref().map(proxy).transpose()?;
    let daemon = source::daemon(&args.source)?;
    // Before anything is read, so that a port that is taken is reported at once.
    let server =
        Server::bind(Options { port: args.port, read_only: args.read_only, daemon: daemon.clone(), proxy })?;
    if let Some(socket) = daemon {
        let following = follow(socket).context("cannot read the daemon")?;
        return serve(server, following.board(), args);
    }
    serve(server, &source::board(&args.source)?, args)
}

/// Returns the reverse proxy with the secret in a file, which only its owner may read.
fn proxy(path: &Path) -> anyhow::Result<Proxy> {
    let of_file = || format!("--proxy-secret {}", path.display());
    let mode = fs::metadata(path).with_context(of_file)?.permissions().mode();
    ensure!(mode.trailing_zeros() >= 6, "{}: others may read it; run chmod 600 on it", of_file());
    let text = fs::read_to_string(path).with_context(of_file)?;
    let secret = text.lines().next().unwrap_or_default().trim();
    ensure!(
        secret.len() >= SECRET_LEAST,
        "{}: the first line has fewer than {SECRET_LEAST} characters",
        of_file()
    );
    Proxy::with_secret(secret).with_context(|| format!("{}: a header cannot have this text", of_file()))
}

/// The shortest secret of a proxy, characters.
const SECRET_LEAST: usize = 16;

/// Serves until a signal ends the process.
fn serve(server: Server, board: &Board, args: &UiArgs) -> anyhow::Result<ExitCode> {
    let port = server.address().port();
    print(&format!("{}\n", server.link()))?;
    note!("the link works once; Ctrl-C ends the page");
    if std::env::var_os("SSH_CONNECTION").is_some() && args.source.run_log.is_none() {
        note!("from another machine, first: ssh -L {port}:127.0.0.1:{port} THIS-MACHINE");
    }
    server.run(board, |next| {
        // Without standard output there is no next link, and the page goes on.
        let _ = print(&format!("{next}\n"));
    })?;
    Ok(ExitCode::SUCCESS)
}
