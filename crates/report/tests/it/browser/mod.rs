//! A page in a real browser: everything is drawn, nothing overflows, the console is clean, and the
//! script works.

use miserly_report::chart::svg;
use miserly_report::page::{Block, Page, Section, TableCell, TableData, html};
use miserly_test_support::browser::{Browser, PAINTERS, check_painters};

use crate::{page::hostile, sample};

/// The widths of a context and of a phone.
const WIDTHS: [u32; 2] = [1280, 375];

/// Charts that have drawn nothing, or curves as areas, or text outside of their drawing.
const SPOILT: &str = r"
    [...document.querySelectorAll('figure[data-chart]')].filter((figure) => {
        const svg = figure.querySelector('svg');
        if (svg.classList.contains('still') && matchMedia('screen').matches) return figure.querySelector('canvas').getBoundingClientRect().width < 300;
        const paper = svg.getBoundingClientRect();
        const marks = svg.querySelectorAll('.line,.area,.dots,.bars rect,.cell rect,.job,.part');
        const drawn = [...marks].some((mark) => mark.getBBox().width > 0 && mark.getBBox().height > 0);
        const outside = [...svg.querySelectorAll('text')].filter((text) => {
            const box = text.getBoundingClientRect();
            // A narrow screen hides labels without room.
            if (box.width === 0) return false;
            return box.left < paper.left - 1 || box.right > paper.right + 1 || box.top < paper.top - 1 || box.bottom > paper.bottom + 1;
        });
        const filled = [...svg.querySelectorAll('.line,.dots,.axis')].some((line) => getComputedStyle(line).fill !== 'none');
        return !drawn || filled || outside.length > 0 || paper.width < 300;
    }).map((figure) => figure.id)";

const OVERFLOW: &str = "document.documentElement.scrollWidth - document.documentElement.clientWidth";

const CHARTS: &str = "document.querySelectorAll('figure[data-chart] svg').length";

#[test]
fn every_chart_draws_at_any_width_in_both_themes() {
    let Some(mut browser) = Browser::start() else { return };
    let page = sample::page();
    for (width, theme) in WIDTHS.into_iter().flat_map(|width| [(width, "light"), (width, "dark")]) {
        browser.look(width, theme);
        browser.load(&html(&page));
        assert_eq!(browser.evaluate(CHARTS), sample::charts().len());
        assert_eq!(browser.evaluate(SPOILT), serde_json::json!([]), "{width} {theme}");
        assert_eq!(browser.evaluate(OVERFLOW), 0, "{width} {theme}");
        let paper = browser.evaluate("getComputedStyle(document.querySelector('.paper')).fill");
        assert_eq!(paper == "rgb(255, 255, 255)", theme == "light", "{paper}");
        browser.screenshot(&format!("page-{width}-{theme}"));
        assert_eq!(browser.console(), [""; 0], "{width} {theme}");
    }
}

/// The content has the width of the screen. Charts shrink, and tables scroll in their own boxes.
#[test]
fn a_page_uses_the_width_of_the_screen() {
    let Some(mut browser) = Browser::start() else { return };
    let columns: Vec<String> = (0..40).map(|column| format!("policy-of-column-{column}")).collect();
    let row = columns.iter().map(|_| TableCell::number("28 489")).collect();
    let table = Block::Table(TableData { caption: None, header: vec![columns], rows: vec![row] });
    let charts = sample::charts().into_iter().map(Block::Chart);
    let blocks = charts.chain([table]).collect();
    let section = Section { heading: "All".into(), blocks };
    let title = "easy(backfill=shortest)-on-a-log-with-a-long-name.swf.gz".to_owned();
    let page = html(&Page { title, sections: vec![section], ..Page::default() });
    for (width, theme) in [(400, "light"), (1400, "dark"), (2000, "light")] {
        browser.look(width, theme);
        browser.load(&page);
        assert_eq!(browser.evaluate(OVERFLOW), 0, "{width}");
        let used = "document.querySelector('main').getBoundingClientRect().width / innerWidth";
        assert!(browser.evaluate(used).as_f64() > Some(0.9), "{width}");
        let cut = "[...document.querySelectorAll('figure .scroll')].filter((box) => box.scrollWidth > box.clientWidth).length";
        assert_eq!(browser.evaluate(cut), 0, "{width}");
        let scrolls = "(() => { const box = document.querySelector('table').parentNode; return box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX === 'auto' })()";
        assert_eq!(browser.evaluate(scrolls), true, "{width}");
        let beside = "new Set([...document.querySelectorAll('figure')].map((one) => Math.round(one.getBoundingClientRect().left))).size";
        assert_eq!(browser.evaluate(beside).as_u64(), Some(u64::from(width).div_ceil(700)), "{width}");
    }
}

#[test]
fn charts_are_there_without_scripts() {
    let Some(mut browser) = Browser::start() else { return };
    browser.scripts(false);
    browser.look(1280, "light");
    browser.load(&html(&sample::page()));
    assert_eq!(browser.evaluate("document.querySelectorAll('button').length"), 0);
    assert_eq!(browser.evaluate(SPOILT), serde_json::json!([]));
}

#[test]
fn on_paper_it_is_light_and_has_no_buttons() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(700, "dark");
    browser.load(&html(&sample::page()));
    browser.evaluate("document.querySelector('header button').click()");
    browser.evaluate("document.querySelector('header button').click()");
    browser.print();
    assert_eq!(browser.evaluate("document.documentElement.dataset.theme"), "dark");
    assert_eq!(
        browser.evaluate("getComputedStyle(document.querySelector('.paper')).fill"),
        "rgb(255, 255, 255)"
    );
    assert_eq!(
        browser.evaluate("getComputedStyle(document.documentElement).backgroundColor"),
        "rgb(255, 255, 255)"
    );
    let seen = "[...document.querySelectorAll('button')].filter((button) => button.getBoundingClientRect().width > 0).length";
    assert_eq!(browser.evaluate(seen), 0);
    assert_eq!(browser.evaluate(SPOILT), serde_json::json!([]));
    browser.screenshot("print");
}

#[test]
fn text_of_strangers_is_only_text() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(375, "light");
    browser.load(&html(&hostile()));
    assert_eq!(browser.evaluate("window.harm === undefined && !document.querySelector('img, b')"), true);
    assert_eq!(browser.evaluate(OVERFLOW), 0);
    assert_eq!(browser.console(), [""; 0]);
}

/// The rectangles of the bars in the drawing without a script, and on the canvas in the same size.
#[test]
fn both_painters_draw_the_same_bars_of_a_report() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(1280, "light");
    for chart in [sample::schedule(), sample::dated(), sample::slots()] {
        browser.load(&html(&alone(chart)));
        browser.wait_until(PAINTED);
        let found = browser.evaluate(&format!(
            r"(async () => {{
                const {{ painted, drawn }} = {PAINTERS}, [{{ chart }}] = schedules, svg = document.querySelector('svg.scene');
                const box = svg.querySelector('.rule'), [top, height] = ['y', 'height'].map(name => +box.getAttribute(name));
                chart.canvas.style.width = '640px';
                const place = {{ top: top + 0.5, height: height - 1, row: (height - 1) / chart.groups[0].rows, named: true }};
                do {{
                    await new Promise(done => setTimeout(done, 50));
                    Object.assign(chart, {{ places: [place], below: top + height + 3.5, from: chart.range[0], scale: (chart.range[1] - chart.range[0]) / 640 }});
                    chart.paint();
                }} while (![...chart.tiles.values()].slice(-chart.visible).every(tile => tile.data));
                const rules = [...document.styleSheets].flatMap(sheet => [...sheet.cssRules]).map(rule => rule.cssText).filter(text => text.startsWith('.scene')).join('');
                const hex = text => text.replace(/ \{{ fill: rgb\((\d+), (\d+), (\d+)\); \}}/g, (_, ...parts) => '{{fill:#' + parts.slice(0, 3).map(part => (+part).toString(16).padStart(2, '0')).join('') + '}}');
                // The drawing ends at its edges.
                const inside = ([fill, opacity, x, y, width, height]) => [fill, opacity, Math.max(x, 0), y, Math.min(x + width, 640) - Math.max(x, 0), height];
                return [painted(chart).map(inside), drawn(svg, hex(rules))];
            }})()"
        ));
        assert!(check_painters(&found).len() > 100);
    }
    assert_eq!(browser.console(), [""; 0]);
}

/// All parts of the first schedule are on the screen.
const PAINTED: &str = "schedules.length > 0 && schedules[0].chart.visible > 0 && [...schedules[0].chart.tiles.values()].slice(-schedules[0].chart.visible).every(tile => tile.data)";

/// What is shown of the first schedule.
const VIEW: &str = "[schedules[0].chart.from, schedules[0].chart.scale].map(Math.round)";

#[test]
fn a_schedule_can_be_zoomed_and_moved_and_read() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(1280, "light");
    browser.load(&html(&alone(sample::crowded())));
    browser.wait_until(PAINTED);
    let press = |label: &str| format!("document.querySelector('button[aria-label=\"{label}\"]').click()");
    browser.evaluate("schedules[0].chart.paint()");
    let whole = browser.evaluate(VIEW);
    for _ in 0..6 {
        browser.evaluate(&press("Zoom in"));
    }
    browser.wait_until(PAINTED);
    let zoomed = browser.evaluate(VIEW);
    assert_ne!(zoomed, whole);
    browser.evaluate("document.querySelector('canvas').scrollIntoView()");
    browser.screenshot("zoomed");
    let bar = "(() => { const { chart } = schedules[0], box = chart.canvas.getBoundingClientRect(); for (const [data, place] of chart.painted) for (const [from, to, , , , rows] of data.bars) { const [left, right, wide] = chart.across(from, to), [top, height] = chart.down(rows[0], place); if (wide > 20 && height > 4 && left > 0 && right < chart.width()) return [box.x + left + wide / 2, box.y + top + height / 2]; } })()";
    // A page that scrolls shows no tooltip.
    for _ in 0..2 {
        browser.evaluate("new Promise(requestAnimationFrame)");
    }
    let middle = browser.evaluate(bar);
    browser.mouse("mouseMoved", middle[0].as_f64().unwrap(), middle[1].as_f64().unwrap());
    let tip = browser.evaluate("document.querySelector('.tip').textContent");
    let tip = tip.as_str().unwrap();
    assert!(tip.starts_with("job ") && tip.contains("processor") && tip.contains("runs for"), "{tip}");
    browser.evaluate(&press("Later"));
    assert_ne!(browser.evaluate(VIEW), zoomed);
    browser.evaluate(&press("Show the whole window"));
    browser.evaluate("schedules[0].chart.paint()");
    assert_eq!(browser.evaluate(VIEW), whole);
    // Nothing is outside of the window.
    browser.evaluate(&press("Earlier"));
    browser.evaluate(&press("Zoom out"));
    assert_eq!(browser.evaluate(VIEW), whole);
    assert_eq!(browser.console(), [""; 0]);
}

#[test]
fn a_schedule_can_be_searched_and_coloured_and_saved() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(1280, "light");
    browser.load(&html(&alone(sample::crowded())));
    browser.wait_until(PAINTED);
    let legend = "[...document.querySelectorAll('ul.legend li')].map((entry) => entry.textContent).join('|')";
    let by_reason = browser.evaluate(legend);
    for colour in ["user", "size", "slowdown", "wait", "state", "reason"] {
        browser.evaluate(&format!("(() => {{ const select = document.querySelector('select'); select.value = '{colour}'; select.dispatchEvent(new Event('change')) }})()"));
        assert_eq!(browser.evaluate(legend) == by_reason, colour == "reason", "{colour}");
        browser.wait_until(PAINTED);
    }
    let find = |job: &str| {
        format!(
            "(() => {{ const search = document.querySelector('input[type=search]'); search.value = '{job}'; search.dispatchEvent(new Event('change')); return [schedules[0].chart.chosen, search.validity.valid] }})()"
        )
    };
    assert_eq!(browser.evaluate(&find("17")), serde_json::json!([17, true]));
    assert_eq!(browser.evaluate(&find("987654321")), serde_json::json!([null, false]));
    // The file has what is shown, and its legend.
    let saved = browser.evaluate("(async () => { const { createObjectURL } = URL; let file; URL.createObjectURL = (blob) => { file = blob; return createObjectURL.call(URL, blob); }; document.querySelector('button[aria-label*=SVG]').click(); return file.text(); })()");
    let document = roxmltree::Document::parse(saved.as_str().unwrap()).unwrap();
    let bars =
        document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "rect")));
    assert!(bars.count() > 100);
    assert!(
        document.descendants().any(|node| node.text().is_some_and(|text| text.starts_with("backfilled (")))
    );
    assert_eq!(browser.console(), [""; 0]);
}

#[test]
fn a_matrix_can_be_led_through_time_and_read() {
    let Some(mut browser) = Browser::start() else { return };
    for width in WIDTHS {
        browser.look(width, "light");
        browser.load(&html(&alone(sample::matrix())));
        // The script draws the same as the page without it.
        browser.scripts(false);
        let drawn = "[...document.querySelectorAll('.places path')].map((path) => { const box = path.getBBox(); return [path.getAttribute('class'), Math.round(box.x), Math.round(box.y), Math.round(box.width)].join(' ') }).sort().join('|')";
        let said = "document.querySelector('.description').textContent";
        let with = (browser.evaluate(drawn), browser.evaluate(said));
        browser.load(&html(&alone(sample::matrix())));
        assert_eq!(browser.evaluate("document.querySelectorAll('input').length"), 0);
        assert_eq!((browser.evaluate(drawn), browser.evaluate(said)), with);
        browser.scripts(true);
        browser.load(&html(&alone(sample::matrix())));
        slide(&mut browser, drawn, said);
        point_at_a_job(&mut browser);
        assert_eq!(browser.evaluate(OVERFLOW), 0);
        assert_eq!(browser.console(), [""; 0]);
    }
}

/// Moves the slider to its ends and event by event.
fn slide(browser: &mut Browser, drawn: &str, said: &str) {
    let slider = "document.querySelector('input[type=range]')";
    let to = |place: &str| {
        format!("(() => {{ {slider}.value = {place}; {slider}.dispatchEvent(new Event('input')) }})()")
    };
    let first = browser.evaluate(drawn);
    browser.evaluate(&to("0"));
    let begin = (browser.evaluate(drawn), browser.evaluate(said));
    assert_ne!(begin.0, first);
    assert!(begin.1.as_str().is_some_and(|text| text.starts_with("At 0s: 1 slot used.")), "{}", begin.1);
    browser.evaluate("document.querySelector('button[aria-label=\"Next event\"]').click()");
    assert_eq!(browser.evaluate(&format!("{slider}.value")), "1");
    let next = (browser.evaluate(drawn), browser.evaluate(said));
    assert!(next.0 != begin.0 && next.1 != begin.1);
    let value = browser.evaluate(&format!("{slider}.getAttribute('aria-valuetext')"));
    assert_eq!(value, browser.evaluate("document.querySelector('.instant').textContent"));
    assert!(value.as_str().is_some_and(|text| text.contains("slots used")), "{value}");
    assert!(browser.evaluate(&format!("{slider}.getAttribute('aria-label')")).as_str().is_some());
    browser.evaluate("document.querySelector('button[aria-label=\"Event before\"]').click()");
    assert_eq!((browser.evaluate(drawn), browser.evaluate(said)), begin);
    browser.evaluate(&to(&format!("{slider}.max / 2")));
}

/// A job's tooltip appears under the pointer and on focus. The arrow keys move from job to job.
fn point_at_a_job(browser: &mut Browser) {
    let tip = "document.querySelector('.tip').textContent";
    // A page that scrolls shows no tooltip.
    browser.evaluate("document.querySelector('.places .job:not(.guest)').scrollIntoView({ block: 'center', inline: 'center' })");
    for _ in 0..2 {
        browser.evaluate("new Promise(requestAnimationFrame)");
    }
    let middle = browser.evaluate("(() => { const box = document.querySelector('.places .job:not(.guest)').getBoundingClientRect(); return [(box.left + box.right) / 2, (box.top + box.bottom) / 2] })()");
    browser.mouse("mouseMoved", middle[0].as_f64().unwrap(), middle[1].as_f64().unwrap());
    let text = browser.evaluate(tip);
    let whole = |text: &serde_json::Value| {
        text.as_str().is_some_and(|text| text.contains("processor") && text.contains("% of the time"))
    };
    assert!(whole(&text), "{text}");
    browser.evaluate("document.querySelector('.places [tabindex=\"0\"]').focus()");
    let one = browser.evaluate(tip);
    browser.evaluate("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }))");
    let other = browser.evaluate(tip);
    assert!(whole(&one) && whole(&other) && one != other, "{one} {other}");
}

#[test]
fn a_curve_is_read_out_under_the_pointer() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(1280, "light");
    browser.load(&html(&alone(sample::slowdown())));
    let mark = browser.evaluate("(() => { const box = document.querySelector('svg > .marks.s1 path').getBoundingClientRect(); return [(box.left + box.right) / 2, (box.top + box.bottom) / 2] })()");
    browser.mouse("mouseMoved", mark[0].as_f64().unwrap() + 1.0, mark[1].as_f64().unwrap());
    let said = "document.querySelector('.tip').textContent";
    assert!(
        browser.evaluate(said).as_str().is_some_and(|text| text.contains("46.1")),
        "{}",
        browser.evaluate(said)
    );
}

#[test]
fn the_theme_can_be_chosen() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(1280, "light");
    browser.load(&html(&alone(sample::slowdown())));
    let paper = "getComputedStyle(document.querySelector('.paper')).fill";
    assert_eq!(browser.evaluate(paper), "rgb(255, 255, 255)");
    browser.evaluate("document.querySelector('header button').click()");
    assert_eq!(browser.evaluate(paper), "rgb(20, 23, 26)");
    assert_eq!(browser.evaluate(SPOILT), serde_json::json!([]));
    assert_eq!(browser.console(), [""; 0]);
}

/// The button saves a chart as [`svg`] writes it: a stand-alone file with its style and name.
#[test]
fn a_chart_can_be_saved() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(1280, "light");
    let chart = sample::slowdown();
    browser.load(&html(&alone(chart.clone())));
    browser.evaluate("URL.createObjectURL = (file) => { window.saved = file; return '#' }");
    browser.evaluate("document.querySelector('.tools button').click()");
    let saved = browser.evaluate("saved.text()");
    let saved = saved.as_str().unwrap();
    let (saved, written) = (roxmltree::Document::parse(saved).unwrap(), svg(&chart));
    let written = roxmltree::Document::parse(&written).unwrap();
    let paths = |document: &roxmltree::Document| {
        document
            .descendants()
            .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "path")))
            .count()
    };
    assert_eq!(paths(&saved), paths(&written));
    let text = |document: &roxmltree::Document, name: &str| {
        document
            .descendants()
            .find(|node| node.tag_name().name() == name)
            .and_then(|node| node.text().map(str::to_owned))
    };
    // The page has the rules of all charts, and a file those of its own.
    let [all, own] = [&saved, &written].map(|document| text(document, "style").unwrap());
    for rule in own.split_inclusive('}').filter(|rule| rule.contains('{')) {
        let (selectors, body) = rule.rsplit_once('{').unwrap();
        let selectors = selectors.rsplit('{').next().unwrap();
        let is_there = |selector: &str| all.contains(selector);
        assert!(selectors.split(',').all(is_there) && all.contains(&format!("{{{body}")), "{rule}");
    }
    assert_eq!(text(&saved, "title"), Some("Slowdown against R".into()));
    assert_eq!(browser.console(), [""; 0]);
}

/// The image has the theme of the page, and needs nothing that the page forbids.
#[test]
fn a_chart_can_be_saved_as_an_image() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(1280, "light");
    browser.load(&html(&alone(sample::dated())));
    browser.evaluate("(() => { const real = URL.createObjectURL; URL.createObjectURL = (file) => { window.saved = file; return real.call(URL, file) } })()");
    browser.evaluate("document.querySelector('button[aria-label*=PNG]').click()");
    let image = browser.evaluate("(async () => { for (let n = 0; n < 100 && window.saved?.type !== 'image/png'; n++) await new Promise((done) => setTimeout(done, 50)); const image = await createImageBitmap(saved); const canvas = document.createElement('canvas'); canvas.width = image.width; canvas.height = image.height; const context = canvas.getContext('2d'); context.drawImage(image, 0, 0); const pixels = context.getImageData(0, 0, image.width, image.height).data; const colours = new Set(); for (let at = 0; at < pixels.length; at += 4) colours.add(pixels.slice(at, at + 3).join()); return [image.width, pixels[0], colours.has('8,43,69'), colours.has('65,31,11')] })()");
    assert_eq!(image, serde_json::json!([2688, 255, true, true]));
    assert_eq!(browser.console(), [""; 0]);
}

/// The PDF has one page of the size of the chart, and the page is as before.
#[test]
fn a_chart_is_printed_alone_on_a_page_of_its_size() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(700, "light");
    browser.load(&html(&sample::page()));
    let seen = "[...document.querySelectorAll('h1, h2, p, table, figure, .sheet')].filter((one) => one.getBoundingClientRect().height > 0).map((one) => one.id || one.className || one.localName)";
    let all = browser.evaluate(seen);
    browser.evaluate("window.print = () => { window.printed = true }");
    browser.evaluate("document.querySelector('#chart-slowdown button[aria-label*=PDF]').click()");
    browser.wait_until("window.printed");
    let size = browser.evaluate("(() => { const { width, height } = document.querySelector('#chart-slowdown svg').viewBox.baseVal; return [width, Math.ceil(height)] })()");
    let points = |place: usize| size[place].as_f64().unwrap() * 0.75;
    let [pages, width, height] = browser.pdf();
    assert!((pages - 1.0).abs() < 0.5, "{pages} pages");
    assert!((width - points(0)).abs() < 1.0 && (height - points(1)).abs() < 1.0, "{width} {height} {size}");
    assert_eq!(browser.evaluate(seen), all);
    assert_eq!(browser.evaluate("document.querySelectorAll('.sheet').length"), 0);
    assert_eq!(browser.console(), [""; 0]);
}

/// The canvas has the days and the times of the log's zone, and the tooltip has them, too.
#[test]
fn a_schedule_has_dates() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(1280, "light");
    browser.load(&html(&alone(sample::dated())));
    browser.wait_until(PAINTED);
    let still = browser.evaluate(
        "[...document.querySelectorAll('svg.scene .times text')].map((text) => text.textContent).join('|')",
    );
    assert!(
        still
            .as_str()
            .is_some_and(|labels| labels.contains("Sun 2000-03-19") && labels.contains("Mon 2000-03-20")),
        "{still}"
    );
    let day = browser.evaluate("schedules[0].chart.day(schedules[0].chart.range[0])");
    assert_eq!(day, "Sun 2000-03-19");
}

/// Letters of a chart are at least 9 pixels tall on a phone, those of names and cells at least 7.
#[test]
fn text_of_charts_is_readable_on_a_phone() {
    let Some(mut browser) = Browser::start() else { return };
    browser.look(400, "light");
    browser.load(&html(&sample::page()));
    let small = "[...document.querySelectorAll('figure svg text')].filter((text) => text.getBoundingClientRect().width > 0 && parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getScreenCTM().a < (text.closest('.names, .small') ? 7 : 9)).map((text) => text.textContent)";
    assert_eq!(browser.evaluate(small), serde_json::json!([]));
    let overlaps = "[...document.querySelectorAll('.ticks.x')].filter((ticks) => { const boxes = [...ticks.querySelectorAll('text:not([transform])')].map((text) => text.getBoundingClientRect()).filter((box) => box.width > 0); return boxes.some((box, n) => n > 0 && boxes[n - 1].right > box.left) }).length";
    assert_eq!(browser.evaluate(overlaps), 0);
}

fn alone(chart: miserly_report::chart::Chart) -> Page {
    let section = Section { heading: "One chart".into(), blocks: vec![Block::Chart(chart)] };
    Page { title: "A page".into(), sections: vec![section], ..Page::default() }
}
