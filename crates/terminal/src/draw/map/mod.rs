//! The map of the processors: a line for each host, or several for a pool on one host.

mod host;

use std::collections::BTreeMap;

use miserly_view::{CpuUse, HostNow, HostPart, Line, PoolNow, plain};
use ratatui::layout::Rect;

use self::host::{OnHost, amounts, memory_text, number_at, on_host, total};
use super::pen::{Pen, cut, width};
use crate::App;
use crate::look::Role;

/// The letters of the jobs, without that of offline processors. With more jobs they begin again, and the names beside the
/// cells distinguish them.
const LETTERS: &[u8; 51] = b"abcdefghijklmnopqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// The most cells in a line.
const LINE_MOST: usize = 64;

/// The most lines of cells of a host.
const LINES_MOST: usize = 16;

/// The columns before the cells of a pool on one host: the number of the first processor.
const GUTTER: usize = 7;

/// The most columns of the name of a host.
const NAME_MOST: usize = 16;

/// The characters of the map.
const LEGEND: [&str; 4] = ["  a-Z jobs", "  ▒ reserved within an hour", "  · idle", "  x offline"];

/// A line of the map.
#[derive(Debug, Default)]
pub(crate) struct MapLine {
    parts: Vec<(String, Role)>,
    jobs: Vec<i64>,
}

pub(super) fn draw(pen: &mut Pen<'_>, area: Rect, app: &App) {
    let lines = lines(app, area.width);
    let page = usize::from(area.height.saturating_sub(1));
    let top = app.map_top.min(lines.len().saturating_sub(page));
    let mut head = vec![("Processors".to_owned(), Role::Title)];
    if lines.len() > page {
        let last = (top + page).min(lines.len());
        head.push((format!("  {}-{last} of {}", top + 1, lines.len()), Role::Plain));
    }
    head.extend(LEGEND.iter().map(|text| ((*text).to_owned(), Role::Dim)));
    pen.write_parts(area, 0, &head);
    for (row, line) in (1..area.height).zip(lines.iter().skip(top)) {
        pen.write_parts(area, row, &line.parts);
    }
}

/// Returns the first line of the map with the selected job.
pub(crate) fn line_of_selected(app: &App) -> Option<usize> {
    let number = app.list.selected()?;
    lines(app, app.size.width).iter().position(|line| line.jobs.contains(&number))
}

/// Returns the lines of the map for a terminal of this width.
pub(crate) fn lines(app: &App, columns: u16) -> Vec<MapLine> {
    let columns = usize::from(columns);
    let known = app.view.lines.iter().map(|line| (line.job.number, line)).collect();
    let map = Map { app, known, letters: letters(&app.view.moment.pools) };
    let pools = app.view.moment.pools.iter();
    pools
        .flat_map(|pool| match &pool.hosts[..] {
            [host] if pool.host_count == 1 => map.whole(&pool.facts.name, host, columns),
            hosts => map.hosts(pool, hosts, columns),
        })
        .collect()
}

/// Gives each job a letter, in the order of their first processors.
fn letters(pools: &[PoolNow]) -> BTreeMap<i64, char> {
    let mut letters = BTreeMap::new();
    for job in
        pools.iter().flat_map(|pool| &pool.hosts).flat_map(|host| &host.parts).filter_map(|part| part.job)
    {
        let next = char::from(LETTERS[letters.len() % LETTERS.len()]);
        letters.entry(job).or_insert(next);
    }
    letters
}

/// The columns of a line with a host.
#[derive(Clone, Copy)]
struct Scale {
    /// The columns of the name.
    name: usize,
    /// The processors of a cell.
    unit: u64,
    /// The columns of the cells.
    across: usize,
}

struct Map<'a> {
    app: &'a App,
    /// The listed jobs.
    known: BTreeMap<i64, &'a Line>,
    letters: BTreeMap<i64, char>,
}

impl Map<'_> {
    /// Returns the lines of a pool that is one host: its processors, and its jobs.
    fn whole(&self, pool: &str, host: &HostNow, columns: usize) -> Vec<MapLine> {
        let name = if host.name == pool { String::new() } else { format!("  {}", plain(&host.name)) };
        let mut title = vec![
            (plain(pool), Role::Title),
            (format!("{name}  {}{}", amounts(host), memory_text(host, "; memory ")), Role::Plain),
        ];
        title.extend(host.unusable.as_ref().map(|state| (format!("  {}", plain(state)), Role::Bad)));
        let mut lines = vec![MapLine { parts: title, jobs: vec![] }];
        let total = total(host);
        let room = columns.saturating_sub(GUTTER).clamp(1, LINE_MOST);
        let across = if room > 8 { room / 8 * 8 } else { room };
        let unit = total.div_ceil(to_u64(across * LINES_MOST)).max(1);
        let count = usize::try_from(total.div_ceil(unit)).unwrap_or(0);
        let cells = self.cells(host, count, unit);
        for (row, cells) in cells.chunks(across).enumerate() {
            let place = to_u64(row * across) * unit;
            // Jobs that share processors have more cells than there are processors.
            let first = if total > host.cpus && place > 0 {
                "shared".to_owned()
            } else {
                number_at(host, place).map_or_else(String::new, |first| first.to_string())
            };
            lines.push(self.row(&format!("{first:>6} "), cells));
        }
        if unit > 1 {
            let text = format!("{:GUTTER$}each character is {unit} processors", "");
            lines.push(MapLine { parts: vec![(text, Role::Dim)], jobs: vec![] });
        }
        lines.extend(self.names(host, columns));
        lines
    }

    /// Returns a line of cells.
    fn row(&self, gutter: &str, cells: &[Option<&HostPart>]) -> MapLine {
        let mut line = MapLine { parts: vec![(gutter.to_owned(), Role::Dim)], jobs: vec![] };
        for cell in cells {
            let (glyph, role) = cell.map_or((' ', Role::Plain), |part| self.glyph(part));
            match line.parts.last_mut() {
                Some((text, last)) if *last == role => text.push(glyph),
                _ => line.parts.push((glyph.to_string(), role)),
            }
            line.jobs.extend(cell.and_then(|part| part.job).filter(|job| line.jobs.last() != Some(job)));
        }
        line
    }

    /// Returns the jobs of a host with their names and processors, side by side as far as they fit.
    fn names(&self, host: &HostNow, columns: usize) -> Vec<MapLine> {
        let mut lines: Vec<MapLine> = vec![];
        let mut free = 0;
        for holder in on_host(host) {
            let OnHost { job, label, .. } = holder;
            let name = |line: &&Line| format!(" {} {}", line.job.name, line.job.user);
            let name = self.known.get(&job).map_or_else(String::new, name);
            let text = format!("{} {label}{name}: {}", self.letter(job), holder.place());
            let role = if self.is_selected(job) { Role::Selected } else { Role::Plain };
            let needed = width(&text) + 2;
            if needed > free {
                lines.push(MapLine { parts: vec![(" ".repeat(GUTTER), Role::Plain)], jobs: vec![] });
                free = columns.saturating_sub(GUTTER);
            }
            if let Some(line) = lines.last_mut() {
                let room = columns.saturating_sub(GUTTER).max(1);
                line.parts.push((cut(&text, room), role));
                line.parts.push(("  ".to_owned(), Role::Plain));
                line.jobs.push(job);
            }
            free = free.saturating_sub(needed);
        }
        lines
    }

    /// Returns the lines of a pool with several hosts, one for each.
    fn hosts(&self, pool: &PoolNow, hosts: &[HostNow], columns: usize) -> Vec<MapLine> {
        let name =
            hosts.iter().map(|host| width(&host.name)).max().unwrap_or(0).min(NAME_MOST).min(columns / 4);
        let most = hosts.iter().map(total).max().unwrap_or(0).max(1);
        let across = to_u64((columns * 2 / 5).clamp(1, LINE_MOST));
        let unit = most.div_ceil(across).max(1);
        let across = usize::try_from(most.div_ceil(unit)).unwrap_or(1);
        let scale = if unit > 1 { format!(", {unit} processors a character") } else { String::new() };
        let kind = if pool.host_count > 1 { "hosts" } else { "processors" };
        let count = if pool.host_count > 1 { to_u64(pool.host_count) } else { pool.facts.cpus };
        let groups = if hosts.len() == pool.host_count {
            String::new()
        } else {
            format!(" in {} groups", hosts.len())
        };
        let title = vec![
            (plain(&pool.facts.name), Role::Title),
            (format!("  {count} {kind}{groups}{scale}"), Role::Dim),
        ];
        let scale = Scale { name, unit, across };
        let title = MapLine { parts: title, jobs: vec![] };
        std::iter::once(title).chain(hosts.iter().map(|host| self.host(host, scale))).collect()
    }

    /// Returns the line of a host: its name, its processors, the amounts and the jobs.
    fn host(&self, host: &HostNow, Scale { name, unit, across }: Scale) -> MapLine {
        let count = usize::try_from(total(host).div_ceil(unit)).unwrap_or(0);
        let mut cells = self.cells(host, count, unit);
        cells.resize(across, None);
        let shown = cut(&host.name, name);
        let blanks = " ".repeat((name + 1).saturating_sub(width(&shown)));
        let mut line = self.row(&format!("{shown}{blanks}"), &cells);
        line.parts.push((format!(" {:>3}/{}", host.held, host.cpus), Role::Plain));
        line.parts.push((memory_text(host, " "), Role::Plain));
        if let Some(state) = &host.unusable {
            line.parts.push((format!(" {}", plain(state)), Role::Bad));
        }
        for (at, OnHost { job, label, opportunistic, .. }) in on_host(host).into_iter().enumerate() {
            let role = if self.is_selected(job) { Role::Selected } else { Role::Plain };
            let (before, after) =
                (if at == 0 { "  " } else { ", " }, if opportunistic { " (idle)" } else { "" });
            line.parts.push((format!("{before}{} {label}{after}", self.letter(job)), role));
            line.jobs.push(job);
        }
        line
    }

    /// Returns the use of each of `count` cells with `unit` processors: the one that most of them have.
    fn cells<'h>(&self, host: &'h HostNow, count: usize, unit: u64) -> Vec<Option<&'h HostPart>> {
        let mut cells: Vec<(Option<&HostPart>, u64)> = vec![(None, 0); count];
        let mut from = 0u64;
        for part in &host.parts {
            let to = from.saturating_add(part.cpus);
            let first = usize::try_from(from / unit).unwrap_or(usize::MAX).min(count);
            let last = usize::try_from(to.div_ceil(unit)).unwrap_or(usize::MAX).min(count);
            for (cell, place) in cells[first..last].iter_mut().zip(first..) {
                let begin = to_u64(place) * unit;
                let covered = to.min(begin.saturating_add(unit)).saturating_sub(from.max(begin));
                // A small selected job is shown, too.
                let wanted = part.job.is_some_and(|job| self.is_selected(job));
                if covered > cell.1 || wanted {
                    *cell = (Some(part), if wanted { u64::MAX } else { covered });
                }
            }
            from = to;
        }
        cells.into_iter().map(|(part, _)| part).collect()
    }

    fn glyph(&self, part: &HostPart) -> (char, Role) {
        match (part.cpu_use, part.job) {
            (_, Some(job)) if self.is_selected(job) => (self.letter(job), Role::Selected),
            (CpuUse::Opportunistic, Some(job)) => (self.letter(job), Role::Idle),
            (_, Some(job)) => (self.letter(job), Role::Running),
            (CpuUse::Held | CpuUse::Opportunistic, None) => ('█', Role::Ran),
            (CpuUse::Reserved, _) => ('▒', Role::Promised),
            (CpuUse::Offline, _) => ('x', Role::Bad),
            (CpuUse::Idle, _) => ('·', Role::Dim),
        }
    }

    fn letter(&self, job: i64) -> char {
        self.letters.get(&job).copied().unwrap_or('?')
    }

    fn is_selected(&self, job: i64) -> bool {
        self.app.list.selected() == Some(job)
    }
}

fn to_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
