//! The chart: its two painters, its address, its colours and its cards.

use std::process::Command;

use miserly_api::model::Submission;
use miserly_test_support::browser::{self, Browser, PAINTERS};
use serde_json::{Value, json};

use crate::support::{Daemon, miserly, sh};
use crate::ui::{Ui, is_clean};

/// Paints the chart, and asks for it as SVG. Returns the rectangles of the bars of both.
#[track_caller]
fn check_painters(browser: &mut Browser) -> Vec<Value> {
    let found = browser.evaluate(&format!(
        r"(async () => {{
            const {{ picture, png }} = await import('/address.js'), {{ painted, drawn }} = {PAINTERS};
            do {{
                chart.paint();
                await new Promise(done => setTimeout(done, 50));
            }} while (![...chart.tiles.values()].slice(-chart.visible).every(tile => tile.data));
            const question = picture(chart), rectangles = painted(chart);
            const answer = await fetch(`/api/picture?${{question}}`, {{ headers: {{ authorization: `Bearer ${{sessionStorage.getItem('key')}}` }} }});
            // The policy of the page allows no style of a document, but it holds for no image.
            const text = await answer.text(), [style, rules] = /<style>(.*?)<[/]style>/.exec(text), svg = new DOMParser().parseFromString(text.replace(style, ''), 'image/svg+xml');
            const bitmap = await createImageBitmap(await png(text)), canvas = new OffscreenCanvas(bitmap.width, bitmap.height), context = canvas.getContext('2d');
            context.drawImage(bitmap, 0, 0);
            const bar = rectangles.find(([, opacity, , , wide, high]) => opacity === 1 && wide > 4 && high > 4);
            if (!bar) return [rectangles, drawn(svg, rules), null, null];
            const [fill, , left, top] = bar, [red, green, blue] = context.getImageData(2 * (Math.max(left, 0) + 2.5), 2 * (top + 20 + 2.5), 1, 1).data;
            return [rectangles, drawn(svg, rules), fill, '#' + [red, green, blue].map(part => part.toString(16).padStart(2, '0')).join('')];
        }})()"
    ));
    assert_eq!(found[2], found[3], "a pixel of the PNG has the colour of its bar");
    browser::check_painters(&found)
}

fn named(name: &str, script: &str, time: f64) -> Submission {
    Submission { name: Some(name.to_owned()), no_opportunistic: true, ..sh(script, time) }
}

#[test]
fn both_painters_draw_the_same_bars_of_a_daemon() {
    let Some(mut browser) = Browser::start() else { return };
    let daemon = Daemon::of_policy("conservative");
    let cpus = daemon.client().status().expect("a status").cpus;
    let failed = daemon.submit(&named("failed", "sleep 1; false", 60.0));
    daemon.wait(failed);
    let holder = daemon.submit(&Submission { cpus, ..named("holder", "sleep 600", 900.0) });
    let waiting = daemon.submit(&Submission { cpus, ..named("waiting", "true", 1200.0) });
    let mut ui = Ui::of(&daemon, &[]);
    browser.look(1280, "light");
    browser.open(&ui.link());
    browser.wait_until("chart.painted?.some(([data]) => data.bars.length >= 2)");
    // Near the first job, which lasted a second.
    browser.evaluate("chart.view(shownState.range[0] + 20e3, 60e3)");
    browser.wait_until(
        "chart.tiles.size > 0 && [...chart.tiles.values()].slice(-chart.visible).every(tile => tile.data)",
    );
    let bad = browser.evaluate("chart.ink.bad");
    let near = check_painters(&mut browser);
    assert!(near.iter().any(|rectangle| rectangle[0] == bad), "the failed job looks failed: {near:?}");
    browser.click("#live");
    let all = check_painters(&mut browser);
    let pale = |opacity: f64| {
        all.iter().any(|rectangle| (rectangle[1].as_f64().expect("a number") - opacity).abs() < 1e-6)
    };
    assert!(pale(1.0) && pale(0.3) && pale(0.22), "it ran, it may still run, it is promised: {all:?}");
    let ink = browser.evaluate("chart.ink.ink");
    assert!(all.iter().filter(|rectangle| rectangle[0] == ink).count() >= 6, "a bracket: {all:?}");

    // A card beside the bar under the mouse.
    let middle = format!(
        "(() => {{ document.querySelector('#chart').scrollIntoView({{ block: 'center' }}); const b = document.querySelector('#chart').getBoundingClientRect(); for (const [data, place] of chart.painted) for (const [from, to, job, , , rows] of data.bars) if (job === {waiting}) {{ const [left, right] = chart.across(from, to), [top, height] = chart.down(rows[0], place); return [b.x + (left + right) / 2, b.y + top + height / 2]; }} }})()"
    );
    let place = browser.evaluate(&middle);
    browser.mouse("mouseMoved", place[0].as_f64().expect("x"), place[1].as_f64().expect("y"));
    browser.wait_until("!document.querySelector('#card').hidden");
    let card = browser.evaluate("document.querySelector('#card').textContent");
    let card = card.as_str().expect("a text");
    assert!(card.contains(&format!("{waiting} waiting")) && card.contains("promisestart by "), "{card}");
    // The sentence above the chart, and the colours.
    let told = browser.evaluate("document.querySelector('#headline').textContent");
    let told = told.as_str().expect("a text");
    assert!(told.starts_with("Your 2 jobs: 1 runs, the next starts by "), "{told}");
    let legend =
        "[...document.querySelectorAll('#colours li')].map(entry => entry.textContent.split(' (')[1])";
    assert_eq!(browser.evaluate(legend), json!(["3)"]), "one user with three bars");
    browser.evaluate("(() => { const by = document.querySelector('#by'); by.value = 'state'; by.dispatchEvent(new Event('change')); })()");
    let names = "[...document.querySelectorAll('#colours li')].map(entry => entry.textContent)";
    assert_eq!(browser.evaluate(names), json!(["ended without success (1)", "runs (1)", "promised (1)"]));
    is_clean(&mut browser);
    browser.screenshot("picture-live");
    for job in [holder, waiting] {
        daemon.client().cancel(job, false).expect("it is cancelled");
    }
}

/// Starts the page of a generated log under two policies. It has promises and failures.
fn run(folder: &std::path::Path) -> Ui {
    let log = folder.join("log.swf").display().to_string();
    let made = miserly(&["workload", "generate", "--jobs", "2000", "--procs", "64", "-o", &log]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let options = ["ui", "--run", &log, "--policy", "easy", "--policy", "conservative"];
    Ui::start(Command::new(env!("CARGO_BIN_EXE_miserly")).args(options))
}

#[test]
fn both_painters_draw_the_same_bars_of_a_run() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut ui = run(folder.path());
    for theme in ["light", "dark"] {
        browser.look(1280, theme);
        browser.open(&ui.link());
        browser.wait_until("globalThis.shownVersion >= 0");
        // The bars keep the colours of before until the new ones are here.
        browser.wait_until("chart.painted?.some(([data]) => data.bars.length > 20)");
        let kept = "(() => { const before = chart.painted.length; chart.by = 'size'; chart.paint(); return before > 0 && chart.painted.length === before; })()";
        assert_eq!(browser.evaluate(kept), true);
        for by in ["reason", "user", "wait"] {
            browser.evaluate(&format!("(() => {{ const by = document.querySelector('#by'); by.value = '{by}'; by.dispatchEvent(new Event('change')); }})()"));
            assert!(check_painters(&mut browser).len() > 20, "{theme}, {by}");
        }
        is_clean(&mut browser);
        browser.screenshot(&format!("picture-run-{theme}"));
    }
}

#[test]
fn an_address_restores_the_view() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut ui = run(folder.path());
    browser.look(1280, "light");
    browser.open(&ui.link());
    // A run opens at its busiest hour.
    browser.wait_until("document.querySelector('#now').textContent.includes('(in the past)')");
    browser.wait_until("document.querySelectorAll('#running tbody tr').length > 0");
    browser.wait_until("location.hash.includes('past=')");
    browser.evaluate("chart.zoom(0.5, 300)");
    let view = "[chart.from, chart.scale].map(Math.round)";
    browser.wait_until("Math.abs(new URLSearchParams(location.hash.slice(1)).get('zoom') * 1000 - chart.scale * chart.width()) < 1000");
    let before = browser.evaluate(view);
    let address = browser.evaluate("location.href");
    assert!(!address.to_string().contains("token"), "{address}");
    browser.click("#running tbody button");
    browser.wait_until("location.hash.includes('job=') && !document.querySelector('#detail').hidden");
    browser.wait_until("document.querySelectorAll('#policies dl').length === 2");
    let close = |one: &Value, other: &Value| {
        (0..2).all(|place| {
            (one[place].as_f64().expect("a number") - other[place].as_f64().expect("a number")).abs() < 1000.0
        })
    };
    browser.reload();
    browser.wait_until("globalThis.shownVersion >= 0 && !document.querySelector('#detail').hidden");
    browser.wait_until("document.querySelector('#now').textContent.includes('(in the past)')");
    let after = browser.evaluate(view);
    assert!(close(&before, &after), "{before} and {after}");
    browser.evaluate("history.back()");
    browser.wait_until("document.querySelector('#detail').hidden");
    browser.evaluate("history.forward()");
    browser.wait_until("!document.querySelector('#detail').hidden");
    // The strip moves the view, and a play moves the instant.
    let strip = browser.evaluate("(() => { document.querySelector('#chart').scrollIntoView({ block: 'end' }); const b = document.querySelector('#chart').getBoundingClientRect(); return [b.x + b.width - 5, b.y + chart.stripTop() + 12]; })()");
    let (x, y) = (strip[0].as_f64().expect("x"), strip[1].as_f64().expect("y"));
    browser.mouse("mousePressed", x, y);
    browser.mouse("mouseReleased", x, y);
    browser.wait_until("chart.from + chart.scale * chart.width() > chart.range[1]");
    let instant = browser.evaluate("document.querySelector('#now').textContent");
    browser.click("#play");
    browser.wait_until(&format!("document.querySelector('#now').textContent !== {instant}"));
    browser.click("#play");
    assert_eq!(browser.evaluate("document.querySelector('#play').textContent"), "Play");
    is_clean(&mut browser);
}
