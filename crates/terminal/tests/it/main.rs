//! The view on a terminal of the test: its frames and its keys.

mod support;

mod drawing;

mod keys;

mod map;

mod replay;

mod requests;

mod robust;
