//! Text in a buffer, within its area.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use crate::Look;
use crate::look::Role;

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

    /// Writes texts one after another. Those that do not fit as a whole are left out.
    pub(super) fn write_parts(&mut self, area: Rect, line: u16, parts: &[(String, Role)]) -> u16 {
        let mut column = 0;
        for (text, role) in parts {
            if usize::from(column) + width(text) <= usize::from(area.width) {
                column = self.write(area, line, column, text, *role);
            }
        }
        column
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
}
