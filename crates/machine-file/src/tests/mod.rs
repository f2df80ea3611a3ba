//! Files that make sense, and those that do not.

mod machine;

mod pools;
