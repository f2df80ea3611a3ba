//! Files that make sense, and those that do not.

mod classes;

mod gpu;

mod machine;

mod pools;
