//! A column map, bound to the columns of a table.

use super::cell::{Cell, Clock, Reading};
use super::field::{FIELDS, FieldKind, TableField, Unit};
use super::join::Joined;
use super::map::{ColumnMap, FieldSource, Located, MapError, Place, Problem};
use super::rule::{self, RuleText};
use super::source::Wanted;
use crate::error::{CellError, FieldError};

/// Most numbers of a row.
const MOST: usize = Wanted::MOST;

/// A map and the places of its columns.
pub(crate) struct Bound {
    pub(crate) wanted: Wanted,
    /// The place of the key of the joined table, and its columns that are wanted.
    pub(crate) join: Option<(usize, Vec<usize>)>,
    slots: Vec<Slot>,
    numbers: Vec<FieldNumber>,
    texts: [Option<TextSource>; FIELDS],
    rules: Vec<Rule>,
    /// Name of the map.
    map: String,
}

/// A cell that is read as a number.
struct Slot {
    cell: usize,
    name: String,
    reading: Reading,
    /// The line or the rule of the map that reads it first.
    written: Located<String>,
}

/// A field that is a number.
struct FieldNumber {
    field: TableField,
    number: Number,
    /// The line of the map.
    written: Located<String>,
}

enum Number {
    Slot(usize),
    Formula { formula: miserly_formula::Formula, slots: Vec<usize>, scale: f64 },
}

struct TextSource {
    cell: usize,
    none: Vec<String>,
}

struct Rule {
    formula: miserly_formula::Formula,
    operands: Vec<Operand>,
}

enum Operand {
    Field(TableField),
    Slot(usize),
    Missing { of: Value, is_negated: bool },
    Is { of: Value, text: String, is_negated: bool },
}

/// A value that a rule tests.
enum Value {
    Field(TableField),
    Cell(usize),
}

/// The numbers of a row: NaN for none.
pub(crate) struct Numbers {
    slots: [f64; MOST],
    fields: [f64; FIELDS],
}

impl Numbers {
    /// No numbers.
    pub(crate) const NONE: Numbers = Numbers { slots: [f64::NAN; MOST], fields: [f64::NAN; FIELDS] };

    /// Returns the number of a field, if there is one.
    pub(crate) fn get(&self, field: TableField) -> Option<f64> {
        Some(self.fields[field as usize]).filter(|number| !number.is_nan())
    }
}

impl Bound {
    /// Binds a map to a table with these columns. `table` is its name, and `problems` are those of the map that are
    /// known.
    ///
    /// # Errors
    /// All problems, if there is one.
    pub(crate) fn new(
        map: &ColumnMap,
        table: &str,
        names: &[String],
        joined: Option<&Joined>,
        problems: Vec<Problem>,
    ) -> Result<Bound, MapError> {
        let mut binder = Binder {
            map,
            table,
            names,
            joined,
            columns: vec![],
            join_columns: vec![],
            slots: vec![],
            problems,
        };
        let key = map.join.as_ref().map(|join| binder.column(&join.key, join.file.place));
        let key = key.and_then(|key| binder.keep(key));
        let mut numbers = vec![];
        let mut texts = [const { None }; FIELDS];
        for source in &map.fields {
            let written = source.written.clone();
            if source.field.kind() == FieldKind::Text {
                let cell = binder.column(&source.column.value, source.column.place);
                let text = binder.keep(cell).map(|cell| TextSource { cell, none: source.none.clone() });
                texts[source.field as usize] = text;
            } else {
                let number = binder.number(source);
                let number = binder.keep(number);
                numbers.extend(number.map(|number| FieldNumber { field: source.field, number, written }));
            }
        }
        let mut rules = vec![];
        for drop in &map.drop {
            let rule = binder.rule(&RuleText::new(&drop.value), drop);
            rules.extend(binder.keep(rule));
        }
        if binder.columns.len() + binder.join_columns.len() > Wanted::MOST || binder.slots.len() > MOST {
            let problem = format!("more than {} columns", Wanted::MOST);
            binder.problems.push(Problem::new(Place { line: 1, column: 1 }, problem));
        }
        let Binder { columns, join_columns, slots, .. } = binder.checked()?;
        let mut bound = Bound {
            wanted: Wanted { columns, rows: u64::MAX },
            join: key.map(|key| (key, join_columns)),
            slots,
            numbers,
            texts,
            rules,
            map: map.name().to_owned(),
        };
        bound.place_joined();
        Ok(bound)
    }

    /// Puts the cells of the joined table behind those of the table.
    fn place_joined(&mut self) {
        let behind = self.wanted.columns.len();
        let place = |cell: &mut usize| {
            if *cell >= JOINED {
                *cell = *cell - JOINED + behind;
            }
        };
        self.slots.iter_mut().for_each(|slot| place(&mut slot.cell));
        self.texts.iter_mut().flatten().for_each(|text| place(&mut text.cell));
        for operand in self.rules.iter_mut().flat_map(|rule| &mut rule.operands) {
            if let Operand::Missing { of: Value::Cell(cell), .. }
            | Operand::Is { of: Value::Cell(cell), .. } = operand
            {
                place(cell);
            }
        }
    }

    /// Reads the numbers of a row. Those of other fields stay as they are.
    pub(crate) fn read(
        &self,
        cells: &[Cell<'_>],
        clock: &mut Clock,
        numbers: &mut Numbers,
    ) -> Result<(), FieldError> {
        for (number, slot) in numbers.slots.iter_mut().zip(&self.slots) {
            let cell = cells[slot.cell];
            *number = slot.reading.read(cell, clock).map_err(|expected| {
                FieldError::Cell(Box::new(CellError {
                    column: slot.name.clone(),
                    cell: cell.shown(),
                    expected,
                    rule: self.place(&slot.written),
                }))
            })?;
        }
        for FieldNumber { field, number, .. } in &self.numbers {
            numbers.fields[*field as usize] = match number {
                Number::Slot(slot) => numbers.slots[*slot],
                Number::Formula { formula, slots, scale } => {
                    let mut values = [0.0; MOST];
                    for (value, slot) in values.iter_mut().zip(slots) {
                        *value = numbers.slots[*slot];
                    }
                    formula.eval(&values[..slots.len()]) * scale
                }
            };
        }
        Ok(())
    }

    /// Returns a line or a rule of the map with its place.
    fn place(&self, written: &Located<String>) -> String {
        format!("{}:{}: {}", self.map, written.place.line, written.value)
    }

    /// Returns the error for a number of a field, with the cells that it is made of.
    pub(crate) fn with_cells(&self, error: FieldError, cells: &[Cell<'_>]) -> FieldError {
        let FieldError::Value { field, value, expected } = error else { return error };
        let Some(source) = self.numbers.iter().find(|number| number.field.name() == field) else {
            return FieldError::Value { field, value, expected };
        };
        let slots = match &source.number {
            Number::Slot(slot) => std::slice::from_ref(slot),
            Number::Formula { slots, .. } => slots,
        };
        let cell = |slot: &usize| {
            let slot = &self.slots[*slot];
            format!("{} is {:?}", slot.name, cells[slot.cell].shown())
        };
        let used: Vec<String> = slots.iter().map(cell).collect();
        let rule = format!("{}, where {}", self.place(&source.written), used.join(" and "));
        FieldError::Cell(Box::new(CellError { column: field, cell: value, expected, rule }))
    }

    /// Returns the text of a field.
    pub(crate) fn text<'c>(
        &self,
        field: TableField,
        cells: &[Cell<'c>],
    ) -> Option<std::borrow::Cow<'c, str>> {
        let source = self.texts[field as usize].as_ref()?;
        cells[source.cell].text().filter(|text| !source.none.iter().any(|none| none == text))
    }

    /// Returns the first rule that holds.
    pub(crate) fn rule(&self, numbers: &Numbers, cells: &[Cell<'_>]) -> Option<usize> {
        self.rules.iter().position(|rule| {
            let mut values = [0.0; MOST];
            for (value, operand) in values.iter_mut().zip(&rule.operands) {
                *value = match operand {
                    Operand::Field(field) => numbers.fields[*field as usize],
                    Operand::Slot(slot) => numbers.slots[*slot],
                    Operand::Missing { of, is_negated } => {
                        let is_missing = match of {
                            Value::Field(field) if field.kind() != FieldKind::Text => {
                                numbers.get(*field).is_none()
                            }
                            Value::Field(field) => self.text(*field, cells).is_none(),
                            Value::Cell(cell) => cells[*cell].text().is_none(),
                        };
                        f64::from(u8::from(is_missing != *is_negated))
                    }
                    Operand::Is { of, text, is_negated } => {
                        let found = match of {
                            Value::Field(field) => self.text(*field, cells),
                            Value::Cell(cell) => cells[*cell].text(),
                        };
                        f64::from(u8::from((found.as_deref() == Some(text)) != *is_negated))
                    }
                };
            }
            let value = rule.formula.eval(&values[..rule.operands.len()]);
            value != 0.0 && !value.is_nan()
        })
    }
}

/// Cells of the joined table have numbers from here until the number of the others is known.
const JOINED: usize = 1 << 20;

struct Binder<'a> {
    map: &'a ColumnMap,
    table: &'a str,
    names: &'a [String],
    joined: Option<&'a Joined>,
    columns: Vec<usize>,
    join_columns: Vec<usize>,
    slots: Vec<Slot>,
    problems: Vec<Problem>,
}

impl Binder<'_> {
    /// Notes a problem.
    fn keep<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.problems.push(problem)).ok()
    }

    /// Returns the error for all problems, if there is one.
    fn checked(mut self) -> Result<Self, MapError> {
        if self.problems.is_empty() {
            return Ok(self);
        }
        let unseen = self.map.unseen.as_ref().map_or_else(String::new, |unseen| format!("; {unseen}"));
        let has = format!("{} has the columns {}{unseen}", self.table, self.all_names().join(", "));
        Err(self.map.error(std::mem::take(&mut self.problems), Some(has)))
    }

    /// Returns the names that an expression can use.
    fn all_names(&self) -> Vec<String> {
        let joined = self.joined.iter().flat_map(|joined| joined.names.iter().cloned());
        self.names.iter().cloned().chain(joined).collect()
    }

    /// Returns the cell of a column, if the table has it.
    fn find(&mut self, name: &str) -> Option<usize> {
        if let Some(column) = self.names.iter().position(|known| known == name) {
            return Some(place(&mut self.columns, column));
        }
        let column = self.joined?.names.iter().position(|known| known == name)?;
        Some(JOINED + place(&mut self.join_columns, column))
    }

    fn column(&mut self, name: &str, at: Place) -> Result<usize, Problem> {
        self.find(name).ok_or_else(|| self.no_column(name, at))
    }

    fn no_column(&self, name: &str, at: Place) -> Problem {
        let plain = |name: &str| name.replace(|sign: char| !sign.is_alphanumeric(), "").to_lowercase();
        let near = self.all_names().into_iter().find(|known| plain(known) == plain(name));
        let near = near.map_or_else(String::new, |near| format!("; write it as {near:?}"));
        Problem::new(at, format!("{} has no column {name:?}{near}", self.table))
    }

    fn slot(&mut self, cell: usize, name: &str, reading: Reading, written: &Located<String>) -> usize {
        let known = self.slots.iter().position(|slot| slot.cell == cell && slot.reading == reading);
        known.unwrap_or_else(|| {
            self.slots.push(Slot { cell, name: name.to_owned(), reading, written: written.clone() });
            self.slots.len() - 1
        })
    }

    /// Returns the slot of a column in an expression. A column that is the time of a field is read as that field.
    fn operand(&mut self, name: &str, at: Place, written: &Located<String>) -> Result<usize, Problem> {
        let is_of =
            |source: &&FieldSource| source.field.kind() == FieldKind::Time && source.column.value == name;
        let time = self.map.fields.iter().find(is_of);
        let reading = time.map_or(Reading::NUMBER, reading);
        let written = time.map_or(written, |time| &time.written);
        let cell = self.column(name, at)?;
        Ok(self.slot(cell, name, reading, written))
    }

    fn number(&mut self, source: &FieldSource) -> Result<Number, Problem> {
        let (text, at) = (&source.column.value, source.column.place);
        if let Some(cell) = self.find(text) {
            return Ok(Number::Slot(self.slot(cell, text, reading(source), &source.written)));
        }
        if rule::is_name(text) {
            return Err(self.no_column(text, at));
        }
        if !source.none.is_empty() || !source.keys.is_empty() || source.has_decimal_comma {
            let problem = format!("none, key and decimal need a column, and {text:?} is an expression");
            return Err(Problem::new(at, problem));
        }
        let names = self.all_names();
        let names: Vec<&str> = names.iter().map(String::as_str).filter(|name| rule::is_name(name)).collect();
        let (formula, used) =
            rule::formula(text, &names, &[]).map_err(|problem| Problem::new(at, problem))?;
        let slots = used.iter().map(|name| self.operand(name, at, &source.written));
        let slots = slots.collect::<Result<Vec<_>, _>>()?;
        Ok(Number::Formula { formula, slots, scale: source.unit.map_or(1.0, Unit::scale) })
    }

    /// Binds a rule. `drop` is its text.
    fn rule(&mut self, rule: &RuleText, drop: &Located<String>) -> Result<Rule, Problem> {
        let at = drop.place;
        let written = Located { value: format!("drop {:?}", drop.value), place: at };
        let fields: Vec<TableField> = self.map.fields.iter().map(|source| source.field).collect();
        let columns = self.all_names();
        let names: Vec<&str> = fields
            .iter()
            .filter(|field| field.kind() != FieldKind::Text)
            .map(|field| field.name())
            .chain(
                columns
                    .iter()
                    .map(String::as_str)
                    .filter(|name| rule::is_name(name) && !fields.iter().any(|field| field.name() == *name)),
            )
            .collect();
        let (formula, used) = rule.formula(&names).map_err(|problem| Problem::new(at, problem))?;
        let mut operands = vec![];
        for name in &used[..used.len() - rule.tests().len()] {
            let field = fields.iter().find(|field| field.name() == name);
            operands.push(match field {
                Some(field) => Operand::Field(*field),
                None => Operand::Slot(self.operand(name, at, &written)?),
            });
        }
        for test in rule.tests() {
            let field = fields.iter().find(|field| field.name() == test.name);
            let of = match field.filter(|field| test.text.is_none() || field.kind() == FieldKind::Text) {
                Some(field) => Value::Field(*field),
                None => Value::Cell(self.column(&test.name, at)?),
            };
            operands.push(match &test.text {
                Some(text) => Operand::Is { of, text: text.clone(), is_negated: test.is_negated },
                None => Operand::Missing { of, is_negated: test.is_negated },
            });
        }
        if operands.len() > MOST {
            return Err(Problem::new(at, format!("a rule with more than {MOST} names")));
        }
        Ok(Rule { formula, operands })
    }
}

/// Returns the place of a column in a list, to which it is added.
fn place(columns: &mut Vec<usize>, column: usize) -> usize {
    columns.iter().position(|known| *known == column).unwrap_or_else(|| {
        columns.push(column);
        columns.len() - 1
    })
}

fn reading(source: &FieldSource) -> Reading {
    Reading {
        unit: source.unit,
        is_time: source.field.kind() == FieldKind::Time,
        none: source.none.clone(),
        keys: source.keys.clone(),
        has_decimal_comma: source.has_decimal_comma,
    }
}
