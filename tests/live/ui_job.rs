//! The jobs of the live page: the box of a job, the columns of the lists, and a phone.

use miserly_api::model::{Array, Submission};
use miserly_test_support::browser::Browser;

use crate::support::{Daemon, sh};
use crate::ui::{Ui, is_clean};

fn named(name: &str, script: &str, cpus: u64) -> Submission {
    Submission { name: Some(name.to_owned()), cpus, no_opportunistic: true, ..sh(script, 900.0) }
}

/// Returns a job that waits for the end of another one.
fn after(job: i64, name: &str) -> Submission {
    Submission { after: vec![job], ..named(name, "true", 1) }
}

/// Chooses a job by its button in a list.
fn choose(browser: &mut Browser, list: &str, job: i64) {
    browser.click(&format!("#{list} tr[data-job='{job}'] th button"));
    browser
        .wait_until(&format!("document.querySelector('#detail-title').textContent.startsWith('Job {job}:')"));
}

/// Presses a button of the box of the chosen job.
fn press(browser: &mut Browser, text: &str) {
    let button =
        format!("[...document.querySelectorAll('#detail button')].find(one => one.textContent === '{text}')");
    browser.wait_until(&format!("{button} !== undefined"));
    browser.evaluate(&format!("{button}.click()"));
}

#[test]
fn the_box_of_a_job_has_its_output_its_history_and_its_dependencies() {
    let Some(mut browser) = Browser::start() else { return };
    let daemon = Daemon::of_policy("conservative");
    let cpus = daemon.client().status().expect("a status").cpus;
    let (go, script) = (
        daemon.path("go"),
        "echo one; printf '10 %%\\r20 %%'; until [ -e go ]; do sleep 0.1; done; echo; echo two",
    );
    let talker = daemon.submit(&Submission {
        output: Some(daemon.path("out")),
        directory: go.parent().expect("a folder").into(),
        ..named("talker", script, cpus)
    });
    let first = daemon.submit(&named("first", "true", 1));
    let second = daemon.submit(&after(first, "second"));
    let third = daemon.submit(&after(second, "third"));
    let mut ui = Ui::of(&daemon, &[]);
    browser.look(1280, "light");
    browser.open(&ui.link());
    browser.wait_until("document.querySelectorAll('#running tr[data-job]').length === 1");

    // The output is appended while the job runs. A return goes back to the begin of the line.
    choose(&mut browser, "running", talker);
    press(&mut browser, "Follow the output");
    browser.wait_until("document.querySelector('#result pre')?.textContent === 'one\\n20 %'");
    std::fs::write(&go, "").expect("a file");
    browser.wait_until("document.querySelector('#result pre').textContent === 'one\\n20 %\\ntwo\\n'");
    // It ends by itself after the end of the job.
    browser.wait_until("document.querySelector('#result button').textContent === 'Read again'");
    // What it used, against the request, and each change of its promise with its cause.
    browser.wait_until("document.querySelector('#more').textContent.includes('History of the promise')");
    let rows = "[...document.querySelectorAll('#more tbody td:first-child')].map(cell => cell.textContent).slice(0, 3)";
    browser.wait_until(&format!("{rows}.join() === 'processors,time,memory'"));
    assert_eq!(
        browser.evaluate(
            "[...document.querySelectorAll('#more table')].at(-1).textContent.includes('submitted')"
        ),
        true
    );
    is_clean(&mut browser);

    // A chain of jobs: a click on one shows it.
    let holder = daemon.submit(&named("holder", "sleep 600", cpus));
    daemon.wait(third);
    browser.wait_until(&format!("document.querySelector(\"#running tr[data-job='{holder}']\") !== null"));
    let one = daemon.submit(&named("one", "true", 1));
    let two = daemon.submit(&after(one, "two"));
    let three = daemon.submit(&after(two, "three"));
    browser.wait_until(&format!("document.querySelector(\"#waiting tr[data-job='{three}']\") !== null"));
    choose(&mut browser, "waiting", two);
    let nodes = "[...document.querySelectorAll('#graph .node')].map(node => node.ariaLabel)";
    let expected =
        [format!("{one} one queued"), format!("{two} two queued"), format!("{three} three queued")];
    browser.wait_until(&format!("JSON.stringify({nodes}) === JSON.stringify({expected:?})"));
    assert_eq!(browser.evaluate("document.querySelectorAll('#graph .edge').length"), 2);
    browser.evaluate("document.querySelector('#graph .node').focus()");
    browser.key("ArrowRight");
    browser.key("ArrowRight");
    browser.key("Enter");
    browser
        .wait_until(&format!("document.querySelector('#detail-title').textContent === 'Job {three}: three'"));
    is_clean(&mut browser);
}

#[test]
fn columns_and_orders_are_chosen_and_remembered() {
    let Some(mut browser) = Browser::start() else { return };
    let daemon = Daemon::of_policy("conservative");
    let cpus = daemon.client().status().expect("a status").cpus;
    daemon.submit(&named("holder", "sleep 600", cpus));
    let long = format!("{}-run-0017", "a-long-name-of-a-job".repeat(4));
    let names = ["b", "c", "a", &long];
    let jobs = names.map(|name| daemon.submit(&named(name, "true", cpus)));
    let mut ui = Ui::of(&daemon, &[]);
    let link = ui.link();
    browser.look(1280, "light");
    browser.open(&link);
    browser.wait_until("document.querySelectorAll('#waiting tr[data-job]').length >= 4");
    // A name that is too long keeps its end, which tells it from others. The whole is with the job.
    let cell = format!("document.querySelector(\"#waiting tr[data-job='{}'] .c-name\")", jobs[3]);
    let shown = browser.evaluate(&format!(
        "[{cell}.textContent.length < 40, {cell}.textContent.endsWith('-run-0017'), {cell}.title]"
    ));
    assert_eq!(shown, serde_json::json!([true, true, long]));
    choose(&mut browser, "waiting", jobs[3]);
    assert_eq!(
        browser.evaluate("document.querySelector('#detail-title').textContent"),
        format!("Job {}: {long}", jobs[3])
    );

    // By the keyboard: above the first row are the titles.
    browser.evaluate("document.querySelector('#waiting tbody button').focus()");
    browser.key("ArrowUp");
    browser.key("ArrowRight");
    browser.wait_until("document.activeElement.textContent === 'Name'");
    let listed =
        "[...document.querySelectorAll('#waiting td.c-name')].map(cell => cell.textContent[0]).join('')";
    for (order, sorted) in [("ascending", "aabc"), ("descending", "cbaa")] {
        browser.evaluate("document.activeElement.click()");
        browser.wait_until(&format!("{listed} === '{sorted}'"));
        let title = "document.querySelector('#waiting th.c-name').getAttribute('aria-sort')";
        assert_eq!(browser.evaluate(title), order);
        assert_eq!(browser.evaluate("document.activeElement.textContent"), "Name", "it keeps the focus");
    }
    browser.evaluate("[...document.querySelectorAll('#columns label')].filter(label => /Memory|User/.test(label.textContent)).forEach(label => label.click())");
    let titles = "[...document.querySelectorAll('#waiting th')].slice(0, 12).map(title => title.textContent).filter(title => /Memory|User/.test(title)).join()";
    browser.wait_until(&format!("{titles} === 'Memory'"));
    // They are there after a reload, and what is remembered has no key.
    browser.reload();
    browser.wait_until(&format!("{titles} === 'Memory' && {listed} === 'cbaa'"));
    let kept = browser.evaluate("JSON.stringify({ ...localStorage })").to_string();
    let key = browser.evaluate("sessionStorage.getItem('key')");
    assert!(kept.contains("hidden") && !kept.contains(key.as_str().expect("a key")), "{kept}");
    // What a browser remembers of another version does no harm.
    browser.evaluate("localStorage.setItem('tables', JSON.stringify({ hidden: ['absent'], sort: { waiting: { by: 'absent' }, ended: 3 } }))");
    browser.reload();
    browser.wait_until("document.querySelectorAll('#waiting tr[data-job]').length >= 4");
    is_clean(&mut browser);
}

#[test]
fn numbers_of_the_headline_lead_to_their_lists() {
    let Some(mut browser) = Browser::start() else { return };
    let daemon = Daemon::of_policy("conservative");
    let (failed, done) =
        (daemon.submit(&named("failing", "exit 3", 1)), daemon.submit(&named("good", "true", 1)));
    daemon.wait(failed);
    daemon.wait(done);
    let mut ui = Ui::of(&daemon, &[]);
    browser.look(1280, "light");
    browser.open(&ui.link());
    let headline = "document.querySelector('#headline').textContent";
    browser.wait_until(&format!("{headline}.includes('1 job of yours failed in the last 24 hours.')"));
    assert_eq!(
        browser.evaluate(&format!("{headline}.includes('All 2 promises that were due were kept.')")),
        true
    );
    let listed =
        "[...document.querySelectorAll('#ended td.c-name')].map(cell => cell.textContent).sort().join()";
    for (number, expected) in [("1 job of yours", "failing"), ("2 promises", "failing,good")] {
        browser.evaluate(&format!("[...document.querySelectorAll('#headline button')].find(one => one.textContent === '{number}').click()"));
        browser.wait_until(&format!("{listed} === '{expected}'"));
    }
    // An empty machine starts what it offers. Where nothing would start, nothing is offered.
    browser.evaluate("document.querySelector('#holes-section').scrollIntoView()");
    browser.wait_until("document.querySelectorAll('#holes button').length > 0");
    browser.click("#holes button");
    browser.wait_until("document.querySelector('#quoted').textContent.includes('starts at once')");
    let cpus = daemon.client().status().expect("a status").cpus;
    daemon.submit(&named("holder", "sleep 600", cpus));
    browser.wait_until("document.querySelectorAll('#holes button').length === 0 && document.querySelector('#no-holes').textContent.startsWith('Nothing would start now')");
    is_clean(&mut browser);
}

#[test]
fn a_phone_has_cards_and_a_keyboard_few_stops() {
    let Some(mut browser) = Browser::start() else { return };
    let daemon = Daemon::of_policy("conservative");
    let cpus = daemon.client().status().expect("a status").cpus;
    daemon.submit(&named("holder", "sleep 600", cpus));
    let indexes = Array { first: 0, last: 99, step: 1, more: vec![], limit: None };
    daemon.submit(&Submission { array: Some(indexes), ..named("many", "true", cpus) });
    for number in 0..30 {
        daemon.submit(&named(&format!("waiting-{number}-{}", "x".repeat(40)), "true", cpus));
    }
    let mut ui = Ui::of(&daemon, &[]);
    browser.look(390, "light");
    browser.open(&ui.link());
    browser.wait_until("document.querySelectorAll('#waiting tbody tr[data-job]').length > 10");
    // Number, name, start and sentence of each card are on the screen, and two hours of the chart.
    let inside = "[...document.querySelectorAll('#waiting tr[data-row]')].every(row => ['th', '.c-name', '.c-start', '.c-sentence'].every(part => { const box = row.querySelector(part).getBoundingClientRect(); return box.width > 0 && box.left >= 0 && box.right <= 390; }))";
    assert_eq!(browser.evaluate(inside), true);
    assert_eq!(browser.evaluate("Math.round(chart.scale * chart.width() / 36e5)"), 2);
    let share = browser.evaluate("document.querySelector('#waiting .share').ariaLabel");
    assert_eq!(share, "100 jobs: 100 waiting");
    // A row has the height that the places of the others are computed from.
    let heights = "[...new Set([...document.querySelectorAll('#waiting tr[data-row]')].map(row => row.getBoundingClientRect().height))]";
    assert_eq!(browser.evaluate(heights), serde_json::json!([93.75]));
    // No line of a card lies on another one.
    let lines = "[...document.querySelectorAll('#waiting tr[data-row]')].every(row => { const boxes = ['th', '.c-name', '.c-state', '.c-sentence'].map(part => row.querySelector(part).getBoundingClientRect()); \
                 return (row.matches('.array') ? boxes : boxes.slice(1)).every((box, at, all) => box.height > 0 && (!at || box.top >= all[at - 1].bottom - 1)) && boxes[3].bottom <= row.getBoundingClientRect().bottom + 1; })";
    assert_eq!(browser.evaluate(lines), true);
    is_clean(&mut browser);
    browser.screenshot("ui-phone-cards");
    browser.look(1280, "light");
    // The buttons above the chart are one line.
    browser.wait_until("innerWidth === 1280 && document.querySelector('#tools').clientHeight < 50");
    let stops = browser.evaluate("[...document.querySelectorAll('a, button, input, select, summary, canvas, [tabindex]')].filter(one => one.tabIndex >= 0 && one.checkVisibility()).length");
    assert!(stops.as_u64() < Some(30), "{stops} stops of the tab key");
    // The start stays on the screen of a small window, too.
    for width in [1024, 768] {
        browser.look(width, "light");
        let start = "(() => { const box = document.querySelector('#waiting td.c-start').getBoundingClientRect(); return box.right <= innerWidth && box.width > 40; })()";
        browser.wait_until(start);
        is_clean(&mut browser);
    }
}
