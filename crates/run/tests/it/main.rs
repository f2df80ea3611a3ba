//! The tests of this crate: its examples, and its documents.

mod document;

mod examples;
