//! Submissions: their checks, and the promises that they would get.

pub(crate) mod check;
pub(crate) mod quote;
pub(crate) mod request_ids;
pub(crate) mod size;
pub(crate) mod submit;
pub(crate) mod what_if;
