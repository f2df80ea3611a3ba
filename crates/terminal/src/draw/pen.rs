//! Text in a buffer, within its area.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use crate::Look;
use crate::look::Role;

/// The mark where a text is cut off.
const MARK: &str = "…";

/// Writes text into a buffer. Text outside of an area is cut off.
pub(super) struct Pen<'a> {
    pub(super) buffer: &'a mut Buffer,
    pub(super) look: Look,
}

impl Pen<'_> {
    /// Writes a text in a line of an area, from a column on. Returns the column after it.
    pub(super) fn write(&mut self, area: Rect, line: u16, column: u16, text: &str, role: Role) -> u16 {
        let style = self.look.style(role);
        self.write_in(area, line, column, text, style)
    }

    /// As [`Pen::write`], in a style.
    pub(super) fn write_in(&mut self, area: Rect, line: u16, column: u16, text: &str, style: Style) -> u16 {
        if line >= area.height || column >= area.width {
            return column;
        }
        let room = usize::from(area.width - column);
        let (end, _) = self.buffer.set_stringn(area.x + column, area.y + line, text, room, style);
        end - area.x
    }

    /// As [`Pen::write`], with a mark where the text is cut off.
    pub(super) fn write_cut(&mut self, area: Rect, line: u16, column: u16, text: &str, role: Role) -> u16 {
        let room = usize::from(area.width.saturating_sub(column));
        self.write(area, line, column, &cut(text, room), role)
    }

    /// Writes texts one after another, up to the first one that does not fit as a whole. A mark follows if there is room for it.
    /// Only the first text is cut off within.
    pub(super) fn write_parts(&mut self, area: Rect, line: u16, parts: &[(String, Role)]) {
        let mut column = 0;
        for (place, (text, role)) in parts.iter().enumerate() {
            if usize::from(column) + width(text) <= usize::from(area.width) {
                column = self.write(area, line, column, text, *role);
                continue;
            }
            let is_blank = |(text, _): &(String, Role)| text.trim().is_empty();
            if column == 0 {
                self.write_cut(area, line, 0, text, *role);
            } else if !parts[place..].iter().all(is_blank) {
                self.write(area, line, column, MARK, *role);
            }
            return;
        }
    }

    /// Changes the style of a line.
    pub(super) fn paint(&mut self, area: Rect, line: u16, style: Style) {
        if line < area.height {
            self.buffer.set_style(Rect { y: area.y + line, height: 1, ..area }, style);
        }
    }
}

/// Returns the columns of a text.
pub(super) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// Returns the begin of a text that fits into so many columns, with a mark if this is not the whole text.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut begin = text.to_owned();
    while !begin.is_empty() && width(&begin) >= columns {
        begin.pop();
    }
    if columns == 0 { begin } else { begin.trim_end().to_owned() + MARK }
}

/// As [`wrapped`], but with at most `most` lines. The last one is cut off if there were more.
pub(super) fn wrapped_up_to(text: &str, columns: usize, most: usize) -> Vec<String> {
    let mut lines = wrapped(text, columns);
    if lines.len() > most {
        let rest = lines.split_off(most.saturating_sub(1)).join(" ");
        lines.push(cut(&rest, columns));
        lines.truncate(most);
    }
    lines
}

/// Returns a text in lines of at most `columns` columns, broken at blanks if possible.
pub(super) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last().map_or(0, |line| width(line));
        let blank = usize::from(last > 0);
        if last + blank + width(word) > columns && last > 0 {
            lines.push(String::new());
        }
        let Some(line) = lines.last_mut() else { continue };
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        while let Some(rest) = lines.last_mut().and_then(|line| split_off(line, columns)) {
            lines.push(rest);
        }
    }
    lines
}

/// Cuts a line after `columns` columns. Returns the rest.
fn split_off(line: &mut String, columns: usize) -> Option<String> {
    if width(line) <= columns {
        return None;
    }
    let mut ends = line.char_indices().map(|(at, _)| at).skip(1);
    let at = ends.by_ref().take_while(|at| width(&line[..*at]) <= columns).last();
    let first = line.chars().next().map_or(0, char::len_utf8);
    let at = at.unwrap_or(first);
    (at < line.len()).then(|| line.split_off(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_blanks() {
        assert_eq!(wrapped("starts by 14:20; most likely", 12), ["starts by", "14:20; most", "likely"]);
        assert_eq!(wrapped("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrapped("", 10), [""]);
        assert_eq!(wrapped("任務任務", 5), ["任務", "任務"]);
        assert_eq!(wrapped("任", 1), ["任"]);
    }

    #[test]
    fn a_text_that_is_cut_has_a_mark() {
        assert_eq!(cut("render", 6), "render");
        assert_eq!(cut("render", 5), "rend…");
        assert_eq!(cut("a render", 3), "a…");
        assert_eq!(cut("任務", 3), "任…");
        assert_eq!((cut("render", 1), cut("render", 0)), ("…".to_owned(), String::new()));
        assert_eq!(wrapped_up_to("one two three", 7, 2), ["one two", "three"]);
        assert_eq!(wrapped_up_to("one two three four", 7, 2), ["one two", "three…"]);
        assert_eq!(wrapped_up_to("one two three", 7, 0), [""; 0]);
    }

    #[track_caller]
    fn check_parts(parts: &[&str], columns: u16, expect: &str) {
        let area = Rect::new(0, 0, columns, 1);
        let mut buffer = Buffer::empty(area);
        let parts: Vec<(String, Role)> = parts.iter().map(|text| ((*text).to_owned(), Role::Plain)).collect();
        Pen { buffer: &mut buffer, look: Look { colour: false, ascii: false } }.write_parts(area, 0, &parts);
        let shown: String = buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect();
        assert_eq!(shown.trim_end(), expect, "{parts:?} in {columns} columns");
    }

    #[test]
    fn parts_are_shown_up_to_the_first_that_does_not_fit() {
        let parts = ["vm", ", 9 broken", ", 1 late", "  "];
        check_parts(&parts, 20, "vm, 9 broken, 1 late");
        check_parts(&parts, 19, "vm, 9 broken…");
        check_parts(&parts, 12, "vm, 9 broken");
        check_parts(&["vm", ", 12 kept of 29", ", late"], 11, "vm…");
        check_parts(&["machine", ", late"], 4, "mac…");
    }
}
