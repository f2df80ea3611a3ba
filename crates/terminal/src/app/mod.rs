//! The state of the view.

mod keys;

mod list;

mod span;

mod view;

use miserly_follow::Posted;
use ratatui::buffer::Buffer;
use ratatui::layout::Size;

pub(crate) use self::list::{Column, List, Tab};
pub(crate) use self::span::Span;
pub(crate) use self::view::View;
use crate::draw::Areas;
use crate::{Answer, Detail, Look, Request};

/// The action of the program for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ends the view.
    Quit,
    /// Draws the whole terminal again.
    Redraw,
    /// Sends a request on a job.
    Ask(Request),
    /// Reads the detail of a job.
    Detail(i64),
}

/// The present meaning of the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They move in the table, and choose requests.
    List,
    /// They move in the page of the keys, from this line on.
    Help(usize),
    /// They type a text to search, from the job that was selected before.
    Search(Option<i64>, String),
    /// They type the time by which a job is extended.
    Extend(String),
    /// They confirm a request, or drop it.
    Confirm(Request),
    /// They move in the detail of a job: the lines below the last one that is shown.
    Detail(Detail, usize),
}

/// A message, and whether it is of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) bad: bool,
}

/// The state of the view: facts, the shown part of them, and the meaning of the keys.
#[derive(Debug)]
pub struct App {
    pub(crate) look: Look,
    pub(crate) size: Size,
    /// The latest facts.
    live: Posted,
    /// The instant in the past that is shown.
    past: Option<i64>,
    /// The shown part of the facts.
    pub(crate) view: View,
    pub(crate) span: Span,
    pub(crate) list: List,
    pub(crate) mode: Mode,
    pub(crate) notice: Option<Notice>,
}

impl App {
    /// Returns the view of these facts.
    pub fn new(live: Posted, look: Look) -> App {
        let mut app = App {
            look,
            size: Size::new(80, 24),
            view: View::of(&live.facts),
            live,
            past: None,
            span: Span::default(),
            list: List::default(),
            mode: Mode::List,
            notice: None,
        };
        app.settle();
        app
    }

    /// Takes other facts. Returns whether they change the frame.
    pub fn post(&mut self, posted: Posted) -> bool {
        let same = posted.problem == self.live.problem && view::is_same(&posted.facts, &self.live.facts);
        if same {
            return false;
        }
        self.live = posted;
        self.show();
        true
    }

    /// Takes the present instant. Returns whether it changes the frame.
    pub fn tick(&mut self, now: i64) -> bool {
        let known = &self.live;
        let stays =
            !known.facts.live || known.problem.is_some() || view::is_same_minute(known.facts.now, now);
        if stays || now < known.facts.now {
            return false;
        }
        let facts = miserly_view::Facts { now, ..(*known.facts).clone() };
        self.live = Posted { facts: facts.into(), ..known.clone() };
        self.show();
        true
    }

    /// Takes an answer of the daemon. Returns whether it changes the frame.
    pub fn answer(&mut self, answer: Answer) -> bool {
        match (answer, &mut self.mode) {
            (Answer::Done(text), _) => self.notice = Some(Notice { text, bad: false }),
            (Answer::Refused(text), _) => self.notice = Some(Notice { text, bad: true }),
            (Answer::Detail(new), Mode::Detail(known, _)) => {
                let changed = *known != new;
                if known.number == new.number {
                    *known = new;
                }
                return changed;
            }
            (Answer::Detail(_), _) => return false,
        }
        true
    }

    /// Returns the job of which the detail is shown.
    pub fn detailed(&self) -> Option<i64> {
        match &self.mode {
            Mode::Detail(detail, _) => Some(detail.number),
            _ => None,
        }
    }

    /// Returns why the facts are not up to date.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.live.problem.as_deref()
    }

    /// Returns whether the past is shown.
    pub(crate) fn is_past(&self) -> bool {
        self.past.is_some()
    }

    /// Returns the number of listed jobs, and the number that a terminal of this size shows.
    pub(crate) fn rows(&self, width: u16, height: u16) -> (usize, usize) {
        (self.list.len(), Areas::of(self, Size::new(width, height)).page())
    }

    /// Draws the view into a buffer, in its size.
    pub fn draw(&mut self, buffer: &mut Buffer) {
        self.size = buffer.area.as_size();
        self.settle();
        crate::draw::draw(self, buffer);
        self.look.reduce(buffer);
    }

    /// Shows the instant that is chosen.
    fn show(&mut self) {
        self.view = match self.past {
            Some(past) => View::of(&self.live.facts.at(past).into()),
            None => View::of(&self.live.facts),
        };
        self.settle();
    }

    /// Lets the table follow its jobs and the size of the terminal.
    fn settle(&mut self) {
        let page = Areas::of(self, self.size).page();
        self.list.settle(&self.view.lines, page);
        // The sentence of the selected job may have another height.
        let page = Areas::of(self, self.size).page();
        self.list.settle(&self.view.lines, page);
    }

    /// Returns the selected job.
    pub(crate) fn selected(&self) -> Option<&miserly_view::Line> {
        let number = self.list.selected()?;
        self.view.lines.iter().find(|line| line.job.number == number)
    }

    /// Shows a message in the last line.
    pub(crate) fn tell(&mut self, text: impl Into<String>, bad: bool) {
        self.notice = Some(Notice { text: text.into(), bad });
    }
}
