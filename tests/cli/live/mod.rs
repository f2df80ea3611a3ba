//! The client commands, on a daemon with prepared answers.

mod daemon;

mod check;

mod submit;

mod shown;

mod orders;

mod logs;
