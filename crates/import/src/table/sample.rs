//! The first values of the columns of a table.

use miserly_workload::Trace;

use super::cell::{Cell, Clock, Reading, number};
use super::field::{TableFormat, Unit};
use super::map::TableForm;
use super::source::{Source, Wanted, format_in};
use crate::error::ImportError;

/// Rows that a proposal is made of.
pub(super) const SAMPLE: u64 = 1_000;

/// What the first values of a column are.
#[allow(clippy::struct_excessive_bools, reason = "a column may be several of these")]
#[derive(Default)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) values: Vec<Option<String>>,
    /// The values as numbers; of texts, if all are numbers.
    pub(super) numbers: Vec<f64>,
    pub(super) are_numbers: bool,
    pub(super) are_dates: bool,
    pub(super) lack_zones: bool,
    pub(super) are_clocks: bool,
}

/// Reads the first rows of all columns.
pub(super) fn samples(
    trace: &Trace,
    delimiter: Option<u8>,
) -> Result<(TableFormat, Vec<Sample>), ImportError> {
    let form = TableForm::default();
    let (names, format) = {
        let source = Source::open(trace, &form, delimiter)?;
        (source.names, format_in(trace, &form)?)
    };
    let mut samples = vec![];
    let places: Vec<usize> = (0..names.len()).collect();
    for columns in places.chunks(Wanted::MOST) {
        let mut found: Vec<Sample> =
            columns.iter().map(|&column| Sample { name: names[column].clone(), ..Sample::new() }).collect();
        let wanted = Wanted { columns: columns.to_vec(), rows: SAMPLE };
        let read = Source::open(trace, &form, delimiter)?.each(&wanted, &mut |cells, number| {
            let cells = cells.map_err(|error| error.at(trace.name(), number))?;
            found.iter_mut().zip(cells).for_each(|(sample, cell)| sample.add(*cell));
            Ok(())
        });
        // A list cannot be read as a value, and a map does not need it.
        if columns.len() == 1 && read.is_err() {
            found.clear();
        } else {
            read?;
        }
        samples.extend(found);
    }
    Ok((format, samples))
}

impl Sample {
    fn new() -> Sample {
        Sample { are_numbers: true, are_dates: true, are_clocks: true, ..Sample::default() }
    }

    fn add(&mut self, cell: Cell<'_>) {
        let text = cell.text();
        let date = Reading { unit: Some(Unit::DateTime), is_time: true, ..Reading::NUMBER };
        match cell {
            Cell::Null => {}
            Cell::Instant(_) | Cell::Local(_) => {
                self.are_numbers = false;
                self.are_clocks = false;
                self.lack_zones |= matches!(cell, Cell::Local(_));
            }
            Cell::Int(number) => self.add_number(number as f64),
            Cell::Float(number) => self.add_number(number),
            Cell::Text(text) => {
                let text = text.trim_ascii();
                if Cell::Text(text).text().is_none() {
                } else if let Some(number) = number(text, false) {
                    self.add_number(number);
                } else {
                    self.are_numbers = false;
                    let mut utc = Clock::new(Some(jiff::tz::TimeZone::UTC));
                    self.are_dates &= text.len() > 15 && date.read(cell, &mut utc).is_ok();
                    self.lack_zones |= self.are_dates && date.read(cell, &mut Clock::new(None)).is_err();
                    let clock = Reading { unit: Some(Unit::DayClock), ..Reading::NUMBER };
                    self.are_clocks &= clock.read(cell, &mut utc).is_ok();
                }
            }
        }
        self.values.push(text.map(std::borrow::Cow::into_owned));
    }

    fn add_number(&mut self, number: f64) {
        // Some tables mix dates and seconds of the Unix epoch.
        self.are_dates &= (1e8..1e11).contains(&number);
        self.are_clocks = false;
        self.numbers.push(number);
    }

    pub(super) fn has_values(&self) -> bool {
        self.values.iter().any(Option::is_some)
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            sample if !sample.has_values() => "empty",
            sample if sample.are_whole() => "whole number",
            sample if sample.are_numbers => "number",
            sample if sample.are_dates => "time",
            sample if sample.are_clocks => "clock",
            _ => "text",
        }
    }

    /// Returns whether all values are whole numbers.
    pub(super) fn are_whole(&self) -> bool {
        self.are_numbers && self.numbers.iter().all(|number| number.fract() == 0.0)
    }

    /// Returns whether all values are texts that are neither times nor clocks.
    pub(super) fn are_texts(&self) -> bool {
        self.kind() == "text"
    }

    /// Returns whether the values can be instants, by what they are.
    pub(super) fn are_instants(&self) -> bool {
        if !self.are_numbers {
            return self.are_dates && self.has_values();
        }
        let times = self.numbers.iter().filter(|number| **number != 0.0);
        // The years from 1985 to 2128, in any unit.
        let is_instant =
            |number: &f64| [1.0, 1e3, 1e6, 1e9].iter().any(|unit| (5e8..5e9).contains(&(number / unit)));
        let (all, instants) =
            times.fold((0, 0), |(all, found), time| (all + 1, found + usize::from(is_instant(time))));
        all > 0 && instants * 20 >= all * 19
    }

    /// Returns the different values, in the order of their letters.
    pub(super) fn distinct(&self) -> std::collections::BTreeSet<&str> {
        self.values.iter().flatten().map(String::as_str).collect()
    }

    /// Returns the number of empty values.
    pub(super) fn empty(&self) -> usize {
        self.values.iter().filter(|value| value.is_none()).count()
    }

    /// Returns the first different values.
    pub(super) fn examples(&self, most: usize) -> Vec<String> {
        let mut found: Vec<String> = vec![];
        for value in self.values.iter().flatten() {
            if found.len() == most {
                break;
            }
            if !found.contains(value) {
                found.push(value.clone());
            }
        }
        found
    }

    /// Returns the unit of times, and whether they are from an unknown instant.
    pub(super) fn time_unit(&self) -> (Unit, bool) {
        if !self.are_numbers {
            return (Unit::DateTime, false);
        }
        let most = self.numbers.iter().copied().fold(0.0, f64::max);
        match most {
            most if most < 1e8 => (Unit::Seconds, true),
            most if most < 1e11 => (Unit::Seconds, false),
            most if most < 1e14 => (Unit::Millis, false),
            most if most < 1e17 => (Unit::Micros, false),
            _ => (Unit::Nanos, false),
        }
    }

    /// Returns the values as times in seconds.
    pub(super) fn seconds(&self) -> Vec<Option<f64>> {
        let reading = Reading { unit: Some(self.time_unit().0), is_time: true, ..Reading::NUMBER };
        let mut clock = Clock::new(Some(jiff::tz::TimeZone::UTC));
        let read = |text: &Option<String>, clock: &mut Clock| {
            let found = reading.read(Cell::Text(text.as_deref()?.as_bytes()), clock).ok()?;
            Some(found).filter(|found| !found.is_nan())
        };
        self.values.iter().map(|text| read(text, &mut clock)).collect()
    }
}
