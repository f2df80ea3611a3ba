//! The five questions of a new user of a busy machine: on the page in a browser, and in a terminal.
//!
//! With `--nocapture` it prints the actions and the seconds until each answer is visible.

use std::process::Command;
use std::time::Duration;

use miserly_api::model::{Phase, Submission};
use miserly_test_support::Requirement;
use miserly_test_support::browser::Browser;

use crate::support::{Daemon, SOON, now, sh, until};
use crate::top::Terminal;
use crate::ui::Ui;

/// The other jobs that wait.
const OTHERS: usize = 60;

/// The most actions until an answer: a key, a word that is typed, a scroll by a screen.
const ACTIONS_MOST: usize = 3;

/// A question, and the ways to its answer.
struct Question {
    text: &'static str,
    /// The text to search on the page, if there is one.
    find: Option<&'static str>,
    /// The elements of the page with the answer, and a part of it.
    answer: (&'static str, &'static str),
    /// The keys in the terminal.
    keys: &'static [&'static str],
    /// A part of the answer in the terminal.
    says: &'static str,
}

const QUESTIONS: [Question; 5] = [
    Question {
        text: "When does mine start?",
        find: Some("mine"),
        answer: ("#waiting td.c-sentence", "starts by "),
        keys: &["/", "mine", "Enter"],
        says: ": starts by ",
    },
    Question {
        text: "Why not now?",
        find: Some("mine"),
        answer: ("#waiting td.c-sentence", "waits for "),
        keys: &["/", "mine", "Enter"],
        says: "waits for ",
    },
    Question {
        text: "Which jobs hold the machine?",
        find: None,
        answer: ("#running td.c-name", "holder"),
        keys: &["3"],
        says: "holder",
    },
    Question {
        text: "What fits now?",
        find: None,
        answer: ("#holes button", "1 processor of batch for "),
        keys: &["w"],
        says: "batch: 1 processor for ",
    },
    Question {
        text: "Was the promise kept?",
        find: Some("kept"),
        answer: ("#ended td.c-sentence", "its promise was kept"),
        keys: &["/", "kept", "Enter"],
        says: "; its promise was",
    },
];

/// Returns a daemon with an ended job, one that holds all processors but one, and many that wait for all.
fn busy() -> Daemon {
    let daemon = Daemon::of_policy("conservative");
    let cpus = daemon.client().status().expect("a status").cpus;
    let named = |name: &str, script: &str, cpus| Submission {
        cpus,
        name: Some(name.to_owned()),
        no_opportunistic: true,
        ..sh(script, 900.0)
    };
    let kept = daemon.submit(&named("kept", "true", 1));
    daemon.wait(kept);
    let holder = daemon.submit(&named("holder", "sleep 900", cpus - 1));
    until("it runs", SOON, || matches!(daemon.job(holder).phase, Phase::Running(_)).then_some(()));
    for number in 0..OTHERS {
        let name = if number == OTHERS * 2 / 3 { "mine".to_owned() } else { format!("other-{number}") };
        daemon.submit(&named(&name, "true", cpus));
    }
    daemon
}

/// Answers a question on the page. Returns the actions that it took, and the time since the load began.
fn on_page(browser: &mut Browser, question: &Question) -> (usize, Duration) {
    let (elements, part) = question.answer;
    let is_seen = format!(
        "[...document.querySelectorAll('{elements}')].some(found => {{ const box = found.getBoundingClientRect(); \
         return found.textContent.includes('{part}') && box.height > 0 && box.top >= 0 && box.bottom <= innerHeight; }})"
    );
    let mut actions = 0;
    // A reload goes back to the place that was left.
    browser.evaluate("history.scrollRestoration = 'manual'");
    let began = now();
    browser.reload();
    browser.wait_until("globalThis.shownVersion >= 0");
    assert_eq!(browser.evaluate("scrollY"), 0, "the page is shown from its top");
    if let Some(word) = question.find {
        browser.key("/");
        word.split("").filter(|letter| !letter.is_empty()).for_each(|letter| browser.key(letter));
        actions += 2;
    }
    // The answer comes a moment after the question, and is then on the page, seen or not.
    browser.wait_until(&format!(
        "[...document.querySelectorAll('{elements}')].some(found => found.textContent.includes('{part}'))"
    ));
    while browser.evaluate(&is_seen) != true && actions < ACTIONS_MOST {
        let before = browser.evaluate("scrollY").as_f64().expect("a place");
        browser.wheel(640.0, 20.0, 800.0);
        actions += 1;
        // The wheel scrolls smoothly: the page stands when it has moved by all of it, or is at its end.
        browser.wait_until(&format!(
            "scrollY >= Math.min({before} + 800, document.documentElement.scrollHeight - innerHeight) - 1"
        ));
    }
    browser.wait_until(&is_seen);
    (actions, began.elapsed())
}

/// Answers a question in a terminal. Returns the actions that it took, and the time since the program was started.
fn in_terminal(daemon: &Daemon, number: usize, question: &Question) -> (usize, Duration) {
    let (program, socket) = (env!("CARGO_BIN_EXE_miserly"), daemon.socket.display().to_string());
    let began = now();
    let line = format!("LC_ALL=C.UTF-8 exec {program} top --socket {socket}");
    let terminal = Terminal::new(daemon.path(&format!("tmux-{number}")), &line);
    terminal.wait_for("[1 all]");
    question.keys.iter().for_each(|key| terminal.press(&[key]));
    terminal.wait_for(question.says);
    (question.keys.len(), began.elapsed())
}

#[test]
fn each_question_has_its_answer_after_few_actions() {
    let there = Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success());
    let cpus = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    if !Requirement::Tmux.is_met(there, "needs tmux")
        || !Requirement::Cpus.is_met(cpus, "needs two processors")
    {
        return;
    }
    let Some(mut browser) = Browser::start() else { return };
    let daemon = busy();
    let mut ui = Ui::of(&daemon, &[]);
    let link = ui.link();
    browser.look(1280, "light");
    browser.open(&link);
    println!("question | page: actions | seconds | terminal: actions | seconds");
    for (number, question) in QUESTIONS.iter().enumerate() {
        let (actions, time) = on_page(&mut browser, question);
        let (keys, in_terminal) = in_terminal(&daemon, number, question);
        println!(
            "{} | {actions} | {:.1} | {keys} | {:.1}",
            question.text,
            time.as_secs_f64(),
            in_terminal.as_secs_f64()
        );
    }
    browser.screenshot("ui-busy");
}
