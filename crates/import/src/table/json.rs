//! Tables in JSON: objects behind each other, or a list of them.

use std::fmt;
use std::io;

use miserly_workload::Trace;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::cell::Cell;
use super::map::TableForm;
use super::source::{RowWork, Wanted};
use crate::error::ImportError;

/// Number of rows that give the names of the columns.
const FIRST_ROWS: u64 = 1_000;

/// The end of the name of a column that counts the elements of lists.
const COUNT: &str = ".count";

const FORMAT: &str = "a table in JSON is an object for each row, or a list of them";

/// The rows of a JSON document.
pub(crate) struct JsonRows<'a> {
    trace: &'a Trace,
    path: Option<String>,
    each: Option<String>,
}

/// What reading stops with.
enum Stop {
    Enough,
    Failed(ImportError),
}

type ObjectWork<'a> = dyn FnMut(Value) -> Result<(), Stop> + 'a;

impl<'a> JsonRows<'a> {
    pub(crate) fn new(trace: &'a Trace, form: &TableForm) -> JsonRows<'a> {
        JsonRows { trace, path: form.path.clone(), each: form.each.clone() }
    }

    /// Returns the names in the first rows: of members with points between, and `name.count` of lists.
    pub(crate) fn names(&self) -> Result<Vec<String>, ImportError> {
        let (mut names, mut rows) = (vec![], 0);
        self.objects(&mut |object| {
            add_names("", &object, &mut names);
            if let Some(each) = &self.each {
                let elements = find(&object, each).and_then(Value::as_array);
                elements.into_iter().flatten().for_each(|element| add_names(each, element, &mut names));
            }
            rows += 1;
            if rows == FIRST_ROWS { Err(Stop::Enough) } else { Ok(()) }
        })?;
        Ok(names)
    }

    pub(crate) fn each(&self, names: &[&str], most: u64, work: &mut RowWork<'_>) -> Result<(), ImportError> {
        let mut number = 0;
        self.objects(&mut |object| {
            let elements = self.each.as_ref().map(|each| {
                let list = find(&object, each).and_then(Value::as_array);
                list.map_or(&[][..], Vec::as_slice)
            });
            let mut row = |element: Option<&Value>| {
                if number == most {
                    return Err(Stop::Enough);
                }
                number += 1;
                let mut cells = [Cell::Null; Wanted::MOST];
                for (cell, name) in cells.iter_mut().zip(names) {
                    let of_element =
                        self.each.as_ref().and_then(|each| name.strip_prefix(each)?.strip_prefix('.'));
                    *cell = match (of_element, element) {
                        (Some(name), Some(element)) => cell_of(element, name),
                        (Some(rest), None) if rest != "count" => Cell::Null,
                        _ => cell_of(&object, name),
                    };
                }
                work(Ok(&cells[..names.len()]), number).map_err(Stop::Failed)
            };
            match elements {
                Some(elements) if !elements.is_empty() => elements.iter().try_for_each(|one| row(Some(one))),
                _ => row(None),
            }
        })
    }

    /// Calls `work` with each object.
    fn objects(&self, work: &mut ObjectWork<'_>) -> Result<(), ImportError> {
        let mut input = self.trace.unpacked()?;
        let mut stop = None;
        let is_list = self.path.is_some() || first_byte(&mut input) == Some(b'[');
        let result = if is_list {
            let mut deserializer = serde_json::Deserializer::from_reader(input);
            let path = self.path.as_deref().unwrap_or_default();
            let list = List { path, work, stop: &mut stop };
            list.deserialize(&mut deserializer)
        } else {
            let mut objects = serde_json::Deserializer::from_reader(input).into_iter::<Value>();
            objects.try_for_each(|object| {
                let Err(why) = work(object?) else { return Ok(()) };
                stop = Some(why);
                Err(serde_json::Error::custom("stopped"))
            })
        };
        match (result, stop) {
            (_, Some(Stop::Failed(error))) => Err(error),
            (_, Some(Stop::Enough)) | (Ok(()), None) => Ok(()),
            (Err(error), None) => Err(ImportError::of_json(self.trace, error, FORMAT)),
        }
    }
}

/// Returns the first byte that is not blank, and leaves it in the input.
fn first_byte(input: &mut impl io::BufRead) -> Option<u8> {
    loop {
        let available = input.fill_buf().ok()?;
        if available.is_empty() {
            return None;
        }
        let is_skipped = |byte: &u8| byte.is_ascii_whitespace() || b"\xef\xbb\xbf".contains(byte);
        let length = available.len();
        let found = available.iter().position(|byte| !is_skipped(byte)).map(|at| (at, available[at]));
        input.consume(found.map_or(length, |(at, _)| at));
        if let Some((_, byte)) = found {
            return Some(byte);
        }
    }
}

/// A list below a path, element by element.
struct List<'a, 'w> {
    path: &'a str,
    work: &'a mut ObjectWork<'w>,
    stop: &'a mut Option<Stop>,
}

impl<'de> DeserializeSeed<'de> for List<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path {
            "" => f.write_str("a list of objects"),
            path => write!(f, "an object with {path}"),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if !self.path.is_empty() {
            return Err(A::Error::custom(format!("a list where {:?} is expected", self.path)));
        }
        while let Some(object) = list.next_element::<Value>()? {
            if let Err(why) = (self.work)(object) {
                *self.stop = Some(why);
                return Err(A::Error::custom("stopped"));
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let (name, rest) = self.path.split_once('.').unwrap_or((self.path, ""));
        let mut found = false;
        while let Some(key) = members.next_key::<String>()? {
            if key == name {
                members.next_value_seed(List { path: rest, work: &mut *self.work, stop: &mut *self.stop })?;
                found = true;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        if found { Ok(()) } else { Err(A::Error::custom(format!("no member {name:?}"))) }
    }
}

/// Adds the names of the members of a value.
fn add_names(prefix: &str, value: &Value, names: &mut Vec<String>) {
    let mut add = |name: String| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                add_names(&name, value, names);
            }
        }
        Value::Array(elements) => {
            add(format!("{prefix}{COUNT}"));
            let inner = elements.iter().filter(|element| element.is_object());
            for element in inner {
                let mut of_element = vec![];
                add_names(prefix, element, &mut of_element);
                of_element.retain(|name| name.ends_with(COUNT));
                of_element.into_iter().for_each(&mut add);
            }
        }
        _ => add(prefix.to_owned()),
    }
}

fn cell_of<'v>(value: &'v Value, name: &str) -> Cell<'v> {
    match find(value, name) {
        Some(Value::Array(_) | Value::Object(_)) => Cell::Text(b"[...]"),
        Some(Value::String(text)) => Cell::Text(text.as_bytes()),
        Some(Value::Bool(truth)) => Cell::Int((*truth).into()),
        Some(Value::Number(number)) => match number.as_i64() {
            Some(number) => Cell::Int(number),
            None => Cell::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Some(Value::Null) => Cell::Null,
        None => match name.strip_suffix(COUNT).and_then(|name| count(value, name)) {
            Some(number) => Cell::Int(number),
            None => Cell::Null,
        },
    }
}

/// Returns the member at a path with points. The key of a member may have points too.
fn find<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let members = value.as_object()?;
    members.get(path).or_else(|| {
        let points = path.match_indices('.').map(|(at, _)| at);
        points.into_iter().find_map(|at| find(members.get(&path[..at])?, &path[at + 1..]))
    })
}

/// Returns the number of elements of all lists at a path.
fn count(value: &Value, path: &str) -> Option<i64> {
    match value {
        Value::Array(elements) if path.is_empty() => i64::try_from(elements.len()).ok(),
        Value::Array(elements) => Some(elements.iter().filter_map(|element| count(element, path)).sum()),
        Value::Object(members) if !path.is_empty() => {
            let (name, rest) = path.split_once('.').unwrap_or((path, ""));
            count(members.get(name)?, rest)
        }
        _ => None,
    }
}
