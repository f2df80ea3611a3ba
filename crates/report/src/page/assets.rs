//! The style and script of every page, and the policy that permits only these two.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use miserly_scene::{CHART, PAINT, PRINT};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::figures::Figures;
use crate::chart;

/// The style and script of a page.
pub(super) struct Assets {
    pub(super) style: String,
    pub(super) script: String,
}

impl Assets {
    /// Returns the style and script for the charts in `markup`.
    pub(super) fn new(markup: &str) -> Assets {
        let style = format!("{}\n{}\n", include_str!("style.css"), chart::page_style(markup));
        // The modules of the scene are a part of the script with names of its own: a page loads nothing.
        let scene = || {
            let modules = [PAINT, CHART].map(inner).concat();
            format!("const {{ Chart }} = (() => {{\n{modules}return {{ Chart }};\n}})();")
        };
        let scene = if markup.contains("chart scene") { scene() } else { String::new() };
        let print = format!("const printPicture = (() => {{\n{}return printPicture;\n}})();", inner(PRINT));
        let script = include_str!("script.js");
        let script = script.replacen("/* print */", &print, 1).replacen("/* scene */", &scene, 1);
        Assets { style, script }
    }

    /// Returns the content security policy: this style and script by checksum, no network, frames
    /// or forms.
    ///
    /// Texts come from untrusted logs and experiments. They are escaped, and the policy stops a
    /// script that escaping should miss.
    pub(super) fn policy(&self) -> String {
        let (style, script) = (checksum(&self.style), checksum(&self.script));
        format!(
            "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; img-src data: blob:; base-uri 'none'; form-action 'none'"
        )
    }
}

/// Returns a module without what it takes from other modules and gives to them.
fn inner(module: &str) -> String {
    let own = module.lines().filter(|line| !line.starts_with("import ") && !line.starts_with("export {"));
    own.map(|line| line.strip_prefix("export ").unwrap_or(line))
        .fold(String::new(), |text, line| text + line + "\n")
}

fn checksum(text: &str) -> String {
    BASE64.encode(Sha256::digest(text))
}

/// The data of the script: the charts, and the style of a chart saved as a file.
#[derive(Serialize)]
struct Embedded<'a> {
    style: String,
    /// Styles of images in the light and in the dark theme.
    themes: [String; 2],
    charts: &'a Figures,
}

/// Returns the data as JSON that cannot end its HTML element.
pub(super) fn embedded(charts: &Figures) -> String {
    let themes = [false, true].map(chart::image_style);
    let embedded = Embedded { style: chart::file_style(), themes, charts };
    // Plain data with text keys cannot fail to serialise.
    serde_json::to_string(&embedded).unwrap_or_default().replace('<', "\\u003c")
}
