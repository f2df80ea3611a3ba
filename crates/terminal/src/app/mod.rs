//! The state of the view.

mod keys;

mod mouse;

mod list;

mod span;

mod view;

use jiff::Timestamp;
use miserly_api::model::Moves;
use miserly_follow::Posted;
use miserly_view::{Facts, MOVES_NAMED, moved_promises};
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
    /// Asks which promises a request would move.
    Preview(Request),
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
    /// They move in the list of the promises that were not kept, from this one on.
    Missed(usize),
    /// What starts now is shown, and any key leads back.
    Holes,
    /// They type a text to search, from the job that the user selected before.
    Search(Option<i64>, String),
    /// They type an instant to show.
    Instant(String),
    /// They type the time by which a job is extended.
    Extend(String),
    /// They confirm a request, or drop it. The lines are the promises that it would move, once they are known.
    Confirm(Request, Vec<String>),
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
    /// The instant in the past that is shown. Facts that do not change as time goes by are always shown at one.
    past: Option<i64>,
    /// Whether a daemon answers requests.
    pub(crate) daemon: bool,
    /// Whether the map of the processors is shown in place of the chart and the table.
    pub(crate) processors: bool,
    /// The first line of the map that is shown.
    pub(crate) map_top: usize,
    /// The shown part of the facts.
    pub(crate) view: View,
    pub(crate) span: Span,
    pub(crate) list: List,
    pub(crate) mode: Mode,
    pub(crate) notice: Option<Notice>,
}

impl App {
    /// Returns the view of these facts: of the present, or of the last known instant.
    pub fn new(live: Posted, look: Look) -> App {
        let span = if live.facts.live { Span::default() } else { Span::of_replay(live.facts.replay_step()) };
        let mut app = App {
            look,
            size: Size::new(80, 24),
            view: View::new(&live.facts),
            past: Some(live.facts.now).filter(|_| !live.facts.live),
            live,
            daemon: true,
            processors: false,
            map_top: 0,
            span,
            list: List::default(),
            mode: Mode::List,
            notice: None,
        };
        app.show();
        app
    }

    /// Returns the view at this instant, or at the first or last known one.
    #[must_use]
    pub fn at(mut self, instant: i64) -> App {
        self.go_to(instant);
        self
    }

    /// Returns the view with the map of the processors.
    #[must_use]
    pub fn with_processors(mut self) -> App {
        self.processors = true;
        self
    }

    /// Returns the view without requests: no daemon answers them.
    #[must_use]
    pub fn without_daemon(mut self) -> App {
        self.daemon = false;
        self
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
        let facts = Facts { now, ..(*known.facts).clone() };
        self.live = Posted { facts: facts.into(), ..known.clone() };
        self.show();
        true
    }

    /// Takes an answer of the daemon. Returns whether it changes the frame.
    pub fn answer(&mut self, answer: Answer) -> bool {
        match (answer, &mut self.mode) {
            (Answer::Done(text), _) => self.notice = Some(Notice { text, bad: false }),
            (Answer::Refused(text), _) => self.notice = Some(Notice { text, bad: true }),
            (Answer::Moves(of, moves), Mode::Confirm(request, known)) if of == *request => {
                let moves = moves.map(|moves| moves_in_words(&moves, &self.live.facts));
                *known = moves.unwrap_or_else(|reason| vec![reason]);
            }
            (Answer::Detail(new), Mode::Detail(known, _)) => {
                let changed = *known != new;
                if known.number == new.number {
                    *known = new;
                }
                return changed;
            }
            (Answer::Moves(..) | Answer::Detail(_), _) => return false,
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

    /// Returns whether the facts do not change as time goes by, so that there is no present.
    pub(crate) fn is_replay(&self) -> bool {
        !self.live.facts.live
    }

    /// Returns the number of listed jobs, and the number that a terminal of this size shows; or the lines of the map.
    pub(crate) fn rows(&self, width: u16, height: u16) -> (usize, usize) {
        let areas = Areas::new(self, Size::new(width, height));
        if self.processors {
            return (crate::draw::map_lines(self, width).len(), areas.map_page());
        }
        (self.list.len(), areas.page())
    }

    /// Draws the view into a buffer, in its size.
    pub fn draw(&mut self, buffer: &mut Buffer) {
        self.size = buffer.area.as_size();
        self.settle();
        crate::draw::draw(self, buffer);
        self.look.reduce(buffer);
    }

    /// Shows an instant in the past, or the first or last known one.
    fn go_to(&mut self, instant: i64) {
        let (first, last) = self.live.facts.range();
        self.past = Some(instant.clamp(first, last));
        self.span.reset_shift();
        self.show();
    }

    /// Returns the step of a key that leads through the past, milliseconds.
    pub(crate) fn past_step(&self) -> i64 {
        self.span.past_step(self.live.facts.replay_step())
    }

    /// Shows the instant that is chosen.
    fn show(&mut self) {
        self.view = match self.past {
            Some(past) => View::new(&self.live.facts.at(past).into()),
            None => View::new(&self.live.facts),
        };
        self.settle();
    }

    /// Lets the table follow its jobs and the size of the terminal.
    fn settle(&mut self) {
        // A request and a detail are of the job that was selected when they began.
        let keep = matches!(self.mode, Mode::Extend(_) | Mode::Confirm(..) | Mode::Detail(..));
        let page = Areas::new(self, self.size).page();
        self.list.settle(self.view.listed(self.list.tab, self.list.has_arrays), page, keep);
        // The sentence of the selected job may have another height.
        let page = Areas::new(self, self.size).page();
        self.list.settle(self.view.listed(self.list.tab, self.list.has_arrays), page, keep);
    }

    /// Returns the lines of the table.
    pub(crate) fn listed(&self) -> &[miserly_view::Line] {
        self.view.listed(self.list.tab, self.list.has_arrays)
    }

    /// Returns the selected job or array.
    pub(crate) fn selected(&self) -> Option<&miserly_view::Line> {
        let number = self.list.selected()?;
        self.listed().iter().find(|line| line.job.number == number)
    }

    /// Shows a message in the last line.
    pub(crate) fn tell(&mut self, text: impl Into<String>, bad: bool) {
        self.notice = Some(Notice { text: text.into(), bad });
    }
}

/// Returns moved promises in words.
fn moves_in_words(moves: &Moves, facts: &Facts) -> Vec<String> {
    let now = Timestamp::from_millisecond(facts.now).unwrap_or_default();
    moved_promises(moves, now, MOVES_NAMED, |at| facts.clock.latest(at.as_millisecond(), facts.now))
}
