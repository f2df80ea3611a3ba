//! The Standard Workload Format: a line of eighteen fields per job, and comments after `;`.
//!
//! A log may have [extra fields](Extra) behind the eighteenth.
//!
//! Reading and writing a log keeps its fields and comments line by line. Only the white space
//! between fields may change, and the [`Deviations`] from the format disappear. Comments are text: bytes that are not UTF-8 become replacement
//! characters.

mod record;

mod extra;

mod packed;

mod status;

mod parse;

mod header;

mod reader;

mod writer;

pub use extra::{Extra, ExtraColumns, ExtraError, ExtraKind, Extras};
pub(crate) use header::value_of;
pub use header::{Header, Names, is_count};
pub use parse::{Deviations, LineError, parse_line};
pub(crate) use parse::{SECONDS_MAX, is_blank};
pub use reader::{LogLine, ReadError, Reader};
pub use record::{Decimal, Field, Record};
pub use status::Status;
pub use writer::SwfWriter;
