//! The store: all confirmed commits are there, and damage is found, named and survived.

mod model;

mod damage;

mod backups;

mod faults;

mod io_errors;

mod segments;

mod fixture;

mod support;

mod content;

mod fixture_content;
