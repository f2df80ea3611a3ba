//! The store: what was answered is there, and damage is found, named and survived.

mod model;

mod damage;

mod backups;

mod faults;

mod fixture;

mod support;

mod content;
