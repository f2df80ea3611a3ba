//! The view on a terminal, until the user quits.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use miserly_api::client::Client;
use miserly_follow::Board;
use ratatui::crossterm::event::{self, Event, KeyEventKind, MouseButton, MouseEventKind};

use crate::screen::Screen;
use crate::{Action, Answer, App, MINUTE, desk};

/// The events of the view.
enum News {
    /// An event of the terminal.
    Terminal(io::Result<Event>),
    /// Other facts are on the board.
    Facts,
    /// An answer of the daemon.
    Answer(Answer),
}

/// Shows the facts of a board on the terminal until the user quits, and sends requests by `client`, if there is a daemon.
///
/// It draws only after a key, after an answer, and when facts or the minute changed. Its threads end with the process.
///
/// # Errors
/// If the terminal cannot be read or written. It is given back before.
pub fn run(app: App, board: &Board, client: Option<Client>) -> io::Result<()> {
    let (sender, news) = channel();
    let (actions, requests) = channel();
    spawn("facts", watch(board.clone(), sender.clone()))?;
    if let Some(client) = client {
        let answers = sender.clone();
        // The view ends first if it does not receive an answer any more.
        spawn("requests", move || {
            desk::serve(&client, &requests, |answer| drop(answers.send(News::Answer(answer))));
        })?;
    }
    ratatui::crossterm::style::force_color_output(app.look.colour);
    let mut screen = Screen::take()?;
    spawn("keys", read_keys(sender))?;
    let mut view = View { app, board, actions, asked: false };
    view.turn(&mut screen, &news)
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).stack_size(256 << 10).spawn(work).map(drop)
}

/// Reports each change of the board.
fn watch(board: Board, sender: Sender<News>) -> impl FnOnce() + Send {
    move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else { return };
        let mut changes = board.subscribe();
        drop(board);
        while runtime.block_on(changes.changed()).is_ok() && sender.send(News::Facts).is_ok() {}
    }
}

fn read_keys(sender: Sender<News>) -> impl FnOnce() + Send {
    move || {
        loop {
            let event = event::read();
            let failed = event.is_err();
            if sender.send(News::Terminal(event)).is_err() || failed {
                return;
            }
        }
    }
}

/// The view, the source of its facts, and the thread that sends its requests.
struct View<'a> {
    app: App,
    board: &'a Board,
    actions: Sender<Action>,
    /// Whether the detail of a job was asked for, and has not come.
    asked: bool,
}

impl View<'_> {
    fn turn(&mut self, screen: &mut Screen, news: &Receiver<News>) -> io::Result<()> {
        let mut changed = true;
        loop {
            if changed {
                screen.terminal().draw(|frame| self.app.draw(frame.buffer_mut()))?;
            }
            changed = match news.recv_timeout(until_next_minute()) {
                Ok(News::Terminal(event)) => match self.event(&event?) {
                    (_, Some(Action::Quit)) => return Ok(()),
                    (_, Some(Action::Redraw)) => {
                        screen.terminal().clear()?;
                        true
                    }
                    (changed, _) => changed,
                },
                Ok(News::Facts) => self.facts(),
                Ok(News::Answer(answer)) => {
                    self.asked = false;
                    self.app.answer(answer)
                }
                Err(RecvTimeoutError::Timeout) => self.app.tick(Timestamp::now().as_millisecond()),
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
        }
    }

    /// Passes an event to the view. Returns whether the frame may change, and the action.
    fn event(&mut self, event: &Event) -> (bool, Option<Action>) {
        let action = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.app.key(*key),
            Event::Mouse(mouse) => match mouse.kind {
                MouseEventKind::Down(MouseButton::Left)
                | MouseEventKind::ScrollUp
                | MouseEventKind::ScrollDown => self.app.mouse(*mouse),
                // The mouse moves all the time.
                _ => return (false, None),
            },
            _ => None,
        };
        if let Some(action) = &action {
            self.pass_on(action);
        }
        (true, action)
    }

    fn facts(&mut self) -> bool {
        let changed = self.app.post(self.board.latest());
        if let Some(number) = self.app.detailed().filter(|_| !self.asked) {
            self.pass_on(&Action::Detail(number));
        }
        changed
    }

    fn pass_on(&mut self, action: &Action) {
        self.asked |= matches!(action, Action::Detail(_));
        // The thread ends only with the process.
        let _ = self.actions.send(action.clone());
    }
}

fn until_next_minute() -> Duration {
    let left = MINUTE - Timestamp::now().as_millisecond().rem_euclid(MINUTE);
    Duration::from_millis(left.unsigned_abs() + 20)
}
