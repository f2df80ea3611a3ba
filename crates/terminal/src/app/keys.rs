//! The keys.

use miserly_api::submit::length_of_time;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Action, App, Mode, Tab};
use crate::draw::Areas;
use crate::{Detail, Request, What};

/// The lines that a page of help or detail moves by.
const PAGE: usize = 10;

impl App {
    /// Takes a key. Returns the action for the program, if the key needs more than another frame.
    pub fn key(&mut self, key: KeyEvent) -> Option<Action> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Some(Action::Quit),
                KeyCode::Char('l') => Some(Action::Redraw),
                _ => None,
            };
        }
        self.notice = None;
        let action = match std::mem::replace(&mut self.mode, Mode::List) {
            Mode::List => self.list_key(key.code),
            Mode::Help(top) => self.help_key(key.code, top),
            Mode::Missed(top) => self.missed_key(key.code, top),
            Mode::Holes => None,
            Mode::Search(before, text) => self.search_key(key.code, before, text),
            Mode::Instant(text) => self.instant_key(key.code, text),
            Mode::Extend(text) => self.extend_key(key.code, text),
            Mode::Confirm(request, _) => self.confirm_key(key.code, request),
            Mode::Detail(detail, below) => self.detail_key(key.code, detail, below),
        };
        self.settle();
        action
    }

    fn list_key(&mut self, code: KeyCode) -> Option<Action> {
        match code {
            KeyCode::Char('q') | KeyCode::Esc | KeyCode::F(10) => return Some(Action::Quit),
            KeyCode::Char('?') | KeyCode::F(1) => self.mode = Mode::Help(0),
            KeyCode::Char('l') | KeyCode::Enter => return self.open_detail(),
            KeyCode::Char('c') => return self.confirm(What::Cancel),
            KeyCode::Char('h') => return self.confirm(What::Hold),
            KeyCode::Char('r') => return self.confirm(What::Release),
            KeyCode::Char('e') => self.ask_time(),
            KeyCode::Char('w') => self.mode = Mode::Holes,
            KeyCode::Char('b') => self.mode = Mode::Missed(0),
            KeyCode::Char('p') => self.processors = !self.processors,
            _ if self.processors && self.map_key(code) => {}
            _ if self.is_past() && self.past_key(code) => {}
            _ => self.move_key(code),
        }
        None
    }

    /// Takes a key that sends no request.
    fn move_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Up | KeyCode::Char('k') => self.list.step(-1),
            KeyCode::Down | KeyCode::Char('j') => self.list.step(1),
            KeyCode::PageUp => self.list.turn(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.list.turn(1),
            KeyCode::Home | KeyCode::Char('g') => self.list.select_first(),
            KeyCode::End | KeyCode::Char('G') => self.list.select(usize::MAX),
            KeyCode::Tab => self.turn_tab(1),
            KeyCode::BackTab => self.turn_tab(Tab::ALL.len() - 1),
            KeyCode::F(number @ 2..=5) => self.list.tab = Tab::ALL[usize::from(number) - 2],
            KeyCode::Char(number @ '1'..='4') => self.list.tab = Tab::ALL[number as usize - '1' as usize],
            KeyCode::Char('a') => self.list.has_arrays = !self.list.has_arrays,
            KeyCode::Char('m') => self.list.mine = !self.list.mine,
            KeyCode::Char('s') => self.list.sort_next(self.view.listed(self.list.tab, self.list.has_arrays)),
            KeyCode::Char('S') => self.list.reversed = !self.list.reversed,
            KeyCode::Char('/') | KeyCode::F(7) => {
                self.mode = Mode::Search(self.list.chosen(), String::new());
            }
            KeyCode::Char('n') => self.find_next(false),
            KeyCode::Char('N') => self.find_next(true),
            _ => self.time_key(code),
        }
    }

    /// Takes a key that changes the time that is shown.
    fn time_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Left => self.span.scroll(-1),
            KeyCode::Right => self.span.scroll(1),
            KeyCode::Char('+' | '=') => self.span.zoom_in(),
            KeyCode::Char('-') => self.span.zoom_out(),
            KeyCode::Char('t') => self.pause(),
            KeyCode::Char('f') => self.follow(),
            _ => {}
        }
    }

    fn turn_tab(&mut self, by: usize) {
        let at = Tab::ALL.iter().position(|tab| *tab == self.list.tab).unwrap_or(0);
        self.list.tab = Tab::ALL[(at + by) % Tab::ALL.len()];
    }

    fn find_next(&mut self, backward: bool) {
        if self.list.needle.is_empty() {
            self.tell("nothing is searched; / starts a search", true);
        } else if !self.list.find(self.view.listed(self.list.tab, self.list.has_arrays), backward, false) {
            self.tell(format!("no job has \"{}\"", self.list.needle), true);
        }
    }

    /// Takes a key that leads through the past. Returns whether it is one.
    fn past_key(&mut self, code: KeyCode) -> bool {
        match code {
            KeyCode::Left => self.move_past(-1),
            KeyCode::Right => self.move_past(1),
            KeyCode::Home => self.go_to(i64::MIN),
            KeyCode::End => self.go_to(i64::MAX),
            KeyCode::Char('t') => self.mode = Mode::Instant(String::new()),
            _ => return false,
        }
        true
    }

    /// Takes a key that moves the map. Returns whether it is one. Keys that select a job move the map to it.
    fn map_key(&mut self, code: KeyCode) -> bool {
        // In a very low terminal the map has no line.
        let page = Areas::new(self, self.size).map_page().max(1);
        match code {
            KeyCode::PageUp => self.map_top = self.map_top.saturating_sub(page),
            KeyCode::PageDown | KeyCode::Char(' ') => self.map_top = self.map_top.saturating_add(page),
            KeyCode::Up | KeyCode::Down | KeyCode::Char('j' | 'k' | 'g' | 'G' | 'n' | 'N') => {
                self.move_key(code);
                if let Some(line) = crate::draw::map_line_of_selected(self) {
                    self.map_top = self.map_top.clamp((line + 1).saturating_sub(page), line);
                }
            }
            _ => return false,
        }
        let lines = crate::draw::map_lines(self, self.size.width).len();
        self.map_top = self.map_top.min(lines.saturating_sub(page));
        true
    }

    /// Stops at the present, from where the keys lead into the past.
    fn pause(&mut self) {
        self.go_to(self.live.facts.now);
    }

    /// Moves the instant by steps, within the known time.
    fn move_past(&mut self, steps: i64) {
        let shown = self.view.facts.now;
        self.go_to(shown.saturating_add(steps.saturating_mul(self.past_step())));
    }

    fn instant_key(&mut self, code: KeyCode, text: String) -> Option<Action> {
        match code {
            KeyCode::Esc => {}
            KeyCode::Enter => match self.live.facts.instant(&text, self.view.facts.now) {
                Ok(instant) => self.go_to(instant),
                Err(problem) => {
                    self.tell(problem, true);
                    self.mode = Mode::Instant(text);
                }
            },
            _ => self.mode = Mode::Instant(typed(text, code)),
        }
        None
    }

    fn follow(&mut self) {
        if self.is_replay() {
            return self.go_to(i64::MAX);
        }
        self.past = None;
        self.span.reset_shift();
        self.show();
    }

    fn open_detail(&mut self) -> Option<Action> {
        if self.selected()?.array.is_some() {
            self.list.has_arrays = false;
            return None;
        }
        let number = self.list.selected()?;
        self.mode = Mode::Detail(Detail { number, ..Detail::default() }, 0);
        self.daemon.then_some(Action::Detail(number))
    }

    /// Begins a request on the selected job: it is sent once it is confirmed.
    fn confirm(&mut self, what: What) -> Option<Action> {
        let request = self.request(what)?;
        self.mode = Mode::Confirm(request.clone(), vec![]);
        Some(Action::Preview(request))
    }

    fn ask_time(&mut self) {
        if self.request(What::Extend(0)).is_some() {
            self.mode = Mode::Extend(String::new());
        }
    }

    /// Returns a request on the selected job, or tells why there is none.
    fn request(&mut self, what: What) -> Option<Request> {
        let made = match (self.obstacle(), self.selected()) {
            (Some(reason), _) => Err(reason.to_owned()),
            (None, selected) => {
                let selected = selected?;
                if selected.array.is_some() {
                    Err(format!("{} are several jobs; a lists them one by one", selected.job.label))
                } else {
                    Request::new(&selected.job, what)
                }
            }
        };
        made.map_err(|reason| self.tell(reason, true)).ok()
    }

    /// Returns why no request is possible.
    fn obstacle(&self) -> Option<&'static str> {
        match self.selected() {
            _ if self.size.height < 3 => Some("the terminal is too low"),
            _ if !self.daemon => Some("there is no daemon to ask"),
            _ if self.is_past() => Some("this is the past; f leads back to the present"),
            None => Some("no job is selected"),
            Some(_) => None,
        }
    }

    fn extend_key(&mut self, code: KeyCode, text: String) -> Option<Action> {
        match code {
            KeyCode::Esc => {}
            KeyCode::Enter => match length_of_time(&text) {
                Ok(secs) => return self.confirm(What::Extend(secs)),
                Err(error) => {
                    self.tell(error.to_string(), true);
                    self.mode = Mode::Extend(text);
                }
            },
            _ => self.mode = Mode::Extend(typed(text, code)),
        }
        None
    }

    fn confirm_key(&mut self, code: KeyCode, request: Request) -> Option<Action> {
        if matches!(code, KeyCode::Char('y' | 'Y')) {
            self.tell("asks the daemon", false);
            return Some(Action::Ask(request));
        }
        self.tell("nothing is changed", false);
        None
    }

    /// Searches while the text is typed, from the job that was selected before.
    fn search_key(&mut self, code: KeyCode, before: Option<i64>, text: String) -> Option<Action> {
        match code {
            KeyCode::Enter => {
                if !self.list.needle.is_empty()
                    && !self.list.find(self.view.listed(self.list.tab, self.list.has_arrays), false, true)
                {
                    self.tell(format!("no job has \"{}\"", self.list.needle), true);
                }
                return None;
            }
            KeyCode::Esc => {
                self.list.select_job(before);
                self.list.needle.clear();
                return None;
            }
            _ => {}
        }
        let text = typed(text, code);
        self.list.needle.clone_from(&text);
        self.list.select_job(before);
        self.list.find(self.view.listed(self.list.tab, self.list.has_arrays), false, true);
        self.mode = Mode::Search(before, text);
        None
    }

    fn help_key(&mut self, code: KeyCode, top: usize) -> Option<Action> {
        if let Some(top) = moved(code, top) {
            self.mode = Mode::Help(top.min(crate::draw::help_end(self)));
        }
        None
    }

    fn missed_key(&mut self, code: KeyCode, top: usize) -> Option<Action> {
        if let Some(top) = moved(code, top) {
            let last = self.view.moment.account.missed.len().saturating_sub(1);
            self.mode = Mode::Missed(top.min(last));
        }
        None
    }

    fn detail_key(&mut self, code: KeyCode, detail: Detail, below: usize) -> Option<Action> {
        let most = detail.log.len();
        let below = match code {
            KeyCode::Up | KeyCode::Char('k') => below + 1,
            KeyCode::Down | KeyCode::Char('j') => below.saturating_sub(1),
            KeyCode::PageUp => below + PAGE,
            KeyCode::PageDown | KeyCode::Char(' ') => below.saturating_sub(PAGE),
            KeyCode::Home | KeyCode::Char('g') => most,
            KeyCode::End | KeyCode::Char('G') => 0,
            KeyCode::Char('c' | 'h' | 'r' | 'e') if self.daemon => return self.list_key(code),
            KeyCode::Char('q' | 'l') | KeyCode::Esc | KeyCode::Enter => return None,
            _ => below,
        };
        let room = crate::draw::output_room(self, &detail);
        self.mode = Mode::Detail(detail, below.min(most.saturating_sub(room)));
        None
    }
}

/// Returns a text after a key.
fn typed(mut text: String, code: KeyCode) -> String {
    match code {
        KeyCode::Backspace => drop(text.pop()),
        KeyCode::Char(letter) if !letter.is_control() => text.push(letter),
        _ => {}
    }
    text
}

/// Returns the first line of a page after a key; `None` for a key that leads back.
fn moved(code: KeyCode, top: usize) -> Option<usize> {
    match code {
        KeyCode::Up | KeyCode::Char('k') => Some(top.saturating_sub(1)),
        KeyCode::Down | KeyCode::Char('j') => Some(top + 1),
        KeyCode::PageUp => Some(top.saturating_sub(PAGE)),
        KeyCode::PageDown | KeyCode::Char(' ') => Some(top + PAGE),
        KeyCode::Home => Some(0),
        KeyCode::End => Some(usize::MAX),
        _ => None,
    }
}
