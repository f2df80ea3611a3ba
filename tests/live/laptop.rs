//! The live page on a laptop that sleeps, behind a tunnel.

use std::io::{Read, Write};
use std::mem;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use miserly_api::model::Submission;
use miserly_test_support::browser::Browser;

use crate::support::{Daemon, sh};
use crate::ui::Ui;

/// A tunnel to a port of this machine, as `ssh -L` makes one.
struct Tunnel {
    port: u16,
    /// How often it broke. A connection of an earlier time stays open, and nothing goes through it.
    breaks: Arc<AtomicU64>,
}

impl Tunnel {
    fn to(port: u16) -> Tunnel {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let tunnel =
            Tunnel { port: listener.local_addr().expect("an address").port(), breaks: Arc::default() };
        let breaks = Arc::clone(&tunnel.breaks);
        thread::spawn(move || {
            for near in listener.incoming() {
                let near = near.expect("a connection");
                let far = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
                let ends = [(&near, &far), (&far, &near)]
                    .map(|(from, to)| (from.try_clone().expect("a copy"), to.try_clone().expect("a copy")));
                for (from, to) in ends {
                    let breaks = Arc::clone(&breaks);
                    thread::spawn(move || carry(from, to, &breaks));
                }
            }
        });
        tunnel
    }

    fn breaks(&self) {
        self.breaks.fetch_add(1, Ordering::SeqCst);
    }
}

/// Carries bytes until an end closes or the tunnel breaks.
fn carry(mut from: TcpStream, mut to: TcpStream, breaks: &AtomicU64) {
    let mut bytes = [0; 4096];
    let began = breaks.load(Ordering::SeqCst);
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if breaks.load(Ordering::SeqCst) != began {
            // Neither end is told.
            mem::forget((from, to));
            return;
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    // An end that is closed already refuses this.
    let _ = to.shutdown(std::net::Shutdown::Both);
}

#[test]
fn a_laptop_that_wakes_shows_the_present() {
    let Some(mut browser) = Browser::start() else { return };
    let daemon = Daemon::of_policy("conservative");
    let mut ui = Ui::of(&daemon, &[]);
    let link = ui.link();
    let tunnel = Tunnel::to(ui.port);
    browser.open(&link.replace(&format!(":{}/", ui.port), &format!(":{}/", tunnel.port)));
    browser.wait_until("globalThis.shownVersion >= 0 && document.querySelector('#problem').hidden");

    // After a second and a half without a tick its clock is a quarter of a minute ahead, so that a short sleep is a long one.
    browser.evaluate(
        "(() => { const real = Date.now.bind(Date); let last = real(), ahead = 0; Date.now = () => real() + ahead; \
         setInterval(() => { const now = real(); if (now - last > 1500) ahead += 15e3; last = now; }, 100); })()",
    );
    browser.sleep(true);
    tunnel.breaks();
    let name = Some("while it slept".to_owned());
    let job = daemon.submit(&Submission { name, ..sh("sleep 600", 900.0) });
    thread::sleep(Duration::from_secs(2));
    browser.sleep(false);
    // It does not wait for the end of the silence, which takes longer.
    browser.wait_until("document.querySelector('#problem').textContent.includes('the computer slept')");
    browser.wait_until("document.querySelector('#running').textContent.includes('while it slept')");
    browser.wait_until("document.querySelector('#problem').hidden");
    let bar = format!("chart.painted?.some(([data]) => data.bars.some(([, , number]) => number === {job}))");
    browser.wait_until(&bar);
}
