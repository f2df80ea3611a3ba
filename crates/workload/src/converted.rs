//! A log that was converted from another format: comments, and jobs by their submission, without their text.

use std::io::{self, Write};
use std::sync::Arc;

use crate::sorted::{Sorted, SortedReader};
use crate::swf::{Field, Header, Record, SwfWriter};
use crate::trace::Survey;

/// A log of records that are sorted by their submission.
#[derive(Clone, Debug)]
pub struct ConvertedLog {
    /// Comments at the top, including `;`.
    pub comments: Arc<[String]>,
    /// The jobs.
    pub jobs: Arc<Sorted<i64>>,
    /// The instant of the jobs' times that is 0 in the log, in seconds.
    pub begin: i64,
    /// Whether the jobs are numbered from 1, whatever number their records have.
    pub is_numbered: bool,
}

/// A reader of a converted log.
pub(crate) struct ConvertedReader {
    comments: Arc<[String]>,
    /// Comments that were read.
    done: usize,
    jobs: SortedReader<i64>,
    begin: i64,
    /// The number of the last job, if they are numbered.
    number: Option<i64>,
}

impl ConvertedLog {
    /// Returns a reader of the log from its begin.
    pub(crate) fn reader(&self) -> ConvertedReader {
        ConvertedReader {
            comments: Arc::clone(&self.comments),
            done: 0,
            jobs: self.jobs.reader(),
            begin: self.begin,
            number: self.is_numbered.then_some(0),
        }
    }

    /// Returns what a survey of the log's text finds.
    pub(crate) fn survey(&self) -> io::Result<Survey> {
        let mut header = Header::default();
        self.comments.iter().for_each(|comment| header.push(comment));
        let mut reader = self.reader();
        let first_submit = loop {
            let Some(job) = reader.next_job()? else { break None };
            if let Some(submit) = job.recorded(Field::Submit) {
                break i64::try_from(submit).ok();
            }
        };
        Ok(Survey { header, records: self.jobs.count(), in_order: true, first_submit })
    }

    /// Calls `work` with each job.
    ///
    /// # Errors
    /// The temporary file of the jobs cannot be read, or `work` fails.
    pub fn each_job<E: From<io::Error>>(
        &self,
        mut work: impl FnMut(&Record) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut reader = self.reader();
        while let Some(job) = reader.next_job()? {
            work(job)?;
        }
        Ok(())
    }

    /// Writes the log in the Standard Workload Format.
    ///
    /// # Errors
    /// The temporary file of the jobs cannot be read, or the output fails.
    pub fn write(&self, output: impl Write) -> io::Result<()> {
        let mut writer = SwfWriter::new(io::BufWriter::new(output));
        self.comments.iter().try_for_each(|comment| writer.comment(comment))?;
        self.each_job(|job| writer.job(job))?;
        writer.into_inner().flush()
    }
}

impl ConvertedReader {
    /// Returns whether a comment is left.
    pub(crate) fn has_comment(&self) -> bool {
        self.done < self.comments.len()
    }

    /// Returns the next comment, if one is left.
    pub(crate) fn next_comment(&mut self) -> Option<&str> {
        let comment = self.comments.get(self.done)?;
        self.done += 1;
        Some(comment)
    }

    /// Skips the comments that are left, and returns their number.
    pub(crate) fn skip_comments(&mut self) -> u64 {
        let left = self.comments.len() - self.done;
        self.done = self.comments.len();
        left as u64
    }

    /// Returns the next job.
    pub(crate) fn next_job(&mut self) -> io::Result<Option<&mut Record>> {
        let Some(job) = self.jobs.next_record()? else { return Ok(None) };
        job.fields[Field::Submit as usize] -= self.begin;
        if let Some(number) = &mut self.number {
            *number += 1;
            job.fields[Field::Job as usize] = *number;
        }
        Ok(Some(job))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sorted::Sorter;
    use crate::swf::{LogLine, Reader, parse_line};
    use crate::trace::Trace;

    /// Returns the lines as a reader parses them, and then raw.
    fn lines<R: io::BufRead>(mut parsed: Reader<R>, mut raw: Reader<R>) -> (Vec<String>, Vec<String>) {
        let (mut found, mut texts) = (vec![], vec![]);
        while let Some(line) = parsed.next_line().unwrap() {
            let line = match line {
                LogLine::Comment(comment) => comment.to_owned(),
                LogLine::Job(record) => format!("{record:?}"),
                LogLine::Blank => String::new(),
            };
            found.push(format!("{} {line}", parsed.line()));
        }
        while let Some(line) = raw.next_raw().unwrap() {
            let line = String::from_utf8(line.to_vec()).unwrap();
            texts.push(format!("{} {line}", raw.line()));
        }
        (found, texts)
    }

    #[test]
    fn the_log_reads_as_its_text_does() {
        let comments = ["; MaxProcs: 9", "; Extra: nodes name"].map(str::to_owned);
        let mut sorter = Sorter::new(|job| job.get(Field::Submit));
        for (submit, name) in [(1_030, ""), (1_000, "a b"), (1_030, "c")] {
            let mut record = Record::unknown();
            parse_line(b"77 1 5 60 4 1.50 -1 4 90 -1 1 7 -1 -1 2 -1 -1 -1", &mut record).unwrap();
            record.set(Field::Submit, submit);
            record.extras_mut().set(crate::swf::Extra::Name, name).unwrap();
            sorter.push(&record).unwrap();
        }
        let jobs = Arc::new(sorter.finish().unwrap());
        let log = ConvertedLog { comments: comments.into(), jobs, begin: 1_000, is_numbered: true };
        let mut text = vec![];
        log.write(&mut text).unwrap();
        let rest = "5 60 4 1.50 -1 4 90 -1 1 7 -1 -1 2 -1 -1 -1 -";
        let expect =
            format!("; MaxProcs: 9\n; Extra: nodes name\n1 0 {rest} a%20b\n2 30 {rest} -\n3 30 {rest} c\n");
        assert_eq!(String::from_utf8(text.clone()).unwrap(), expect);
        let (trace, plain) = (Trace::memory("a", vec![]).with_conversion(log), Trace::memory("a", text));
        assert!(trace.is_converted() && !plain.is_converted());
        let read = |trace: &Trace| lines(trace.reader().unwrap(), trace.reader().unwrap());
        assert_eq!(read(&trace), read(&plain));
        let numbers = |trace: &Trace| {
            let (mut reader, mut numbers) = (trace.reader().unwrap(), vec![]);
            while let Some(job) = reader.next_job().unwrap() {
                numbers.push((job.get(Field::Job), job.get(Field::Submit)));
            }
            (numbers, reader.line())
        };
        assert_eq!(numbers(&trace), (vec![(1, 0), (2, 30), (3, 30)], 5));
        assert_eq!(numbers(&trace), numbers(&plain));
        assert_eq!(format!("{:?}", trace.survey().unwrap()), format!("{:?}", plain.survey().unwrap()));
        let (memory, sha256) = trace.into_memory().unwrap();
        assert_eq!(read(&memory), read(&plain));
        assert_eq!(sha256, Trace::memory("a", vec![]).sha256().unwrap(), "that of the stored bytes");
    }
}
