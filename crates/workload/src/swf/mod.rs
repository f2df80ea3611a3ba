//! The Standard Workload Format: a line of eighteen fields per job, comments after `;`.
//!
//! What is read and written again has the same fields and comments, line by line; only the white space
//! between fields may change. Comments are text: bytes that are no UTF-8 come back as replacement characters.

mod record;

mod status;

mod parse;

mod header;

mod reader;

mod writer;

pub use header::Header;
pub use parse::{LineError, parse_line};
pub(crate) use parse::{SECONDS_MAX, is_blank};
pub use reader::{Line, ReadError, Reader};
pub use record::{Decimal, Field, Record};
pub use status::Status;
pub use writer::Writer;
