//! The files of the page.

use std::sync::LazyLock;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use miserly_scene::{CHART, PAINT, PRINT};
use sha2::{Digest, Sha256};

/// The style is a part of the page: another request would come before the first paint.
pub(crate) const STYLE: &str = include_str!("assets/page.css");
pub(crate) const SCRIPT: &str = include_str!("assets/page.js");
pub(crate) const ADDRESS: &str = include_str!("assets/address.js");
pub(crate) const LIST: &str = include_str!("assets/list.js");
pub(crate) const MAP: &str = include_str!("assets/map.js");
pub(crate) const STATE: &str = include_str!("assets/state.js");
pub(crate) const TABLES: &str = include_str!("assets/tables.js");

/// The policy of all answers: a page has scripts of this server only, and no style but [`STYLE`].
pub(crate) static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'sha256-{style}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

pub(crate) async fn script() -> Response {
    javascript(SCRIPT)
}

pub(crate) async fn address() -> Response {
    javascript(ADDRESS)
}

pub(crate) async fn chart() -> Response {
    javascript(CHART)
}

pub(crate) async fn list() -> Response {
    javascript(LIST)
}

pub(crate) async fn state() -> Response {
    javascript(STATE)
}

pub(crate) async fn map() -> Response {
    javascript(MAP)
}

pub(crate) async fn paint() -> Response {
    javascript(PAINT)
}

pub(crate) async fn print() -> Response {
    javascript(PRINT)
}

pub(crate) async fn tables() -> Response {
    javascript(TABLES)
}

fn javascript(text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small() {
        let size: usize = [STYLE, SCRIPT, ADDRESS, CHART, LIST, MAP, PAINT, PRINT, STATE, TABLES]
            .iter()
            .map(|text| text.len())
            .sum();
        assert!(size < 120_000, "{size} bytes before any compression");
    }

    #[test]
    fn the_style_is_one_element() {
        assert!(!STYLE.contains("</") && POLICY.to_str().unwrap().contains("'sha256-"));
    }

    #[test]
    fn the_page_uses_nothing_of_other_sites() {
        for text in [STYLE, SCRIPT, ADDRESS, CHART, LIST, MAP, PAINT, PRINT, STATE, TABLES] {
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("innerHTML"));
        }
    }
}
