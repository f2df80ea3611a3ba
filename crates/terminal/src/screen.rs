//! The terminal: taken over, and given back in every case.

use std::io::{self, BufWriter, Stdout, stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// Whether the terminal is taken over.
static TAKEN: AtomicBool = AtomicBool::new(false);

static PANIC_HOOK: Once = Once::new();

/// The terminal of the process, until this is dropped.
#[derive(Debug)]
pub(crate) struct Screen(Terminal<CrosstermBackend<BufWriter<Stdout>>>);

impl Screen {
    /// Takes over the terminal: keys arrive one by one, and the former content is kept for later.
    pub(crate) fn take() -> io::Result<Screen> {
        PANIC_HOOK.call_once(|| {
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                leave();
                usual(panic);
            }));
        });
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let entered = execute!(stdout(), EnterAlternateScreen, EnableMouseCapture);
        let terminal = entered.and_then(|()| Terminal::new(CrosstermBackend::new(BufWriter::new(stdout()))));
        terminal.map(Screen).inspect_err(|_| leave())
    }

    /// Returns the terminal.
    pub(crate) fn terminal(&mut self) -> &mut Terminal<CrosstermBackend<BufWriter<Stdout>>> {
        &mut self.0
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Gives the terminal back, if it is taken over. A handler of signals calls it before the process ends.
pub fn leave() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // The terminal may be gone.
        let _ = execute!(stdout(), DisableMouseCapture, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}
