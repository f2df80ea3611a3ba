//! The commands that talk to a daemon, before one that answers what it is told to.

mod daemon;

mod check;

mod submit;

mod shown;

mod orders;

mod logs;
