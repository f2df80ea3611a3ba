//! The style and the script of every page, and the policy that admits these two and nothing else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::figures::Figures;
use crate::chart;

/// What a page brings besides its text.
pub(super) struct Assets {
    pub(super) style: String,
    pub(super) script: String,
}

impl Assets {
    pub(super) fn new() -> Assets {
        let style = format!("{}\n{}\n", include_str!("style.css"), chart::page_style());
        Assets { style, script: include_str!("script.js").to_owned() }
    }

    /// The content security policy: this style and this script by their checksums, no network, no frames, no forms.
    ///
    /// Texts come from logs and experiments of strangers. They are escaped; should one ever slip through, it is not run.
    pub(super) fn policy(&self) -> String {
        let (style, script) = (checksum(&self.style), checksum(&self.script));
        format!(
            "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; img-src data: blob:; base-uri 'none'; form-action 'none'"
        )
    }
}

fn checksum(text: &str) -> String {
    BASE64.encode(Sha256::digest(text))
}

/// What the script reads: the charts, and the style of a chart that is saved as a file of its own.
#[derive(Serialize)]
struct Embedded<'a> {
    style: String,
    charts: &'a Figures,
}

/// The same as JSON that can stand in an element of HTML: nothing in it ends the element.
pub(super) fn embedded(charts: &Figures) -> String {
    let embedded = Embedded { style: chart::file_style(), charts };
    // Plain data with text as keys: there is nothing that JSON could not say.
    serde_json::to_string(&embedded).unwrap_or_default().replace('<', "\\u003c")
}
