//! One frame as text.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::App;

/// The lines of a usual terminal.
const HEIGHT: u16 = 24;

/// The fewest lines of a frame, and the most.
const LIMITS: (u16, u16) = (17, 120);

/// Returns one frame of this width as text, with as many lines as its jobs or its map need, from 17 to 120. It does not name the keys.
pub fn once(mut app: App, width: u16) -> String {
    app.tell("", false);
    let (jobs, page) = app.rows(width, HEIGHT);
    let height = (usize::from(HEIGHT) + jobs).saturating_sub(page);
    let height = u16::try_from(height).unwrap_or(u16::MAX).clamp(LIMITS.0, LIMITS.1);
    format!("{}\n", text(app, width, height).trim_end())
}

/// Returns a frame as text, without blanks at the ends of its lines.
pub(crate) fn text(mut app: App, width: u16, height: u16) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width.max(1), height.max(1)));
    app.draw(&mut buffer);
    let line = |cells: &[ratatui::buffer::Cell]| {
        let mut line = String::new();
        let mut skip = 0;
        for cell in cells {
            if skip == 0 {
                line.push_str(cell.symbol());
            }
            skip = ratatui::text::Span::raw(cell.symbol()).width().max(skip).saturating_sub(1);
        }
        format!("{}\n", line.trim_end())
    };
    buffer.content.chunks(usize::from(width.max(1))).map(line).collect()
}
