//! One frame as text.

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

use crate::App;

/// The lines of a usual terminal.
const HEIGHT: u16 = 24;

/// The fewest lines of a frame, and the most.
const LIMITS: (u16, u16) = (17, 120);

/// Returns one frame of this width as text, in colours if the terminal has them, with as many lines as its jobs or its map need, from 17 to 120. It does not name the keys.
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
    let colour = app.look.colour;
    buffer.content.chunks(usize::from(width.max(1))).map(|cells| line(cells, colour) + "\n").collect()
}

/// Returns a line of cells without blanks at its end, with the escape sequences of their styles.
fn line(cells: &[Cell], colour: bool) -> String {
    let is_shown =
        |cell: &Cell| cell.symbol() != " " || (colour && cell.modifier.contains(Modifier::REVERSED));
    let end = cells.iter().rposition(is_shown).map_or(0, |last| last + 1);
    let (mut line, mut skip, mut style) = (String::new(), 0, String::new());
    for cell in &cells[..end] {
        if skip == 0 {
            let next = if colour { codes(cell) } else { String::new() };
            if next != style {
                line.push_str(&format!("\x1b[0{next}m"));
                style = next;
            }
            line.push_str(cell.symbol());
        }
        skip = ratatui::text::Span::raw(cell.symbol()).width().max(skip).saturating_sub(1);
    }
    if style.is_empty() { line } else { line + "\x1b[0m" }
}

/// Returns the codes of a style behind that of none.
fn codes(cell: &Cell) -> String {
    let modifiers = [(Modifier::BOLD, 1), (Modifier::DIM, 2), (Modifier::REVERSED, 7)];
    let modifiers =
        modifiers.iter().filter(|(modifier, _)| cell.modifier.contains(*modifier)).map(|(_, code)| *code);
    let colours =
        [Color::Black, Color::Red, Color::Green, Color::Yellow, Color::Blue, Color::Magenta, Color::Cyan];
    let colour = (30..).zip(colours).find(|(_, colour)| *colour == cell.fg).map(|(code, _)| code);
    modifiers.chain(colour).fold(String::new(), |codes, code| format!("{codes};{code}"))
}
