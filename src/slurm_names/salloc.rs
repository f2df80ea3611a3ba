//! `salloc`: a shell or a command in a window of its own.

use std::ffi::OsString;
use std::io::{IsTerminal, stdin, stdout};
use std::process::ExitCode;

use miserly_api::model::Interaction;

use super::options;
use super::submission::{Requested, set_variables};
use super::{client, given};
use crate::commands::live::{
    Messages, begin_session, block_signals, check_terminal, submission_of_command, terminal, user_shell,
};

pub(super) fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let Some(given) = given("salloc", words, true)? else { return Ok(ExitCode::SUCCESS) };
    let given = given.after(options::of_environment("salloc", "SALLOC_").map_err(anyhow::Error::msg)?);
    let has_terminal = stdin().is_terminal() && stdout().is_terminal();
    let command = if given.words.is_empty() {
        check_terminal("salloc without a command")?;
        vec![user_shell()]
    } else {
        given.words.clone()
    };
    let signals = block_signals()?;
    let client = client()?;
    let mut requested = Requested::new(&given).map_err(anyhow::Error::msg)?;
    requested.options.submission.name.get_or_insert_with(|| "interactive".to_owned());
    let mut options = requested.finish(&given, &client, "Unable to allocate resources")?;
    options.submission.no_opportunistic = true;
    let mut submission = submission_of_command(&command, options)?;
    set_variables(&given, &mut submission);
    submission.interaction = Some(if has_terminal { terminal() } else { Interaction::Stdin });
    let messages = if given.has("quiet") { Messages::Quiet } else { Messages::Salloc };
    begin_session(client, &submission, messages, &signals)
}
