//! Where a log comes from: a file, plain or gzipped, standard input, or memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use sha2::{Digest, Sha256};

use crate::packed::{Packing, is_gzipped, other_packing};
use crate::swf::{Header, LineError, ReadError, Reader, is_blank};

/// How many bytes are read at a time.
const CHUNK: usize = 1 << 18;

/// What is wrong with a log: which one, where, what.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened or copied.
    #[error("cannot read {name}: {error}")]
    Open {
        /// The log.
        name: String,
        /// Why.
        error: io::Error,
    },
    /// It is packed in a way that is not read.
    #[error(
        "{name}: packed with {}; only gzip is read as it is: unpack the log with {} first",
        packing.name,
        packing.command
    )]
    Packed {
        /// The log.
        name: String,
        /// How.
        packing: Packing,
    },
    /// A line cannot be used.
    #[error("{name}:{}: {}{}", error.line(), error.problem(), way_out(error))]
    Read {
        /// The log.
        name: String,
        /// Where and why.
        error: ReadError,
    },
    /// There is nothing in it.
    #[error("{name}: holds no jobs; a log in the Standard Workload Format has a line of 18 fields per job")]
    Empty {
        /// The log.
        name: String,
    },
    /// Nobody says how large the machine is.
    #[error("{name}: no machine size in the header (MaxProcs or MaxNodes); give it with --procs")]
    NoMachine {
        /// The log.
        name: String,
    },
}

/// What to do about a line that cannot be used, where there is something.
fn way_out(error: &ReadError) -> &'static str {
    match error {
        ReadError::Malformed { error, .. } if *error != LineError::NoText => {
            "; --lenient skips and counts such lines"
        }
        _ => "",
    }
}

/// A log that can be read any number of times.
pub struct Trace {
    name: String,
    source: Source,
}

enum Source {
    File(PathBuf),
    /// What came from a pipe, kept so that it can be read again, in a file without a name: it goes with the
    /// process, however that ends.
    Spooled(File),
    Memory(Vec<u8>),
}

/// What one fast pass over a log tells before the jobs are read.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// The comments.
    pub header: Header,
    /// How many lines are neither comments nor blank.
    pub records: u64,
    /// Whether no job is submitted before the one above it.
    pub in_order: bool,
}

impl Trace {
    /// The log in a file. What is no regular file, such as a pipe, is copied to a temporary one first.
    ///
    /// # Errors
    /// If there is no such file, it is a directory, or it may not be read.
    pub fn open(path: &Path) -> Result<Trace, TraceError> {
        let name = path.display().to_string();
        let failed = |error| TraceError::Open { name: name.clone(), error };
        let file = File::open(path).map_err(failed)?;
        let kind = file.metadata().map_err(failed)?;
        let source = if kind.is_file() {
            Source::File(path.to_owned())
        } else if kind.is_dir() {
            return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
        } else {
            spool(file).map_err(failed)?
        };
        Ok(Trace { name, source })
    }

    /// The log on standard input, copied to a temporary file.
    ///
    /// # Errors
    /// If the copy fails.
    pub fn stdin() -> Result<Trace, TraceError> {
        let name = String::from("standard input");
        match spool(io::stdin().lock()) {
            Ok(source) => Ok(Trace { name, source }),
            Err(error) => Err(TraceError::Open { name, error }),
        }
    }

    /// A log in memory, such as a generated one.
    pub fn memory(name: impl Into<String>, text: Vec<u8>) -> Trace {
        Trace { name: name.into(), source: Source::Memory(text) }
    }

    /// The same log in memory, unpacked: for a log that is read many times.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn into_memory(self) -> Result<Trace, TraceError> {
        let mut text = Vec::new();
        self.unpacked()?.read_to_end(&mut text).map_err(|error| self.failed(error))?;
        Ok(Trace { name: self.name, source: Source::Memory(text) })
    }

    /// The name for messages: the path as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name without folders and endings: `KTH-SP2-1996-2`.
    pub fn stem(&self) -> &str {
        let file = Path::new(&self.name).file_name().and_then(|name| name.to_str()).unwrap_or(&self.name);
        let plain = file.strip_suffix(".gz").unwrap_or(file);
        plain.strip_suffix(".swf").unwrap_or(plain)
    }

    /// Starts to read the log's lines from the top, unpacking them if they are gzipped.
    ///
    /// # Errors
    /// As [`unpacked`](Trace::unpacked).
    pub fn reader(&self) -> Result<Reader<Box<dyn BufRead + Send + '_>>, TraceError> {
        self.unpacked().map(Reader::new)
    }

    /// The log's bytes from the top, unpacked if they are gzipped.
    ///
    /// # Errors
    /// If the file cannot be opened, or is packed in another way.
    pub fn unpacked(&self) -> Result<Box<dyn BufRead + Send + '_>, TraceError> {
        let mut raw = self.raw().map_err(|error| self.failed(error))?;
        let start = raw.fill_buf().map_err(|error| self.failed(error))?;
        if let Some(packing) = other_packing(start) {
            return Err(TraceError::Packed { name: self.name.clone(), packing });
        }
        Ok(if is_gzipped(start) {
            Box::new(BufReader::with_capacity(CHUNK, MultiGzDecoder::new(raw)))
        } else {
            raw
        })
    }

    /// The SHA-256 of the log's bytes as they are stored, in hexadecimal.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn sha256(&self) -> Result<String, TraceError> {
        let mut hash = Sha256::new();
        let mut raw = self.raw().map_err(|error| self.failed(error))?;
        let mut chunk = vec![0; CHUNK];
        loop {
            match raw.read(&mut chunk) {
                Ok(0) => break,
                Ok(length) => hash.update(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(hex(&hash.finalize()))
    }

    /// Reads the log once, quickly: the comments, the number of jobs, whether they are in order.
    ///
    /// Lines that are no jobs are not judged here; whoever reads the jobs will meet them.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn survey(&self) -> Result<Survey, TraceError> {
        let mut reader = self.reader()?;
        reader.survey().map_err(|error| self.read_error(error))
    }

    /// The error for a line of this log.
    pub fn read_error(&self, error: ReadError) -> TraceError {
        TraceError::Read { name: self.name.clone(), error }
    }

    fn raw(&self) -> io::Result<Box<dyn BufRead + Send + '_>> {
        Ok(match &self.source {
            Source::File(path) => Box::new(BufReader::with_capacity(CHUNK, File::open(path)?)),
            Source::Spooled(file) => Box::new(BufReader::with_capacity(CHUNK, FromStart { file, offset: 0 })),
            Source::Memory(text) => Box::new(&text[..]),
        })
    }

    fn failed(&self, error: io::Error) -> TraceError {
        TraceError::Open { name: self.name.clone(), error }
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn spool(mut input: impl Read) -> io::Result<Source> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut input, &mut file)?;
    Ok(Source::Spooled(file))
}

/// A reader with an offset of its own, so that several can read one file.
struct FromStart<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for FromStart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.offset)?;
        self.offset += length as u64;
        Ok(length)
    }
}

impl<R: BufRead> Reader<R> {
    fn survey(&mut self) -> Result<Survey, ReadError> {
        let mut survey = Survey { in_order: true, ..Survey::default() };
        let mut latest = i64::MIN;
        while let Some(line) = self.next_raw()? {
            // What the reader takes for blank, and no more, so that both count the same lines.
            let start = line.iter().position(|&byte| !is_blank(byte)).unwrap_or(line.len());
            match &line[start..] {
                [] => {}
                [b';', ..] => survey.header.push(String::from_utf8_lossy(line.trim_ascii_end()).as_ref()),
                job => {
                    survey.records += 1;
                    if let Some(submit) = second_number(job) {
                        survey.in_order &= submit >= latest;
                        latest = latest.max(submit);
                    }
                }
            }
        }
        Ok(survey)
    }
}

/// The second blank-separated number of a line, if it is one.
fn second_number(line: &[u8]) -> Option<i64> {
    let first_end = line.iter().position(u8::is_ascii_whitespace)?;
    let rest = line[first_end..].trim_ascii_start();
    let (negative, digits) = rest.strip_prefix(b"-").map_or((false, rest), |digits| (true, digits));
    let mut value: i64 = 0;
    for digit in digits.iter().take_while(|byte| byte.is_ascii_digit()) {
        value = value.checked_mul(10)?.checked_add(i64::from(digit - b'0'))?;
    }
    Some(if negative { -value } else { value })
}
