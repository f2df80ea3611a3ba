//! The files of the page.

use axum::http::header;
use axum::response::{IntoResponse, Response};

pub(crate) const STYLE: &str = include_str!("assets/page.css");
pub(crate) const SCRIPT: &str = include_str!("assets/page.js");
pub(crate) const CHART: &str = include_str!("assets/chart.js");
pub(crate) const TABLES: &str = include_str!("assets/tables.js");

pub(crate) async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE).into_response()
}

pub(crate) async fn script() -> Response {
    javascript(SCRIPT)
}

pub(crate) async fn chart() -> Response {
    javascript(CHART)
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
        let size: usize = [STYLE, SCRIPT, CHART, TABLES].iter().map(|text| text.len()).sum();
        assert!(size < 100_000, "{size} bytes before any compression");
    }

    #[test]
    fn the_page_uses_nothing_of_other_sites() {
        for text in [STYLE, SCRIPT, CHART, TABLES] {
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("innerHTML"));
        }
    }
}
