//! Column maps: what the columns of a table mean, as a TOML file.

use std::fmt;
use std::ops::Range;

use jiff::tz::TimeZone;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::field::{FieldKind, Per, SameJob, TableField, TableFormat, Unit};

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
}

/// The words of the final states, each with its status in the log; `None` of a job that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct States(pub(crate) Vec<(String, Option<i64>)>);

/// An error in a column map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}:{line}:{column}: {problem}")]
pub struct MapError {
    name: String,
    line: usize,
    column: usize,
    problem: String,
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
    /// A [`MapError`] with line and column: the text is not TOML, or a key or value is unknown.
    pub fn parse(name: &str, text: &str) -> Result<ColumnMap, MapError> {
        Parser { name, text }.map()
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
        MapError {
            name: self.name.clone(),
            line: place.line,
            column: place.column,
            problem: problem.to_string(),
        }
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

type Value<'a> = Spanned<DeValue<'a>>;

struct Parser<'a> {
    name: &'a str,
    text: &'a str,
}

/// A table of TOML with the name of its section.
struct Section<'a, 'b> {
    name: &'a str,
    table: &'a DeTable<'b>,
}

impl Parser<'_> {
    fn map(&self) -> Result<ColumnMap, MapError> {
        let document = DeTable::parse(self.text)
            .map_err(|error| self.wrong(error.span().unwrap_or_default(), error.message().trim()))?;
        let root = Section { name: "", table: document.get_ref() };
        self.check_keys(&root, &["table", "columns", "rules", "join"])?;
        let [table, columns, rules, join] =
            ["table", "columns", "rules", "join"].map(|name| self.section(&root, name));
        let (table, columns, rules, join) = (table?, columns?, rules?, join?);
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
        };
        if let Some(table) = &table {
            self.table(table, &mut map)?;
        }
        if let Some(columns) = &columns {
            self.columns(columns, &mut map)?;
        }
        if let Some(rules) = &rules {
            self.check_keys(rules, &["drop", "same_job"])?;
            map.drop = rules.table.get("drop").map_or(Ok(vec![]), |value| self.located_texts(value))?;
            if let Some(value) = rules.table.get("same_job") {
                map.same_job = self.word(value, &SameJob::ALL.map(|same| (same.name(), same)))?;
            }
        }
        if let Some(join) = &join {
            map.join = Some(self.join(join)?);
        }
        if map.form.format != Some(TableFormat::Pbs) && map.source(TableField::Submit).is_none() {
            return Err(self.wrong(
                0..0,
                "no column for submit; [columns] needs submit, procs, and a runtime or start and end",
            ));
        }
        Ok(map)
    }

    fn table(&self, section: &Section<'_, '_>, map: &mut ColumnMap) -> Result<(), MapError> {
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
        self.check_keys(section, &KEYS)?;
        map.form = self.form(section)?;
        let get = |key| section.table.get(key);
        map.about = get("about").map_or(Ok(String::new()), |value| self.text(value))?;
        map.notes = get("notes").map_or(Ok(vec![]), |value| self.texts(value))?;
        map.unseen = get("unseen").map(|value| self.text(value)).transpose()?;
        map.is_relative = get("relative").map_or(Ok(false), |value| self.truth(value))?;
        if let Some(value) = get("zone") {
            let zone = self.text(value)?;
            let unknown = |_| {
                self.wrong(
                    value.span(),
                    format!("unknown time zone {zone:?}; write it as Europe/Berlin or UTC"),
                )
            };
            map.zone = Some(TimeZone::get(&zone).map_err(unknown)?);
        }
        Ok(())
    }

    fn form(&self, section: &Section<'_, '_>) -> Result<TableForm, MapError> {
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

    fn join(&self, section: &Section<'_, '_>) -> Result<Join, MapError> {
        self.check_keys(section, &["file", "name", "key", "format", "delimiter", "header", "names"])?;
        let get = |key: &str| {
            let missing = || self.wrong(0..0, format!("[join] has no {key}"));
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

    fn columns(&self, section: &Section<'_, '_>, map: &mut ColumnMap) -> Result<(), MapError> {
        for (key, value) in section.table {
            let Some(field) = TableField::find(key.get_ref()) else {
                let known = TableField::ALL.map(TableField::name).join(", ");
                return Err(
                    self.wrong(key.span(), format!("unknown field {:?}; expected: {known}", key.get_ref()))
                );
            };
            let source = self.field(field, value, &mut map.states)?;
            map.fields.push(source);
        }
        map.fields.sort_by_key(|source| source.field);
        Ok(())
    }

    fn field(
        &self,
        field: TableField,
        value: &Value<'_>,
        states: &mut Option<States>,
    ) -> Result<FieldSource, MapError> {
        let kind = field.kind();
        let mut source = FieldSource {
            field,
            column: Located { value: String::new(), place: self.place(value.span()) },
            unit: Unit::of(kind).first().copied().filter(|_| kind != FieldKind::Memory),
            per: Per::Job,
            none: vec![],
            keys: vec![],
            has_decimal_comma: false,
        };
        let Some(table) = value.get_ref().as_table() else {
            source.column.value = self.text(value)?;
            return match kind {
                FieldKind::Memory => Err(self.wrong(
                    value.span(),
                    format!("expected {{ column = {:?}, unit = {} }}", source.column.value, units(kind)),
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
        self.check_keys(&section, &keys)?;
        let get = |key: &str| table.get(key);
        let Some(column) = get("column") else {
            return Err(self.wrong(value.span(), format!("{field} has no column")));
        };
        source.column = Located { value: self.text(column)?, place: self.place(column.span()) };
        source.none = get("none").map_or(Ok(vec![]), |value| self.texts(value))?;
        source.keys = match get("key") {
            Some(key) if key.get_ref().is_array() => self.texts(key)?,
            Some(key) => vec![self.text(key)?],
            None => vec![],
        };
        if let Some(unit) = get("unit") {
            let units: Vec<_> = Unit::of(kind).iter().map(|unit| (unit.name(), *unit)).collect();
            source.unit = Some(self.word(unit, &units)?);
        }
        if source.unit.is_none() && kind == FieldKind::Memory {
            return Err(self.wrong(value.span(), format!("{field} has no unit; expected: {}", units(kind))));
        }
        if let Some(per) = get("per") {
            source.per = self.word(per, &Per::ALL.map(|per| (per.name(), per)))?;
        }
        if let Some(decimal) = get("decimal") {
            source.has_decimal_comma = self.word(decimal, &[(",", true), (".", false)])?;
        }
        if field == TableField::Status {
            let mut words = vec![];
            for (list, status) in STATES {
                let found = get(list).map_or(Ok(vec![]), |value| self.texts(value))?;
                words.extend(found.into_iter().map(|word| (word, status)));
            }
            *states = (!words.is_empty()).then_some(States(words));
        }
        Ok(source)
    }

    fn section<'s, 'b>(
        &self,
        root: &Section<'s, 'b>,
        name: &'s str,
    ) -> Result<Option<Section<'s, 'b>>, MapError> {
        let Some(value) = root.table.get(name) else { return Ok(None) };
        let expected = || self.wrong(value.span(), format!("expected a table [{name}]"));
        Ok(Some(Section { name, table: value.get_ref().as_table().ok_or_else(expected)? }))
    }

    fn check_keys(&self, section: &Section<'_, '_>, known: &[&str]) -> Result<(), MapError> {
        let unknown = section.table.keys().find(|key| !known.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown else { return Ok(()) };
        let of = if section.name.is_empty() { String::new() } else { format!(" of {}", section.name) };
        let problem = format!("unknown key {:?}{of}; expected: {}", key.get_ref(), known.join(", "));
        Err(self.wrong(key.span(), problem))
    }

    /// Returns a text. A number is one too, as written.
    fn text(&self, value: &Value<'_>) -> Result<String, MapError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            DeValue::Integer(number) => Ok(number.as_str().to_owned()),
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            other => Err(self.wrong(value.span(), format!("expected a text, not {}", other.type_str()))),
        }
    }

    fn truth(&self, value: &Value<'_>) -> Result<bool, MapError> {
        value.get_ref().as_bool().ok_or_else(|| self.wrong(value.span(), "expected true or false"))
    }

    fn texts(&self, value: &Value<'_>) -> Result<Vec<String>, MapError> {
        Ok(self.located_texts(value)?.into_iter().map(|text| text.value).collect())
    }

    fn located_texts(&self, value: &Value<'_>) -> Result<Vec<Located<String>>, MapError> {
        let Some(list) = value.get_ref().as_array() else {
            return Err(self.wrong(value.span(), "expected a list of texts in [ ]"));
        };
        let located = |one: &Value<'_>| Ok(Located { value: self.text(one)?, place: self.place(one.span()) });
        list.iter().map(located).collect()
    }

    fn word<T: Copy>(&self, value: &Value<'_>, words: &[(&str, T)]) -> Result<T, MapError> {
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

    fn wrong(&self, span: Range<usize>, problem: impl fmt::Display) -> MapError {
        let Place { line, column } = self.place(span);
        MapError { name: self.name.to_owned(), line, column, problem: problem.to_string() }
    }
}

fn units(kind: FieldKind) -> String {
    Unit::of(kind).iter().map(|unit| unit.name()).collect::<Vec<_>>().join("|")
}
