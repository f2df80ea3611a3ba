//! The colours of bars: told apart with any kind of colour vision, and with readable names on them.

use serde::{Serialize, Serializer};

/// A colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rgb(u32);

/// The colour of bars in the light and the dark theme. In JSON each is a list: the bar, its edge and the text on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inks {
    /// The letter and the number of its class in the style of a picture.
    class: (char, u8),
    light: Rgb,
    dark: Rgb,
}

/// The paper in the light and the dark theme, as in the style of the page.
const PAPERS: [Rgb; 2] = [Rgb(0x00ff_ffff), Rgb(0x0014_171a)];

/// The text on bars. On any colour one of them has a contrast of 4.5 at least.
const TEXTS: [Rgb; 2] = [Rgb(0x00ff_ffff), Rgb(0)];

/// The colour of what has no colour of its own.
pub(crate) const GREY: Inks = Inks::new(('z', 0), GREY_LIGHT, GREY_DARK);

/// Values without an order: users, queues.
pub(crate) const VALUES: [Inks; 11] = inks('v', VALUES_LIGHT, VALUES_DARK);

/// Start reasons.
pub(crate) const REASONS: [Inks; 7] = inks('r', REASONS_LIGHT, REASONS_DARK);

/// States. The second one is that of jobs without success.
pub(crate) const STATES: [Inks; 7] = inks('t', STATES_LIGHT, STATES_DARK);

/// Changes from much earlier to much later.
pub(crate) const CHANGES: [Inks; 8] = inks('g', CHANGES_LIGHT, CHANGES_DARK);

/// Steps of an ordered value.
pub(crate) const STEPS: [Inks; 6] = inks('p', STEPS_LIGHT, STEPS_DARK);

const GREY_LIGHT: u32 = 0x009a_a1a9;
const CHANGES_LIGHT: [u32; 8] =
    [0x0008_2b45, 0x000f_578a, 0x0018_88d8, 0x009a_cef4, 0x00ee_bca0, 0x00cc_6124, 0x0082_3e17, 0x0041_1f0b];
const CHANGES_DARK: [u32; 8] =
    [0x00da_e5fb, 0x009a_b8f4, 0x0047_7eeb, 0x0011_409c, 0x00ae_5109, 0x00f5_9247, 0x00f9_ba8b, 0x00fc_e2cf];
const GREY_DARK: u32 = 0x0078_8189;
const VALUES_LIGHT: [u32; 11] = [
    0x0000_82e2,
    0x00bf_7829,
    0x0000_8c58,
    0x00ff_8a8c,
    0x00c3_b506,
    0x0054_b1ea,
    0x0086_285f,
    0x008b_1c2d,
    0x00a9_c667,
    0x0016_66a4,
    0x00b3_c4eb,
];
const VALUES_DARK: [u32; 11] = [
    0x0007_b1ff,
    0x00b6_9011,
    0x0032_a760,
    0x00cb_d0e2,
    0x00ec_c129,
    0x0060_53af,
    0x0045_47e4,
    0x00b9_3c2d,
    0x007f_deb0,
    0x0025_6fd8,
    0x0099_699d,
];
const REASONS_LIGHT: [u32; 7] =
    [0x001f_7a6d, 0x006f_b2e0, 0x007d_3fb0, 0x00d0_8a2a, 0x00d8_c040, 0x00c8_326d, 0x003d_2b1f];
const REASONS_DARK: [u32; 7] =
    [0x0073_bc9a, 0x0000_74c9, 0x00b0_95ea, 0x00db_8c4b, 0x00de_d965, 0x00ab_3a4b, 0x005b_0c6a];
const STATES_LIGHT: [u32; 7] =
    [0x0066_b7e7, 0x00b8_0537, 0x0000_4996, 0x0093_4b8c, 0x002b_906d, 0x00e4_a20c, 0x0091_a6a2];
const STATES_DARK: [u32; 7] =
    [0x002f_6fb0, 0x00ff_5a5a, 0x005c_a6ff, 0x00c6_a0d5, 0x0039_de93, 0x00ff_b414, 0x008a_5070];
const STEPS_LIGHT: [u32; 6] = [0x00c3_e2f7, 0x0086_bfe6, 0x0045_96d2, 0x001f_6fb0, 0x0012_4d86, 0x0007_2a50];
const STEPS_DARK: [u32; 6] = [0x0024_435f, 0x002c_618f, 0x003f_86bd, 0x0068_abdf, 0x00a2_d0f5, 0x00e2_f3ff];
const fn inks<const N: usize>(letter: char, light: [u32; N], dark: [u32; N]) -> [Inks; N] {
    let mut made = [GREY; N];
    let mut place = 0;
    while place < N {
        #[expect(clippy::cast_possible_truncation, reason = "a palette has some ten colours")]
        let class = (letter, place as u8);
        made[place] = Inks::new(class, light[place], dark[place]);
        place += 1;
    }
    made
}

impl Inks {
    const fn new(class: (char, u8), light: u32, dark: u32) -> Inks {
        Inks { class, light: Rgb(light), dark: Rgb(dark) }
    }

    /// Returns all colours of bars.
    pub(crate) fn all() -> impl Iterator<Item = &'static Inks> {
        VALUES.iter().chain(&REASONS).chain(&STATES).chain(&CHANGES).chain(&STEPS).chain([&GREY])
    }

    /// Returns the class in the style of a picture.
    pub(crate) fn class(&self) -> String {
        format!("{}{}", self.class.0, self.class.1)
    }

    /// Returns the colour of a bar in a theme.
    pub const fn fill(&self, dark: bool) -> Rgb {
        if dark { self.dark } else { self.light }
    }

    /// Returns the colour of the edge: that of the bar, darker on white and darker on black, so that neighbours are apart.
    pub fn edge(&self, dark: bool) -> Rgb {
        self.fill(dark).towards(PAPERS[1], if dark { 0.6 } else { 0.45 })
    }

    /// Returns the colour of text on a bar: the one with more contrast.
    pub fn text(&self, dark: bool) -> Rgb {
        let [light, dark_text] = TEXTS.map(|text| text.contrast(self.fill(dark)));
        TEXTS[usize::from(dark_text > light)]
    }
}

/// The colours of an entry as JSON has them.
#[derive(Serialize)]
struct Themes {
    light: [String; 3],
    dark: [String; 3],
}

impl Serialize for Inks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of = |dark| [self.fill(dark), self.edge(dark), self.text(dark)].map(Rgb::text);
        Themes { light: of(false), dark: of(true) }.serialize(serializer)
    }
}

impl Rgb {
    /// Returns red, green and blue from 0 to 255.
    pub(crate) fn parts(self) -> [f32; 3] {
        let [_, red, green, blue] = self.0.to_be_bytes();
        [red, green, blue].map(f32::from)
    }

    /// Returns the colour as `#rrggbb`.
    pub fn text(self) -> String {
        format!("#{:06x}", self.0)
    }

    fn new(parts: [f32; 3]) -> Rgb {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 255")]
        let [red, green, blue] = parts.map(|part| part.round().clamp(0.0, 255.0) as u8);
        Rgb(u32::from_be_bytes([0, red, green, blue]))
    }

    fn towards(self, other: Rgb, share: f32) -> Rgb {
        let [one, two] = [self.parts(), other.parts()];
        Rgb::new([0, 1, 2].map(|part| one[part] + (two[part] - one[part]) * share))
    }

    /// Returns the relative luminance by WCAG 2.
    fn luminance(self) -> f32 {
        let [red, green, blue] = self.parts().map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    /// Returns the contrast by WCAG 2, from 1 to 21.
    fn contrast(self, other: Rgb) -> f32 {
        let [one, two] = [self.luminance(), other.luminance()];
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }
}

fn linear(part: f32) -> f32 {
    let part = part / 255.0;
    if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
}

/// Returns the mean of colours as four bits each of red, green and blue: of their sum, weighted by parts of this weight.
pub(crate) fn mixed(sum: [f32; 3], weight: f64) -> u16 {
    if weight <= 0.0 {
        return 0;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 15")]
    let part = |sum: f32| (f64::from(sum) / weight / 17.0).round().clamp(0.0, 15.0) as u16;
    sum.into_iter().fold(0, |mixed, sum| mixed << 4 | part(sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least distance of two colours of a legend (CIE 1976).
    const DISTANCE_LEAST: f32 = 10.0;

    /// The least contrast of text on a bar.
    const CONTRAST_LEAST: f32 = 4.5;

    /// How linear colours are seen: with full vision, and without red, green or blue cones (Machado et al. 2009, severity 1).
    const VISIONS: [(&str, [[f32; 3]; 3]); 4] = [
        ("all cones", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (
            "protanopia",
            [
                [0.152_286, 1.052_583, -0.204_868],
                [0.114_503, 0.786_281, 0.099_216],
                [-0.003_882, -0.048_116, 1.051_998],
            ],
        ),
        (
            "deuteranopia",
            [
                [0.367_322, 0.860_646, -0.227_968],
                [0.280_085, 0.672_501, 0.047_413],
                [-0.011_82, 0.042_94, 0.968_881],
            ],
        ),
        (
            "tritanopia",
            [
                [1.255_528, -0.076_749, -0.178_779],
                [-0.078_411, 0.930_809, 0.147_602],
                [0.004_733, 0.691_367, 0.303_9],
            ],
        ),
    ];

    fn product(matrix: &[[f32; 3]; 3], colour: [f32; 3]) -> [f32; 3] {
        matrix.map(|row| row.iter().zip(colour).map(|(one, two)| one * two).sum::<f32>().clamp(0.0, 1.0))
    }

    /// Returns a linear colour in CIE L*a*b*.
    fn lab(colour: [f32; 3]) -> [f32; 3] {
        let xyz = [
            [0.412_456, 0.357_576, 0.180_438],
            [0.212_673, 0.715_152, 0.072_175],
            [0.019_334, 0.119_192, 0.950_304],
        ];
        let [x, y, z] = product(&xyz, colour);
        let part = |t: f32| if t > 216.0 / 24389.0 { t.cbrt() } else { (24389.0 / 27.0 * t + 16.0) / 116.0 };
        let [x, y, z] = [x / 0.950_47, y, z / 1.088_83].map(part);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn distance(one: Rgb, two: Rgb, vision: &[[f32; 3]; 3]) -> f32 {
        let [one, two] = [one, two].map(|colour| lab(product(vision, colour.parts().map(linear))));
        one.iter().zip(two).map(|(one, two)| (one - two) * (one - two)).sum::<f32>().sqrt()
    }

    #[track_caller]
    fn check(name: &str, colours: &[Inks]) {
        for dark in [false, true] {
            for (place, inks) in colours.iter().enumerate() {
                let contrast = inks.text(dark).contrast(inks.fill(dark));
                assert!(contrast >= CONTRAST_LEAST, "{name} {place}, dark: {dark}: text has {contrast}");
                for (vision, matrix) in &VISIONS {
                    for (before, other) in colours[..place].iter().enumerate() {
                        let distance = distance(inks.fill(dark), other.fill(dark), matrix);
                        assert!(
                            distance > DISTANCE_LEAST,
                            "{name} {before} and {place}, dark: {dark}, {vision}: {distance}"
                        );
                    }
                    let paper = distance(inks.fill(dark), PAPERS[usize::from(dark)], matrix);
                    assert!(
                        paper > DISTANCE_LEAST,
                        "{name} {place} and paper, dark: {dark}, {vision}: {paper}"
                    );
                }
            }
        }
    }

    #[test]
    fn colours_of_a_legend_are_told_apart() {
        let with_grey = |colours: &[Inks]| [colours, &[GREY]].concat();
        check("values", &with_grey(&VALUES));
        check("reasons", &with_grey(&REASONS));
        check("steps", &with_grey(&STEPS));
        check("changes", &with_grey(&CHANGES));
        check("states", &STATES);
    }

    #[test]
    fn colours_as_numbers() {
        assert_eq!(Rgb(0x0001_a2ff).text(), "#01a2ff");
        assert_eq!(mixed([2.0 * 255.0, 255.0, 0.0], 2.0), 0xf80);
        assert_eq!(mixed([0.0; 3], 0.0), 0);
        assert!((Rgb(0x00ff_ffff).contrast(Rgb(0)) - 21.0).abs() < 0.01);
    }
}
