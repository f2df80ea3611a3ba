//! Column maps: what the columns of a table mean, as a TOML file.

use std::fmt;
use std::ops::Range;

use jiff::tz::TimeZone;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::field::{FieldKind, Per, SameJob, TableField, TableFormat, Unit};
use crate::options::find_time_zone;

/// The meaning of the columns of a table.
#[derive(Clone, Debug)]
pub struct ColumnMap {
    /// Name of the map: that of its file, or of the preset.
    pub(crate) name: String,
    /// One line on the tables that it reads.
    pub(crate) about: String,
    pub(crate) form: TableForm,
    pub(crate) zone: Option<TimeZone>,
    /// Whether times count from an instant that is unknown.
    pub(crate) is_relative: bool,
    /// What a user of these tables must know.
    pub(crate) notes: Vec<String>,
    /// Why the names of the columns may be wrong.
    pub(crate) unseen: Option<String>,
    pub(crate) fields: Vec<FieldSource>,
    pub(crate) states: Option<States>,
    pub(crate) drop: Vec<Located<String>>,
    pub(crate) same_job: SameJob,
    pub(crate) join: Option<Join>,
    /// What is wrong, of a draft.
    pub(crate) problems: Vec<Problem>,
}

/// The form of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableForm {
    /// The format; `None` if the first bytes decide.
    pub(crate) format: Option<TableFormat>,
    pub(crate) delimiter: Option<u8>,
    /// Names of columns, if the table has no header line.
    pub(crate) names: Option<Vec<String>>,
    /// Path to the list of objects, with points.
    pub(crate) path: Option<String>,
    /// Member of an object that is a list: each element is a row.
    pub(crate) each: Option<String>,
}

/// Another table with a row for each key.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    /// Name of the file, in the folder of the table.
    pub(crate) file: Located<String>,
    /// The name before the point in `name.column`.
    pub(crate) name: String,
    /// The column with the key, in both tables.
    pub(crate) key: String,
    pub(crate) form: TableForm,
}

/// A value with its place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

/// Line and column from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// The source of a field.
#[derive(Clone, Debug)]
pub(crate) struct FieldSource {
    pub(crate) field: TableField,
    /// A column or an expression.
    pub(crate) column: Located<String>,
    pub(crate) unit: Option<Unit>,
    pub(crate) per: Per,
    pub(crate) none: Vec<String>,
    pub(crate) keys: Vec<String>,
    pub(crate) has_decimal_comma: bool,
    /// The line of the map.
    pub(crate) written: Located<String>,
}

/// The words of the final states, each with its status in the log; `None` of a job that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct States(pub(crate) Vec<(String, Option<i64>)>);

/// A problem of a column map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) place: Place,
    pub(crate) text: String,
}

/// The problems of a column map, by their places.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct MapError {
    name: String,
    problems: Vec<Problem>,
    /// What the table has, if the map was bound to one.
    has: Option<String>,
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Problem { place: Place { line, column }, text }) in self.problems.iter().enumerate() {
            let before = if index > 0 { "\n" } else { "" };
            write!(f, "{before}{}:{line}:{column}: {text}", self.name)?;
        }
        match &self.has {
            Some(has) if self.problems.len() > 1 => write!(f, "\n{has}"),
            Some(has) => write!(f, "; {has}"),
            None => Ok(()),
        }
    }
}

/// The lists of states in a map, with their status.
const STATES: [(&str, Option<i64>); 5] = [
    ("completed", Some(1)),
    ("failed", Some(0)),
    ("timeout", Some(0)),
    ("cancelled", Some(5)),
    ("unfinished", None),
];

impl ColumnMap {
    /// Parses a map. `name` is that of its file.
    ///
    /// # Errors
    /// A [`MapError`] with each problem: the text is not TOML, a key or value is unknown, or a field is missing.
    pub fn parse(name: &str, text: &str) -> Result<ColumnMap, MapError> {
        let map = ColumnMap::draft(name, text)?;
        map.check()?;
        Ok(map)
    }

    /// Parses a map. Its problems are found again when it reads a table, together with the columns that the table lacks.
    ///
    /// # Errors
    /// The text is not TOML, or the form of the table has a problem, so that its columns are not known.
    pub fn draft(name: &str, text: &str) -> Result<ColumnMap, MapError> {
        Parser { name, text, problems: vec![] }.map()
    }

    /// Returns the problems of a draft as an error.
    pub(crate) fn check(&self) -> Result<(), MapError> {
        if self.problems.is_empty() { Ok(()) } else { Err(self.error(self.problems.clone(), None)) }
    }

    /// Returns the error for problems. `has` is what the table has.
    pub(crate) fn error(&self, problems: Vec<Problem>, has: Option<String>) -> MapError {
        MapError::new(&self.name, problems, has)
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a line on the tables that it reads.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Returns what a user of these tables must know.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the error at a place of the map.
    pub(crate) fn wrong(&self, place: Place, problem: impl fmt::Display) -> MapError {
        self.error(vec![Problem::new(place, problem)], None)
    }

    /// Returns whether a field or a rule mentions a column.
    pub(crate) fn mentions(&self, column: &str) -> bool {
        let mut texts = self
            .fields
            .iter()
            .map(|source| &source.column.value)
            .chain(self.drop.iter().map(|drop| &drop.value));
        texts.any(|text| text.contains(column))
    }

    /// Returns the source of a field.
    pub(crate) fn source(&self, field: TableField) -> Option<&FieldSource> {
        self.fields.iter().find(|source| source.field == field)
    }
}

impl MapError {
    fn new(name: &str, mut problems: Vec<Problem>, has: Option<String>) -> MapError {
        problems.sort_by_key(|problem| problem.place);
        MapError { name: name.to_owned(), problems, has }
    }
}

impl Problem {
    pub(crate) fn new(place: Place, text: impl fmt::Display) -> Problem {
        Problem { place, text: text.to_string() }
    }
}

type Value<'a> = Spanned<DeValue<'a>>;

struct Parser<'a> {
    name: &'a str,
    text: &'a str,
    /// The problems so far.
    problems: Vec<Problem>,
}

/// A table of TOML with the name of its section.
struct Section<'a, 'b> {
    name: &'a str,
    table: &'a DeTable<'b>,
}

impl Parser<'_> {
    fn map(mut self) -> Result<ColumnMap, MapError> {
        let document = DeTable::parse(self.text).map_err(|error| {
            let problem = self.wrong(error.span().unwrap_or_default(), error.message().trim());
            MapError::new(self.name, vec![problem], None)
        })?;
        let root = Section { name: "", table: document.get_ref() };
        self.check_keys(&root, &["table", "columns", "rules", "join"]);
        let mut map = ColumnMap {
            name: self.name.to_owned(),
            about: String::new(),
            form: TableForm::default(),
            zone: None,
            is_relative: false,
            notes: vec![],
            unseen: None,
            fields: vec![],
            states: None,
            drop: vec![],
            same_job: SameJob::Own,
            join: None,
            problems: vec![],
        };
        let mut has_form = true;
        if let Some(table) = self.section(&root, "table") {
            has_form = self.table(&table, &mut map);
        }
        let columns = self.section(&root, "columns");
        if let Some(columns) = &columns {
            self.columns(columns, &mut map);
        }
        if let Some(rules) = self.section(&root, "rules") {
            self.rules(&rules, &mut map);
        }
        if let Some(join) = self.section(&root, "join") {
            let join = self.join(&join);
            map.join = self.keep(join);
        }
        if map.form.format != Some(TableFormat::Pbs) {
            let end = self.text.len();
            let span = root.table.get("columns").map_or(end..end, Spanned::span);
            self.check_fields(columns.as_ref(), span);
        }
        if !has_form {
            return Err(MapError::new(self.name, self.problems, None));
        }
        map.problems = self.problems;
        Ok(map)
    }

    /// Notes a problem.
    fn keep<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.problems.push(problem)).ok()
    }

    /// Checks that there are sources of the times and the size of a job.
    fn check_fields(&mut self, columns: Option<&Section<'_, '_>>, span: Range<usize>) {
        use TableField::{End, Nodes, Procs, RequestedProcs, Runtime, Start, Submit, Wait};
        let has = |field: TableField| {
            columns.is_some_and(|columns| columns.table.keys().any(|key| key.get_ref() == field.name()))
        };
        let has_runtime = has(Runtime) || (has(Start) || has(Wait)) && has(End);
        let has_size = has(Procs) || has(RequestedProcs) || has(Nodes);
        let missing = [
            (has(Submit), "when a job was submitted; write submit = \"COLUMN\""),
            (
                has_runtime,
                "how long a job ran; write runtime = \"COLUMN\", or start = \"COLUMN\" and end = \"COLUMN\"",
            ),
            (
                has_size,
                "how many processors a job has; write procs = \"COLUMN\", or nodes = \"COLUMN\" and read the table with --cpus-per-node",
            ),
        ];
        for (_, what) in missing.iter().filter(|(is_there, _)| !is_there) {
            let problem = self.wrong(span.clone(), format!("[columns] does not say {what}"));
            self.problems.push(problem);
        }
    }

    /// Reads the section of the table. Returns whether its form is known.
    fn table(&mut self, section: &Section<'_, '_>, map: &mut ColumnMap) -> bool {
        const KEYS: [&str; 11] = [
            "about",
            "format",
            "delimiter",
            "header",
            "names",
            "path",
            "each",
            "zone",
            "relative",
            "notes",
            "unseen",
        ];
        self.check_keys(section, &KEYS);
        let form = self.form(section);
        let form = self.keep(form);
        let has_form = form.is_some();
        map.form = form.unwrap_or_default();
        let get = |key| section.table.get(key);
        map.about = get("about").and_then(|value| self.keep(self.text(value))).unwrap_or_default();
        map.notes = get("notes").and_then(|value| self.keep(self.texts(value))).unwrap_or_default();
        map.unseen = get("unseen").and_then(|value| self.keep(self.text(value)));
        map.is_relative = get("relative").and_then(|value| self.keep(self.truth(value))).unwrap_or(false);
        map.zone = get("zone").and_then(|value| self.keep(self.zone(value)));
        has_form
    }

    fn zone(&self, value: &Value<'_>) -> Result<TimeZone, Problem> {
        let name = self.text(value)?;
        find_time_zone(&name).map_err(|problem| self.wrong(value.span(), format!("{name:?}: {problem}")))
    }

    fn rules(&mut self, rules: &Section<'_, '_>, map: &mut ColumnMap) {
        self.check_keys(rules, &["drop", "same_job"]);
        let get = |key| rules.table.get(key);
        map.drop = get("drop").and_then(|value| self.keep(self.located_texts(value))).unwrap_or_default();
        let words = SameJob::ALL.map(|same| (same.name(), same));
        map.same_job =
            get("same_job").and_then(|value| self.keep(self.word(value, &words))).unwrap_or(SameJob::Own);
    }

    fn form(&self, section: &Section<'_, '_>) -> Result<TableForm, Problem> {
        let get = |key| section.table.get(key);
        let mut form = TableForm::default();
        if let Some(value) = get("format") {
            form.format = Some(self.word(value, &TableFormat::ALL.map(|format| (format.name(), format)))?);
        }
        if let Some(value) = get("delimiter") {
            let text = self.text(value)?;
            let [byte] = text.as_bytes() else {
                return Err(self.wrong(value.span(), "expected one character, such as \",\" or \"\\t\""));
            };
            form.delimiter = Some(*byte);
        }
        form.names = get("names").map(|value| self.texts(value)).transpose()?;
        if let Some(value) = get("header")
            && self.truth(value)? == form.names.is_some()
        {
            return Err(self
                .wrong(value.span(), "expected header = false with names, or header = true without names"));
        }
        form.path = get("path").map(|value| self.text(value)).transpose()?;
        form.each = get("each").map(|value| self.text(value)).transpose()?;
        Ok(form)
    }

    fn join(&mut self, section: &Section<'_, '_>) -> Result<Join, Problem> {
        self.check_keys(section, &["file", "name", "key", "format", "delimiter", "header", "names"]);
        let get = |key: &str| {
            let place = section.table.values().next().map_or(0..0, Spanned::span);
            let missing = || self.wrong(place, format!("[join] has no {key}"));
            section.table.get(key).ok_or_else(missing)
        };
        let file = get("file")?;
        Ok(Join {
            file: Located { value: self.text(file)?, place: self.place(file.span()) },
            name: self.text(get("name")?)?,
            key: self.text(get("key")?)?,
            form: self.form(section)?,
        })
    }

    fn columns(&mut self, section: &Section<'_, '_>, map: &mut ColumnMap) {
        for (key, value) in section.table {
            let Some(field) = TableField::find(key.get_ref()) else {
                let known = TableField::ALL.map(TableField::name).join(", ");
                let problem =
                    self.wrong(key.span(), format!("unknown field {:?}; expected: {known}", key.get_ref()));
                self.problems.push(problem);
                continue;
            };
            let written = self.text.get(key.span().start..value.span().end).unwrap_or_default();
            let written = written.split_whitespace().collect::<Vec<_>>().join(" ");
            let written = Located { value: written, place: self.place(key.span()) };
            let source = self.field(field, value, written, &mut map.states);
            map.fields.extend(self.keep(source));
        }
        map.fields.sort_by_key(|source| source.field);
    }

    fn field(
        &mut self,
        field: TableField,
        value: &Value<'_>,
        written: Located<String>,
        states: &mut Option<States>,
    ) -> Result<FieldSource, Problem> {
        let kind = field.kind();
        let mut source = FieldSource {
            field,
            column: Located { value: String::new(), place: self.place(value.span()) },
            unit: Unit::of(kind).first().copied().filter(|_| kind != FieldKind::Memory),
            per: Per::Job,
            none: vec![],
            keys: vec![],
            has_decimal_comma: false,
            written,
        };
        let Some(table) = value.get_ref().as_table() else {
            source.column.value = self.text(value)?;
            return match kind {
                FieldKind::Memory => Err(self.wrong(
                    value.span(),
                    format!(
                        "expected {{ column = {:?}, unit = \"UNIT\" }} with one of the units {}",
                        source.column.value,
                        units(kind)
                    ),
                )),
                _ => Ok(source),
            };
        };
        let section = Section { name: field.name(), table };
        let mut keys = vec!["column", "none"];
        match kind {
            FieldKind::Memory => keys.extend(["unit", "per", "key", "decimal"]),
            FieldKind::Time => keys.push("unit"),
            FieldKind::Span => keys.extend(["unit", "decimal"]),
            FieldKind::Count => keys.extend(["key", "decimal"]),
            FieldKind::Text if field == TableField::Status => keys.extend(STATES.map(|(name, _)| name)),
            FieldKind::Text => {}
        }
        self.check_keys(&section, &keys);
        let get = |key: &str| table.get(key);
        let Some(column) = get("column") else {
            return Err(self.wrong(value.span(), format!("{field} has no column")));
        };
        source.column = Located { value: self.text(column)?, place: self.place(column.span()) };
        source.none = get("none").and_then(|value| self.keep(self.texts(value))).unwrap_or_default();
        source.keys = get("key").and_then(|key| self.keep(self.one_or_more(key))).unwrap_or_default();
        if let Some(unit) = get("unit") {
            let found = self.text(unit).and_then(|text| {
                let expected =
                    || self.wrong(unit.span(), format!("expected one of {}, not {text:?}", units(kind)));
                Unit::find(kind, &text).ok_or_else(expected)
            });
            source.unit = self.keep(found).or(source.unit);
        } else if kind == FieldKind::Memory {
            return Err(self.wrong(value.span(), format!("{field} has no unit; expected: {}", units(kind))));
        }
        let pers = Per::ALL.map(|per| (per.name(), per));
        source.per = get("per").and_then(|per| self.keep(self.word(per, &pers))).unwrap_or(Per::Job);
        let decimals = [(",", true), (".", false)];
        source.has_decimal_comma =
            get("decimal").and_then(|sign| self.keep(self.word(sign, &decimals))).unwrap_or(false);
        if field == TableField::Status {
            let mut words = vec![];
            for (list, status) in STATES {
                let found = get(list).and_then(|value| self.keep(self.texts(value))).unwrap_or_default();
                words.extend(found.into_iter().map(|word| (word, status)));
            }
            *states = (!words.is_empty()).then_some(States(words));
        }
        Ok(source)
    }

    fn section<'s, 'b>(&mut self, root: &Section<'s, 'b>, name: &'s str) -> Option<Section<'s, 'b>> {
        let value = root.table.get(name)?;
        let expected = self.wrong(value.span(), format!("expected a table [{name}]"));
        let table = self.keep(value.get_ref().as_table().ok_or(expected))?;
        Some(Section { name, table })
    }

    fn check_keys(&mut self, section: &Section<'_, '_>, known: &[&str]) {
        for key in section.table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())) {
            let of = if section.name.is_empty() { String::new() } else { format!(" of {}", section.name) };
            let problem = format!("unknown key {:?}{of}; expected: {}", key.get_ref(), known.join(", "));
            let problem = self.wrong(key.span(), problem);
            self.problems.push(problem);
        }
    }

    /// Returns a text. A number is one too, as written.
    fn text(&self, value: &Value<'_>) -> Result<String, Problem> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            DeValue::Integer(number) => Ok(number.as_str().to_owned()),
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            other => Err(self.wrong(value.span(), format!("expected a text, not {}", other.type_str()))),
        }
    }

    fn truth(&self, value: &Value<'_>) -> Result<bool, Problem> {
        value.get_ref().as_bool().ok_or_else(|| self.wrong(value.span(), "expected true or false"))
    }

    fn texts(&self, value: &Value<'_>) -> Result<Vec<String>, Problem> {
        Ok(self.located_texts(value)?.into_iter().map(|text| text.value).collect())
    }

    fn one_or_more(&self, value: &Value<'_>) -> Result<Vec<String>, Problem> {
        if value.get_ref().is_array() { self.texts(value) } else { Ok(vec![self.text(value)?]) }
    }

    fn located_texts(&self, value: &Value<'_>) -> Result<Vec<Located<String>>, Problem> {
        let Some(list) = value.get_ref().as_array() else {
            return Err(self.wrong(value.span(), "expected a list of texts in [ ]"));
        };
        let located = |one: &Value<'_>| Ok(Located { value: self.text(one)?, place: self.place(one.span()) });
        list.iter().map(located).collect()
    }

    fn word<T: Copy>(&self, value: &Value<'_>, words: &[(&str, T)]) -> Result<T, Problem> {
        let text = self.text(value)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, found)| *found);
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        found.ok_or_else(|| {
            self.wrong(value.span(), format!("expected one of {}, not {text:?}", known.join(", ")))
        })
    }

    fn place(&self, span: Range<usize>) -> Place {
        let before = self.text.get(..span.start).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        Place { line: before.matches('\n').count() + 1, column: before[start..].chars().count() + 1 }
    }

    fn wrong(&self, span: Range<usize>, problem: impl fmt::Display) -> Problem {
        Problem::new(self.place(span), problem)
    }
}

fn units(kind: FieldKind) -> String {
    Unit::of(kind).iter().map(|unit| unit.name()).collect::<Vec<_>>().join(", ")
}
