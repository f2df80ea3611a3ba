//! The lists of the live page: arrays, and more jobs than a page can draw.

use miserly_api::model::{Array, Submission};
use miserly_test_support::browser::Browser;

use crate::support::{Daemon, sh};
use crate::ui::Ui;

/// The number of the elements of a page.
const NODES: &str = "document.getElementsByTagName('*').length";

/// Returns the texts of the elements that a selector finds.
fn texts(selector: &str) -> String {
    format!("[...document.querySelectorAll('{selector}')].map(element => element.textContent)")
}

fn waiting(name: &str, cpus: u64) -> Submission {
    Submission { name: Some(name.to_owned()), cpus, no_opportunistic: true, ..sh("sleep 600", 900.0) }
}

/// A daemon whose processors are held, with their number and the job that holds them.
fn held() -> (Daemon, u64, i64) {
    let daemon = Daemon::of_policy("conservative");
    let cpus = daemon.client().status().expect("a status").cpus;
    let holder = daemon.submit(&waiting("holder", cpus));
    (daemon, cpus, holder)
}

#[test]
fn an_array_is_one_row_with_its_jobs_below_it() {
    let Some(mut browser) = Browser::start() else { return };
    let (daemon, cpus, _) = held();
    let indexes = Array { first: 0, last: 299, step: 1, more: vec![], limit: None };
    let array = daemon.submit(&Submission { array: Some(indexes), ..waiting("many", cpus) });
    let mut ui = Ui::of(&daemon, &[]);
    browser.open(&ui.link());
    browser.wait_until("document.querySelectorAll('#waiting tr.array').length === 1");
    assert_eq!(
        browser.evaluate(&texts("#waiting tbody th button")),
        serde_json::json!([format!("{array}[0-299]"), "Details"])
    );
    assert_eq!(
        browser.evaluate("document.querySelector('#waiting caption').textContent.endsWith('(300)')"),
        true
    );

    // By the keyboard: opened, through its jobs to the last one, and closed.
    browser.evaluate("document.querySelector('#waiting tbody button').focus()");
    browser.key("Enter");
    browser.wait_until("document.querySelectorAll('#waiting tr.member').length > 10");
    assert_eq!(browser.evaluate("document.querySelector('#waiting').getAttribute('aria-rowcount')"), "302");
    browser.key("End");
    browser.wait_until(&format!("document.activeElement.textContent === '{array}[299]'"));
    assert_eq!(browser.evaluate("document.activeElement.closest('tr').ariaRowIndex"), "302");
    browser.key("Home");
    browser.wait_until("document.activeElement.ariaExpanded === 'true'");
    browser.key("ArrowLeft");
    browser.wait_until("document.querySelectorAll('#waiting tr.member').length === 0");

    // A job is found by its index, though it is not on the page.
    browser.key("/");
    browser.evaluate("document.querySelector('#find').value = '[299]'; document.querySelector('#find').dispatchEvent(new Event('input'))");
    browser.wait_until(&format!("{}.join() === '{array}[299]'", texts("#waiting tbody th button")));
    browser.evaluate("document.querySelector('#find').value = ''; document.querySelector('#find').dispatchEvent(new Event('input'))");
    browser.wait_until("document.querySelectorAll('#waiting tr.array').length === 1");

    // The array is held and cancelled as a whole.
    for (button, effect, done) in [
        ("Hold", "300 jobs would be held", "300 held"),
        ("Cancel the array", "300 jobs would end or be withdrawn", "300 cancelled"),
    ] {
        browser.click(".array .more");
        browser.wait_until(&format!("{}.includes('{button}')", texts("#detail-tools button")));
        browser.evaluate(&format!("[...document.querySelectorAll('#detail-tools button')].find(one => one.textContent === '{button}').click()"));
        browser.wait_until(&format!("document.querySelector('#moves')?.textContent === '{effect}'"));
        browser.evaluate("document.querySelector('#confirm').click()");
        browser.wait_until(&format!("{}.includes('{done}')", texts(".array td")));
    }
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn a_long_list_has_few_rows_on_the_page() {
    let Some(mut browser) = Browser::start() else { return };
    let (daemon, cpus, holder) = held();
    let jobs: Vec<i64> =
        (0..120).map(|number| daemon.submit(&waiting(&format!("job-{number}"), cpus))).collect();
    let mut ui = Ui::of(&daemon, &[]);
    browser.look(1280, "light");
    browser.open(&ui.link());
    browser.wait_until("document.querySelectorAll('#waiting tr[data-job]').length === 20");
    let (nodes, height) =
        (browser.evaluate(NODES), browser.evaluate("document.documentElement.scrollHeight"));
    assert!(nodes.as_u64() < Some(1200) && height.as_u64() < Some(3000), "{nodes} nodes, {height} pixels");
    // The middle of the list comes when it is scrolled there, and each row is once on the page.
    browser.evaluate("document.querySelector('#waiting').parentElement.scrollTop = 60 * 45");
    browser.wait_until(&format!("document.querySelector(\"#waiting tr[data-job='{}']\") !== null", jobs[60]));
    assert_eq!(browser.evaluate("document.querySelectorAll('#waiting tr[data-job]').length"), 20);
    // A focused row that is scrolled away leaves the focus in the list, and the arrow keys go on there.
    browser.evaluate(&format!(
        "document.querySelector(\"#waiting tr[data-job='{}'] button\").focus({{ preventScroll: true }})",
        jobs[60]
    ));
    browser.evaluate("document.querySelector('#waiting').parentElement.scrollTop = 0");
    browser.wait_until("document.activeElement.classList.contains('many')");
    browser.key("ArrowDown");
    browser.wait_until(&format!("document.activeElement.textContent === '{}'", jobs[61]));
    // The state that the differences made is the state of the server.
    daemon.client().cancel(jobs[3], false).expect("it is cancelled");
    daemon.client().cancel(holder, false).expect("it is cancelled");
    browser.wait_until("document.querySelector('#waiting caption').textContent.endsWith('(118)')");
    browser.wait_until("document.querySelectorAll('#ended tbody tr').length === 2");
    let same = "(async () => { for (;;) { const server = await (await fetch('/api/state', { headers: { authorization: `Bearer ${sessionStorage.getItem('key')}` } })).json(); \
                if (server.version !== shownState.version) { await new Promise(done => setTimeout(done, 100)); continue; } \
                const sorted = value => value && typeof value === 'object' && !Array.isArray(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1).map(([key, part]) => [key, sorted(part)])) : Array.isArray(value) ? value.map(sorted) : value; \
                return JSON.stringify(sorted(server)) === JSON.stringify(sorted(shownState)); } })()";
    assert_eq!(browser.evaluate(same), true);
    // A page that missed a change gets a whole state.
    browser.evaluate("shownState.version = -1");
    daemon.client().cancel(jobs[5], false).expect("it is cancelled");
    browser.wait_until("shownState.version > 0 && document.querySelector('#problem').hidden");
    browser.wait_until("document.querySelector('#waiting caption').textContent.endsWith('(117)')");
    assert_eq!(browser.console(), Vec::<String>::new());
}
