//! The column of each field, chosen by names, types and values.

use std::collections::BTreeMap;

use super::cell::number;
use super::field::{FieldKind, TableField, Unit};
use super::names::{MEASURED, NAMES, NOISE, WORDS};
use super::sample::Sample;
use super::words::Words;
use crate::state::final_state;

/// The column of a field.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// Place of the column.
    pub(super) column: usize,
    /// The unit of its values, if the name has one or the values show one.
    pub(super) unit: Option<Unit>,
    /// Why, if it is not by the name.
    pub(super) by_content: Option<String>,
}

/// The columns that were chosen.
pub(super) struct Choices<'a> {
    samples: &'a [Sample],
    words: Vec<Words>,
    chosen: BTreeMap<TableField, Choice>,
    /// What is possible but not sure: fields with a column and the reason.
    pub(super) unsure: Vec<(TableField, usize, String)>,
}

/// The fields that others are found by.
const TIMES: [TableField; 3] = [TableField::Submit, TableField::Start, TableField::End];

/// Words of final states, as a whole value has them.
const STATES: &[&str] = &[
    "completed",
    "complete",
    "success",
    "succeeded",
    "successful",
    "ok",
    "done",
    "finished",
    "passed",
    "pass",
    "failed",
    "fail",
    "failure",
    "error",
    "timeout",
    "oom",
    "out_of_memory",
    "node_fail",
    "cancelled",
    "canceled",
    "killed",
    "aborted",
    "terminated",
    "running",
    "pending",
    "queued",
    "waiting",
    "suspended",
    "exit",
];

impl<'a> Choices<'a> {
    /// Chooses columns by their names, and for fields without one by their values.
    pub(super) fn new(samples: &'a [Sample]) -> Choices<'a> {
        let words = samples.iter().map(|sample| Words::new(&sample.name)).collect();
        let mut choices = Choices { samples, words, chosen: BTreeMap::new(), unsure: vec![] };
        let others = TableField::ALL.into_iter().filter(|field| !TIMES.contains(field));
        let fields: Vec<TableField> = TIMES.into_iter().chain(others).collect();
        for field in &fields {
            choices.choose_by_name(*field);
        }
        for field in fields {
            choices.choose_by_words(field);
        }
        choices.choose_times();
        choices.choose_runtime();
        choices.choose_estimate();
        choices.choose_size();
        choices.choose_texts();
        choices
    }

    /// Returns the column of a field.
    pub(super) fn get(&self, field: TableField) -> Option<&'a Sample> {
        self.chosen.get(&field).map(|choice| &self.samples[choice.column])
    }

    pub(super) fn choice(&self, field: TableField) -> Option<&Choice> {
        self.chosen.get(&field)
    }

    /// Returns the fields of a column.
    pub(super) fn field_of(&self, column: usize) -> Option<(TableField, &Choice)> {
        self.chosen.iter().find(|(_, choice)| choice.column == column).map(|(field, choice)| (*field, choice))
    }

    pub(super) fn has(&self, field: TableField) -> bool {
        self.chosen.contains_key(&field)
    }

    /// Returns the columns that no field has.
    fn free(&self) -> Vec<usize> {
        let is_free = |column: &usize| self.chosen.values().all(|choice| choice.column != *column);
        (0..self.samples.len()).filter(is_free).collect()
    }

    fn choose(&mut self, field: TableField, column: usize, unit: Option<Unit>, by_content: Option<String>) {
        self.chosen.insert(field, Choice { column, unit, by_content });
    }

    /// Returns whether the values of a column can be those of a field.
    fn is_possible(&self, field: TableField, column: usize) -> bool {
        let sample = &self.samples[column];
        sample.has_values()
            && match field.kind() {
                FieldKind::Time => sample.are_numbers || sample.are_dates,
                FieldKind::Span => {
                    !sample.are_dates
                        && (sample.are_numbers || sample.are_clocks || !sample.numbers.is_empty())
                }
                FieldKind::Count => sample.are_numbers,
                FieldKind::Memory => true,
                FieldKind::Text => match field {
                    TableField::Queue => !sample.are_numbers || !self.are_waits(sample),
                    _ => true,
                },
            }
    }

    /// Chooses the column with a name that is usual for the field.
    fn choose_by_name(&mut self, field: TableField) {
        let Some((_, names)) = NAMES.iter().find(|(known, _)| *known == field) else { return };
        let plain = |name: &str| -> String {
            let letters = name.chars().filter(char::is_ascii_alphanumeric);
            letters.map(|letter| letter.to_ascii_lowercase()).collect()
        };
        let of_name = |name: &&str| {
            let found = self.free().into_iter().find(|column| plain(&self.samples[*column].name) == **name);
            found.filter(|column| self.is_possible(field, *column))
        };
        if let Some(column) = names.iter().find_map(of_name) {
            let unit = self.words[column].unit;
            self.choose(field, column, unit, None);
        }
    }

    /// Chooses the column whose words are most like those of the field.
    fn choose_by_words(&mut self, field: TableField) {
        let is_missing = !self.has(field) && !self.is_known_otherwise(field);
        let Some((_, patterns)) = WORDS.iter().find(|(known, _)| *known == field).filter(|_| is_missing)
        else {
            return;
        };
        let score = |column: usize| -> Option<usize> {
            let words = &self.words[column];
            let matching = patterns.iter().filter(|pattern| pattern.iter().all(|word| words.has(word)));
            let pattern = matching.max_by_key(|pattern| pattern.len())?;
            let others = words.words.iter().filter(|word| !pattern.contains(&word.as_str()));
            let strange = others.filter(|word| !NOISE.contains(&word.as_str())).count();
            (10 * pattern.len()).checked_sub(4 * strange).filter(|score| *score > 2)
        };
        let is_measured = |column: &usize| {
            field.kind() == FieldKind::Count && MEASURED.iter().any(|word| self.words[*column].has(word))
        };
        let has_unit =
            |column: &usize| field.kind() == FieldKind::Count && self.words[*column].unit.is_some();
        let columns = self.free().into_iter().filter(|column| self.is_possible(field, *column));
        let columns = columns.filter(|column| !is_measured(column) && !has_unit(column));
        let scores = columns.filter_map(|column| Some((score(column)?, column)));
        // Of equals, the first.
        if let Some((_, column)) = scores.max_by_key(|(score, column)| (*score, std::cmp::Reverse(*column))) {
            let unit = self.words[column].unit;
            self.choose(field, column, unit, None);
        }
    }

    /// Returns whether other columns make the field superfluous.
    fn is_known_otherwise(&self, field: TableField) -> bool {
        match field {
            TableField::Wait => self.has(TableField::Start),
            TableField::RequestedProcs => !self.has(TableField::Procs),
            _ => false,
        }
    }

    /// Returns whether the numbers of a column are the waits, as some tables name them `queue`.
    fn are_waits(&self, sample: &Sample) -> bool {
        let (Some(submit), Some(start)) = (self.get(TableField::Submit), self.get(TableField::Start)) else {
            return false;
        };
        let spans = spans(submit, start);
        let pairs = pairs(&spans, sample);
        let same = pairs.iter().filter(|(wait, value)| (wait - value).abs() < 2.0).count();
        !pairs.is_empty() && same * 10 >= pairs.len() * 9
    }

    /// Chooses the times by their order: the submission, the start and the end of a row.
    fn choose_times(&mut self) {
        let missing: Vec<TableField> = TIMES.into_iter().filter(|field| !self.has(*field)).collect();
        let free: Vec<usize> =
            self.free().into_iter().filter(|column| self.samples[*column].are_instants()).collect();
        if missing.is_empty() || free.is_empty() {
            return;
        }
        let known = TIMES.into_iter().filter_map(|field| self.choice(field)).map(|choice| choice.column);
        let mut order: Vec<usize> = free.iter().copied().chain(known).collect();
        let is_before =
            |one: usize, other: usize| in_order(&self.samples[one], &self.samples[other]).is_some();
        let before = |column: usize| {
            (0..self.samples.len())
                .filter(|other| order.contains(other))
                .filter(|other| is_before(*other, column))
                .count()
        };
        let keys: BTreeMap<usize, usize> = order.iter().map(|column| (*column, before(*column))).collect();
        order.sort_by_key(|column| (keys[column], *column));
        let chain = |order: &[usize]| -> Option<String> {
            let rows: Option<Vec<(usize, usize)>> =
                order.windows(2).map(|two| in_order(&self.samples[two[0]], &self.samples[two[1]])).collect();
            let (kept, all) = rows?.into_iter().min()?;
            let names: Vec<String> =
                order.iter().map(|column| format!("{:?}", self.samples[*column].name)).collect();
            Some(format!("times, {} in {kept} of {all} rows", names.join(" <= ")))
        };
        let Some(why) = chain(&order).filter(|_| order.len() == TIMES.len()) else {
            for field in missing {
                for column in &free {
                    self.unsure.push((field, *column, "times".to_owned()));
                }
            }
            return;
        };
        for (field, column) in TIMES.into_iter().zip(order) {
            if !self.has(field) {
                let unit = self.words[column].unit;
                self.choose(field, column, unit, Some(why.clone()));
            }
        }
    }

    /// Chooses the runtime by a start and an end, where one of them is missing in the map.
    fn choose_runtime(&mut self) {
        let (start, end) = (self.get(TableField::Start), self.get(TableField::End));
        let (Some(start), Some(end)) = (start, end) else { return };
        if self.has(TableField::Runtime) {
            return;
        }
        let spans = spans(start, end);
        for column in self.free() {
            if let Some((unit, same, all)) = unit_of_spans(&spans, &self.samples[column]) {
                let why = format!("{:?} - {:?} in {same} of {all} rows", end.name, start.name);
                self.choose(TableField::Runtime, column, Some(unit), Some(why));
                return;
            }
        }
    }

    /// Names columns that runtimes are within, and whose values are round.
    fn choose_estimate(&mut self) {
        let (start, end) = (self.get(TableField::Start), self.get(TableField::End));
        let (Some(start), Some(end), false) = (start, end, self.has(TableField::Estimate)) else { return };
        let spans = spans(start, end);
        for column in self.free() {
            let sample = &self.samples[column];
            let pairs = pairs(&spans, sample);
            let is_round = sample.are_whole() && sample.numbers.iter().all(|limit| limit % 60.0 == 0.0);
            let within = pairs.iter().filter(|(runtime, limit)| *runtime <= limit + 60.0).count();
            let most = pairs.iter().map(|(_, limit)| *limit).fold(0.0, f64::max);
            if is_round && pairs.len() > 2 && most >= 60.0 && within * 10 >= pairs.len() * 9 {
                let why = format!(
                    "round numbers, with {within} of {} runtimes within them in seconds",
                    pairs.len()
                );
                self.unsure.push((TableField::Estimate, column, why));
            }
        }
    }

    /// Chooses the only column of small whole numbers as the size.
    fn choose_size(&mut self) {
        let sizes = [TableField::Procs, TableField::RequestedProcs, TableField::Nodes];
        if sizes.into_iter().any(|field| self.has(field)) {
            return;
        }
        let is_size = |column: &usize| {
            let (sample, words) = (&self.samples[*column], &self.words[*column]);
            let is_small = sample.numbers.iter().all(|number| (1.0..=1e6).contains(number));
            let are_repeated = sample.distinct().len() < sample.numbers.len();
            let is_measured = MEASURED.iter().any(|word| words.has(word)) || words.unit.is_some();
            let is_unsure = self.unsure.iter().any(|(_, unsure, _)| unsure == column);
            sample.has_values()
                && sample.are_whole()
                && is_small
                && are_repeated
                && !is_measured
                && !is_unsure
        };
        let found: Vec<usize> = self.free().into_iter().filter(is_size).collect();
        let why = |column: usize| {
            let numbers = &self.samples[column].numbers;
            let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
            format!("whole numbers from {least} to {}", numbers.iter().copied().fold(0.0, f64::max))
        };
        if let [column] = found[..] {
            let why = format!("the only column of small {}", why(column));
            self.choose(TableField::Procs, column, None, Some(why));
            return;
        }
        for column in found {
            let why = why(column);
            self.unsure.push((TableField::Procs, column, why));
        }
    }

    /// Chooses states, jobs, users and queues by their words.
    fn choose_texts(&mut self) {
        let is_state =
            |text: &&str| final_state(text).is_some() || STATES.contains(&text.to_lowercase().as_str());
        if !self.has(TableField::Status) {
            let states = |column: &usize| {
                let words = self.samples[*column].distinct();
                let known = words.iter().filter(|word| is_state(word)).count();
                (self.samples[*column].are_texts() && words.len() <= 20 && known * 2 >= words.len())
                    .then_some(known)
            };
            let found = self.free().into_iter().find_map(|column| Some((column, states(&column)?)));
            if let Some((column, known)) = found {
                let all = self.samples[column].distinct().len();
                let why = format!("{known} of its {all} different words are final states");
                self.choose(TableField::Status, column, None, Some(why));
            }
        }
        if !self.has(TableField::Job) {
            let is_key = |column: &usize| {
                let sample = &self.samples[*column];
                let is_name = sample.are_texts() || sample.are_whole() && !sample.are_instants();
                is_name
                    && sample.empty() == 0
                    && sample.values.len() > 2
                    && sample.distinct().len() == sample.values.len()
            };
            if let Some(column) = self.free().into_iter().find(is_key) {
                self.choose(TableField::Job, column, None, Some("a value of its own in each row".to_owned()));
            }
        }
        self.name_repeated_words();
    }

    /// Names columns with repeated words, which may be users, queues or accounts.
    fn name_repeated_words(&mut self) {
        let mut repeated: Vec<(usize, usize)> = self
            .free()
            .into_iter()
            .filter(|column| self.samples[*column].are_texts())
            .map(|column| (self.samples[column].distinct().len(), column))
            .filter(|(distinct, column)| (2..=self.samples[*column].values.len() / 2).contains(distinct))
            .collect();
        repeated.sort_unstable();
        for (field, is_many) in [(TableField::User, true), (TableField::Queue, false)] {
            if self.has(field) || repeated.is_empty() {
                continue;
            }
            let (distinct, column) = if is_many { repeated[repeated.len() - 1] } else { repeated[0] };
            self.unsure.push((field, column, format!("{distinct} different words that occur again")));
        }
    }
}

/// Returns the rows in which one time is not after another, and those that have both, if nearly all are.
fn in_order(one: &Sample, other: &Sample) -> Option<(usize, usize)> {
    let (one, other) = (one.seconds(), other.seconds());
    let is_time = |time: &Option<f64>| time.filter(|time| *time != 0.0);
    let pairs = one.iter().zip(&other).filter_map(|(one, other)| is_time(one).zip(is_time(other)));
    let (all, kept) =
        pairs.fold((0, 0), |(all, kept), (one, other)| (all + 1, kept + usize::from(one <= other)));
    (all > 0 && kept * 20 >= all * 19).then_some((kept, all))
}

/// Returns the seconds between two times in each row.
pub(super) fn spans(from: &Sample, to: &Sample) -> Vec<Option<f64>> {
    from.seconds().into_iter().zip(to.seconds()).map(|(from, to)| Some(to? - from?)).collect()
}

/// Returns the spans of the rows that have a number, with it.
pub(super) fn pairs(spans: &[Option<f64>], sample: &Sample) -> Vec<(f64, f64)> {
    let numbers = sample.values.iter().map(|text| number(text.as_deref()?.as_bytes(), false));
    spans.iter().zip(numbers).filter_map(|(span, number)| span.zip(number)).collect()
}

/// Returns the unit in which numbers are spans, with the rows in which they are and those that have both.
pub(super) fn unit_of_spans(spans: &[Option<f64>], sample: &Sample) -> Option<(Unit, usize, usize)> {
    let pairs = pairs(spans, sample);
    let units = [Unit::Seconds, Unit::Millis, Unit::Minutes, Unit::Hours];
    units.into_iter().find_map(|unit| {
        let slack = (unit.scale() * 0.51).max(1.0);
        let is_same = |(span, number): &&(f64, f64)| (number * unit.scale() - span).abs() <= slack;
        let same = pairs.iter().filter(is_same).count();
        // Spans below the slack tell nothing.
        let telling = pairs.iter().filter(|(span, _)| *span > 2.0 * slack).count();
        (telling > 2 && same * 20 >= pairs.len() * 19).then_some((unit, same, pairs.len()))
    })
}
