//! A page of HTML in one file: it loads nothing, and everything but the comfort works without its script.

mod data;

mod html;

mod markdown;

mod figures;

mod table;

mod assets;

pub use data::{Block, Cell, Claim, Emphasis, Page, Section, TableData, Verdict};
pub use html::html;
pub use markdown::markdown;
