//! Records of forecasts and their outcomes, and bounds that follow from them.

use std::fmt;

use miserly_forecast::{Conformal, Waits};
use thiserror::Error;

use crate::JobForecast;

/// The longest time after its submission at which the forecast of a job counts as one of a new job, in seconds.
const NEW: i64 = 120;

/// A forecast with its outcome. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The job, by name.
    pub job: String,
    /// Its partition.
    pub partition: String,
    /// Its submission.
    pub submitted: i64,
    /// The instant of the forecast.
    pub made: i64,
    /// The simulated starts by which 50, 80 and 95 % start.
    pub simulated: [i64; 3],
    /// The start that Slurm expected.
    pub slurm: Option<i64>,
    /// The start, if the job has started.
    pub start: Option<i64>,
    /// The last instant at which it was known to wait, or its start.
    pub until: i64,
}

/// The reason why a text has no records.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: no record of `miserly slurm audit`; the first line is {HEADER}")]
pub struct RecordError {
    line: usize,
}

/// The first line of a file of records.
const HEADER: &str = "job,partition,submitted,made,median,by_80,by_95,slurm,start,until";

/// Formats a line of a file.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record {
            job,
            partition,
            submitted,
            made,
            simulated: [median, by_80, by_95],
            slurm,
            start,
            until,
        } = self;
        let or_none = |time: &Option<i64>| time.map_or_else(String::new, |time| time.to_string());
        let (slurm, start) = (or_none(slurm), or_none(start));
        write!(f, "{job},{partition},{submitted},{made},{median},{by_80},{by_95},{slurm},{start},{until}")
    }
}

impl Record {
    pub(crate) fn new(forecast: &JobForecast, start: Option<i64>, until: i64) -> Record {
        Record {
            job: forecast.job.clone(),
            partition: forecast.partition.clone(),
            submitted: forecast.submitted,
            made: forecast.made,
            simulated: forecast.simulated.map(|wait| forecast.after(wait)),
            slurm: forecast.slurm,
            start,
            until,
        }
    }

    /// Returns the first line of a file of records.
    pub const fn header() -> &'static str {
        HEADER
    }

    /// Reads a file of records.
    ///
    /// # Errors
    /// If a line is no record.
    pub fn read(text: &str) -> Result<Vec<Record>, RecordError> {
        let mut lines = (1..).zip(text.lines());
        if lines.next().is_none_or(|(_, line)| line != HEADER) {
            return Err(RecordError { line: 1 });
        }
        lines.map(|(line, text)| Record::parse(text).ok_or(RecordError { line })).collect()
    }

    fn parse(line: &str) -> Option<Record> {
        let [job, partition, submitted, made, median, by_80, by_95, slurm, start, until] =
            line.split(',').collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let time = |text: &str| text.parse::<i64>().ok();
        let or_none = |text: &str| if text.is_empty() { Some(None) } else { time(text).map(Some) };
        Some(Record {
            job: job.to_owned(),
            partition: partition.to_owned(),
            submitted: time(submitted)?,
            made: time(made)?,
            simulated: [time(median)?, time(by_80)?, time(by_95)?],
            slurm: or_none(slurm)?,
            start: or_none(start)?,
            until: time(until)?,
        })
    }

    fn class(&self) -> Class {
        class(&self.partition, self.submitted, self.made)
    }

    fn waits(&self) -> Waits {
        self.simulated.map(|start| u64::try_from(start - self.made).unwrap_or(0))
    }
}

/// The partition of a job, and whether the forecast is one of a new job. A job that waits already has another distribution.
type Class = (String, bool);

fn class(partition: &str, submitted: i64, made: i64) -> Class {
    (partition.to_owned(), made - submitted <= NEW)
}

/// The outcomes of forecasts, by partition, and the bounds that follow from them.
#[derive(Clone, Debug, Default)]
pub struct Calibration(Conformal<Class, (String, i64)>);

impl Calibration {
    /// Returns the calibration by records, which are taken in as they became known.
    pub fn new(records: &[Record]) -> Calibration {
        // What ends at an instant is known to a forecast there.
        let ends = (0..).zip(records).map(|(nth, record)| (record.until.max(record.made), 1, nth));
        let begins = (0..).zip(records).map(|(nth, record)| (record.made, 0, nth));
        let mut events: Vec<(i64, u8, usize)> = ends.chain(begins).collect();
        events.sort_unstable();
        let mut calibration = Calibration::default();
        for (_, is_end, nth) in events {
            let record = &records[nth];
            let key = (record.job.clone(), record.made);
            match (is_end, record.start) {
                (0, _) => drop(calibration.0.add(key, record.class(), record.waits(), record.made)),
                (_, Some(start)) => calibration.0.settle(&key, start),
                (_, None) => calibration.0.leave(&key, record.until),
            }
        }
        calibration
    }

    /// Returns the bounds of the wait from the forecast on, in seconds; `None`: too little is known of the partition.
    pub(crate) fn bounds(&self, forecast: &JobForecast) -> Option<Waits> {
        let class = class(&forecast.partition, forecast.submitted, forecast.made);
        self.0.bounds(&class, forecast.simulated, forecast.made)
    }

    /// Adds a forecast without an outcome.
    pub(crate) fn add(&mut self, forecast: &JobForecast) {
        let class = class(&forecast.partition, forecast.submitted, forecast.made);
        self.0.add((forecast.job.clone(), forecast.made), class, forecast.simulated, forecast.made);
    }

    /// Adds an outcome.
    pub(crate) fn end(&mut self, record: &Record) {
        let key = (record.job.clone(), record.made);
        match record.start {
            Some(start) => self.0.settle(&key, start),
            None => self.0.leave(&key, record.until),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(nth: i64, partition: &str, wait: Option<i64>) -> Record {
        let made = 1_000 * nth;
        Record {
            job: nth.to_string(),
            partition: partition.to_owned(),
            submitted: made,
            made,
            simulated: [made + 40, made + 80, made + 140],
            slurm: (nth % 2 == 0).then_some(made + 9),
            start: wait.map(|wait| made + wait),
            until: made + wait.unwrap_or(500),
        }
    }

    #[test]
    fn records_are_read_back() {
        let records = [record(1, "batch", Some(60)), record(2, "batch", None)];
        let text = format!("{HEADER}\n{}\n{}\n", records[0], records[1]);
        assert_eq!(Record::read(&text), Ok(records.to_vec()));
        assert!(text.ends_with("2,batch,2000,2000,2040,2080,2140,2009,,2500\n"), "{text}");
        assert_eq!(Record::read("job,made\n"), Err(RecordError { line: 1 }));
        assert_eq!(Record::read(&text.replace("2040", "soon")), Err(RecordError { line: 3 }));
    }

    #[test]
    fn bounds_are_calibrated_by_partition() {
        // The wait is 0 to 990 s, and one of ten jobs was not followed to its start.
        let wait = |nth: i64| (nth % 10 != 3).then_some(nth * 37 % 100 * 10);
        let records: Vec<Record> = (1..=300).map(|nth| record(nth, "batch", wait(nth))).collect();
        let calibration = Calibration::new(&records);
        let forecast = |partition: &str, submitted| JobForecast {
            job: "new".to_owned(),
            partition: partition.to_owned(),
            submitted,
            made: 400_000,
            median: 400_040,
            by_80: None,
            by_95: None,
            late: Some(400_140),
            slurm: None,
            simulated: [40, 80, 140],
        };
        let [median, by_80, by_95] = calibration.bounds(&forecast("batch", 400_000)).unwrap();
        assert!((400..600).contains(&median), "{median}");
        assert!((780..900).contains(&by_80) && (900..=991).contains(&by_95), "{by_80} {by_95}");
        assert_eq!(calibration.bounds(&forecast("other", 400_000)), None);
        // A job that waits for long is of another class.
        assert_eq!(calibration.bounds(&forecast("batch", 390_000)), None);
        let few = Calibration::new(&records[..50]);
        assert_eq!(few.bounds(&forecast("batch", 400_000)), None);
    }
}
