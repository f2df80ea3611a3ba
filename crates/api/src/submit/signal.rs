//! The notation of signals.

use miserly_units::parse_duration;

use crate::model::{EarlySignal, JobSignal, SignalRequest};

/// The time of an early signal without one, in seconds, as in Slurm.
const BEFORE: f64 = 60.0;

/// Parses a signal: `USR1`, `SIGUSR1` or `10`.
///
/// # Errors
/// Any other text. The message names what to write.
pub fn job_signal(text: &str) -> Result<JobSignal, String> {
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let found = JobSignal::ALL.iter().find(|(_, own, number)| *own == name || number.to_string() == name);
    found.map(|(signal, ..)| *signal).ok_or_else(|| match name {
        "KILL" | "9" => "a job is ended by force with miserly cancel".to_owned(),
        "STOP" | "19" | "CONT" | "18" | "TSTP" | "20" => {
            "a job is stopped with miserly pause, and continues with miserly resume".to_owned()
        }
        _ => {
            let names: Vec<&str> = JobSignal::ALL.iter().map(|(_, name, _)| *name).collect();
            format!("write a signal: {}", names.join(", "))
        }
    })
}

/// Parses a signal before the end of the window: `USR1`, `USR1@300`, `USR1@5min`, and with `B:` before it for the main process
/// only, as sbatch takes them.
///
/// # Errors
/// Any other text. The message names what to write.
pub fn early_signal(text: &str) -> Result<EarlySignal, String> {
    let (main, rest) = match text.strip_prefix("B:") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (signal, before) = match rest.split_once('@') {
        Some((signal, before)) => (signal, seconds(before)?),
        None => (rest, BEFORE),
    };
    Ok(EarlySignal { signal: job_signal(signal)?, main, before })
}

/// Parses the signal of a resizable job: `USR1`, or `B:USR1` for the main process only.
///
/// # Errors
/// Any other text. The message names what to write.
pub fn resize_signal(text: &str) -> Result<SignalRequest, String> {
    let main = text.strip_prefix("B:");
    Ok(SignalRequest { signal: job_signal(main.unwrap_or(text))?, main: main.is_some() })
}

fn seconds(text: &str) -> Result<f64, String> {
    let wrong = || "write the time before the end, such as USR1@300 or USR1@5min".to_owned();
    let span = match text.parse::<u32>() {
        Ok(seconds) => return Ok(f64::from(seconds)),
        Err(_) => parse_duration(text).map_err(|_| wrong())?,
    };
    Some(span.as_secs_f64()).filter(|seconds| *seconds >= 0.0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, signal: JobSignal, main: bool, before: f64) {
        assert_eq!(early_signal(text), Ok(EarlySignal { signal, main, before }));
    }

    #[test]
    fn signals_of_resizable_jobs() {
        let to = |main| SignalRequest { signal: JobSignal::Usr1, main };
        assert_eq!((resize_signal("USR1"), resize_signal("B:sigusr1")), (Ok(to(false)), Ok(to(true))));
        assert!(resize_signal("USR1@5").is_err() && resize_signal("KILL").is_err());
    }

    #[test]
    fn early_signals() {
        check("USR1", JobSignal::Usr1, false, 60.0);
        check("10@90", JobSignal::Usr1, false, 90.0);
        check("B:SIGUSR2@5min", JobSignal::Usr2, true, 300.0);
        check("term@1h", JobSignal::Term, false, 3600.0);
        for (wrong, remedy) in [
            ("", "HUP"),
            ("USR3", "HUP"),
            ("KILL", "miserly cancel"),
            ("sigstop", "miserly pause"),
            ("USR1@", "5min"),
            ("USR1@-5", "5min"),
            ("R:USR1", "HUP"),
        ] {
            let problem = early_signal(wrong).unwrap_err();
            assert!(problem.contains(remedy), "{wrong}: {problem}");
        }
    }
}
