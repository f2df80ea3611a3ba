//! The jobs of a log as a table for other programs.

use std::io::{self, Write};

use miserly_workload::LogDates;
use miserly_workload::swf::{Extra, ExtraColumns, Field, Record};

use super::csv::{write_extras, write_names};

/// A writer of a row for each job of a log.
///
/// The columns are the fields of the log, then its extra fields, then submission, start and end in seconds of the Unix
/// epoch. An unknown value is empty, and so is a time of a log without dates.
pub struct JobTable<W> {
    output: W,
    extras: Vec<Extra>,
    /// Second 0 of the log in seconds of the Unix epoch.
    epoch: Option<i64>,
}

impl<W: Write> JobTable<W> {
    /// Writes the header line. `output` should be buffered.
    ///
    /// # Errors
    /// The output fails.
    pub fn new(mut output: W, columns: &ExtraColumns, dates: Option<&LogDates>) -> io::Result<JobTable<W>> {
        let extras: Vec<Extra> = columns.known().collect();
        output.write_all(Field::ALL.map(Field::name).join(",").as_bytes())?;
        write_names(&mut output, &extras)?;
        writeln!(output, ",submit_epoch,start_epoch,end_epoch")?;
        Ok(JobTable { output, extras, epoch: dates.map(LogDates::start) })
    }

    /// Writes the row of a job.
    ///
    /// # Errors
    /// The output fails.
    pub fn job(&mut self, record: &Record) -> io::Result<()> {
        for field in Field::ALL {
            if field != Field::Job {
                self.output.write_all(b",")?;
            }
            match (field, record.get(field)) {
                (Field::Job, number) => write!(self.output, "{number}")?,
                (_, ..0) => {}
                (Field::CpuTime, _) => self.output.write_all(record.cpu_time().as_bytes())?,
                (_, value) => write!(self.output, "{value}")?,
            }
        }
        write_extras(&mut self.output, &self.extras, record.extras())?;
        let submit =
            record.recorded(Field::Submit).and_then(|submit| self.epoch?.checked_add_unsigned(submit));
        let start = submit.and_then(|submit| submit.checked_add_unsigned(record.recorded(Field::Wait)?));
        let end = start.and_then(|start| start.checked_add_unsigned(record.recorded(Field::Runtime)?));
        for time in [submit, start, end] {
            self.output.write_all(b",")?;
            if let Some(time) = time {
                write!(self.output, "{time}")?;
            }
        }
        writeln!(self.output)
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.output
    }
}

#[cfg(test)]
mod tests {
    use miserly_workload::Trace;

    use super::*;

    #[test]
    fn unknown_values_are_empty() {
        let log = "; UnixStartTime: 1000\n; Extra: name x gpus\n\
                   7 10 5 60 4 1.50 -1 4 90 -1 1 -1 -1 -1 -1 -1 -1 -1 a%2Cb y 0.5\n\
                   8 11 -1 60 4 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n";
        let trace = Trace::memory("log", log.into());
        let survey = trace.survey().unwrap();
        let dates = LogDates::of(&survey);
        let mut reader = trace.reader().unwrap();
        let mut table = JobTable::new(Vec::new(), &survey.header.extra_columns(), dates.as_ref()).unwrap();
        while let Some(record) = reader.next_job().unwrap() {
            table.job(record).unwrap();
        }
        let text = String::from_utf8(table.into_inner()).unwrap();
        let (names, rows) = text.split_once('\n').unwrap();
        assert!(names.ends_with(",think_time,name,gpus,submit_epoch,start_epoch,end_epoch"), "{names}");
        let expect =
            "7,10,5,60,4,1.50,,4,90,,1,,,,,,,,\"a,b\",0.5,1010,1015,1075\n8,11,,60,4,,,,,,,,,,,,,,,,1011,,\n";
        assert_eq!(rows, expect);
    }
}
