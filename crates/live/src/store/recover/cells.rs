//! Rows as they lie in the pages of a database.
//!
//! # Source
//! The `SQLite` file format, "B-tree Pages", "Cell Payload Overflow Pages" and "Record Format".

use rusqlite::types::{Value, ValueRef};

use super::image::{Image, PAGE};
use crate::store::rows::Columns;

/// The kind of page that has the rows of a table.
const LEAF: u8 = 13;

/// The longest record, bytes; a longer one is a misread.
const LONGEST: usize = 1 << 30;

/// A row, its checksum not looked at.
pub(super) struct Cell {
    pub(super) number: i64,
    values: Vec<Value>,
}

impl Cell {
    /// How many columns it has.
    pub(super) fn width(&self) -> usize {
        self.values.len()
    }
}

impl Columns for Cell {
    fn get(&self, at: usize) -> Option<ValueRef<'_>> {
        // The first column is the row's number, which is not repeated in the record.
        if at == 0 { Some(ValueRef::Integer(self.number)) } else { self.values.get(at).map(ValueRef::from) }
    }
}

/// Where a page says that its rows are; none if it is not a page of rows.
pub(super) fn pointers(page: &[u8]) -> Vec<usize> {
    if page[0] != LEAF {
        return Vec::new();
    }
    let count = usize::from(u16::from_be_bytes([page[3], page[4]]));
    let pointers = page[8..].chunks_exact(2).take(count);
    pointers.map(|two| usize::from(u16::from_be_bytes([two[0], two[1]]))).collect()
}

/// The row that begins there, if one does: a record whose parts are as long as it says, with a column for the number that is left out.
pub(super) fn cell(image: &Image<'_>, page: &[u8], at: usize) -> Option<Cell> {
    let mut rest = page.get(at..)?;
    let size = usize::try_from(varint(&mut rest)?).ok().filter(|&size| size <= LONGEST)?;
    let number = varint(&mut rest)?;
    let local = local(size);
    let here = rest.get(..local)?;
    let mut types = head(here)?;
    if types.first() != Some(&0) || length(&types)? != size - usize::from(here[0]) {
        return None;
    }
    let payload = if local == size {
        here.to_vec()
    } else {
        let next = rest.get(local..local + 4)?;
        with_overflow(image, here, size, u32::from_be_bytes([next[0], next[1], next[2], next[3]]))?
    };
    let mut body = payload.get(usize::from(here[0])..)?;
    let values = types.drain(..).map(|kind| value(kind, &mut body)).collect::<Option<Vec<_>>>()?;
    Some(Cell { number, values })
}

/// How much of a record of this size is in the page of its row.
fn local(size: usize) -> usize {
    let (most, least) = (PAGE - 35, (PAGE - 12) * 32 / 255 - 23);
    if size <= most {
        return size;
    }
    let kept = least + (size - least) % (PAGE - 4);
    if kept <= most { kept } else { least }
}

/// The rest of a record, from the pages that it overflows into.
fn with_overflow(image: &Image<'_>, here: &[u8], size: usize, mut next: u32) -> Option<Vec<u8>> {
    let mut payload = here.to_vec();
    while payload.len() < size {
        if next == 0 || next > image.end() {
            return None;
        }
        let page = image.page(next).ok()?;
        payload.extend(&page[4..PAGE.min(4 + size - payload.len())]);
        next = u32::from_be_bytes([page[0], page[1], page[2], page[3]]);
    }
    Some(payload)
}

/// The kinds of a record's columns. Our records have few, so that the length of the head is one byte.
fn head(record: &[u8]) -> Option<Vec<u64>> {
    let length = usize::from(*record.first()?);
    let mut rest = record.get(1..length)?;
    let mut types = Vec::new();
    while !rest.is_empty() {
        types.push(varint(&mut rest)?.cast_unsigned());
    }
    (3..=7).contains(&types.len()).then_some(types)
}

/// How long the columns are together, bytes.
fn length(types: &[u64]) -> Option<usize> {
    types.iter().try_fold(0_usize, |sum, &kind| sum.checked_add(width(kind)?))
}

fn width(kind: u64) -> Option<usize> {
    match kind {
        0 | 8 | 9 => Some(0),
        1..=4 => usize::try_from(kind).ok(),
        5 => Some(6),
        6 | 7 => Some(8),
        10 | 11 => None,
        _ => usize::try_from((kind - 12) / 2).ok(),
    }
}

fn value(kind: u64, body: &mut &[u8]) -> Option<Value> {
    let (bytes, rest) = body.split_at_checked(width(kind)?)?;
    *body = rest;
    Some(match kind {
        8 => Value::Integer(0),
        9 => Value::Integer(1),
        1..=6 => Value::Integer(integer(bytes)),
        // What is no text any more will not fit its checksum.
        13.. if kind % 2 == 1 => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        // None of our columns is of another kind.
        _ => Value::Null,
    })
}

/// A whole number of up to 8 bytes, with its sign.
fn integer(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|&first| first & 0x80 != 0);
    bytes.iter().fold(if negative { -1 } else { 0 }, |number, &byte| number << 8 | i64::from(byte))
}

fn varint(rest: &mut &[u8]) -> Option<i64> {
    let mut number: i64 = 0;
    for at in 0..9 {
        let byte = *rest.get(at)?;
        if at == 8 {
            number = number << 8 | i64::from(byte);
        } else {
            number = number << 7 | i64::from(byte & 0x7f);
        }
        if at == 8 || byte & 0x80 == 0 {
            *rest = &rest[at + 1..];
            return Some(number);
        }
    }
    None
}
