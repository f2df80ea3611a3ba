//! A page as one HTML file that loads nothing and needs its script only for conveniences.

mod data;

mod html;

mod markdown;

mod export;

mod claims;

mod figures;

mod table;

mod assets;

pub use data::{Block, Claim, ClaimVerdict, Emphasis, Page, ReadClaim, Section, TableCell, TableData};
pub use export::{TableFormat, exported};
pub use html::{fragment, html};
pub use markdown::markdown;
