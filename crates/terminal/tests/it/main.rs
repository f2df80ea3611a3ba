//! The view on a terminal of the test: its frames and its keys.

mod support;

mod arrays;
mod drawing;

mod keys;

mod map;

mod mouse;
mod replay;

mod requests;

mod robust;
