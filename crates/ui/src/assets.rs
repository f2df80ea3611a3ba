//! The files of the page.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use miserly_scene::{CHART, PAINT, PRINT};
use sha2::{Digest, Sha256};

use crate::answer::Refusal;
use crate::packed::Packed;

/// The style is a part of the page: another request would come before the first paint.
pub(crate) const STYLE: &str = include_str!("assets/page.css");
const SCRIPT: &str = include_str!("assets/page.js");
const ADDRESS: &str = include_str!("assets/address.js");
const JOB: &str = include_str!("assets/job.js");
const LIST: &str = include_str!("assets/list.js");
const MAP: &str = include_str!("assets/map.js");
const STATE: &str = include_str!("assets/state.js");
const TABLES: &str = include_str!("assets/tables.js");

/// The policy of all answers: a page has scripts of this server only, and no style but [`STYLE`].
pub(crate) static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'sha256-{style}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// The scripts, by their names.
const SCRIPTS: [(&str, &str); 10] = [
    ("page", SCRIPT),
    ("address", ADDRESS),
    ("chart", CHART),
    ("job", JOB),
    ("list", LIST),
    ("map", MAP),
    ("paint", PAINT),
    ("print", PRINT),
    ("state", STATE),
    ("tables", TABLES),
];

/// The scripts as they are sent, each compressed once.
static PACKED: LazyLock<Vec<(String, Packed)>> = LazyLock::new(|| {
    SCRIPTS.iter().map(|(name, text)| (format!("{name}.js"), Packed::new((*text).to_owned()))).collect()
});

/// A script.
pub(crate) async fn script(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Refusal> {
    let found = PACKED.iter().find(|(known, _)| *known == name);
    let none = || Refusal::new(StatusCode::NOT_FOUND, "there is nothing at this address");
    Ok(found.ok_or_else(none)?.1.answer_as("text/javascript; charset=utf-8", &headers))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use miserly_follow::Board;
    use miserly_test_support::browser::Browser;
    use miserly_view::{Facts, Job, PoolFacts, State};

    use super::*;
    use crate::{Options, Server};

    /// Follows events whose answers this gives: a request of the first connection fails once the second one is open. Returns the wants that
    /// the server got.
    const FOLLOWED: &str = r"(async () => {
        const { follow } = await import(`data:text/javascript,${encodeURIComponent(SOURCE)}`);
        const streams = [], bodies = [], until = async is => { while (!is()) await new Promise(done => setTimeout(done, 10)); };
        let wanted = 0, opened = () => {}, fail = null;
        const ask = (path, { body }) => {
            if (!path.startsWith('/api/events')) {
                bodies.push(+body);
                return bodies.length > 1 ? Promise.resolve() : new Promise((_, reject) => { fail = reject; });
            }
            return new Promise(done => {
                opened = () => done(new Response(new ReadableStream({ start: stream => streams.push(stream) })));
                if (!streams.length) opened();
            });
        };
        let isAsked = false;
        const changed = follow({ ask: (path, options) => { isAsked = path.startsWith('/api/events'); return ask(path, options); },
            take() {}, problem() {}, wants: () => wanted, unanswered() {}, known: null });
        await until(() => streams.length === 1);
        await new Promise(done => setTimeout(done, 50));
        wanted = 1;
        changed();
        await until(() => fail !== null);
        streams[0].close();
        await until(() => isAsked);
        wanted = 2;
        changed();
        opened();
        await until(() => streams.length === 2);
        await new Promise(done => setTimeout(done, 50));
        fail(new Error('gone'));
        await new Promise(done => setTimeout(done, 200));
        return bodies;
    })()";

    #[test]
    fn wants_of_a_new_connection_are_sent_after_a_failure_of_the_old_one() {
        let Some(mut browser) = Browser::start() else { return };
        browser.load("<!doctype html>");
        let source = serde_json::to_string(STATE).unwrap();
        assert_eq!(browser.evaluate(&FOLLOWED.replace("SOURCE", &source)), serde_json::json!([1, 2]));
    }

    /// Returns the texts of the painted chart with these words.
    const TEXTS: &str = r"(() => {
        const texts = [], context = chart.context, write = context.fillText;
        context.fillText = (...text) => { texts.push(text[0]); write.apply(context, text); };
        chart.paint();
        delete context.fillText;
        return texts.filter(text => /GPU|batch/.test(text)).join('; ');
    })()";

    #[test]
    fn the_chart_has_the_gpus_of_running_jobs() {
        let Some(mut browser) = Browser::start() else { return };
        for (gpus, expect) in [(2, "batch: 1 processor; GPUs held, scale to 2"), (0, "batch: 1 processor")] {
            let now = 1_000_000_000_000;
            let (start, end) = (Some(now - 1_800_000), Some(now + 1_800_000));
            let job = Job { number: 1, procs: 1, gpus, state: State::Running, start, end, ..Job::default() };
            let pool = PoolFacts { name: "batch".to_owned(), cpus: 1, ..PoolFacts::default() };
            let (live, jobs, pools) = (true, vec![Arc::new(job)], vec![pool]);
            let facts = Facts { now, live, jobs, pools, ..crate::no_facts() };
            let server = Server::bind(Options::default()).unwrap();
            let link = server.link();
            std::thread::spawn(move || server.run(&Board::new(facts), |_| {}));
            browser.open(&link);
            browser.wait_until("globalThis.chart?.painted?.length > 0");
            browser.wait_until(&format!("{TEXTS} === '{expect}'"));
        }
    }

    #[test]
    fn a_printed_page_has_whole_rows_and_no_buttons() {
        let Some(mut browser) = Browser::start() else { return };
        browser.load(&crate::page::page(None, None));
        let look = "(() => { const style = of => getComputedStyle(document.querySelector(of)), box = document.querySelector('.jobs');
            box.classList.add('many');
            return ['#tools', '#filters', '#chart-keys'].map(of => style(of).display === 'none').concat(style('.jobs').maxHeight === 'none'); })()";
        assert_eq!(browser.evaluate(look), serde_json::json!([false, false, false, false]));
        browser.print();
        assert_eq!(browser.evaluate(look), serde_json::json!([true, true, true, true]));
    }

    #[test]
    fn the_page_is_small() {
        let size =
            |part: fn(&str) -> usize| part(STYLE) + SCRIPTS.iter().map(|(_, text)| part(text)).sum::<usize>();
        let (plain, packed) = (size(str::len), size(|text| Packed::new(text.to_owned()).deflated().len()));
        assert!(plain < 150_000 && packed < 52_000, "{plain} bytes, {packed} compressed");
    }

    #[test]
    fn the_style_is_one_element() {
        assert!(!STYLE.contains("</") && POLICY.to_str().unwrap().contains("'sha256-"));
    }

    #[test]
    fn the_page_uses_nothing_of_other_sites() {
        for text in SCRIPTS.iter().map(|(_, text)| *text).chain([STYLE]) {
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("innerHTML"));
        }
    }
}
