//! `miserly wait-of --daemon`: the promise to a job that is not submitted.

use anyhow::{bail, ensure};
use jiff::Timestamp;
use miserly_api::model::{Quote, Submission, Window};
use miserly_api::submit::{SubmitOptions, length_of_time};
use miserly_units::duration_rounded;

use super::show::likely;
use super::submission::hypothetical;
use super::submit::promised_text;
use super::text::Instants;
use super::{client, print_answer};
use crate::args::{DaemonArgs, WaitOfArgs};

/// Asks the daemon of the arguments. `job` is the size and the time limit of the job.
pub(crate) fn run(args: &WaitOfArgs, job: &[String]) -> anyhow::Result<()> {
    let [size, time] = job else { bail!("--daemon: give a size and a time, such as --daemon 64 4h") };
    let submission = hypothetical(SubmitOptions {
        cpus: Some(processors(size)?.into()),
        time: Some(length_of_time(time).map_err(|problem| anyhow::anyhow!("--daemon: {problem}"))?),
        submission: Submission {
            queue: queue(&args.run.queue)?,
            memory: args.memory,
            ..Submission::default()
        },
        ..SubmitOptions::default()
    })?;
    let quote = client(&DaemonArgs { socket: args.socket.clone() })?.quote(&submission)?;
    print_answer(args.json, &quote, || wait_text(&quote, Timestamp::now()))
}

fn processors(size: &str) -> anyhow::Result<u64> {
    match size.parse() {
        Ok(0) | Err(_) => bail!("--daemon: {size}: the size must be a number of processors, at least 1"),
        Ok(size) => Ok(size),
    }
}

/// Returns the only queue, if one is given.
fn queue(given: &[String]) -> anyhow::Result<Option<String>> {
    ensure!(given.len() < 2, "--queue: a job has one queue");
    Ok(given.first().cloned())
}

/// Returns the text of a quote.
pub(super) fn quoted_text(quote: &Quote) -> String {
    let window = |window: &Option<Window>| match window {
        Some(window) => format!("would be promised now: {}\n", promised_text(window)),
        None => "would get no promise\n".to_owned(),
    };
    let mut text: String = quote.windows.iter().map(window).collect();
    if let Some(forecast) = &quote.forecast {
        let of = if quote.windows.len() > 1 { "the first likely" } else { "likely" };
        text += &format!("{of} to start {}\n", likely(forecast, Instants::exact()));
    }
    text
}

/// Returns the text of a quote, with the longest wait.
fn wait_text(quote: &Quote, now: Timestamp) -> String {
    let wait = |window: &Window| {
        let seconds = window.start.duration_since(now).as_secs_f64().round().max(0.0);
        format!("waits at most {}\n", duration_rounded(miserly_units::span_of_seconds(seconds)))
    };
    let waits: String = quote.windows.iter().flatten().map(wait).collect();
    quoted_text(quote) + &waits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_that_until_the_latest_start() {
        let instant = |text: &str| text.parse::<Timestamp>().unwrap();
        let window = Window { start: instant("2026-03-01T10:00:00Z"), end: instant("2026-03-01T14:00:00Z") };
        let text = |windows, now| wait_text(&Quote { windows, forecast: None }, instant(now));
        let before = text(vec![Some(window)], "2026-03-01T08:30:00.2Z");
        assert!(before.starts_with("would be promised now: starts by 2026-03-01 "), "{before}");
        assert!(before.ends_with("\nwaits at most 1h30m\n"), "{before}");
        assert!(text(vec![Some(window)], "2026-03-01T10:00:01Z").ends_with("\nwaits at most 0s\n"));
        assert_eq!(text(vec![None], "2026-03-01T08:30:00Z"), "would get no promise\n");
    }
}
