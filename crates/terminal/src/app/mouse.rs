//! The mouse.

use ratatui::crossterm::event::{KeyCode, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::{Action, App, Mode, Tab};
use crate::draw::{Areas, job_at, tab_at};

/// The rows by which a step of the wheel scrolls.
const WHEEL: isize = 3;

impl App {
    /// Takes an event of the mouse. Returns the action for the program, if the event needs more than another frame.
    pub fn mouse(&mut self, event: MouseEvent) -> Option<Action> {
        match event.kind {
            MouseEventKind::ScrollUp => self.wheel(-WHEEL),
            MouseEventKind::ScrollDown => self.wheel(WHEEL),
            MouseEventKind::Down(MouseButton::Left) => {
                self.click(Position::new(event.column, event.row));
                None
            }
            _ => None,
        }
    }

    /// Scrolls what is shown.
    fn wheel(&mut self, rows: isize) -> Option<Action> {
        let key = if rows < 0 { KeyCode::Up } else { KeyCode::Down };
        match self.mode {
            Mode::List if self.processors => {
                let page = Areas::new(self, self.size).map_page();
                let lines = crate::draw::map_lines(self, self.size.width).len();
                self.map_top = self.map_top.saturating_add_signed(rows).min(lines.saturating_sub(page));
            }
            Mode::List => {
                self.list.scroll(rows);
                self.settle();
            }
            // A text or a question stays.
            Mode::Search(..) | Mode::Instant(_) | Mode::Extend(_) | Mode::Confirm(..) | Mode::Holes => {}
            Mode::Help(_) | Mode::Missed(_) | Mode::Detail(..) => {
                for _ in 0..rows.unsigned_abs() {
                    self.key(key.into());
                }
            }
        }
        None
    }

    /// Selects the job of the row or of the bar at a place, or the tab there.
    fn click(&mut self, at: Position) {
        if self.mode != Mode::List {
            return;
        }
        self.notice = None;
        let areas = Areas::new(self, self.size);
        if areas.table().contains(at) {
            match usize::from(at.y - areas.table().y) {
                0 => self.list.tab = tab_at(self, at.x).unwrap_or(self.list.tab),
                1 => {}
                row if self.list.top + row - 2 < self.list.len() => self.list.select(self.list.top + row - 2),
                _ => {}
            }
        } else if let Some(job) = job_at(self, &areas, at) {
            self.select_job(job);
        }
        self.settle();
    }

    /// Selects a job of the chart, or its array.
    fn select_job(&mut self, number: i64) {
        let is_listed = |app: &App| app.list.rows(app.listed()).any(|line| line.job.number == number);
        if !is_listed(self) {
            // It may be in another tab, or in the row of its array.
            (self.list.tab, self.list.mine, self.list.has_arrays) = (Tab::All, false, false);
            self.settle();
        }
        if is_listed(self) {
            self.list.select_job(Some(number));
        } else {
            self.tell(format!("job {number} is not among the listed jobs"), true);
        }
    }
}
