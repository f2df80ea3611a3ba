//! The chart as SVG: the painter of the scene for files and reports. paint.js paints the same scene on a canvas, and a test compares the two.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};
use serde::Deserialize;

use crate::clock::whole_step;
use crate::palette::GREY;
use crate::sizes::{AHEAD, AXIS, BANDS, COLUMNS, DASHES, HELD, LOW, MARKED_LEAST, NAMES, SOLID, TITLE};
use crate::style::{rules, used_rules};
use crate::tile::tile_bar;
use crate::{
    Bars, Clock, ColourBy, CurvePart, Curves, Inks, Kind, Legend, Tile, TileBar, TileRequest, counted,
};

/// The height of a line of the legend, and of the title.
const LINE: f64 = 20.0;

/// The greatest width of a letter of 11 px, and of 12 px.
const LETTERS: [f64; 2] = [7.0, 7.2];

/// The largest picture.
const WIDTH_MOST: f64 = 10_000.0;
const HEIGHT_MOST: f64 = 20_000.0;

/// The part of the chart that is saved, and its size.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PictureRequest {
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
    pub dark: bool,
}

/// A part of the chart in a size.
#[derive(Debug)]
pub struct Picture<'a> {
    bars: &'a Bars,
    clock: &'a Clock,
    /// The instant at the left edge.
    from: f64,
    /// Milliseconds per pixel.
    scale: f64,
    width: f64,
    /// The present, and the instant whose state is shown.
    marked: Option<[f64; 2]>,
    by: ColourBy,
    /// The theme of shades of short jobs. Without one all jobs are drawn one by one.
    shades: Option<bool>,
    places: Vec<Place>,
    /// The top of the curves.
    below: f64,
}

/// The place of a group of rows.
#[derive(Debug)]
struct Place {
    top: f64,
    height: f64,
    row: f64,
}

/// Rectangles as a path, by their layer from below and their class.
type Paths = BTreeMap<(usize, String), String>;

/// A curve in its box.
struct CurveBox {
    kind: CurveKind,
    values: Values,
    top: f64,
    /// The value at the upper edge.
    high: f64,
    title: String,
}

/// Returns a curve of a part.
type Values = fn(&CurvePart) -> &Vec<(u32, i64)>;

/// What a curve shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CurveKind {
    Held,
    Gpus,
    Waiting,
    Requested,
    Early,
}

impl CurveKind {
    fn height(self) -> f64 {
        if self == CurveKind::Held { HELD } else { LOW }
    }
}

impl<'a> Picture<'a> {
    /// Returns a part of the chart in the size of a page. Returns `None` if a size is not allowed.
    pub fn of_page(bars: &'a Bars, clock: &'a Clock, request: &PictureRequest) -> Option<Picture<'a>> {
        let rows: Vec<f64> = request.rows.split(',').map(|row| row.parse().ok()).collect::<Option<_>>()?;
        let scales =
            request.scale.is_finite() && (1.0..=1e9).contains(&request.scale) && request.from.abs() < 9e15;
        if rows.len() != bars.groups.len() || !scales || !(1.0..=WIDTH_MOST).contains(&request.width) {
            return None;
        }
        let &PictureRequest { from, scale, width, now, at, by, dark, .. } = request;
        let picture = Picture {
            marked: Some([now, at]),
            shades: Some(dark),
            scale,
            ..Picture::new(bars, clock, [from, from + scale * width], width, &rows, by)
        };
        (picture.below.is_finite() && picture.below < HEIGHT_MOST).then_some(picture)
    }

    /// Returns the time between two instants with all its jobs. `rows` has the height of a row of each group.
    pub fn new(
        bars: &'a Bars,
        clock: &'a Clock,
        [from, to]: [f64; 2],
        width: f64,
        rows: &[f64],
        by: ColourBy,
    ) -> Picture<'a> {
        let mut top = AXIS;
        let mut places = vec![];
        for (group, &row) in bars.groups.iter().zip(rows) {
            let height = row * f64::from(group.rows);
            places.push(Place { top: top + NAMES, height, row });
            top += NAMES + height;
        }
        let scale = (to - from) / width;
        Picture { bars, clock, from, scale, width, marked: None, by, shades: None, places, below: top + 4.0 }
    }

    /// Returns the picture as a file with a title, in the light or the dark theme.
    pub fn file(&self, title: &str, dark: bool) -> String {
        let (marks, foot) = self.draw();
        let (width, height) = (self.width, LINE + foot);
        let size = format!("0 0 {} {}", Px(width), Px(height));
        let svg = html! {
            svg xmlns="http://www.w3.org/2000/svg" class="scene" viewBox=(size) width=(Px(width)) height=(Px(height))
                font-family="system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif" font-size="12" {
                title { (title) }
                style {}
                rect class="paper" width=(Px(width)) height=(Px(height)) {}
                text class="title" x="4" y="14" font-size="13" { (title) }
                g transform=(format!("translate(0 {})", Px(LINE))) { (marks) }
            }
        };
        let svg = svg.into_string();
        let style = format!("<style>{}</style>", used_rules(&rules(dark, ""), &svg));
        svg.replacen("<style></style>", &style, 1)
    }

    /// Returns the elements of the picture, for an element with the class `scene`, and its height.
    pub fn draw(&self) -> (Markup, f64) {
        let (legend, lines) = self.legend_lines(self.foot());
        let marks = html! {
            (self.axis())
            @for (place, at) in self.places.iter().enumerate() { (self.group(place, at)) }
            (self.curves())
            @if let Some([now, at]) = self.marked {
                (self.line(at, "now"))
                @if (at - now).abs() >= 1.0 { (self.line(now, "muted")) }
            }
            (legend)
        };
        (marks, self.foot() + lines + 8.0)
    }

    /// Returns the lower end of the curves.
    fn foot(&self) -> f64 {
        self.below + self.shown_curves().iter().map(|kind| TITLE + kind.height()).sum::<f64>() + 6.0
    }

    /// Returns the curves from the top. A page has those of a queue always, so that it does not move.
    fn shown_curves(&self) -> Vec<CurveKind> {
        let Bars { curves, promises, gpus, .. } = self.bars;
        if curves.is_empty() {
            return vec![];
        }
        let queue = self.marked.is_some() || curves.iter().any(Curves::has_queue);
        let mut kinds = vec![CurveKind::Held];
        kinds.extend(gpus.then_some(CurveKind::Gpus));
        kinds.extend([CurveKind::Waiting, CurveKind::Requested].into_iter().filter(|_| queue));
        kinds.extend(promises.then_some(CurveKind::Early));
        kinds
    }

    fn legend(&self) -> Option<&'a Legend> {
        legend_of(self.bars, self.by).or(self.bars.legends.first())
    }

    fn x(&self, at: i64) -> f64 {
        self.x_of(at as f64)
    }

    fn x_of(&self, at: f64) -> f64 {
        (at - self.from) / self.scale
    }

    fn last(&self) -> i64 {
        whole(self.from + self.scale * self.width)
    }

    /// Returns the parts of the time that are shown: the begin of each, and the time of its columns.
    fn parts(&self) -> (i64, Vec<i64>) {
        let column = 1i64 << whole(self.scale.log2().ceil().max(0.0));
        let width = column * i64::try_from(COLUMNS).unwrap_or(512);
        let first = whole(self.from).div_euclid(width);
        let begins = (first..).map(|part| part * width).take_while(|begin| *begin < self.last());
        (column, begins.collect())
    }

    fn axis(&self) -> Markup {
        let step = whole_step(whole(90.0 * self.scale));
        let times = self.clock.ticks(step, whole(self.from), self.last());
        let text = |at: i64| self.clock.exact(at);
        let of_day = |at: i64| self.clock.day(at);
        let time = |at: i64| {
            let exact = text(at);
            let time = exact.rsplit(' ').next().unwrap_or_default();
            if step < 60_000 { time.to_owned() } else { time.chars().take(5).collect() }
        };
        let whole_days = step >= 86_400_000;
        let mut day = of_day(whole(self.from));
        let mut days = vec![];
        let room = |x: f64, text: &str| x + text.chars().count() as f64 * LETTERS[1] < self.width;
        for &at in &times {
            let next = of_day(at);
            if whole_days || next != day {
                days.push((self.x(at) + 3.0, next.clone()));
                day = next;
            }
        }
        let sticky = of_day(whole(self.from));
        let wide = sticky.chars().count() as f64 * LETTERS[1] + 12.0;
        if days.first().is_none_or(|(x, _)| *x > wide) {
            days.insert(0, (4.0, sticky));
        }
        html! {
            g class="times" {
                @for &at in &times {
                    rect class="tick" x=(Px(self.x(at))) y=(Px(AXIS - 8.0)) width="1" height=(Px(self.foot() - 6.0 - AXIS)) {}
                    @if !whole_days && room(self.x(at), "00:00:00") {
                        text class="muted" x=(Px(self.x(at) + 3.0)) y="29" { (time(at)) }
                    }
                }
                @for (x, day) in days.iter().filter(|(x, day)| room(*x, day)) { text x=(Px(*x)) y="13" { (day) } }
            }
        }
    }

    fn line(&self, at: f64, class: &str) -> Markup {
        let x = self.x_of(at);
        html! {
            @if (0.0..=self.width).contains(&x) {
                rect class=(class) x=(Px(x - 1.0)) y=(Px(AXIS - 6.0)) width="2" height=(Px(self.foot() - 6.0 - AXIS)) {}
            }
        }
    }

    fn group(&self, group: usize, at: &Place) -> Markup {
        let known = &self.bars.groups[group];
        let unit =
            if known.unit > 1 { format!(", a row is {} processors", known.unit) } else { String::new() };
        let name = if known.name.is_empty() { String::new() } else { format!("{}: ", known.name) };
        let tiles = self.tiles(group);
        let clip = format!("group-{group}");
        let mut drawn = std::collections::BTreeSet::new();
        let mut bars: Vec<&TileBar> = tiles
            .iter()
            .flat_map(|(.., tile)| &tile.bars)
            .filter(|bar| drawn.insert((bar.job, bar.from, bar.to, &bar.rows)))
            .collect();
        bars.sort_by_key(|bar| std::cmp::Reverse(bar.to - bar.from));
        let mut past = Paths::new();
        let rest: Vec<Markup> = bars.into_iter().map(|bar| self.bar(bar, at, &mut past)).collect();
        html! {
            text class="title" x="4" y=(Px(at.top - 6.0)) { (name) (counted(known.procs, "processor")) (unit) }
            rect class="rule" x="0.5" y=(Px(at.top - 0.5)) width=(Px(self.width - 1.0)) height=(Px(at.height + 1.0)) {}
            @if self.marked.is_none() { (self.content(&tiles, at, &past, &rest)) }
            @else {
                clipPath id=(clip) { rect x="0" y=(Px(at.top)) width=(Px(self.width)) height=(Px(at.height)) {} }
                g clip-path=(format!("url(#{clip})")) { (self.content(&tiles, at, &past, &rest)) }
            }
            (self.marks(&known.marks, at))
        }
    }

    fn content(&self, tiles: &[(i64, i64, Tile)], at: &Place, past: &Paths, rest: &[Markup]) -> Markup {
        html! {
            @for (from, column, tile) in tiles { (self.shade(at, *from, *column, tile)) }
            g class="bars" {
                @for ((_, class), drawn) in past { (path(class, drawn, 1.0, None)) }
                @for bar in rest { (bar) }
            }
        }
    }

    /// Returns the parts of a group: the begin, the time of a column, and the bars.
    fn tiles(&self, group: usize) -> Vec<(i64, i64, Tile)> {
        let bands = self.bars.groups.get(group).map_or(1, |group| usize::try_from(group.rows).unwrap_or(1));
        let (column, begins) = self.parts();
        let by = self.by_shown();
        let request = TileRequest {
            group,
            from: whole(self.from),
            column,
            columns: COLUMNS,
            bands: bands.clamp(1, BANDS),
            by,
            dark: self.shades.unwrap_or(false),
        };
        if self.shades.is_none() {
            let bars = self.bars.within(group, request.from, self.last());
            return vec![(
                request.from,
                column,
                Tile { bars: bars.map(|bar| tile_bar(bar, &request)).collect(), shade: None },
            )];
        }
        let tile = |from: i64| Some((from, column, self.bars.tile(&TileRequest { from, ..request })?));
        begins.into_iter().filter_map(tile).collect()
    }

    fn by_shown(&self) -> ColourBy {
        self.legend().map_or(self.by, |legend| legend.by)
    }

    /// Draws the lines between hosts or slots, and their names where there is room.
    fn marks(&self, marks: &[(u32, String)], at: &Place) -> Markup {
        let y = |row: u32| at.top + at.height - f64::from(row) * at.row;
        let mut places: Vec<(f64, &String)> = marks.iter().map(|(row, name)| (y(*row), name)).collect();
        places.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut above = at.top;
        let mut names = vec![];
        for &(foot, name) in &places {
            if foot - above >= MARKED_LEAST {
                names.push((f64::midpoint(above, foot), name));
            }
            above = foot;
        }
        if names.is_empty() || names.len() < places.len() {
            return Markup::default();
        }
        html! {
            g class="marks" {
                @for (y, _) in places.iter().filter(|(y, _)| *y < at.top + at.height - 0.5) {
                    path class="border" stroke-dasharray="2 3" d=(format!("M0 {}H{}", Px(*y), Px(self.width))) {}
                }
                @for (y, name) in &names {
                    text class="mark" x=(Px(self.width - 4.0)) y=(Px(y + 4.0)) { (name) }
                }
            }
        }
    }

    /// Draws the cells of short jobs, equal ones side by side as one.
    fn shade(&self, at: &Place, from: i64, column: i64, tile: &Tile) -> Markup {
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
        let entries = self.legend().map(|legend| &legend.entries);
        entries.and_then(|entries| entries.get(usize::from(class))).map_or(GREY, |entry| entry.inks)
    }

    /// Draws a bar. A job that ran adds its rectangles to those of its colour in `past`: browsers are slow with thousands of elements.
    fn bar(&self, bar: &TileBar, at: &Place, past: &mut Paths) -> Markup {
        let (left, right) = (self.x(bar.from).max(-2.0), self.x(bar.to).min(self.width + 2.0));
        let width = (right - left).max(0.75);
        if right < 0.0 || left > self.width {
            return Markup::default();
        }
        // Without a clip nothing may be outside.
        let (left, right) = if self.marked.is_some() {
            (left, left + width)
        } else {
            (left.max(0.0), (left + width).min(self.width))
        };
        let width = right - left;
        let class = self.inks(bar.class).class();
        let solid = matches!(bar.kind, Kind::Ran | Kind::Running);
        let rim = if solid { "edge " } else { "rim " };
        let dashes = matches!(
            bar.kind,
            Kind::Planned | Kind::Likely | Kind::Suspended | Kind::Swapping | Kind::Alternate
        )
        .then_some("3 3");
        let now = match self.marked {
            Some([now, _]) if bar.kind == Kind::Running => self.x_of(now).max(left).min(right),
            _ => right,
        };
        let gap = if at.row > 3.0 { 1.0 } else { 0.0 };
        let down = |&(low, above): &(u32, u32)| {
            let height = (f64::from(above - low) * at.row - gap).max(0.5);
            (at.top + at.height - f64::from(above) * at.row, height)
        };
        let places: Vec<(f64, f64)> = bar.rows.iter().map(down).collect();
        let largest = places.iter().copied().reduce(|one, other| if other.1 > one.1 { other } else { one });
        let [mut done, mut ahead, mut edges, mut failed] = [const { String::new() }; 4];
        for &(top, height) in &places {
            if now > left {
                add(&mut done, [left, top, now - left, height]);
            }
            if now < right {
                add(&mut ahead, [now, top, right - now, height]);
            }
            if height > 4.0 && width > 3.0 {
                add(&mut edges, [left + 0.5, top + 0.5, width - 1.0, height - 1.0]);
            }
            if bar.failed && width >= 4.0 {
                let end = (width / 2.0).min(4.0);
                add(&mut failed, [right - end, top, end, height]);
            }
        }
        if bar.kind == Kind::Ran {
            let classes = [format!("part {class}"), format!("edge {class}"), "failed bad".to_owned()];
            let layers = classes.into_iter().zip([&mut done, &mut edges, &mut failed]).enumerate();
            for (layer, (class, drawn)) in layers {
                past.entry((layer, class)).or_default().push_str(&std::mem::take(drawn));
            }
        }
        let is_over = matches!(bar.kind, Kind::Ran | Kind::Swapping | Kind::Alternate);
        html! {
            (path(&format!("part {class}"), &done, SOLID[bar.kind as usize], None))
            (path(&format!("part {class}"), &ahead, AHEAD, None))
            (path(&format!("{rim}{class}"), &edges, 1.0, dashes))
            (path("failed bad", &failed, 1.0, None))
            @for &place in places.iter().filter(|place| place.1 >= 5.0) {
                @if let Some(promise) = bar.promise {
                    (self.bracket(self.x(promise), self.x(if is_over { bar.from } else { bar.to }), place, bar.unkept))
                }
            }
            @if let Some((top, height)) = largest.filter(|(_, height)| *height >= 12.0) {
                (self.name(bar, &class, [left, now, right], top + height / 2.0))
            }
        }
    }

    fn bracket(&self, from: f64, to: f64, (top, height): (f64, f64), unkept: bool) -> Markup {
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
        let mut drawn = String::new();
        for rectangle in rectangles
            .into_iter()
            .filter(|_| self.marked.is_some() || (0.0..=self.width).contains(&from) && to <= self.width)
        {
            add(&mut drawn, rectangle);
        }
        path(if unkept { "bracket bad" } else { "bracket" }, &drawn, 1.0, None)
    }

    /// Writes the number and the name, or the number alone, or nothing: what does not fit is left out.
    fn name(&self, bar: &TileBar, class: &str, [left, now, right]: [f64; 3], middle: f64) -> Markup {
        let solid = matches!(bar.kind, Kind::Ran | Kind::Running | Kind::Idle);
        let on_bar = format!("name {class}");
        let parts = if solid {
            vec![(left, now, &*on_bar), (now, right, "name")]
        } else {
            vec![(left, right, "name")]
        };
        let number = bar.title.split(' ').next().unwrap_or_default();
        for words in [bar.title.as_str(), number].into_iter().filter(|words| !words.is_empty()) {
            let wide = words.chars().count() as f64 * LETTERS[0];
            for &(from, to, class) in &parts {
                let x = from.max(0.0) + 6.0;
                if x + wide <= to.min(self.width) - 6.0 {
                    return html! { text class=(class) x=(Px(x)) y=(Px(middle + 4.0)) { (words) } };
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
        let single = pools.len() == 1;
        html! {
            @for curve in self.boxes(&pools) {
                text x="4" y=(Px(curve.top + 13.0)) { (curve.title) }
                rect class="rule" x="0.5" y=(Px(curve.top + TITLE - 0.5)) width=(Px(self.width - 1.0)) height=(Px(curve.kind.height())) {}
                @if !single { (self.curve_names(curve.top, 20.0 + curve.title.chars().count() as f64 * LETTERS[1])) }
                @for (pool, parts) in pools.iter().enumerate() {
                    @let is_covered = is_covered(&curve, parts, &pools[pool + 1..]);
                    @for (from, part) in begins.iter().zip(parts) { (self.curve(&curve, pool, part, [*from, column], is_covered)) }
                }
            }
        }
    }

    /// Draws a part of the curve of a pool.
    fn curve(
        &self,
        curve: &CurveBox,
        pool: usize,
        part: &CurvePart,
        [from, column]: [i64; 2],
        is_covered: bool,
    ) -> Markup {
        let height = curve.kind.height();
        let rise = |value: f64| curve.top + TITLE + height - (value / curve.high).min(1.0) * (height - 2.0);
        let area = |values: &[(u32, i64)]| self.area(from, column, values, &rise);
        let class = self.pool_class(pool);
        let values = (curve.values)(part);
        html! {
            @if self.bars.curves.len() == 1 {
                @if curve.kind == CurveKind::Held && self.marked.is_some() { (path(&class, &area(&sums(&part.held, &part.reserved)), 0.25, None)) }
                (path(&class, &area(values), 0.55, None))
            } @else {
                @let (under, dashes) = if is_covered { ("under ", None) } else { ("", dashes(pool)) };
                path class={ "curve " (under) (class) } stroke-dasharray=[dashes] d=(self.steps(from, column, values, &rise)) {}
            }
            @if curve.kind == CurveKind::Early { (path("bad", &area(&part.late), 0.55, None)) }
        }
    }

    /// Returns the boxes of the curves from the top.
    fn boxes(&self, pools: &[Vec<CurvePart>]) -> Vec<CurveBox> {
        let most = |values: Values| {
            let values = pools.iter().flatten().flat_map(values).map(|(_, value)| *value);
            values.max().unwrap_or(0) as f64 / 10.0
        };
        let procs = self.bars.groups.iter().map(|group| group.procs).max().unwrap_or(1).max(1) as f64;
        let pale =
            if pools.len() == 1 && self.marked.is_some() { ", and promised or planned (pale)" } else { "" };
        let late = most(|part| &part.late);
        let [waiting, requested, promised] = self.bars.tops.map(|top| top as f64);
        let mut top = self.below;
        let curve = |kind: CurveKind| {
            let (values, words, most): (Values, &str, f64) = match kind {
                CurveKind::Held => (|part| &part.held, "", procs),
                CurveKind::Gpus => (|part| &part.gpus, "GPUs held", most(|part| &part.gpus)),
                CurveKind::Waiting => {
                    (|part| &part.waiting, "jobs waiting", waiting.max(most(|part| &part.waiting)))
                }
                CurveKind::Requested => {
                    let most = requested.max(most(|part| &part.requested));
                    (|part| &part.requested, "processors that they request", most)
                }
                CurveKind::Early => {
                    let words = if late > 0.0 {
                        "jobs ahead of their promises, and late ones (red)"
                    } else {
                        "jobs ahead of their promises"
                    };
                    (|part| &part.early, words, promised.max(late).max(most(|part| &part.early)))
                }
            };
            let (high, title) = match kind {
                CurveKind::Held => (procs, format!("processors held{pale}, of {procs}")),
                _ => (rounded(most), format!("{words}, scale to {}", rounded(most))),
            };
            top += TITLE + kind.height();
            CurveBox { kind, values, top: top - TITLE - kind.height(), high, title }
        };
        self.shown_curves().into_iter().map(curve).collect()
    }

    /// Writes the names of the pools behind the title of the curves, each with its line.
    fn curve_names(&self, top: f64, mut x: f64) -> Markup {
        let mut names = vec![];
        for (place, pool) in self.bars.pools.iter().enumerate() {
            let wide = pool.chars().count() as f64 * LETTERS[1];
            if x + wide + 36.0 <= self.width {
                names.push((x, place, pool));
                x += wide + 52.0;
            }
        }
        html! {
            @for (x, place, name) in names {
                path class={ "curve " (self.pool_class(place)) } stroke-dasharray=[dashes(place)] d=(format!("M{} {}h26", Px(x), Px(top + 9.0))) {}
                text x=(Px(x + 32.0)) y=(Px(top + 13.0)) { (name) }
            }
        }
    }

    fn pool_class(&self, pool: usize) -> String {
        let entries = legend_of(self.bars, ColourBy::Queue)
            .or(self.bars.legends.first())
            .map(|legend| &*legend.entries)
            .unwrap_or_default();
        entries.get(pool.min(entries.len().saturating_sub(1))).map_or(GREY, |entry| entry.inks).class()
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
            let (left, right) = (self.x(at).max(0.0), self.x(next).min(self.width));
            if left < right {
                path.push_str(&draw(left, right, tenths as f64 / 10.0));
            }
            at = next;
        }
        path
    }

    /// Draws the legend from a height on, and returns its height.
    fn legend_lines(&self, top: f64) -> (Markup, f64) {
        let Some(legend) = self.legend() else { return (Markup::default(), 0.0) };
        let (mut x, mut y) = (4.0, top + 14.0);
        let mut entries = vec![];
        for entry in legend.entries.iter().filter(|entry| entry.bars > 0) {
            let room = ((self.width - 40.0) / LETTERS[1]).max(8.0);
            let text = format!("{} ({})", shortened(&entry.name, room - 8.0), entry.bars);
            let wide = 34.0 + text.chars().count() as f64 * LETTERS[1];
            if x > 4.0 && x + wide > self.width {
                (x, y) = (4.0, y + LINE);
            }
            entries.push((x, y, text, entry.inks.class()));
            x += wide;
        }
        let failed = legend_of(self.bars, ColourBy::State)
            .and_then(|states| states.entries.get(1))
            .filter(|entry| entry.bars > 0);
        if let Some(entry) = failed.filter(|_| legend.by != ColourBy::State) {
            let text = format!("{} ({})", entry.name, entry.bars);
            if x + 34.0 + text.chars().count() as f64 * LETTERS[1] > self.width {
                (x, y) = (4.0, y + LINE);
            }
            entries.push((x, y, text, "bad".to_owned()));
        }
        let drawn = html! {
            g class="legend" {
                @for (x, y, text, class) in &entries {
                    rect class={ "sample " (class) } x=(Px(*x)) y=(Px(y - 10.0)) width="16" height="11" {}
                    text x=(Px(x + 21.0)) y=(Px(*y)) { (text) }
                }
            }
        };
        (drawn, y - top + 6.0)
    }
}

fn legend_of(bars: &Bars, by: ColourBy) -> Option<&Legend> {
    bars.legends.iter().find(|legend| legend.by == by)
}

/// Adds a rectangle to a path: left, top, width and height.
fn add(path: &mut String, [left, top, width, height]: [f64; 4]) {
    // Writing to a string cannot fail.
    let _ = write!(path, "M{} {}h{}v{}h{}Z", Px(left), Px(top), Px(width), Px(height), Px(-width));
}

fn path(class: &str, path: &str, opacity: f64, dashes: Option<&str>) -> Markup {
    let opacity = (opacity < 1.0).then(|| Px(opacity).to_string());
    html! { @if !path.is_empty() { path class=(class) fill-opacity=[opacity] stroke-dasharray=[dashes] d=(path) {} } }
}

/// Returns the dashes of the line of a pool; `None` for a solid one.
fn dashes(pool: usize) -> Option<&'static str> {
    Some(DASHES[pool % DASHES.len()]).filter(|dashes| !dashes.is_empty())
}

/// Returns a text of at most so many letters.
fn shortened(text: &str, letters: f64) -> String {
    if text.chars().count() as f64 <= letters {
        return text.to_owned();
    }
    text.chars()
        .zip(1..)
        .take_while(|(_, count)| f64::from(*count) < letters)
        .map(|(letter, _)| letter)
        .chain(['…'])
        .collect()
}

/// Returns the sums of two step functions of the same columns.
fn sums(one: &[(u32, i64)], other: &[(u32, i64)]) -> Vec<(u32, i64)> {
    let values = |runs: &[(u32, i64)]| -> Vec<i64> {
        runs.iter().flat_map(|&(count, value)| std::iter::repeat_n(value, count as usize)).collect()
    };
    let mut sums: Vec<(u32, i64)> = vec![];
    for sum in values(one).into_iter().zip(values(other)).map(|(one, other)| one + other) {
        match sums.last_mut() {
            Some((count, last)) if *last == sum => *count += 1,
            _ => sums.push((1, sum)),
        }
    }
    sums
}

/// Returns the next round number: 1, 2 or 5 with zeros.
fn rounded(number: f64) -> f64 {
    let ten = 10f64.powf(number.max(1.0).log10().floor());
    [1.0, 2.0, 5.0].map(|step| step * ten).into_iter().find(|step| *step >= number).unwrap_or(10.0 * ten)
}

/// Returns whether the curve of a pool lies below that of a later one. It is drawn so wide that both are visible.
fn is_covered(curve: &CurveBox, parts: &[CurvePart], above: &[Vec<CurvePart>]) -> bool {
    let is_same = |(one, other): (&CurvePart, &CurvePart)| (curve.values)(one) == (curve.values)(other);
    above.iter().any(|other| parts.iter().zip(other).all(is_same))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Job, Schedule, State};

    #[test]
    fn gpus_have_a_curve_where_jobs_request_some() {
        let words = |gpus| {
            let (start, end) = (Some(0), Some(1000));
            let job = Job { procs: 1, gpus, state: State::Ended, start, end, ..Job::default() };
            let schedule = Schedule::of_jobs(1, [job]);
            let bars = Bars::new(&schedule);
            let picture = Picture::new(&bars, &schedule.clock, [0.0, 1000.0], 400.0, &[20.0], ColourBy::User);
            let text = picture.draw().0.into_string();
            (text.contains("GPUs held, scale to 2"), text.contains("1 processor<"))
        };
        assert_eq!([words(2), words(0)], [(true, true), (false, true)]);
    }
}
