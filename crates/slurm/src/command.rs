//! Slurm's own commands.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::SlurmError;

/// The longest time for an answer. A controller under load takes seconds; a wrong configuration makes a command try for a minute.
const WITHIN: Duration = Duration::from_secs(30);

/// The longest time for the accounting of months.
const WITHIN_OF_SACCT: Duration = Duration::from_mins(10);

/// Variables of the environment that change what the commands print.
const FILTERS: [&str; 11] = [
    "SQUEUE_FORMAT",
    "SQUEUE_FORMAT2",
    "SQUEUE_STATES",
    "SQUEUE_PARTITION",
    "SQUEUE_USERS",
    "SQUEUE_ACCOUNT",
    "SQUEUE_QOS",
    "SQUEUE_NAMES",
    "SQUEUE_LICENSES",
    "SLURM_CLUSTERS",
    "SACCT_FORMAT",
];

/// The time between two looks whether a command has ended.
const LOOK: Duration = Duration::from_millis(2);

/// The most characters of an error message.
const MOST: usize = 400;

/// Slurm's commands, on a machine that has them.
#[derive(Clone, Debug, Default)]
pub struct Slurm {
    /// The configuration of the cluster; that of the environment, if absent.
    pub configuration: Option<PathBuf>,
}

/// An answer, and the time that it took.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) took: Duration,
}

/// The output of a command, and its message.
struct Answered {
    answer: Answer,
    /// Its standard error.
    message: String,
    has_failed: bool,
}

impl Answered {
    /// Returns the answer, if the command did not fail.
    fn success(self, program: &str) -> Result<Answer, SlurmError> {
        if self.has_failed {
            return Err(SlurmError::Failed { program: program.to_owned(), message: self.message });
        }
        Ok(self.answer)
    }
}

impl Slurm {
    /// Returns the answer of a command. Times in it are seconds since 1970.
    pub(crate) fn ask(&self, program: &str, arguments: &[&str]) -> Result<Answer, SlurmError> {
        self.run(program, arguments, None)?.success(program)
    }

    /// Gives `scontrol` a command, as its words. Returns the message of a refusal.
    ///
    /// The words are arguments of a process. On its standard input `scontrol` would take control characters for keys.
    ///
    /// # Errors
    /// If `scontrol` cannot be run or gives no answer.
    pub fn control(&self, command: &[String]) -> Result<Option<String>, SlurmError> {
        let words = command.iter().map(String::as_str);
        let words: Vec<&str> = ["-Q"].into_iter().chain(words).collect();
        let answered = self.run("scontrol", &words, None)?;
        Ok(answered.has_failed.then_some(answered.message))
    }

    /// Returns the descriptions of jobs, by number, a line for each; those of all jobs without numbers. Jobs that are gone have
    /// none.
    pub(crate) fn descriptions(&self, jobs: &[u64]) -> Result<Answer, SlurmError> {
        let lines: Vec<String> = jobs.iter().map(|job| format!("show job {job}\n")).collect();
        if jobs.is_empty() {
            return self.ask("scontrol", &["-a", "-d", "-o", "show", "job"]);
        }
        let answered = self.run("scontrol", &["-a", "-d", "-o"], Some(lines.concat()))?;
        // Those that are gone fail. A controller that is away gives no answer at all.
        if answered.message.contains("Invalid job id") {
            Ok(answered.answer)
        } else {
            answered.success("scontrol")
        }
    }

    /// Submits a script, with `--parsable` among the options. Returns the number of the job.
    ///
    /// # Errors
    /// If `sbatch` cannot be run, refuses the job, or prints no number.
    pub(crate) fn submit(&self, options: &[&str], script: String) -> Result<u64, SlurmError> {
        let answer = self.run("sbatch", options, Some(script))?.success("sbatch")?.text;
        // The number, and the cluster if there are several.
        let number = answer.trim().split(';').next().and_then(|number| number.parse().ok());
        number.ok_or_else(|| SlurmError::Unreadable {
            program: "sbatch".to_owned(),
            problem: "no number".to_owned(),
            line: answer.chars().take(200).collect(),
        })
    }

    /// Asks what would become of a script, without submitting it. Returns what `sbatch` says, or `Err` within if it refuses.
    pub(crate) fn test_only(
        &self,
        options: &[&str],
        script: &str,
    ) -> Result<Result<String, String>, SlurmError> {
        let options: Vec<&str> = ["--test-only"].into_iter().chain(options.iter().copied()).collect();
        let answered = self.run("sbatch", &options, Some(script.to_owned()))?;
        Ok(if answered.has_failed { Err(answered.message) } else { Ok(answered.message) })
    }

    /// Cancels a job.
    pub(crate) fn cancel(&self, job: u64) -> Result<(), SlurmError> {
        self.ask("scancel", &[&job.to_string()]).map(|_| ())
    }

    /// Returns the configuration that the commands will read, if it is named.
    fn named_configuration(&self) -> Option<PathBuf> {
        let of_environment = || std::env::var_os("SLURM_CONF").filter(|name| !name.is_empty());
        self.configuration.clone().or_else(|| of_environment().map(PathBuf::from))
    }

    #[allow(clippy::disallowed_methods, reason = "the time that a controller takes decides no schedule")]
    fn run(&self, program: &str, arguments: &[&str], input: Option<String>) -> Result<Answered, SlurmError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => SlurmError::Missing { program: program.to_owned() },
            _ => SlurmError::Program { program: program.to_owned(), error },
        };
        // Slurm would look for it for a minute.
        if let Some(path) = self.named_configuration().filter(|path| !path.exists()) {
            return Err(SlurmError::NoConfiguration { path });
        }
        let within = if program == "sacct" { WITHIN_OF_SACCT } else { WITHIN };
        let begin = Instant::now();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("SLURM_TIME_FORMAT", "%s")
            .env("LC_ALL", "C")
            .envs(self.configuration.iter().map(|path| ("SLURM_CONF", OsString::from(path))))
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for name in FILTERS {
            command.env_remove(name);
        }
        let mut child = command.spawn().map_err(failed)?;
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
            // If it reads no further, its answer has the reason.
            thread::spawn(move || pipe.write_all(input.as_bytes()));
        }
        let (text, message) = (reader(child.stdout.take()), reader(child.stderr.take()));
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break status;
            }
            if begin.elapsed() > within {
                let _ = child.kill();
                let _ = child.wait();
                let message = shortened(program, &joined(message));
                return Err(SlurmError::Late { program: program.to_owned(), within, message });
            }
            thread::sleep(LOOK);
        };
        let (text, message) = (joined(text), joined(message));
        let message = shortened(program, &message);
        Ok(Answered {
            answer: Answer { text: String::from_utf8_lossy(&text).into_owned(), took: begin.elapsed() },
            has_failed: !status.success(),
            message,
        })
    }
}

fn reader(from: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = vec![];
        if let Some(mut from) = from {
            let _ = from.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn joined(reader: thread::JoinHandle<Vec<u8>>) -> Vec<u8> {
    reader.join().unwrap_or_default()
}

/// Returns a message on one line, without the name of the program that begins most lines of Slurm.
fn shortened(program: &str, message: &[u8]) -> String {
    let text = String::from_utf8_lossy(message);
    let own = format!("{program}: error: ");
    let lines = text.lines().map(|line| line.trim().trim_start_matches(own.as_str()));
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("; ").chars().filter(|letter| !letter.is_control()).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_command_and_a_failing_one_are_told_apart() {
        let slurm = Slurm::default();
        let missing = slurm.ask("no-such-program-of-slurm", &[]).unwrap_err();
        assert!(matches!(missing, SlurmError::Missing { .. }), "{missing}");
        let failed = slurm.ask("ls", &["/no/such/file"]).unwrap_err().to_string();
        assert!(failed.starts_with("ls failed: ls: ") && !failed.contains('\n'), "{failed}");
    }

    #[test]
    fn times_are_seconds_and_the_configuration_is_the_given_one() {
        let slurm = Slurm { configuration: Some("/dev/null".into()) };
        let answer = slurm.ask("sh", &["-c", "echo $SLURM_TIME_FORMAT $SLURM_CONF"]).unwrap();
        assert_eq!(answer.text, "%s /dev/null\n");
        let nowhere = Slurm { configuration: Some("/dev/null/slurm.conf".into()) };
        let error = nowhere.ask("true", &[]).unwrap_err().to_string();
        assert!(
            error.starts_with("/dev/null/slurm.conf: no such file; --slurm-conf or SLURM_CONF"),
            "{error}"
        );
    }
}
