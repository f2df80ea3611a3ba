//! The built-in machines.

/// The names of the built-in machines.
pub const BUILT_IN: &[&str] = &["o2k"];

/// Returns the file of the built-in machine of that name.
pub(crate) fn built_in(name: &str) -> Option<&'static str> {
    (name == "o2k").then_some(include_str!("o2k.toml"))
}
