//! Markdown from plain text.

/// Returns a text with the characters escaped that Markdown would interpret. Code between backticks
/// stays.
pub(super) fn escaped(text: &str) -> String {
    let mut result = String::new();
    let mut code = false;
    for letter in text.chars() {
        code ^= letter == '`';
        if !code && "\\*[<~".contains(letter) {
            result.push('\\');
        }
        result.push(letter);
    }
    result
}

/// Returns a text as one cell of a table.
pub(super) fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Returns a text as code.
pub(super) fn code(text: &str) -> String {
    format!("`{text}`")
}

/// Returns a table of Markdown texts.
pub(super) fn table<const N: usize>(heads: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let row = |row: [String; N]| format!("| {} |\n", row.map(|text| cell(&text)).join(" | "));
    let rows: String = rows.into_iter().map(row).collect();
    format!("| {} |\n|{}\n{rows}", heads.join(" | "), "---|".repeat(N))
}

/// Returns the anchor of a heading.
pub(super) fn anchor(heading: &str) -> String {
    let kept = |letter: &char| letter.is_alphanumeric() || "-_ ".contains(*letter);
    heading.chars().filter(kept).collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn text_between_backticks_stays() {
    assert_eq!(escaped("trace[*F] of <LOG>, `a[*]`, ~"), "trace\\[\\*F] of \\<LOG>, `a[*]`, \\~");
    assert_eq!(cell("a |\n b"), "a \\| b");
    assert_eq!(anchor("`miserly wait-of`"), "miserly-wait-of");
}
