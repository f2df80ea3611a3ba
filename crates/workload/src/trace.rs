//! Sources of a log: a plain or gzipped file, standard input, or memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use flate2::bufread::MultiGzDecoder;
use sha2::{Digest, Sha256};

use crate::compression::{Compression, ZstdReader, is_gzipped, is_tar, is_zstd, unsupported_compression};
use crate::converted::ConvertedLog;
use crate::swf::{Header, LineError, ReadError, Reader, is_blank};

/// Size of a read in bytes.
const CHUNK: usize = 1 << 18;

/// The longest text of a gzipped log that is kept in memory, in bytes. A longer one is unpacked again.
const KEPT_MAX: u64 = 1 << 26;

/// An error in a log, with the name of the log and the line.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened or copied.
    #[error("cannot read {name}: {error}")]
    Open {
        /// Name of the log.
        name: String,
        /// Cause.
        error: io::Error,
    },
    /// The file has an unsupported compression.
    #[error(
        "{name}: compressed with {}; only gzip and zstd are supported; unpack the log with {} first",
        compression.name,
        compression.command
    )]
    Packed {
        /// Name of the log.
        name: String,
        /// Compression.
        compression: Compression,
    },
    /// The file is an archive.
    #[error("{name}: a tar archive; a log is a single file; unpack the archive with tar -xf first")]
    Archive {
        /// Name of the log.
        name: String,
    },
    /// The jobs cannot be sorted in a temporary file.
    #[error(
        "{name}: cannot sort the jobs in a temporary file: {error}; TMPDIR names the folder of such files"
    )]
    Sort {
        /// Name of the log.
        name: String,
        /// Cause.
        error: io::Error,
    },
    /// A line is unusable.
    #[error("{name}:{}: {}{}", error.line(), error.problem(), way_out(error))]
    Read {
        /// Name of the log.
        name: String,
        /// Line and cause.
        error: ReadError,
    },
    /// The log is empty.
    #[error(
        "{name}: no jobs found; a log in the Standard Workload Format has a line of 18 fields for each job"
    )]
    Empty {
        /// Name of the log.
        name: String,
    },
    /// The machine size is unknown.
    #[error("{name}: no machine size in the header (MaxProcs or MaxNodes); give it with --procs")]
    NoMachine {
        /// Name of the log.
        name: String,
    },
}

/// Returns the remedy for an unusable line, if there is one.
fn way_out(error: &ReadError) -> &'static str {
    match error {
        ReadError::Malformed { error, .. } if *error != LineError::NoText => {
            "; --lenient skips and counts such lines"
        }
        _ => "",
    }
}

/// A log that can be read repeatedly.
pub struct Trace {
    name: String,
    source: Source,
    /// The text of a gzipped log, once it was unpacked whole.
    unpacked: OnceLock<Vec<u8>>,
    fills_missing: bool,
    /// What is read in place of the text, after a conversion.
    converted: Option<ConvertedLog>,
}

/// The stored bytes of a log, as a file or in memory.
#[derive(Debug)]
pub enum Stored {
    /// A file.
    File(File),
    /// The bytes.
    Bytes(Vec<u8>),
}

enum Source {
    File(PathBuf),
    /// Several files, one behind the other.
    Files(Vec<PathBuf>),
    /// The content of a pipe, copied to an unnamed file so that it can be read again. The file
    /// disappears with the process.
    Spooled(File),
    Memory(Vec<u8>),
}

/// The result of a fast pass over a log before its jobs are read.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Comments.
    pub header: Header,
    /// Number of lines that are neither comments nor blank.
    pub records: u64,
    /// Whether the submissions are in ascending order.
    pub in_order: bool,
    /// Earliest submission in seconds of the log; `None` if no line has one of 0 or more.
    pub first_submit: Option<i64>,
}

impl Trace {
    /// Opens a log file. The content of a pipe or another special file is copied to a temporary
    /// file first.
    ///
    /// # Errors
    /// The file does not exist, is a directory, or cannot be read.
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
        Ok(Trace::new(name, source))
    }

    /// Opens several files as one log with this name, in their order.
    pub fn of_files(name: impl Into<String>, files: Vec<PathBuf>) -> Trace {
        Trace::new(name.into(), Source::Files(files))
    }

    /// Returns the files of a log that has several, each as a log; none of any other log.
    ///
    /// # Errors
    /// A file cannot be opened.
    pub fn parts(&self) -> Result<Vec<Trace>, TraceError> {
        match &self.source {
            Source::Files(files) => files.iter().map(|file| Trace::open(file)).collect(),
            Source::File(_) | Source::Spooled(_) | Source::Memory(_) => Ok(vec![]),
        }
    }

    /// Returns the stored bytes, for a format that is read by places.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn stored(&self) -> Result<Stored, TraceError> {
        let bytes = || {
            let mut bytes = Vec::new();
            self.raw()?.read_to_end(&mut bytes)?;
            Ok(Stored::Bytes(bytes))
        };
        match &self.source {
            Source::File(path) => File::open(path).map(Stored::File),
            Source::Files(_) | Source::Spooled(_) | Source::Memory(_) => bytes(),
        }
        .map_err(|error| self.failed(error))
    }

    /// Copies standard input to a temporary file.
    ///
    /// # Errors
    /// The copy fails.
    pub fn stdin() -> Result<Trace, TraceError> {
        let name = String::from("standard input");
        match spool(io::stdin().lock()) {
            Ok(source) => Ok(Trace::new(name, source)),
            Err(error) => Err(TraceError::Open { name, error }),
        }
    }

    fn new(name: String, source: Source) -> Trace {
        Trace { name, source, unpacked: OnceLock::new(), fills_missing: false, converted: None }
    }

    /// Creates a log in memory, such as a generated one.
    pub fn memory(name: impl Into<String>, text: Vec<u8>) -> Trace {
        Trace::new(name.into(), Source::Memory(text))
    }

    /// Loads and decompresses the log into memory, for repeated reading. Returns it with its SHA-256. A converted log stays
    /// as it is.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn into_memory(mut self) -> Result<(Trace, String), TraceError> {
        if self.is_converted() {
            let sha256 = self.sha256()?;
            return Ok((self, sha256));
        }
        if let Some(text) = self.unpacked.take() {
            let sha256 = self.sha256()?;
            return Ok((Trace::memory(self.name, text).filling_missing_fields(self.fills_missing), sha256));
        }
        let fill = self.fills_missing;
        let mut stored = Vec::new();
        self.raw().and_then(|mut raw| raw.read_to_end(&mut stored)).map_err(|error| self.failed(error))?;
        let stored = Trace::memory(self.name, stored).filling_missing_fields(fill);
        let sha256 = stored.sha256()?;
        if !stored.is_packed()? {
            return Ok((stored, sha256));
        }
        let mut text = Vec::new();
        stored.unpacked()?.read_to_end(&mut text).map_err(|error| stored.failed(error))?;
        Ok((Trace::memory(stored.name, text).filling_missing_fields(fill), sha256))
    }

    /// Returns the log whose lines may lack fields at their end, which are then unknown, if `fill` is set.
    #[must_use]
    pub fn filling_missing_fields(self, fill: bool) -> Trace {
        Trace { fills_missing: fill, ..self }
    }

    /// Returns the log with a converted one in place of its text. Its name and its checksum stay those of the stored bytes,
    /// as does its text.
    #[must_use]
    pub fn with_conversion(self, log: ConvertedLog) -> Trace {
        Trace { converted: Some(log), ..self }
    }

    /// Returns whether a converted log is read in place of the text, so that line numbers are not those of its file.
    pub fn is_converted(&self) -> bool {
        self.converted.is_some()
    }

    /// Returns the first bytes of the log's text: `most`, or up to its end or to a damage.
    ///
    /// # Errors
    /// See [`unpacked`](Trace::unpacked).
    pub fn start(&self, most: u64) -> Result<Vec<u8>, TraceError> {
        let mut start = Vec::new();
        // What was read before a damage is kept, and the reader of the lines reports it.
        let _ = self.unpacked()?.take(most).read_to_end(&mut start);
        Ok(start)
    }

    /// Returns whether the log is not in memory, so that reading it takes time of its own.
    pub fn is_stored(&self) -> bool {
        !matches!(self.source, Source::Memory(_))
    }

    fn is_packed(&self) -> Result<bool, TraceError> {
        let mut raw = self.raw().map_err(|error| self.failed(error))?;
        let start = raw.fill_buf().map_err(|error| self.failed(error))?;
        Ok(is_gzipped(start) || is_zstd(start))
    }

    /// Returns the name for messages: the path as given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the file name without folder and extensions: `KTH-SP2-1996-2`.
    pub fn stem(&self) -> &str {
        let file = Path::new(&self.name).file_name().and_then(|name| name.to_str()).unwrap_or(&self.name);
        let plain = file.strip_suffix(".gz").or_else(|| file.strip_suffix(".zst")).unwrap_or(file);
        plain.strip_suffix(".swf").unwrap_or(plain)
    }

    /// Returns a reader of the log's lines, which decompresses gzip.
    ///
    /// # Errors
    /// See [`unpacked`](Trace::unpacked).
    pub fn reader(&self) -> Result<Reader<Box<dyn BufRead + Send + '_>>, TraceError> {
        if let Some(log) = &self.converted {
            let nothing: Box<dyn BufRead + Send> = Box::new(io::empty());
            return Ok(Reader::new(nothing).of_converted(log.reader()));
        }
        self.unpacked().map(|text| Reader::new(text).filling_missing_fields(self.fills_missing))
    }

    /// Returns the log's bytes, decompressed if they are gzipped.
    ///
    /// # Errors
    /// The file cannot be opened or has another compression.
    pub fn unpacked(&self) -> Result<Box<dyn BufRead + Send + '_>, TraceError> {
        if let Some(text) = self.unpacked.get() {
            return Ok(Box::new(&text[..]));
        }
        let mut raw = self.raw().map_err(|error| self.failed(error))?;
        let start = raw.fill_buf().map_err(|error| self.failed(error))?;
        if let Some(compression) = unsupported_compression(start) {
            return Err(TraceError::Packed { name: self.name.clone(), compression });
        }
        if is_tar(start) {
            return Err(TraceError::Archive { name: self.name.clone() });
        }
        Ok(if is_gzipped(start) {
            Box::new(BufReader::with_capacity(CHUNK, MultiGzDecoder::new(raw)))
        } else if is_zstd(start) {
            Box::new(BufReader::with_capacity(CHUNK, ZstdReader::new(raw)))
        } else {
            raw
        })
    }

    /// Writes the log in the Standard Workload Format: the converted one, or else its text.
    ///
    /// # Errors
    /// The log cannot be read, or the output fails.
    pub fn write_swf(&self, mut output: impl io::Write) -> Result<(), TraceError> {
        match &self.converted {
            Some(log) => log.write(output).map_err(|error| self.failed(error)),
            None => {
                io::copy(&mut self.unpacked()?, &mut output).map(drop).map_err(|error| self.failed(error))
            }
        }
    }

    /// Returns the SHA-256 of the stored bytes in hexadecimal.
    ///
    /// # Errors
    /// The bytes cannot be read.
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

    /// Reads the comments, the number of jobs and their order in one fast pass.
    ///
    /// Malformed lines are not detected here, but when the jobs are read.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn survey(&self) -> Result<Survey, TraceError> {
        if let Some(log) = &self.converted {
            return log.survey().map_err(|error| TraceError::Sort { name: self.name.clone(), error });
        }
        if self.is_stored() && self.is_packed()? {
            self.keep_unpacked()?;
        }
        let mut reader = self.reader()?;
        reader.survey().map_err(|error| self.read_error(error))
    }

    /// Keeps the text of a gzipped log, unless it is long. A damaged one is not kept: its lines are read up to the damage.
    fn keep_unpacked(&self) -> Result<(), TraceError> {
        let mut text = Vec::new();
        let read = self.unpacked()?.take(KEPT_MAX + 1).read_to_end(&mut text);
        if read.is_ok_and(|length| length as u64 <= KEPT_MAX) {
            self.unpacked.get_or_init(|| text);
        }
        Ok(())
    }

    /// Returns the error for a line of this log.
    pub fn read_error(&self, error: ReadError) -> TraceError {
        TraceError::Read { name: self.name.clone(), error }
    }

    fn raw(&self) -> io::Result<Box<dyn BufRead + Send + '_>> {
        Ok(match &self.source {
            Source::File(path) => Box::new(BufReader::with_capacity(CHUNK, File::open(path)?)),
            Source::Files(files) => {
                let mut all: Box<dyn Read + Send> = Box::new(io::empty());
                for file in files {
                    all = Box::new(all.chain(File::open(file)?));
                }
                Box::new(BufReader::with_capacity(CHUNK, all))
            }
            Source::Spooled(file) => Box::new(BufReader::with_capacity(CHUNK, FromStart { file, offset: 0 })),
            Source::Memory(text) => Box::new(&text[..]),
        })
    }

    fn failed(&self, error: io::Error) -> TraceError {
        TraceError::Open { name: self.name.clone(), error }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn spool(mut input: impl Read) -> io::Result<Source> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut input, &mut file)?;
    Ok(Source::Spooled(file))
}

/// A reader with its own offset, so that several readers can share one file.
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
        let mut surveyor = Surveyor::new();
        loop {
            while self.each_raw_in_place(|line| surveyor.add(line))? {}
            match self.next_raw()? {
                Some(line) => surveyor.add(line),
                None => return Ok(surveyor.survey),
            }
        }
    }
}

/// A survey of the lines up to here.
struct Surveyor {
    survey: Survey,
    /// The latest submission.
    latest: i64,
}

impl Surveyor {
    fn new() -> Surveyor {
        Surveyor { survey: Survey { in_order: true, ..Survey::default() }, latest: i64::MIN }
    }

    fn add(&mut self, line: &[u8]) {
        // Uses the reader's definition of blank, so that both count the same lines.
        let start = line.iter().position(|&byte| !is_blank(byte)).unwrap_or(line.len());
        match &line[start..] {
            [] => {}
            [b';', ..] => self.survey.header.push(String::from_utf8_lossy(line.trim_ascii_end()).as_ref()),
            job => {
                self.survey.records += 1;
                if let Some(submit) = second_number(job) {
                    self.survey.in_order &= submit >= self.latest;
                    self.latest = self.latest.max(submit);
                    let first = self.survey.first_submit.filter(|first| *first <= submit);
                    self.survey.first_submit = first.or_else(|| (submit >= 0).then_some(submit));
                }
            }
        }
    }
}

/// Returns the second number of a line, if there is one.
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
