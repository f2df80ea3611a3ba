//! The sizes of a chart, for both painters: constants here, and the begin of the painter for a canvas.

/// Defines constants, and a text with the same constants for JavaScript.
macro_rules! sizes {
    ($($(#[$meta:meta])* $name:ident: $kind:ty = $value:expr;)*) => {
        $($(#[$meta])* pub(crate) const $name: $kind = $value;)*

        /// The painter for a canvas, as a module of a page.
        pub const PAINT: &str = concat!(
            $("export const ", stringify!($name), " = ", stringify!($value), ";\n",)*
            include_str!("../assets/paint.js")
        );
    };
}

sizes! {
    /// The height of the times.
    AXIS: f64 = 36.0;
    /// The height of the line above a group.
    NAMES: f64 = 20.0;
    /// The height of the line above a curve.
    TITLE: f64 = 18.0;
    /// The height of the processors held.
    HELD: f64 = 52.0;
    /// The height of each other curve.
    LOW: f64 = 34.0;
    /// How solid the bars of each kind are.
    SOLID: [f64; 9] = [1.0, 1.0, 0.22, 0.08, 0.08, 0.6, 0.45, 0.6, 0.25];
    /// How solid the part of a bar is that is still to come.
    AHEAD: f64 = 0.3;
    /// The dashes of the lines of the pools.
    DASHES: [&str; 4] = ["", "5 3", "2 2", "8 3 2 3"];
    /// The least height of a row of hosts or slots with its name.
    MARKED_LEAST: f64 = 13.0;
    /// The columns of a tile.
    COLUMNS: usize = 512;
    /// The most bands of a shade.
    BANDS: usize = 64;
}
