//! The tests of this crate: its examples, its documents, and feedback.

mod document;

mod examples;

mod feedback;
