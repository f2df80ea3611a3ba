//! The files of the page.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use miserly_scene::{CHART, PAINT, PRINT};
use sha2::{Digest, Sha256};

use crate::answer::Refusal;
use crate::packed::Packed;

/// The style is a part of the page: another request would come before the first paint.
pub(crate) const STYLE: &str = include_str!("assets/page.css");
const SCRIPT: &str = include_str!("assets/page.js");
const ADDRESS: &str = include_str!("assets/address.js");
const JOB: &str = include_str!("assets/job.js");
const LIST: &str = include_str!("assets/list.js");
const MAP: &str = include_str!("assets/map.js");
const STATE: &str = include_str!("assets/state.js");
const TABLES: &str = include_str!("assets/tables.js");

/// The policy of all answers: a page has scripts of this server only, and no style but [`STYLE`].
pub(crate) static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'sha256-{style}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// The scripts, by their names.
const SCRIPTS: [(&str, &str); 10] = [
    ("page", SCRIPT),
    ("address", ADDRESS),
    ("chart", CHART),
    ("job", JOB),
    ("list", LIST),
    ("map", MAP),
    ("paint", PAINT),
    ("print", PRINT),
    ("state", STATE),
    ("tables", TABLES),
];

/// The scripts as they are sent, each compressed once.
static PACKED: LazyLock<Vec<(String, Packed)>> = LazyLock::new(|| {
    SCRIPTS.iter().map(|(name, text)| (format!("{name}.js"), Packed::new((*text).to_owned()))).collect()
});

/// A script.
pub(crate) async fn script(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Refusal> {
    let found = PACKED.iter().find(|(known, _)| *known == name);
    let none = || Refusal::new(StatusCode::NOT_FOUND, "there is nothing at this address");
    Ok(found.ok_or_else(none)?.1.answer_as("text/javascript; charset=utf-8", &headers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small() {
        let size =
            |part: fn(&str) -> usize| part(STYLE) + SCRIPTS.iter().map(|(_, text)| part(text)).sum::<usize>();
        let (plain, packed) = (size(str::len), size(|text| Packed::new(text.to_owned()).deflated().len()));
        assert!(plain < 150_000 && packed < 52_000, "{plain} bytes, {packed} compressed");
    }

    #[test]
    fn the_style_is_one_element() {
        assert!(!STYLE.contains("</") && POLICY.to_str().unwrap().contains("'sha256-"));
    }

    #[test]
    fn the_page_uses_nothing_of_other_sites() {
        for text in SCRIPTS.iter().map(|(_, text)| *text).chain([STYLE]) {
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("innerHTML"));
        }
    }
}
