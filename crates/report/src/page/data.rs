//! What a page says, as plain data.

use serde::Serialize;

use crate::chart::Chart;

/// One page: what a reader sees, and what made it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Page {
    /// The page's name.
    pub title: String,
    /// What was asked and what came out, in a sentence or two.
    pub lead: Option<String>,
    /// The parts, in order.
    pub sections: Vec<Section>,
    /// What made it: version, checksums, seeds, command; a name and a value each.
    pub provenance: Vec<(String, String)>,
}

/// A part of a page under a heading.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Section {
    /// Its heading, also in the table of contents.
    pub heading: String,
    /// What stands below the heading, in order.
    pub blocks: Vec<Block>,
}

/// Something in a section.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Block {
    /// Plain text; an empty line parts paragraphs.
    Text(String),
    /// A table.
    Table(TableData),
    /// A chart. The largest of the four, but a page has a few dozen blocks.
    Chart(Chart),
    /// What was claimed, and whether the figures bear it out.
    Claims(Vec<Claim>),
}

/// A table of text.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TableData {
    /// What the table shows.
    pub caption: Option<String>,
    /// The rows of the head. An empty cell continues the one to its left, so that a heading may span columns.
    pub header: Vec<Vec<String>>,
    /// The rows of the body.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// What stands in it.
    pub text: String,
    /// Whether it is a number, which stands at the right.
    pub numeric: bool,
    /// Whether the reader's eye is led to it.
    pub emphasis: Emphasis,
}

/// What a cell is to the reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Emphasis {
    /// A value like the others.
    #[default]
    None,
    /// Better than what it is held against.
    Good,
    /// Worse than what it is held against.
    Bad,
    /// Beside the point.
    Muted,
}

/// A claim and what the figures say to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// The claim in words.
    pub text: String,
    /// Whether it holds.
    pub verdict: Verdict,
    /// The figures that decide it.
    pub figures: String,
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// The figures bear it out.
    Holds,
    /// The figures contradict it.
    DoesNotHold,
    /// The figures do not decide it.
    Unknown,
}

impl Cell {
    /// A cell of words.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    /// A cell with a number.
    pub fn number(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), numeric: true, ..Cell::default() }
    }

    /// The same cell, with an emphasis.
    #[must_use]
    pub fn with(self, emphasis: Emphasis) -> Cell {
        Cell { emphasis, ..self }
    }
}
