// The chart: jobs over time, in parts that the server draws at the level of detail that is shown.

const AXIS = 22, NAMES = 20, COLUMNS = 512, BANDS = 128, TILES_LEAST = 400;
// A larger canvas is not painted by every browser: css pixels, and pixels of the device.
const HIGH_MOST = 8000, DEVICE_MOST = 16000;
// Milliseconds per pixel.
const CLOSEST = 1, WIDEST = 1e9;
const YEAR = 31536e6;
// The most time that is shown beside that of the jobs.
const BESIDE_MOST = 400 * 864e5;
// Pauses before a part is asked for again that did not come.
const RETRY_FIRST = 1000, RETRY_MOST = 30e3;
// Runs of one log have numbers of their own.
export const RUN_NUMBERS = 1e12;
export const KIND = { ran: 0, running: 1, promised: 2, planned: 3, likely: 4, idle: 5 };
const LIGHT = ['#0072b2', '#d55e00', '#008f68', '#b0568a', '#a87400', '#2f93cc', '#555b63', '#857a00'];
const DARK = ['#56b4e9', '#ff8a4c', '#3fcf9f', '#e79ac4', '#f0b429', '#8fd0f7', '#b3bac2', '#d6c92b'];
const STEPS = [1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800, 2592000, 7776000, 31536000];

export class Chart {
  /** `load` returns a part of the chart, `choose` is called with the clicked bar, or with null. */
  constructor(canvas, { load, choose, moved }) {
    Object.assign(this, { canvas, load, choose, moved });
    this.context = canvas.getContext('2d');
    this.tiles = new Map();
    this.groups = [];
    this.now = 0;
    this.offset = 0;
    this.version = -1;
    this.chosen = null;
    this.ghost = null;
    this.from = 0;
    this.scale = 0; // milliseconds per pixel
    this.follow = true;
    this.visible = 0; // parts that the last frame used
    this.frames = [];
    this.frame = null;
    this.pointers = new Map();
    this.dark = matchMedia('(prefers-color-scheme: dark)');
    this.dark.addEventListener('change', () => { this.patterns = null; this.draw(); });
    new ResizeObserver(() => this.places ? this.place() : this.resize()).observe(canvas);
    this.listen();
  }

  /** Takes the state of the page. Parts of an earlier version are shown until the new ones are here. */
  update(state, instant) {
    const first = this.version < 0;
    this.groups = state.groups;
    this.range = state.range ?? [state.moment.now - 3600e3, state.moment.now];
    this.now = instant ?? state.moment.now;
    this.present = state.moment.now;
    this.offset = state.moment.offset;
    this.isLive = state.moment.live;
    if (this.version !== state.version) this.version = state.version;
    this.place();
    if (first) this.isLive ? this.goLive() : this.fit();
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

  /** Shows the present: a quarter of the width is the past. */
  goLive(keepScale) {
    const ahead = Math.min(Math.max(1.1 * (this.range[1] - this.present), 1800e3), 86400e3);
    if (!keepScale || !this.scale) this.scale = ahead * 4 / 3 / Math.max(this.width(), 1);
    this.from = this.present - this.scale * this.width() / 4;
    this.follow = true;
    this.draw();
  }

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
    if (this.follow) this.follow = Math.abs(this.from + this.scale * this.width() / 4 - this.present) < 4 * this.scale;
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

  /** Gives each group its place. A row is at most 14 pixels high, and so low that the canvas is not too high. */
  place() {
    const rows = this.groups.reduce((sum, group) => sum + group.rows, 0) || 1, count = this.groups.length || 1;
    const most = Math.min(HIGH_MOST, DEVICE_MOST / (devicePixelRatio || 1)) - AXIS - 10;
    const names = Math.min(NAMES, most / 2 / count), least = Math.min(24, (most / count - names) / 2);
    const room = Math.max(260, Math.min(innerHeight * 0.5, 560)) - AXIS - names * count;
    const height = Math.min(Math.max(room / rows, 0.2), 14, (most - (names + least) * count) / rows);
    let top = AXIS;
    this.places = this.groups.map(group => {
      const own = Math.max(group.rows * height, least), place = { top: top + names, height: own, row: own / Math.max(group.rows, 1), named: names > 12 };
      top = place.top + own;
      return place;
    });
    const wanted = `${Math.ceil(top + 6)}px`;
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

  draw() {
    this.frame ??= requestAnimationFrame(at => {
      this.frame = null;
      const begin = performance.now();
      this.paint();
      this.frames.push(performance.now() - begin);
      if (this.frames.length > 600) this.frames.shift();
      this.moved?.(this);
    });
  }

  colours() {
    const style = getComputedStyle(document.documentElement);
    const of = name => style.getPropertyValue(name).trim();
    return { ink: of('--ink'), muted: of('--muted'), rule: of('--rule'), paper: of('--paper'), now: of('--now'),
      owners: this.dark.matches ? DARK : LIGHT };
  }

  paint() {
    if (!this.places || !this.scale) return;
    const { context, canvas } = this, ratio = devicePixelRatio || 1;
    this.ink = this.colours();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    this.axis();
    [this.painted, this.edge] = [[], this.width()];
    this.visible = 0;
    this.groups.forEach((group, index) => this.paintGroup(group, index));
    this.evict();
    this.line(this.x(this.now), this.ink.now, 2);
    if (this.now !== this.present) this.line(this.x(this.present), this.ink.muted, 1);
  }

  x(at) { return (at - this.from) / this.scale; }

  line(x, colour, width) {
    if (x < 0 || x > this.width()) return;
    this.context.fillStyle = colour;
    this.context.fillRect(x - width / 2, AXIS - 6, width, this.canvas.clientHeight);
  }

  axis() {
    const { context } = this;
    let step = 1000 * (STEPS.find(step => step * 1000 / this.scale >= 80) ?? STEPS.at(-1));
    while (step / this.scale < 80) step *= 2;
    context.font = '12px system-ui, sans-serif';
    context.textBaseline = 'alphabetic';
    let end = -1;
    for (let at = Math.ceil((this.from + this.offset) / step) * step - this.offset; this.x(at) < this.width(); at += step) {
      const x = this.x(at);
      context.fillStyle = this.ink.rule;
      context.fillRect(x, AXIS - 4, 1, this.canvas.clientHeight);
      const text = this.label(at, step);
      if (x > end && x + context.measureText(text).width < this.width()) {
        context.fillStyle = this.ink.muted;
        context.fillText(text, x + 2, 14);
        end = x + context.measureText(text).width + 8;
      }
    }
  }

  label(at, step) {
    const date = new Date(at + this.offset), two = number => String(number).padStart(2, '0');
    const time = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}` + (step < 60e3 ? `:${two(date.getUTCSeconds())}` : '');
    const early = at + this.offset < 315532800e3; // a log without a date
    const day = early ? `day ${Math.floor((at + this.offset) / 864e5) + 1}` : `${date.getUTCFullYear()}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`;
    if (step >= 864e5) return day;
    return date.getUTCHours() === 0 && date.getUTCMinutes() === 0 && step >= 60e3 ? `${day} ${time}` : time;
  }

  paintGroup(group, index) {
    const { context } = this, place = this.places[index];
    context.fillStyle = this.ink.ink;
    context.font = '600 12px system-ui, sans-serif';
    const unit = group.unit > 1 ? `, a row is ${group.unit} processors` : '';
    if (place.named) context.fillText(`${group.name}: ${group.procs} processors${unit}`, 4, place.top - 6);
    context.strokeStyle = this.ink.rule;
    context.strokeRect(0.5, place.top - 0.5, this.width() - 1, place.height + 1);
    context.save();
    context.beginPath();
    context.rect(0, place.top, this.width(), place.height);
    context.clip();
    const level = Math.max(0, Math.ceil(Math.log2(this.scale)));
    const width = COLUMNS * 2 ** level;
    for (let tile = Math.floor(this.from / width); tile * width < this.from + this.scale * this.width(); tile++) {
      const own = this.tile(index, level, tile);
      const part = own.data ? [own, level, tile] : this.coarser(group.name, level, tile);
      if (part) this.paintTile(part[0].data, place, part[1], part[2], tile * width, (tile + 1) * width, group);
    }
    context.restore();
    if (this.ghost?.group === group.name) this.paintGhost(place, group);
  }

  /** The place of a group changes when another one appears above it, so a part has its name. */
  key(name, level, tile) { return `${level} ${tile} ${name}`; }

  /** Returns a part, and asks for it if it is missing or old. */
  tile(group, level, index) {
    const key = this.key(this.groups[group].name, level, index);
    const tile = this.used(key, this.tiles.get(key) ?? { data: null, version: -1, loading: false, pause: 0, next: 0 });
    if (tile.version !== this.version && !tile.loading && performance.now() >= tile.next) this.ask(tile, group, level, index);
    return tile;
  }

  ask(tile, group, level, index) {
    tile.loading = true;
    const version = this.version, column = 2 ** level;
    const bands = Math.min(BANDS, Math.max(1, this.groups[group].rows));
    this.load({ group, from: index * COLUMNS * column, column, columns: COLUMNS, bands }, tile.pause)
      .then(data => Object.assign(tile, { data: prepared(data), version, pause: 0, next: 0 }))
      .catch(() => this.later(tile))
      .finally(() => { tile.loading = false; this.draw(); });
  }

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

  /** Returns the next coarser part that is here. */
  coarser(name, level, tile) {
    for (let above = level + 1; above <= level + 8; above++) {
      tile = Math.floor(tile / 2);
      const found = this.tiles.get(this.key(name, above, tile));
      if (found?.data) return [this.used(this.key(name, above, tile), found), above, tile];
    }
    for (let below = level - 1; below >= Math.max(0, level - 1); below--) {
      const found = this.tiles.get(this.key(name, below, tile * 2));
      if (found?.data) return [this.used(this.key(name, below, tile * 2), found), below, tile * 2];
    }
    return null;
  }

  paintTile(data, place, level, tile, from, to, group) {
    const { context } = this, begin = tile * COLUMNS * 2 ** level, end = begin + COLUMNS * 2 ** level;
    const left = this.x(Math.max(begin, from)), right = this.x(Math.min(end, to)) + 0.5;
    this.painted.push([data, place, left, right, group]);
    context.save();
    context.beginPath();
    context.rect(left, place.top, right - left, place.height);
    context.clip();
    if (data.image) {
      context.imageSmoothingEnabled = false;
      context.globalAlpha = 0.75;
      context.drawImage(this.shaded(data), this.x(begin), place.top, this.x(end) - this.x(begin), place.height);
      context.globalAlpha = 1;
    }
    for (const bar of data.bars) this.paintBar(bar, place);
    context.restore();
  }

  shaded(data) {
    const colour = this.ink.owners[0];
    if (data.colour === colour) return data.image;
    const [red, green, blue] = [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16));
    const pixels = data.image.getContext('2d'), { width, height } = data.image, image = pixels.createImageData(width, height);
    for (let column = 0, cell = 0; column < width; column++) {
      for (let band = height - 1; band >= 0; band--, cell++) {
        const at = 4 * (band * width + column);
        image.data[at] = red;
        image.data[at + 1] = green;
        image.data[at + 2] = blue;
        image.data[at + 3] = data.cells[cell];
      }
    }
    pixels.putImageData(image, 0, 0);
    data.colour = colour;
    return data.image;
  }

  /** Where a bar is: its left end, its right end, and its width. */
  across(from, to) {
    const left = Math.max(this.x(from), -2), right = Math.min(this.x(to), this.edge + 2);
    return [left, right, Math.max(right - left, 0.75)];
  }

  /** Where a range of rows is: its top, and its height. */
  down([low, above], place) {
    const gap = place.row > 3 ? 1 : 0;
    return [place.top + place.height - above * place.row, Math.max((above - low) * place.row - gap, 0.5)];
  }

  paintBar([from, to, job, kind, owner, rows, likely], place) {
    const { context } = this, [left, right, width] = this.across(from, to);
    if (right < 0 || left > this.edge) return;
    const colour = this.ink.owners[owner % this.ink.owners.length];
    const mine = this.chosen === job;
    for (const range of rows) {
      const [top, height] = this.down(range, place);
      context.fillStyle = kind === KIND.promised || kind === KIND.idle ? this.pattern(colour, kind) : colour;
      context.globalAlpha = mine ? 1 : kind === KIND.ran ? 0.6 : kind === KIND.planned ? 0.12 : kind === KIND.likely ? 0.2 : 1;
      context.fillRect(left, top, width, height);
      context.globalAlpha = 1;
      if (kind !== KIND.ran && height > 2) {
        context.strokeStyle = colour;
        context.setLineDash(kind === KIND.planned || kind === KIND.likely ? [3, 3] : []);
        context.lineWidth = 1;
        context.strokeRect(left + 0.5, top + 0.5, Math.max(width - 1, 0), Math.max(height - 1, 0));
        context.setLineDash([]);
      }
      if (mine) {
        context.strokeStyle = this.ink.ink;
        context.lineWidth = 2;
        context.strokeRect(left, top, width, height);
      }
      if (height >= 12 && width > 44) this.name(job, kind, left, top, width, height);
    }
    if (likely) this.paintLikely(likely, rows, place);
  }

  name(job, kind, left, top, width, height) {
    const { context } = this, text = String(job % RUN_NUMBERS), solid = kind === KIND.ran || kind === KIND.running;
    context.font = '11px system-ui, sans-serif';
    const size = context.measureText(text).width, x = Math.max(left, 0) + 4;
    if (x + size > left + width - 2) return;
    if (!solid) {
      context.fillStyle = this.ink.paper;
      context.fillRect(x - 2, top + height / 2 - 7, size + 4, 14);
    }
    context.fillStyle = solid && !this.dark.matches && kind === KIND.running ? '#fff' : solid && this.dark.matches ? '#101214' : this.ink.ink;
    context.textBaseline = 'middle';
    context.fillText(text, x, top + height / 2 + 0.5);
    context.textBaseline = 'alphabetic';
  }

  /** Draws the likely start: a line from the median to the bound of 95 %, with a mark at the median. */
  paintLikely([median, last], rows, place) {
    const { context } = this, [low, above] = rows[0], y = place.top + place.height - (low + above) / 2 * place.row;
    context.fillStyle = this.ink.ink;
    context.fillRect(this.x(median), y - 1, Math.max(this.x(last) - this.x(median), 1), 2);
    context.fillRect(this.x(median) - 1, y - 4, 2, 8);
  }

  paintGhost(place, group) {
    const { context, ghost } = this, height = Math.min(ghost.procs / group.unit, group.rows) * place.row;
    context.setLineDash([6, 4]);
    context.strokeStyle = this.ink.now;
    context.lineWidth = 2;
    const left = Math.max(this.x(ghost.from), -4), right = Math.min(this.x(ghost.to), this.width() + 4);
    if (right > left) context.strokeRect(left, place.top + 1, right - left, Math.max(height, 6));
    context.setLineDash([]);
    context.fillStyle = this.ink.now;
    context.fillText('your job', this.x(ghost.from) + 4, place.top + 13);
  }

  pattern(colour, kind) {
    const ratio = devicePixelRatio || 1;
    if (this.patternsFor !== `${ratio} ${this.dark.matches}`) { this.patterns = null; this.patternsFor = `${ratio} ${this.dark.matches}`; }
    this.patterns ??= new Map();
    const key = `${colour} ${kind}`;
    if (!this.patterns.has(key)) {
      const tile = document.createElement('canvas');
      tile.width = tile.height = 6;
      const ink = tile.getContext('2d');
      ink.strokeStyle = colour;
      ink.lineWidth = 1.4;
      ink.beginPath();
      if (kind === KIND.idle) { ink.moveTo(3, 0); ink.lineTo(3, 6); }
      else for (const at of [-6, 0, 6]) { ink.moveTo(at, 6); ink.lineTo(at + 6, 0); }
      ink.stroke();
      this.patterns.set(key, this.context.createPattern(tile, 'repeat'));
    }
    return this.patterns.get(key);
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
      this.pressed = { at: place(event), moved: false };
    });
    canvas.addEventListener('pointermove', event => {
      const before = this.pointers.get(event.pointerId);
      if (!before) {
        const bar = this.at(...place(event));
        canvas.title = bar ? `job ${bar.job % RUN_NUMBERS}` : '';
        return;
      }
      const after = place(event);
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
      if (event.type === 'pointerup' && this.pressed && !this.pressed.moved) this.choose(this.at(...place(event)));
    };
    canvas.addEventListener('pointerup', up);
    canvas.addEventListener('pointercancel', up);
    canvas.addEventListener('keydown', event => {
      const act = { ArrowLeft: () => this.pan(-80), ArrowRight: () => this.pan(80), '+': () => this.zoom(0.5), '=': () => this.zoom(0.5),
        '-': () => this.zoom(2), 0: () => this.goLive(), Home: () => this.fit() }[event.key];
      if (act && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); act(); }
    });
  }

  pinch(moving, before, after) {
    const other = [...this.pointers].find(([id]) => id !== moving)[1];
    const distance = point => Math.max(Math.hypot(point[0] - other[0], point[1] - other[1]), 1);
    this.pressed.moved = true;
    this.zoom(distance(before) / distance(after), (after[0] + other[0]) / 2);
  }
}

const bounded = (scale, widest = WIDEST) => Math.max(Math.min(scale, widest, WIDEST), CLOSEST);

/** Returns what a bar says of its job. A row of several processors may be taken in part, so there is a least and a most number of them. */
function told([from, to, job, kind, , rows, likely], { name, unit }) {
  const count = rows.reduce((sum, [low, above]) => sum + above - low, 0);
  return { job, from, to, kind, likely, group: name, least: (count - 1) * unit + 1, most: count * unit };
}

/** Returns a part with its shade as cells of a small picture. */
function prepared({ bars, shade }) {
  // Wide bars first, so that short ones stay visible and can be clicked.
  bars.sort((one, other) => (other[1] - other[0]) - (one[1] - one[0]));
  if (!shade) return { bars };
  const cells = new Uint8Array(COLUMNS * shade.bands);
  let at = 0;
  for (const [count, value] of shade.runs) { cells.fill(value, at, at + count); at += count; }
  const image = document.createElement('canvas');
  image.width = COLUMNS;
  image.height = shade.bands;
  return { bars, cells, bands: shade.bands, image };
}
