//! The chart as SVG: the painter of the scene for files. paint.js paints the same scene on the page, and a test compares the two.

use maud::{Markup, PreEscaped, html};
use miserly_view::{
    Bars, ColourBy, CurvePart, Curves, Facts, Inks, Kind, Legend, TileBar, TileRequest, whole_step,
};
use serde::Deserialize;

/// The height of the times, of the line above a group, and of the lines and the boxes of the curves.
const AXIS: f64 = 36.0;
const NAMES: f64 = 20.0;
const TITLE: f64 = 18.0;
const HELD: f64 = 52.0;
const WAITING: f64 = 34.0;

/// The height of a line of the legend, and of the title.
const LINE: f64 = 20.0;

/// How solid the bars of each kind are, and those of what is still to come.
const SOLID: [f64; 7] = [1.0, 1.0, 0.22, 0.08, 0.08, 0.6, 0.45];
const AHEAD: f64 = 0.3;

/// The greatest width of a letter of 11 px, and of 12 px.
const LETTERS: [f64; 2] = [7.0, 7.2];

/// The lines of the pools.
const DASHES: [&str; 4] = ["none", "5 3", "2 2", "8 3 2 3"];

/// The columns of a tile, the bands of a shade and the largest picture.
const COLUMNS: usize = 512;
const BANDS: usize = 64;
const WIDTH_MOST: f64 = 10_000.0;
const HEIGHT_MOST: f64 = 20_000.0;

/// The part of the chart that is saved, and its size.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PictureRequest {
    /// The instant at the left edge.
    from: f64,
    /// Milliseconds per pixel.
    scale: f64,
    /// The width of the picture.
    width: f64,
    /// The present of the page.
    now: f64,
    /// The instant whose state is shown.
    at: f64,
    /// The height of a row of each group, with commas.
    rows: String,
    /// What the colours show.
    #[serde(default)]
    by: ColourBy,
    /// Whether it has the colours of the dark theme.
    #[serde(default)]
    dark: bool,
}

/// The colours of a theme beside those of the bars, as in page.css.
struct Theme {
    paper: &'static str,
    ink: &'static str,
    muted: &'static str,
    rule: &'static str,
    now: &'static str,
    bad: &'static str,
}

const LIGHT: Theme = Theme {
    paper: "#fff",
    ink: "#1b1f24",
    muted: "#5a636e",
    rule: "#d9dde2",
    now: "#c2185b",
    bad: "#b04a00",
};
const DARK: Theme = Theme {
    paper: "#14171a",
    ink: "#e8eaed",
    muted: "#a3abb5",
    rule: "#343b42",
    now: "#ff7eb6",
    bad: "#ff9d63",
};

/// The place of a group of rows.
struct Place {
    top: f64,
    height: f64,
    row: f64,
}

struct Painter<'a> {
    request: &'a PictureRequest,
    facts: &'a Facts,
    bars: &'a Bars,
    theme: &'a Theme,
    legend: Option<&'a Legend>,
    places: Vec<Place>,
    /// The top of the curves.
    below: f64,
}

/// Returns a part of the chart as an SVG file. Returns `None` if a size is not allowed.
pub(crate) fn picture(facts: &Facts, bars: &Bars, request: &PictureRequest) -> Option<String> {
    let rows: Vec<f64> = request.rows.split(',').map(|row| row.parse().ok()).collect::<Option<_>>()?;
    let scales =
        request.scale.is_finite() && (1.0..=1e9).contains(&request.scale) && request.from.abs() < 9e15;
    if rows.len() != bars.groups.len() || !scales || !(1.0..=WIDTH_MOST).contains(&request.width) {
        return None;
    }
    let mut top = AXIS;
    let mut places = vec![];
    for (group, row) in bars.groups.iter().zip(rows) {
        let height = row * f64::from(group.rows);
        places.push(Place { top: top + NAMES, height, row });
        top += NAMES + height;
    }
    let theme = if request.dark { &DARK } else { &LIGHT };
    let legend = bars.legends.iter().find(|legend| legend.by == request.by).or(bars.legends.first());
    let below = top + 4.0;
    let fits = below.is_finite() && below < HEIGHT_MOST;
    fits.then(|| Painter { request, facts, bars, theme, legend, places, below }.file())
}

impl Painter<'_> {
    fn file(&self) -> String {
        let foot = self.below + 2.0 * TITLE + HELD + WAITING + 6.0;
        let (legend, lines) = self.legend_lines(LINE + foot);
        let (width, height) = (self.request.width, LINE + foot + lines + 8.0);
        let size = format!("0 0 {} {}", Px(width), Px(height));
        let svg = html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox=(size) width=(Px(width)) height=(Px(height))
                font-family="system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif" font-size="12" {
                title { (self.facts.title) }
                rect width=(Px(width)) height=(Px(height)) fill=(self.theme.paper) {}
                text x="4" y="14" font-weight="600" font-size="13" fill=(self.theme.ink) { (self.facts.title) }
                g transform=(format!("translate(0 {})", Px(LINE))) {
                    (self.axis())
                    @for (place, at) in self.places.iter().enumerate() { (self.group(place, at)) }
                    (self.curves())
                    (self.line(self.request.at, self.theme.now))
                    @if (self.request.at - self.request.now).abs() >= 1.0 { (self.line(self.request.now, self.theme.muted)) }
                }
                (legend)
            }
        };
        svg.into_string()
    }

    fn x(&self, at: i64) -> f64 {
        self.x_of(at as f64)
    }

    fn x_of(&self, at: f64) -> f64 {
        (at - self.request.from) / self.request.scale
    }

    fn last(&self) -> i64 {
        whole(self.request.from + self.request.scale * self.request.width)
    }

    /// Returns the parts of the time that are shown: the begin of each, and the time of its columns.
    fn parts(&self) -> (i64, Vec<i64>) {
        let column = 1i64 << whole(self.request.scale.log2().ceil().max(0.0));
        let width = column * i64::try_from(COLUMNS).unwrap_or(512);
        let first = whole(self.request.from).div_euclid(width);
        let begins = (first..).map(|part| part * width).take_while(|begin| *begin < self.last());
        (column, begins.collect())
    }

    fn axis(&self) -> Markup {
        let step = whole_step(whole(90.0 * self.request.scale));
        let offset = self.facts.clock.offset(whole(self.request.from));
        let first = (whole(self.request.from) + offset + step - 1).div_euclid(step) * step - offset;
        let times: Vec<i64> =
            (first..self.last()).step_by(usize::try_from(step).unwrap_or(usize::MAX)).collect();
        let text = |at: i64| self.facts.clock.exact(at);
        let of_day = |at: i64| text(at).rsplit_once(' ').map(|(day, _)| day.to_owned()).unwrap_or_default();
        let time = |at: i64| {
            let exact = text(at);
            let time = exact.rsplit(' ').next().unwrap_or_default();
            if step < 60_000 { time.to_owned() } else { time.chars().take(5).collect() }
        };
        let whole_days = step >= 86_400_000;
        let mut day = of_day(whole(self.request.from));
        let mut days = vec![];
        let room = |x: f64, text: &str| x + text.chars().count() as f64 * LETTERS[1] < self.request.width;
        for &at in &times {
            let next = of_day(at);
            if whole_days || next != day {
                days.push((self.x(at) + 3.0, next.clone()));
                day = next;
            }
        }
        let sticky = of_day(whole(self.request.from));
        let wide = sticky.chars().count() as f64 * LETTERS[1] + 12.0;
        if days.first().is_none_or(|(x, _)| *x > wide) {
            days.insert(0, (4.0, sticky));
        }
        html! {
            g class="axis" {
                @for &at in &times {
                    rect x=(Px(self.x(at))) y=(Px(AXIS - 8.0)) width="1" height=(Px(self.below + 2.0 * TITLE + HELD + WAITING - AXIS)) fill=(self.theme.rule) {}
                    @if !whole_days && room(self.x(at), "00:00:00") {
                        text x=(Px(self.x(at) + 3.0)) y="29" fill=(self.theme.muted) { (time(at)) }
                    }
                }
                @for (x, day) in days.iter().filter(|(x, day)| room(*x, day)) { text x=(Px(*x)) y="13" fill=(self.theme.ink) { (day) } }
            }
        }
    }

    fn line(&self, at: f64, colour: &str) -> Markup {
        let x = self.x_of(at);
        html! {
            @if (0.0..=self.request.width).contains(&x) {
                rect x=(Px(x - 1.0)) y=(Px(AXIS - 6.0)) width="2" height=(Px(self.below + 2.0 * TITLE + HELD + WAITING - AXIS)) fill=(colour) {}
            }
        }
    }

    fn group(&self, group: usize, at: &Place) -> Markup {
        let known = &self.bars.groups[group];
        let unit =
            if known.unit > 1 { format!(", a row is {} processors", known.unit) } else { String::new() };
        let (column, begins) = self.parts();
        let tile = |from: i64| {
            let bands = usize::try_from(known.rows).unwrap_or(1).clamp(1, BANDS);
            let PictureRequest { by, dark, .. } = *self.request;
            let request = TileRequest { group, from, column, columns: COLUMNS, bands, by, dark };
            self.bars.tile(&request).map(|tile| (from, column, tile))
        };
        let tiles: Vec<_> = begins.into_iter().filter_map(tile).collect();
        let clip = format!("group-{group}");
        let mut drawn = std::collections::BTreeSet::new();
        let mut bars: Vec<&TileBar> =
            tiles.iter().flat_map(|(.., tile)| &tile.bars).filter(|bar| drawn.insert(bar.job)).collect();
        bars.sort_by_key(|bar| std::cmp::Reverse(bar.to - bar.from));
        html! {
            text x="4" y=(Px(at.top - 6.0)) font-weight="600" fill=(self.theme.ink) { (known.name) ": " (known.procs) " processors" (unit) }
            rect x="0.5" y=(Px(at.top - 0.5)) width=(Px(self.request.width - 1.0)) height=(Px(at.height + 1.0)) fill="none" stroke=(self.theme.rule) {}
            clipPath id=(clip) { rect x="0" y=(Px(at.top)) width=(Px(self.request.width)) height=(Px(at.height)) {} }
            g clip-path=(format!("url(#{clip})")) {
                @for (from, column, tile) in &tiles { (self.shade(at, *from, *column, tile)) }
                g class="bars" { @for bar in bars { (self.bar(bar, at)) } }
            }
        }
    }

    /// Draws the cells of short jobs, equal ones side by side as one.
    fn shade(&self, at: &Place, from: i64, column: i64, tile: &miserly_view::Tile) -> Markup {
        let Some(shade) = &tile.shade else { return Markup::default() };
        let mut cells = vec![(0u8, 0u16); COLUMNS * shade.bands];
        let mut next = 0;
        for &(count, level, colour) in &shade.runs {
            let end = (next + count as usize).min(cells.len());
            cells[next..end].fill((level, colour));
            next = end;
        }
        let tall = at.height / shade.bands as f64;
        let mut svg = String::new();
        for band in 0..shade.bands {
            let mut first = 0;
            while first < COLUMNS {
                let cell = cells[first * shade.bands + band];
                let same = (first..COLUMNS).take_while(|at| cells[at * shade.bands + band] == cell).count();
                if cell.0 > 0 {
                    let x = |place: usize| self.x(from + column * i64::try_from(place).unwrap_or(0));
                    svg.push_str(&format!(
                        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#{:03x}\" fill-opacity=\"{}\"/>",
                        Px(x(first)), Px(at.top + at.height - (band + 1) as f64 * tall), Px(x(first + same) - x(first)), Px(tall), cell.1,
                        Px(f64::from(cell.0) / 255.0)
                    ));
                }
                first += same;
            }
        }
        html! { g class="shade" { (PreEscaped(svg)) } }
    }

    fn inks(&self, class: u8) -> Inks {
        let entries = self.legend.map(|legend| &legend.entries);
        entries
            .and_then(|entries| entries.get(usize::from(class)))
            .map(|entry| entry.inks)
            .unwrap_or_default()
    }

    fn bar(&self, bar: &TileBar, at: &Place) -> Markup {
        let edge = self.request.width;
        let (left, right) = (self.x(bar.from).max(-2.0), self.x(bar.to).min(edge + 2.0));
        let width = (right - left).max(0.75);
        if right < 0.0 || left > edge {
            return Markup::default();
        }
        let dark = self.request.dark;
        let inks = self.inks(bar.class);
        let fill = inks.fill(dark).text();
        let solid = matches!(bar.kind, Kind::Ran | Kind::Running);
        let stroke = if solid { inks.edge(dark).text() } else { fill.clone() };
        let dashes = matches!(bar.kind, Kind::Planned | Kind::Likely | Kind::Suspended).then_some("3 3");
        let now = if bar.kind == Kind::Running {
            self.x_of(self.request.now).max(left).min(left + width)
        } else {
            left + width
        };
        let gap = if at.row > 3.0 { 1.0 } else { 0.0 };
        let down = |&(low, above): &(u32, u32)| {
            let height = (f64::from(above - low) * at.row - gap).max(0.5);
            (at.top + at.height - f64::from(above) * at.row, height)
        };
        let places: Vec<(f64, f64)> = bar.rows.iter().map(down).collect();
        let largest = places.iter().copied().reduce(|one, other| if other.1 > one.1 { other } else { one });
        html! {
            @for &(top, height) in &places {
                @if now > left { (rect("part", &fill, SOLID[bar.kind as usize], [left, top, now - left, height])) }
                @if now < left + width { (rect("part", &fill, AHEAD, [now, top, left + width - now, height])) }
                @if height > 4.0 && width > 3.0 {
                    rect class="edge" x=(Px(left + 0.5)) y=(Px(top + 0.5)) width=(Px(width - 1.0)) height=(Px(height - 1.0)) fill="none" stroke=(stroke) stroke-dasharray=[dashes] {}
                }
                @if bar.failed && width >= 4.0 {
                    (rect("failed", self.theme.bad, 1.0, [left + width - (width / 2.0).min(4.0), top, (width / 2.0).min(4.0), height]))
                }
                @if let Some(promise) = bar.promise.filter(|_| height >= 5.0) {
                    (self.bracket(self.x(promise), self.x(if bar.kind == Kind::Ran { bar.from } else { bar.to }), (top, height), bar.unkept))
                }
            }
            @if let Some((top, height)) = largest.filter(|(_, height)| *height >= 12.0) {
                (self.name(bar, &inks.text(dark).text(), [left, now, left + width], top + height / 2.0))
            }
        }
    }

    fn bracket(&self, from: f64, to: f64, (top, height): (f64, f64), unkept: bool) -> Markup {
        let colour = if unkept { self.theme.bad } else { self.theme.ink };
        let arm = ((to - from) / 3.0).clamp(1.5, 5.0);
        let foot = top + height - 1.5;
        let mut rectangles = vec![[from, top, 1.5, height], [from, top, arm, 1.5], [from, foot, arm, 1.5]];
        if to - from >= 6.0 {
            rectangles.extend([
                [to - 1.5, top, 1.5, height],
                [to - arm, top, arm, 1.5],
                [to - arm, foot, arm, 1.5],
            ]);
        }
        html! { @for rectangle in rectangles { (rect("bracket", colour, 1.0, rectangle)) } }
    }

    /// Writes the number and the name, or the number alone, or nothing: what does not fit is left out.
    fn name(&self, bar: &TileBar, text: &str, [left, now, right]: [f64; 3], middle: f64) -> Markup {
        let solid = matches!(bar.kind, Kind::Ran | Kind::Running | Kind::Idle);
        let parts = if solid {
            vec![(left, now, text), (now, right, self.theme.ink)]
        } else {
            vec![(left, right, self.theme.ink)]
        };
        let number = bar.title.split(' ').next().unwrap_or_default();
        for words in [bar.title.as_str(), number].into_iter().filter(|words| !words.is_empty()) {
            let wide = words.chars().count() as f64 * LETTERS[0];
            for &(from, to, colour) in &parts {
                let x = from.max(0.0) + 6.0;
                if x + wide <= to.min(self.request.width) - 6.0 {
                    return html! { text class="name" x=(Px(x)) y=(Px(middle + 4.0)) font-size="11" fill=(colour) { (words) } };
                }
            }
        }
        Markup::default()
    }

    fn curves(&self) -> Markup {
        let (column, begins) = self.parts();
        let parts_of = |curves: &Curves| -> Vec<CurvePart> {
            begins.iter().map(|from| curves.part(*from, column, COLUMNS)).collect()
        };
        let pools: Vec<Vec<CurvePart>> = self.bars.curves.iter().map(parts_of).collect();
        let waits = pools.iter().flatten().flat_map(|part| &part.waiting).map(|(_, value)| *value);
        let waiting = rounded(waits.max().unwrap_or(0) as f64 / 10.0);
        let procs = self.bars.groups.iter().map(|group| group.procs).max().unwrap_or(1).max(1) as f64;
        let single = pools.len() == 1;
        let pale = if single { ", and promised or planned (pale)" } else { "" };
        let boxes = [
            (true, HELD, procs, format!("processors held{pale}, of {procs}"), self.below),
            (false, WAITING, waiting, format!("jobs waiting, scale to {waiting}"), self.below + TITLE + HELD),
        ];
        html! {
            @for (is_held, height, high, title, top) in boxes {
                text x="4" y=(Px(top + 13.0)) fill=(self.theme.ink) { (title) }
                rect x="0.5" y=(Px(top + TITLE - 0.5)) width=(Px(self.request.width - 1.0)) height=(Px(height)) fill="none" stroke=(self.theme.rule) {}
                @if !single { (self.curve_names(top, 20.0 + title.chars().count() as f64 * LETTERS[1])) }
                @for (pool, parts) in pools.iter().enumerate() {
                    @let colour = self.pool_inks(pool).fill(self.request.dark).text();
                    @let dashes = DASHES[pool % DASHES.len()];
                    @let rise = |value: f64| top + TITLE + height - (value / high).min(1.0) * (height - 2.0);
                    @for (from, part) in begins.iter().zip(parts) {
                        @if single && is_held { path fill=(colour) fill-opacity="0.25" d=(self.area(*from, column, &sums(&part.held, &part.reserved), &rise)) {} }
                        @if single { path fill=(colour) fill-opacity="0.55" d=(self.area(*from, column, if is_held { &part.held } else { &part.waiting }, &rise)) {} }
                        @else { path fill="none" stroke=(colour) stroke-width="1.5" stroke-dasharray=(dashes) d=(self.steps(*from, column, if is_held { &part.held } else { &part.waiting }, &rise)) {} }
                    }
                }
            }
        }
    }

    /// Writes the names of the pools behind the title of the curves, each with its line.
    fn curve_names(&self, top: f64, mut x: f64) -> Markup {
        let mut names = vec![];
        for (place, pool) in self.facts.pools.iter().enumerate() {
            let wide = pool.name.chars().count() as f64 * LETTERS[1];
            if x + wide + 36.0 <= self.request.width {
                names.push((x, place, &pool.name));
                x += wide + 52.0;
            }
        }
        html! {
            @for (x, place, name) in names {
                path fill="none" stroke=(self.pool_inks(place).fill(self.request.dark).text()) stroke-width="1.5"
                    stroke-dasharray=(DASHES[place % DASHES.len()]) d=(format!("M{} {}h26", Px(x), Px(top + 9.0))) {}
                text x=(Px(x + 32.0)) y=(Px(top + 13.0)) fill=(self.theme.ink) { (name) }
            }
        }
    }

    fn pool_inks(&self, pool: usize) -> Inks {
        let legend = self
            .bars
            .legends
            .iter()
            .find(|legend| legend.by == ColourBy::Queue)
            .or(self.bars.legends.first());
        let entries = legend.map(|legend| &*legend.entries).unwrap_or_default();
        entries.get(pool.min(entries.len().saturating_sub(1))).map(|entry| entry.inks).unwrap_or_default()
    }

    /// Returns the outline of a step function with its base, within the picture.
    fn area(&self, from: i64, column: i64, runs: &[(u32, i64)], rise: &impl Fn(f64) -> f64) -> String {
        self.runs(from, column, runs, |left, right, value| {
            let (top, foot) = (Px(rise(value)), Px(rise(0.0)));
            format!("M{0} {foot}V{top}H{1}V{foot}Z", Px(left), Px(right))
        })
    }

    fn steps(&self, from: i64, column: i64, runs: &[(u32, i64)], rise: &impl Fn(f64) -> f64) -> String {
        let mut is_first = true;
        self.runs(from, column, runs, |left, right, value| {
            let move_to = if std::mem::take(&mut is_first) {
                format!("M{} {}", Px(left), Px(rise(value)))
            } else {
                String::new()
            };
            format!("{move_to}V{}H{}", Px(rise(value)), Px(right))
        })
    }

    fn runs(
        &self,
        from: i64,
        column: i64,
        runs: &[(u32, i64)],
        mut draw: impl FnMut(f64, f64, f64) -> String,
    ) -> String {
        let mut at = from;
        let mut path = String::new();
        for &(count, tenths) in runs {
            let next = at + column * i64::from(count);
            let (left, right) = (self.x(at).max(0.0), self.x(next).min(self.request.width));
            if left < right {
                path.push_str(&draw(left, right, tenths as f64 / 10.0));
            }
            at = next;
        }
        path
    }

    /// Draws the legend from a height on, and returns its height.
    fn legend_lines(&self, top: f64) -> (Markup, f64) {
        let Some(legend) = self.legend else { return (Markup::default(), 0.0) };
        let (mut x, mut y) = (4.0, top + 14.0);
        let mut entries = vec![];
        for entry in legend.entries.iter().filter(|entry| entry.bars > 0) {
            let text = format!("{} ({})", entry.name, entry.bars);
            let wide = 34.0 + text.chars().count() as f64 * LETTERS[1];
            if x > 4.0 && x + wide > self.request.width {
                (x, y) = (4.0, y + LINE);
            }
            entries.push((x, y, text, entry.inks));
            x += wide;
        }
        let dark = self.request.dark;
        let drawn = html! {
            g class="legend" {
                @for (x, y, text, inks) in &entries {
                    rect x=(Px(*x)) y=(Px(y - 10.0)) width="16" height="11" fill=(inks.fill(dark).text()) stroke=(inks.edge(dark).text()) {}
                    text x=(Px(x + 21.0)) y=(Px(*y)) fill=(self.theme.ink) { (text) }
                }
            }
        };
        (drawn, y - top + 6.0)
    }
}

fn rect(class: &str, fill: &str, opacity: f64, [left, top, width, height]: [f64; 4]) -> Markup {
    let opacity = (opacity < 1.0).then(|| Px(opacity).to_string());
    html! { rect class=(class) x=(Px(left)) y=(Px(top)) width=(Px(width)) height=(Px(height)) fill=(fill) fill-opacity=[opacity] {} }
}

/// Returns the sums of two step functions of the same columns.
fn sums(one: &[(u32, i64)], other: &[(u32, i64)]) -> Vec<(u32, i64)> {
    let values = |runs: &[(u32, i64)]| -> Vec<i64> {
        runs.iter().flat_map(|&(count, value)| std::iter::repeat_n(value, count as usize)).collect()
    };
    values(one).into_iter().zip(values(other)).map(|(one, other)| (1, one + other)).collect()
}

/// Returns the next round number: 1, 2 or 5 with zeros.
fn rounded(number: f64) -> f64 {
    let ten = 10f64.powf(number.max(1.0).log10().floor());
    [1.0, 2.0, 5.0].map(|step| step * ten).into_iter().find(|step| *step >= number).unwrap_or(10.0 * ten)
}

fn whole(number: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "a cast saturates")]
    let whole = number.floor() as i64;
    whole
}

/// A length with two decimals at most.
struct Px(f64);

impl std::fmt::Display for Px {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{:.2}", self.0);
        let short = text.trim_end_matches('0').trim_end_matches('.');
        f.write_str(if short == "-0" { "0" } else { short })
    }
}
