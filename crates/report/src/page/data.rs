//! The content of a page as plain data.

use serde::Serialize;

use crate::chart::Chart;

/// A page: its content and its provenance.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Page {
    /// Title.
    pub title: String,
    /// Question and result in a sentence or two.
    pub lead: Option<String>,
    /// Sections in order.
    pub sections: Vec<Section>,
    /// Provenance as names and values: version, checksums, seeds, command.
    pub provenance: Vec<(String, String)>,
}

/// A part of a page under a heading.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Section {
    /// Heading, also in the table of contents.
    pub heading: String,
    /// Content below the heading, in order.
    pub blocks: Vec<Block>,
}

/// An element of a section.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Block {
    /// A heading below that of the section.
    Heading(String),
    /// Plain text; an empty line separates paragraphs.
    Text(String),
    /// Plain text with a part that a reader opens: the summary, and the rest.
    Details(String, String),
    /// A table.
    Table(TableData),
    /// A chart. It is the largest variant, but a page has only a few dozen blocks.
    Chart(Chart),
    /// Claims with their verdicts.
    Claims(Vec<Claim>),
}

/// A table of text.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TableData {
    /// Caption.
    pub caption: Option<String>,
    /// Header rows. An empty cell continues the one to its left, so headings can span columns.
    pub header: Vec<Vec<String>>,
    /// Body rows.
    pub rows: Vec<Vec<TableCell>>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableCell {
    /// Text.
    pub text: String,
    /// Whether the cell is a number, which is right-aligned.
    pub numeric: bool,
    /// Emphasis.
    pub emphasis: Emphasis,
}

/// The emphasis of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Emphasis {
    /// None.
    #[default]
    None,
    /// Better than the reference.
    Good,
    /// Worse than the reference.
    Bad,
    /// Irrelevant.
    Muted,
    /// Away from the reference, in steps from 1 to 3.
    Off(u8),
}

/// A claim and its verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// Claim in words.
    pub text: String,
    /// Section of the paper; empty without one.
    pub section: String,
    /// Verdict.
    pub verdict: ClaimVerdict,
    /// Figures that decide it.
    pub figures: String,
    /// Reason of the verdict; empty without one.
    pub why: String,
    /// Verdicts under other readings of what the paper leaves open.
    pub readings: Vec<ReadClaim>,
}

/// The verdict on a claim under another reading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReadClaim {
    /// Name of the reading.
    pub name: String,
    /// Verdict.
    pub verdict: ClaimVerdict,
    /// Figures that decide it.
    pub figures: String,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum ClaimVerdict {
    /// The figures support the claim.
    Holds,
    /// The figures contradict the claim.
    DoesNotHold,
    /// The figures do not decide.
    #[default]
    Unknown,
    /// There are no figures for it.
    Untestable,
}

impl TableCell {
    /// Creates a cell with text.
    pub fn text(text: impl Into<String>) -> TableCell {
        TableCell { text: text.into(), ..TableCell::default() }
    }

    /// Creates a cell with a number.
    pub fn number(text: impl Into<String>) -> TableCell {
        TableCell { text: text.into(), numeric: true, ..TableCell::default() }
    }

    /// Sets the emphasis.
    #[must_use]
    pub fn with(self, emphasis: Emphasis) -> TableCell {
        TableCell { emphasis, ..self }
    }
}
