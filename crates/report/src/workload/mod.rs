//! Descriptions, checks and imports of job logs, as text and as JSON.

mod describe;

mod sizes;

mod month;

mod check;

mod import;

mod slice;

mod json;

mod text;

pub use check::check_text;
pub use describe::describe_text;
pub use import::{columns_text, import_json, import_summary, import_text, preview_json, preview_text};
pub use json::{check_json, describe_json};
pub use slice::{slice_json, slice_text};
