//! Files that make sense, and those that do not.

mod classes;

mod machine;

mod pools;
