//! Support for tests of the program: a temporary folder, small logs, and the output of a run.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use tempfile::TempDir;

/// The program in an empty folder, which is removed with it.
pub(crate) struct Lab {
    folder: TempDir,
}

/// The exit code and the output of a run.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Lab {
    pub(crate) fn new() -> Lab {
        Lab { folder: TempDir::new().expect("a temporary folder") }
    }

    /// Returns a folder with one log, `log.swf`.
    pub(crate) fn with_log(text: &str) -> Lab {
        let lab = Lab::new();
        lab.write("log.swf", text);
        lab
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("a file that can be written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a file that can be read")
    }

    /// Returns the names of the files in the folder.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// Returns the program with the words of `line` as its arguments. It finds only the logs of the test.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_miserly"));
        command.args(line.split_whitespace()).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env_remove("MISERLY_TRACES").env_remove("COLUMNS");
        command
    }

    pub(crate) fn run(&self, line: &str) -> Run {
        Run::from_output(&self.command(line).output().expect("a program that starts"))
    }

    /// Returns the standard output. The program must succeed without a message, but for jobs that are too wide.
    #[track_caller]
    pub(crate) fn stdout(&self, line: &str) -> String {
        let run = self.run(line);
        assert_eq!((run.code, run.messages()), (Some(0), vec![]), "miserly {line}");
        run.stdout
    }

    /// Returns the printed JSON document.
    #[track_caller]
    pub(crate) fn document(&self, line: &str) -> Value {
        parsed(&self.stdout(line))
    }

    /// Returns the printed JSON document of a run without any job, which fails.
    #[track_caller]
    pub(crate) fn empty_document(&self, line: &str) -> Value {
        let run = self.run(line);
        assert!(run.code == Some(2) && run.stderr.contains(": no job to simulate of "), "{}", run.stderr);
        parsed(&run.stdout)
    }

    /// Returns the standard output for this standard input.
    #[track_caller]
    pub(crate) fn fed(&self, line: &str, input: &[u8]) -> String {
        let mut command = self.command(line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a program that starts");
        child.stdin.take().expect("a pipe").write_all(input).expect("a program that reads");
        let run = Run::from_output(&child.wait_with_output().expect("a program that ends"));
        assert_eq!((run.code, run.messages()), (Some(0), vec![]), "miserly {line}");
        run.stdout
    }
}

/// Returns the error for an experiment file `experiment.toml` that is this text with one replacement.
#[track_caller]
pub(crate) fn experiment_with(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    let lab = Lab::new();
    lab.write("experiment.toml", text.replace(from, to));
    let run = lab.run("experiment run experiment.toml");
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert_eq!(run.stderr.matches("error:").count(), 1, "{}", run.stderr);
    run.stderr
}

impl Run {
    /// Returns the lines of standard error, without the warning about jobs that are too wide.
    fn messages(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| !line.ends_with(" and left out")).collect()
    }

    pub(crate) fn from_output(output: &Output) -> Run {
        Run {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

#[track_caller]
pub(crate) fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Returns a line of a log: (job, submit, runtime, processors, estimate).
pub(crate) fn line((job, submit, runtime, procs, estimate): (i64, i64, i64, i64, i64)) -> String {
    format!("{job} {submit} -1 {runtime} {procs} -1 -1 {procs} {estimate} -1 1 1 -1 -1 -1 -1 -1 -1\n")
}

/// Returns a log of ten processors.
pub(crate) fn log(jobs: &[(i64, i64, i64, i64, i64)]) -> String {
    let lines: String = jobs.iter().map(|&job| line(job)).collect();
    format!("; MaxProcs: 10\n{lines}")
}

/// Three jobs of which the third is backfilled under EASY, and one that is too wide.
pub(crate) fn small_log() -> String {
    log(&[(1, 100, 100, 6, 100), (2, 101, 50, 10, 60), (3, 102, 98, 4, 98), (4, 103, 20, 11, 20)])
}

pub(crate) fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(bytes).expect("memory");
    packer.finish().expect("memory")
}

/// Returns a file of the project.
pub(crate) fn of_project(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Returns a document without the parts that differ between runs.
pub(crate) fn without_timing(text: &str) -> Value {
    let mut document = parsed(text);
    let runs = match document.get_mut("runs") {
        Some(Value::Array(runs)) => runs.iter_mut().collect(),
        _ => vec![&mut document],
    };
    for run in runs {
        run.as_object_mut().and_then(|run| run.remove("timing")).expect("a timing");
    }
    document
}
