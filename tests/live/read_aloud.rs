//! The live page as a screen reader has it.

use std::cell::Cell;

use miserly_api::model::Submission;
use miserly_test_support::browser::Browser;

use crate::support::{Daemon, SOON, sh, until, until_or_tell};
use crate::ui::Ui;

/// The roles of nodes that a person uses or jumps to. Each needs a name.
const NAMED: [&str; 13] = [
    "RootWebArea",
    "application",
    "button",
    "checkbox",
    "columnheader",
    "combobox",
    "heading",
    "image",
    "region",
    "searchbox",
    "slider",
    "spinbutton",
    "table",
];

/// Returns the names of the nodes with this role.
fn names(browser: &mut Browser, role: &str) -> Vec<String> {
    let all = browser.read_aloud();
    all.into_iter().filter(|[found, ..]| found == role).map(|[_, name, _]| name).collect()
}

#[test]
fn a_screen_reader_has_a_name_for_everything() {
    let Some(mut browser) = Browser::start() else { return };
    let daemon = Daemon::of_policy("conservative");
    let cpus = daemon.client().status().expect("a status").cpus;
    let wide = |name: &str, script| {
        let name = Some(name.to_owned());
        daemon.submit(&Submission { name, cpus, no_opportunistic: true, ..sh(script, 900.0) })
    };
    let (holder, waiter) = (wide("holder", "sleep 600"), wide("waiter", "true"));
    let mut ui = Ui::of(&daemon, &[]);
    browser.open(&ui.link());
    // The map is asked for near the screen.
    browser.wait_until("document.querySelectorAll('#running tbody tr').length === 1");
    browser.evaluate("document.querySelector('#processors').scrollIntoView()");
    browser.wait_until("document.querySelectorAll('#map .holders button').length === 1");
    // The tree that the browser gives to its tools has no certain order, and comes after the page.
    let unnamed = Cell::new(None);
    let all_named = || {
        let mut parts = browser.read_aloud().into_iter();
        let part = parts.find(|[role, name, _]| NAMED.contains(&&**role) && name.trim().is_empty());
        let is_none = part.is_none();
        unnamed.set(part);
        is_none.then_some(())
    };
    until_or_tell(SOON, all_named, || format!("a name for {:?}", unnamed.take()));
    let expected = ["Running (1)", "Waiting, in the order of their starts (1)"];
    until("the tables with their jobs", SOON, || {
        let mut tables = names(&mut browser, "table");
        tables.sort_unstable();
        (tables == expected).then_some(())
    });
    let buttons = names(&mut browser, "button");
    for name in [format!("{holder} holder"), format!("{waiter} waiter")] {
        assert!(buttons.contains(&name), "{buttons:?}");
    }
    let own = names(&mut browser, "rowheader");
    assert!(own.iter().all(|name| name.starts_with("your job ")), "{own:?}");
    let held = format!("{cpus} of {cpus} processors held, 0 idle but reserved, 0 free");
    assert!(names(&mut browser, "image").contains(&held));

    // By the keyboard alone: why not now, and a job withdrawn with its effect told first.
    browser.evaluate("document.querySelector('#waiting tbody button').focus()");
    browser.key("Enter");
    browser.wait_until("document.querySelector('#sentence').textContent.startsWith('starts by ')");
    assert_eq!(browser.evaluate("document.querySelector('#sentence').ariaLive"), "polite");
    browser.evaluate(
        "[...document.querySelectorAll('#detail-tools button')].find(button => button.textContent === 'Cancel').focus()",
    );
    browser.key("Enter");
    browser.wait_until("document.activeElement.id === 'confirm'");
    let told = browser.read_aloud();
    let told = told.iter().find(|[_, name, _]| name == "Do it").expect("a button");
    let effect = format!("Withdraw job {waiter}? job {waiter}: no promise; before: starts by ");
    assert!(told[2].starts_with(&effect), "{told:?}");
    assert!(told[2].ends_with("no other promise moves"), "{told:?}");
    browser.key("Enter");
    browser.wait_until("document.querySelectorAll('#ended tbody tr').length === 1");
    assert_eq!(browser.evaluate("document.activeElement.textContent"), "Done.", "where the focus was");
}
