//! `miserly top`: the daemon on a terminal.

use std::io::{IsTerminal, stdout};
use std::process::ExitCode;

use anyhow::Context;
use miserly_api::client::find;
use miserly_follow::follow;
use miserly_terminal::{Look, once};
use miserly_view::Moment;

use super::talk;
use crate::args::TopArgs;
use crate::colour::colours;
use crate::output::{print, print_json, width};

pub(crate) fn run(args: &TopArgs) -> anyhow::Result<ExitCode> {
    let socket = find(args.daemon.socket.as_deref())?;
    let following = follow(socket.clone())?;
    let board = following.board();
    let ascii = args.ascii || !Look::is_utf8(|name| std::env::var(name).ok());
    if args.json {
        print_json(&Moment::of(&board.latest().facts))?;
    } else if args.once || !stdout().is_terminal() {
        let columns = u16::try_from(width()).unwrap_or(u16::MAX);
        print(&once(board.latest(), columns, ascii))?;
    } else {
        let look = Look { colour: colours(&stdout()), ascii };
        miserly_terminal::run(board, talk(socket)?, look).context("cannot use the terminal")?;
    }
    Ok(ExitCode::SUCCESS)
}
