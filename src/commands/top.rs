//! `miserly top`: a daemon, a run, a stored state or a cluster on the terminal.

use std::io::{IsTerminal, stdout};
use std::process::ExitCode;

use anyhow::Context;
use miserly_follow::{Board, Posted, follow};
use miserly_terminal::{App, Look, once};
use miserly_view::{Facts, Moment};

use crate::args::TopArgs;
use crate::colour::colours;
use crate::commands::{source, talk};
use crate::output::{print, print_json, width};

pub(crate) fn run(args: &TopArgs) -> anyhow::Result<ExitCode> {
    if let Some(socket) = source::daemon(&args.source)? {
        let following = follow(socket.clone())?;
        return show(following.board(), args, |app| {
            miserly_terminal::run(app, following.board(), Some(talk(socket)?))
                .context("cannot use the terminal")
        });
    }
    let board = source::board(&args.source)?;
    show(&board, args, |app| {
        miserly_terminal::run(app.without_daemon(), &board, None).context("cannot use the terminal")
    })
}

/// Prints a state or a frame, or opens the view.
fn show(
    board: &Board,
    args: &TopArgs,
    open: impl FnOnce(App) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let posted = board.latest();
    let at = args.at.as_deref().map(|text| instant(&posted.facts, text)).transpose()?;
    if args.json {
        let moment = at.map_or_else(|| Moment::new(&posted.facts), |at| Moment::new(&posted.facts.at(at)));
        print_json(&moment)?;
        return Ok(ExitCode::SUCCESS);
    }
    let ascii = args.ascii || !Look::is_utf8(|name| std::env::var(name).ok());
    let app = |colour| app(posted, args, Look { colour, ascii }, at);
    if args.once || !stdout().is_terminal() {
        let columns = u16::try_from(width()).unwrap_or(u16::MAX);
        print(&once(app(colours(&stdout())), columns))?;
    } else {
        open(app(colours(&stdout())))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn app(posted: Posted, args: &TopArgs, look: Look, at: Option<i64>) -> App {
    let app = App::new(posted, look);
    let app = if args.processors { app.with_processors() } else { app };
    if let Some(at) = at { app.at(at) } else { app }
}

/// Returns the instant of `--at`.
fn instant(facts: &Facts, text: &str) -> anyhow::Result<i64> {
    facts.instant(text, facts.now).map_err(|problem| anyhow::anyhow!("--at {text:?}: {problem}"))
}
