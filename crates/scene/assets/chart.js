// The chart: jobs over time, in parts that the server makes at the level of detail that is shown.

import { AXIS, BANDS, COLUMNS, NAMES, curves, painting, prepared } from './paint.js';

export { KIND, RUN_NUMBERS } from './paint.js';

// A row of a small machine is not higher.
const ROW_MOST = 22;
const TILES_LEAST = 400;
// A larger canvas is not painted by every browser: css pixels, and pixels of the device.
const HIGH_MOST = 8000, DEVICE_MOST = 16000;
// Milliseconds per pixel.
const CLOSEST = 1, WIDEST = 1e9;
const HOUR = 36e5, YEAR = 31536e6;
// The most time that is shown beside that of the jobs.
const BESIDE_MOST = 400 * 864e5;
// A narrower chart is that of a phone.
const PHONE = 600;
// Pauses before a part is asked for again that did not come.
const RETRY_FIRST = 1000, RETRY_MOST = 30e3;

export class Chart {
  /** `load` returns a part of the chart or of its curves, `choose` is called with the clicked bar, or with null, and `hover` with the one under
   *  the mouse. `bar` makes a bar of one that was loaded. A fixed chart has nothing outside of its time. */
  constructor(canvas, { load, choose, hover, moved, bar = bar => bar, isFixed = false, dark = matchMedia('(prefers-color-scheme: dark)') }) {
    Object.assign(this, { canvas, load, choose, hover, moved, unpack: bar, isFixed, dark });
    this.context = canvas.getContext('2d');
    this.tiles = new Map();
    this.groups = [];
    this.pools = [];
    this.legends = [];
    this.by = 'user';
    this.below = 0; // the top of the curves
    this.now = 0;
    this.offsets = [[0, 0]]; // the offset of the clock from UTC from each instant on
    this.hasCurves = this.hasQueue = true;
    this.hasPromises = this.hasGpus = false;
    this.tops = [0, 0, 0]; // the least upper edges of the curves of a queue and of promises
    this.version = -1;
    this.chosen = null;
    this.hovered = null;
    this.ghost = null;
    this.from = 0;
    this.scale = 0; // milliseconds per pixel
    this.follow = true;
    this.visible = 0; // parts that the last frame used
    this.frames = [];
    this.frame = null;
    this.pointers = new Map();
    this.dark.addEventListener('change', () => this.draw());
    new ResizeObserver(() => this.places ? this.place() : this.resize()).observe(canvas);
    this.listen();
  }

  /** Takes the state of the page. Parts of an earlier version are shown until the new ones are here. */
  update(state, instant) {
    const first = this.version < 0;
    this.groups = state.groups;
    this.pools = state.moment.pools;
    this.legends = state.legends;
    const begin = state.moment.live ? state.moment.now : 0;
    this.opening = { from: begin + state.opening.from, to: begin + state.opening.to };
    this.range = state.range ?? [state.moment.now - 3600e3, state.moment.now];
    this.now = instant ?? state.moment.now;
    this.present = state.moment.now;
    this.offsets = state.offsets;
    this.hasCurves = state.hasCurves ?? true;
    this.hasQueue = state.hasQueue ?? true;
    this.hasPromises = state.hasPromises ?? this.pools.some(({ promises }) => promises && promises !== 'nothing');
    this.hasGpus = state.hasGpus;
    this.tops = state.tops ?? this.tops;
    this.isLive = state.moment.live;
    this.hasRuns = state.runs;
    if (this.version !== state.version) this.version = state.version;
    this.place();
    if (first) this.open();
    else if (this.follow && this.isLive) this.goLive(true);
    this.draw();
  }

  /** Moves the line of the present. */
  pass(now) {
    if (this.x(now) - this.x(this.now) < 0.5) return;
    if (this.follow) this.from += now - this.now;
    this.now = this.present = now;
    this.draw();
  }

  /** Shows what is to be seen first. */
  open() {
    const { from, to } = this.opening;
    if (this.isLive) return this.goLive();
    this.view((from + to) / 2, to - from);
  }

  /** Shows so much time about an instant. */
  view(middle, span) {
    this.scale = bounded(span / Math.max(this.width(), 1));
    this.from = middle - this.scale * this.width() / 2;
    this.follow = false;
    this.draw();
  }

  /** Shows the present with the past and the future of the opening; on a phone two hours. */
  goLive(keepScale) {
    const { from, to } = this.opening, phone = this.width() < PHONE, span = phone ? 2 * HOUR : to - from;
    if (!keepScale || !this.scale) {
      this.scale = bounded(span / Math.max(this.width(), 1));
      this.past = phone ? 1 / 4 : Math.min(Math.max((this.present - from) / span, 0.05), 0.75);
    }
    this.from = this.present - this.past * this.scale * this.width();
    this.follow = true;
    this.draw();
  }

  /** Follows the present with so much time. */
  live(span) {
    this.goLive();
    this.scale = bounded(span / Math.max(this.width(), 1));
    this.goLive(true);
  }

  /** Shows a bar, if none of it is visible. */
  reveal(from, to) {
    if (to < this.from || from > this.from + this.scale * this.width()) this.view((from + to) / 2, this.scale * this.width());
  }

  /** Moves to a place of the strip. */
  goTo(x) {
    const [from, to] = this.known();
    this.view(from + x / this.width() * (to - from), this.scale * this.width());
  }

  /** Whether the groups are one log under several policies. */
  isRun() { return !this.isLive && this.hasRuns; }

  /** Shows all the time of the jobs. A job may have a limit of thousands of years, so the future is limited. */
  fit() {
    const [from, to] = this.known();
    this.scale = bounded((to - from) * 1.04 / Math.max(this.width(), 1));
    this.from = from - (to - from) * 0.02;
    this.follow = false;
    this.draw();
  }

  /** Returns the time of the jobs, but of the future a year. */
  known() {
    const [from, last] = this.range;
    return [from, Math.max(Math.min(last, this.present + YEAR), from + 1)];
  }

  /** Shows an instant, if it is outside. */
  show(at) {
    const span = this.scale * this.width();
    if (at < this.from || at > this.from + span) this.from = at - span / 2;
    this.follow = false;
    this.draw();
  }

  /** Zooms about a place. */
  zoom(factor, x = this.middle()) {
    if (!this.scale) return;
    const at = this.from + x * this.scale, [from, to] = this.known();
    this.scale = bounded(this.scale * factor, ((to - from) * 1.04 + BESIDE_MOST) / Math.max(this.width(), 1));
    this.from = at - x * this.scale;
    if (this.follow) this.follow = Math.abs(this.x(this.present) - this.past * this.width()) < 4;
    this.draw();
  }

  /** Returns the place that stays in a zoom: the line of the instant that is shown, or of the present, if it is visible. The present of a run is its end. */
  middle() {
    const marked = [this.now, this.present].filter(at => this.isLive || at !== this.present).map(at => this.x(at));
    return marked.find(x => x >= 0 && x <= this.width()) ?? this.width() / 2;
  }

  pan(pixels) {
    this.from += pixels * this.scale;
    this.follow = false;
    this.draw();
  }

  width() { return this.canvas.clientWidth; }

  /** Gives each group its place. A row is so low that the canvas is not too high. */
  place() {
    const rows = this.groups.reduce((sum, group) => sum + group.rows, 0) || 1, count = this.groups.length || 1;
    const most = Math.min(HIGH_MOST, DEVICE_MOST / (devicePixelRatio || 1)) - AXIS - this.beneath() - 10;
    const names = Math.min(NAMES, most / 2 / count), least = Math.min(24, (most / count - names) / 2);
    const room = Math.max(240, Math.min(innerHeight * 0.45, 540)) - names * count;
    const height = Math.min(Math.max(room / rows, Math.min(0.2, 1024 / rows)), ROW_MOST, (most - (names + least) * count) / rows);
    let top = AXIS;
    this.places = this.groups.map(group => {
      const own = Math.max(group.rows * height, least), place = { top: top + names, height: own, row: own / Math.max(group.rows, 1), named: names > 12 };
      top = place.top + own;
      return place;
    });
    this.below = top + 4;
    const wanted = `${Math.ceil(this.below + this.beneath() + 2)}px`;
    if (this.canvas.style.height !== wanted) this.canvas.style.height = wanted;
    this.resize();
  }

  resize() {
    const ratio = devicePixelRatio || 1, wide = this.width();
    // The same time is shown on another width.
    if (this.wide && wide && this.scale) this.scale = bounded(this.scale * this.wide / wide);
    this.wide = wide;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight].map(size => Math.round(size * ratio));
    if (this.canvas.width !== width || this.canvas.height !== height) {
      Object.assign(this.canvas, { width, height });
      this.draw();
    }
  }

  /** Keeps a fixed chart within its time. */
  bound() {
    const [from, to] = this.range ?? [0, 0];
    if (!this.isFixed || !(to > from)) return;
    this.scale = Math.min(this.scale, (to - from) / Math.max(this.width(), 1));
    this.from = Math.min(Math.max(this.from, from), to - this.scale * this.width());
  }

  draw() {
    this.bound();
    this.frame ??= requestAnimationFrame(at => {
      this.frame = null;
      const begin = performance.now();
      this.paint();
      this.frames.push(performance.now() - begin);
      if (this.frames.length > 600) this.frames.shift();
      this.moved?.(this);
    });
  }

  level() { return Math.max(0, Math.ceil(Math.log2(this.scale))); }

  /** Returns the parts that are shown: the number, the begin and the end of each. */
  parts() {
    const width = COLUMNS * 2 ** this.level(), found = [];
    for (let tile = Math.floor(this.from / width); tile * width < this.from + this.scale * this.width(); tile++) found.push([tile, tile * width, (tile + 1) * width]);
    return found;
  }

  /** The place of a group changes when another one appears above it, so a part has its name. */
  key(name, level, tile, by = this.by, dark = this.dark.matches) { return `${level} ${tile} ${by} ${dark} ${name}`; }

  /** Returns a part of a group, or of the curves without one, and asks for it if it is missing or old. */
  tile(group, level, index) {
    const key = group === null ? `${level} ${index}` : this.key(this.groups[group].name, level, index);
    const tile = this.used(key, this.tiles.get(key) ?? { data: null, by: this.by, version: -1, loading: false, pause: 0, next: 0 });
    if (tile.version !== this.version && !tile.loading && performance.now() >= tile.next) this.ask(tile, group, level, index);
    return tile;
  }

  ask(tile, group, level, index) {
    tile.loading = true;
    const version = this.version, column = 2 ** level, part = { from: index * COLUMNS * column, column, columns: COLUMNS };
    const rows = this.groups[group]?.rows, query = group === null ? part : { group, ...part, bands: Math.min(BANDS, Math.max(1, rows)), by: this.by, dark: this.dark.matches };
    Object.assign(tile, { kind: group === null ? 'curves' : 'tile', query });
    this.load(tile.kind, query, tile.pause)
      .then(data => this.bring(tile, data, version))
      .catch(() => this.later(tile))
      .finally(() => { tile.loading = false; this.draw(); });
  }

  /** Takes the content of a part for a version. */
  bring(tile, data, version) {
    if (tile.source !== data) Object.assign(tile, { source: data, data: tile.kind === 'curves' ? curves(data) : prepared({ ...data, bars: data.bars.map(this.unpack) }) });
    Object.assign(tile, { version, pause: 0, next: 0 });
  }

  /** Returns the parts that the last frame used. */
  shownTiles() { return [...this.tiles.values()].slice(-this.visible).filter(tile => tile.query); }

  /** Asks again after a pause: on a page that never changes, a part that failed once would stay empty. */
  later(tile) {
    tile.pause = Math.min(tile.pause * 2 || RETRY_FIRST, RETRY_MOST);
    tile.next = performance.now() + tile.pause;
    setTimeout(() => this.draw(), tile.pause + 5);
  }

  /** Puts a part behind all the others. */
  used(key, tile) {
    this.tiles.delete(key);
    this.tiles.set(key, tile);
    this.visible++;
    return tile;
  }

  /** Forgets the parts that were not used for the longest time. Those on the screen stay, or they would be asked for without end. */
  evict() {
    const most = Math.max(TILES_LEAST, 2 * this.visible);
    for (const key of this.tiles.keys()) {
      if (this.tiles.size <= most) return;
      this.tiles.delete(key);
    }
  }

  /** Returns a part that is here in place of one that is not: with the colours of before, coarser, or finer. */
  coarser(name, level, tile, by, dark) {
    for (const above of [0, 1, 2, 3, 4, 5, 6, 7, 8, -1]) {
      const place = above < 0 ? tile * 2 : Math.floor(tile / 2 ** above), key = this.key(name, level + above, place, by, dark), found = this.tiles.get(key);
      if (found?.data) return [this.used(key, found), level + above, place];
    }
    return null;
  }

  /** Returns the bar at a place, or null. */
  at(x, y) {
    for (const [data, place, begin, end, group] of this.painted?.toReversed() ?? []) {
      if (x < begin || x > end || y < place.top || y > place.top + place.height) continue;
      const hit = data.bars.findLast(([from, to, , , , rows]) => {
        const [left, , width] = this.across(from, to);
        if (x < left - 1 || x > left + width + 1) return false;
        return rows.some(range => { const [top, height] = this.down(range, place); return y >= top && y <= top + height; });
      });
      if (hit) return told(hit, group);
    }
    return null;
  }

  /** Returns the visible bar of a job, in the group with this name if it has one there; null without a bar. */
  bar(job, name) {
    const of = ([data, , , , group]) => data.bars.filter(bar => bar[2] === job).map(bar => told(bar, group));
    const found = (this.painted ?? []).flatMap(of);
    return found.find(bar => bar.group === name) ?? found[0] ?? null;
  }

  listen() {
    const { canvas } = this;
    const place = event => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    canvas.addEventListener('wheel', event => {
      const across = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      // Otherwise the wheel is for the page, which could not be scrolled over a high chart.
      const mine = across || event.shiftKey || event.ctrlKey || event.metaKey || document.activeElement === canvas;
      if (!mine) return;
      event.preventDefault();
      if (across) this.pan(event.deltaX);
      else if (event.shiftKey) this.pan(event.deltaY);
      else this.zoom(1.0015 ** event.deltaY, place(event)[0]);
    }, { passive: false });
    canvas.addEventListener('pointerdown', event => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, place(event));
      this.pressed = { at: place(event), moved: false, strip: place(event)[1] >= this.stripTop() };
      if (this.pressed.strip) this.goTo(place(event)[0]);
    });
    canvas.addEventListener('pointermove', event => {
      const before = this.pointers.get(event.pointerId);
      if (!before) {
        this.point(this.at(...place(event)), event);
        return;
      }
      const after = place(event);
      if (this.pressed.strip) return this.goTo(after[0]);
      if (this.pointers.size === 2) this.pinch(event.pointerId, before, after);
      else if (this.pressed.moved || Math.abs(after[0] - this.pressed.at[0]) > 3) {
        this.pressed.moved = true;
        canvas.classList.add('dragging');
        this.pan(before[0] - after[0]);
      } else return;
      this.pointers.set(event.pointerId, after);
    });
    const up = event => {
      this.pointers.delete(event.pointerId);
      canvas.classList.remove('dragging');
      if (event.type === 'pointerup' && this.pressed && !this.pressed.moved && !this.pressed.strip) this.choose(this.at(...place(event)));
    };
    canvas.addEventListener('pointerleave', event => this.point(null, event));
    canvas.addEventListener('pointerup', up);
    canvas.addEventListener('pointercancel', up);
    canvas.addEventListener('keydown', event => {
      const act = { ArrowLeft: () => this.pan(-80), ArrowRight: () => this.pan(80), '+': () => this.zoom(0.5), '=': () => this.zoom(0.5),
        '-': () => this.zoom(2), 0: () => this.goLive(), Home: () => this.fit() }[event.key];
      if (act && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); act(); }
    });
  }

  /** Marks the job under the mouse. */
  point(bar, event) {
    const job = bar?.job ?? null;
    if (job !== this.hovered) { this.hovered = job; this.draw(); }
    this.hover?.(bar, event);
  }

  pinch(moving, before, after) {
    const other = [...this.pointers].find(([id]) => id !== moving)[1];
    const distance = point => Math.max(Math.hypot(point[0] - other[0], point[1] - other[1]), 1);
    this.pressed.moved = true;
    this.zoom(distance(before) / distance(after), (after[0] + other[0]) / 2);
  }
}

/** Returns a bar as the painter takes it, of one that tile.rs has packed. */
export function unpacked([from, length, job, kind, place, rows, title, promise = null, flags, likely = null]) {
  const ranges = typeof rows === 'number' ? [[rows, rows + 1]] : [];
  for (let at = 0; at < rows.length; at += 2) ranges.push([rows[at], rows[at] + rows[at + 1]]);
  return [from, from + length, job, kind, place, ranges, title ?? '', promise === null ? null : from + promise, flags ?? 0, likely?.map(at => from + at) ?? null];
}

const bounded = (scale, widest = WIDEST) => Math.max(Math.min(scale, widest, WIDEST), CLOSEST);

/** Returns what a bar says of its job. A row of several processors may be taken in part, so there is a least and a most number of them. */
function told([from, to, job, kind, , rows, , , , likely], { name, unit }) {
  const count = rows.reduce((sum, [low, above]) => sum + above - low, 0);
  return { job, from, to, kind, likely, group: name, least: (count - 1) * unit + 1, most: count * unit };
}

Object.assign(Chart.prototype, painting);
