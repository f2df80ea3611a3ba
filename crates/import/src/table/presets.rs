//! The column maps of public data sets.

use super::map::ColumnMap;

/// A column map with a name.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// The map, as its file has it.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal,)*) => {
        /// The presets, sorted by name.
        pub const PRESETS: &[Preset] =
            &[$(Preset { name: $name, text: include_str!(concat!("../../presets/", $name, ".toml")) },)*];
    };
}

presets! {
    "acme-kalos",
    "acme-seren",
    "blue-waters",
    "cerit-soft",
    "eagle",
    "f-data",
    "helios",
    "kestrel",
    "lassen",
    "m100",
    "openb",
    "pai",
    "philly",
    "pm100",
    "spot-2026",
    "supercloud",
}

impl Preset {
    /// Returns the map.
    ///
    /// # Errors
    /// The text is not a map; a test checks that none is.
    pub fn map(&self) -> Result<ColumnMap, String> {
        ColumnMap::parse(&format!("preset {}", self.name), self.text).map_err(|error| error.to_string())
    }
}

/// Returns the preset with this name.
///
/// # Errors
/// No preset has this name; the message lists all.
pub fn find_preset(name: &str) -> Result<&'static Preset, String> {
    let found = PRESETS.iter().find(|preset| preset.name == name);
    let names = || PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| format!("no preset {name:?}; there are: {}", names()))
}
