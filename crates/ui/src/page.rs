//! The page, as the server draws it first.

use maud::{DOCTYPE, Markup, html};
use miserly_view::{ListPart, PoolNow};

use crate::assets;
use crate::live::Shown;

/// The most rows of a table in the first drawing: those that fit on a screen. The script draws the rest.
const ROWS_FIRST: usize = 10;

/// Returns the page: with its content and its key, or empty for a visit that has a key already.
pub(crate) fn page(shown: Option<&Shown>, key: Option<&str>) -> String {
    let moment = shown.map(|shown| &shown.moment);
    let lists = shown.map(|shown| shown.listing.first(ROWS_FIRST));
    let lists = lists.as_ref();
    let title = moment.map_or("Miserly", |moment| &moment.title);
    let body = html! {
        header {
            a class="skip" href="#filters" { "Go to the jobs" }
            h1 id="title" { (title) }
            p id="now" { @if let Some(moment) = moment { (moment.text) } }
        }
        main {
            p id="headline" {}
            details id="missed" hidden { summary {} ul {} }
            p id="problem" role="status" hidden {}
            section aria-labelledby="chart-title" {
                h2 id="chart-title" { "Past, now and promised" }
                div id="tools" {
                    div role="toolbar" aria-label="The part of the time" {
                        button type="button" id="back" title="Earlier (left arrow)" aria-label="Earlier" { "◀" }
                        button type="button" id="forth" title="Later (right arrow)" aria-label="Later" { "▶" }
                        button type="button" id="wider" title="More time (minus)" aria-label="Show more time" { "−" }
                        button type="button" id="closer" title="Less time (plus)" aria-label="Show less time" { "+" }
                        button type="button" id="fit" title="All the time" { "All" }
                        button type="button" id="live" title="Now (0)" { "Now" }
                        button type="button" id="play" title="A day in ten seconds" { "Play" }
                    }
                    label for="slider" { "Instant" }
                    input type="range" id="slider" min="0" max="1" value="1" step="1" title="Comma and full stop move by a step";
                    output id="instant" for="slider" { "now" }
                    label { "Colour " select id="by" {} }
                    div role="toolbar" aria-label="Share the view" {
                        button type="button" id="link" title="The address of this view, without a key" { "Copy link" }
                        span { "Save as" }
                        button type="button" id="svg" title="The chart as it is shown, as SVG" aria-label="Save SVG" { "SVG" }
                        button type="button" id="png" title="The chart as it is shown, as PNG of twice its size" aria-label="Save PNG" { "PNG" }
                        button type="button" id="pdf" title="The chart as it is shown, printed on a page of its size or saved as PDF" aria-label="Save PDF" { "PDF" }
                    }
                    output id="saved" role="status" {}
                }
                // It takes keys of its own: a screen reader passes them on to an application only, and an image has none.
                // Nothing is lost by it: the buttons do the same, and the tables have the same jobs.
                div id="picture" {
                    canvas id="chart" tabindex="0" role="application" aria-roledescription="chart"
                        aria-label="Jobs over time" aria-describedby="chart-keys" {}
                    div id="card" hidden {}
                }
                ul id="colours" class="legend" aria-label="Colours" {}
                ul class="legend" aria-label="Bars" {
                    li { span class="key ran" {} "ran" }
                    li { span class="key failed" {} "ended without success" }
                    li { span class="key running" {} "runs, pale up to its limit" }
                    li { span class="key promised" {} "promised window in its bracket" }
                    li { span class="key planned" {} "planned or likely, not promised" }
                }
                p id="note" class="muted" hidden {}
                p id="chart-keys" class="muted" {
                    "Drag to move; Ctrl and the wheel, or two fingers, zoom. Keys: arrows move, plus and minus zoom, 0 goes to now; comma and full stop move the instant. "
                    "The tables below have the same jobs."
                }
            }
            (chosen_job())
            (starts_now())
            section aria-labelledby="jobs-title" {
                h2 id="jobs-title" { "Jobs" }
                div id="filters" {
                    label { "Find " input type="search" id="find" placeholder="number, name, user"; }
                    label { input type="checkbox" id="own"; " mine only" }
                    label { "Show " select id="which" {
                        option value="all" { "all jobs" }
                        option value="kept" { "those whose promise was kept" }
                        option value="missed" { "promise not kept, or at risk" }
                        option value="failed" { "failed jobs" }
                        option value="failed_lately" { "failed in the last 24 hours" }
                    } }
                    details id="columns" { summary { "Columns" } div {} }
                }
                p id="no-match" role="status" {}
                (jobs_table("own-jobs", "Your jobs", lists.map(|lists| &lists.own)))
                (jobs_table("waiting", "Waiting, in the order of their starts", lists.map(|lists| &lists.waiting)))
                (jobs_table("running", "Running", lists.map(|lists| &lists.running)))
                (jobs_table("ended", "Ended last", lists.map(|lists| &lists.ended)))
            }
            section id="pools" aria-label="Pools" { @if let Some(moment) = moment { @for pool in &moment.pools { (pool_bar(pool)) } } }
            p id="account" class="muted" {}
            (processors())
            section id="changes-section" aria-label="Changes" {
                h2 { "Changes" }
                ol id="changes" {}
            }
        }
        noscript { p { "The chart, and the updates of this page, need scripts." } }
    };
    document(title, key, shown, &body)
}

/// The box of the chosen job. The script fills it: only its sentence is read aloud when it changes.
fn chosen_job() -> Markup {
    html! {
        section id="detail" aria-label="The chosen job" hidden {
            div {
                // The focus comes here when a key chose the job.
                h2 id="detail-title" tabindex="-1" {}
                p id="sentence" aria-live="polite" {}
                p id="detail-facts" class="muted" {}
                div id="policies" {}
                div id="detail-tools" class="tools" {}
                div id="result" {}
            }
            div {
                div id="graph" hidden {}
                div id="more" {}
            }
        }
    }
}

/// The map of the processors. The script fills it; the bars of the pools have the same totals.
///
/// Its name is a label of its own: the browser renders this part only near the screen, and may give a part that it
/// did not render no name by its heading.
fn processors() -> Markup {
    html! {
        section id="processors" aria-label="Processors" {
            h2 { "Processors" }
            ul class="legend" {
                li { span class="key held" {} "held, with the number of the job" }
                li { span class="key idle" {} "opportunistic job" }
                li { span class="key reserved" {} "idle, but reserved within an hour" }
                li { span class="key none" {} "idle" }
                li { span class="key offline" {} "offline" }
            }
            div id="map" role="group" aria-label="Jobs by host; arrow keys move" {}
        }
    }
}

/// What starts now, and the question on a job. The script shows it if there is a daemon to answer.
fn starts_now() -> Markup {
    html! {
        section id="holes-section" aria-labelledby="holes-title" hidden {
            h2 id="holes-title" { "What starts now" }
            div id="holes" {}
            p id="no-holes" class="muted" hidden {}
            // The script checks the numbers: the browser's own check would leave an old answer below them.
            form id="ask" novalidate {
                label { "Processors " input type="number" id="ask-procs" min="1" value="1" required; } " "
                label { "Minutes " input type="number" id="ask-minutes" min="1" value="60" required; } " "
                label { "Queue " select id="ask-queue" {} } " "
                button { "When?" }
                p id="quoted" role="status" {}
            }
        }
    }
}

/// Returns the page for a link that is used up or wrong.
pub(crate) fn used_link() -> String {
    let body = html! {
        main {
            h1 { "This link does not work" }
            p { "A link works once. " code { "miserly ui" } " has printed the next one in its terminal." }
        }
    };
    document("Miserly", None, None, &body)
}

fn document(title: &str, key: Option<&str>, shown: Option<&Shown>, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                @if let Some(key) = key { meta name="key" content=(key); }
                title { (title) " - Miserly" }
                link rel="icon" href="data:,";
                style { (maud::PreEscaped(assets::STYLE)) }
                link rel="modulepreload" href="/address.js";
                link rel="modulepreload" href="/chart.js";
                link rel="modulepreload" href="/job.js";
                link rel="modulepreload" href="/list.js";
                link rel="modulepreload" href="/paint.js";
                link rel="modulepreload" href="/state.js";
                link rel="modulepreload" href="/tables.js";
                script type="module" src="/page.js" {}
            }
            body {
                (body)
                @if let Some(shown) = shown {
                    script type="application/json" id="state" { (json(shown)) }
                }
            }
        }
    };
    page.into_string()
}

/// Returns the state as JSON that cannot end its element.
fn json(shown: &Shown) -> maud::PreEscaped<String> {
    maud::PreEscaped(shown.json().replace('<', "\\u003c"))
}

fn pool_bar(pool: &PoolNow) -> Markup {
    html! {
        div class="pool" {
            h3 { (pool.facts.name) " " small { (pool.facts.policy) } }
            p { (pool.facts.held) " of " (pool.facts.cpus) " processors held, " (pool.reserved) " idle but reserved, " (pool.free) " free" }
        }
    }
}

fn jobs_table(id: &str, title: &str, list: Option<&ListPart>) -> Markup {
    let rows = list.map(|list| &*list.rows).unwrap_or_default();
    html! {
        div class="scroll jobs" tabindex="-1" {
            table id=(id) role="table" hidden[rows.is_empty()] {
                caption { (title) }
                thead { tr {
                    th scope="col" { "Job" } th scope="col" class="c-name" { "Name" } th scope="col" class="c-start" { "Start" }
                    th scope="col" class="c-sentence" { "In words" }
                } }
                tbody {
                    @for row in rows {
                        tr {
                            th scope="row" { (row.label) } td class="c-name" { (row.name) } td class="c-start" { (row.start_text) }
                            td class="c-sentence" { (row.sentence) }
                        }
                    }
                }
            }
        }
    }
}
