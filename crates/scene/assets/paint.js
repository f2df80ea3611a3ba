// The painter of the scene. picture.rs paints the same scene as SVG, and a test compares the two. Their sizes are before this line, from sizes.rs.

// All the time in a strip, below a gap. It is a control of the page, and in no file.
const GAP = 8, STRIP = 24;
// Runs of one log have numbers of their own.
export const RUN_NUMBERS = 1e12;
export const KIND = { ran: 0, running: 1, promised: 2, planned: 3, likely: 4, idle: 5, suspended: 6, swapping: 7, alternate: 8 };
const DASHED = [KIND.planned, KIND.likely, KIND.suspended, KIND.swapping, KIND.alternate], OVER = [KIND.ran, KIND.swapping, KIND.alternate];
const STEPS = [1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800, 2592000, 7776000, 31536000];
const DAY = 864e5;

/** The painting half of the chart. */
export const painting = {
  paint() {
    if (!this.places || !this.scale) return;
    const { context, canvas } = this, ratio = devicePixelRatio || 1;
    this.ink = this.colours();
    if (this.by !== this.paintedBy || this.dark.matches !== this.paintedDark) {
      [this.byBefore, this.darkBefore, this.paintedBy, this.paintedDark] = [this.paintedBy, this.paintedDark, this.by, this.dark.matches];
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    this.axis();
    [this.painted, this.edge] = [[], this.width()];
    this.visible = 0;
    this.groups.forEach((group, index) => this.paintGroup(group, index));
    this.paintCurves();
    this.paintStrip();
    this.evict();
    this.line(this.x(this.now), this.ink.now, 2);
    if (this.now !== this.present) this.line(this.x(this.present), this.ink.muted, 1);
    this.paintMarked();
  },

  colours() {
    const style = getComputedStyle(document.documentElement);
    const of = name => style.getPropertyValue(name).trim();
    return { theme: this.dark.matches ? 'dark' : 'light', ink: of('--ink'), muted: of('--muted'), rule: of('--rule'), paper: of('--paper'), now: of('--now'), bad: of('--bad') };
  },

  /** Returns the height of the curves. Slots have none, and a fixed chart has those of a queue only if jobs wait. */
  curved() { return this.hasCurves ? TITLE + HELD + (this.hasGpus + 2 * this.hasQueue + this.hasPromises) * (TITLE + LOW) : 0; },

  legend(by = this.by) { return this.legends.find(legend => legend.by === by) ?? this.legends[0]; },

  inksOf(by) { return (this.legend(by)?.entries ?? []).map(entry => entry[this.ink.theme]); },

  x(at) { return (at - this.from) / this.scale; },

  line(x, colour, width) {
    if (x < 0 || x > this.width()) return;
    this.context.fillStyle = colour;
    this.context.fillRect(x - width / 2, AXIS - 6, width, this.below + this.curved() - AXIS);
  },

  /** Draws two lines of times: the days above, so that no view is without one, and the hours below. */
  axis() {
    const { context } = this, edge = this.width();
    // A day is longer than a time.
    const fits = step => step / this.scale >= (step < DAY ? 80 : 112);
    let step = 1000 * (STEPS.find(step => fits(1000 * step)) ?? STEPS.at(-1));
    while (!fits(step)) step *= 2;
    context.font = '12px system-ui, sans-serif';
    context.textBaseline = 'alphabetic';
    let [end, day] = [-1, -1];
    const write = (text, x, y, colour) => { context.fillStyle = colour; context.fillText(text, x, y); return x + context.measureText(text).width + 8; };
    const first = this.day(this.from), long = context.measureText(first).width;
    const times = this.times(step), midnight = times.find(([at, offset]) => (at + offset) % DAY === 0);
    if (step < DAY && !(midnight && this.x(midnight[0]) <= long + 12)) day = write(first, 4, 13, this.ink.ink);
    for (const [at, offset] of times) {
      const x = this.x(at), dated = (at + offset) % DAY === 0;
      context.fillStyle = this.ink.rule;
      context.fillRect(x, dated ? 4 : AXIS - 8, 1, this.below + this.curved() - AXIS);
      if (dated && x >= day && x + long < edge) day = write(this.day(at), x + 3, 13, this.ink.ink);
      if (step >= DAY) continue;
      const text = this.label(at, step).split(' ').at(-1);
      if (x > end && x + context.measureText(text).width < edge) end = write(text, x + 3, 29, this.ink.muted);
    }
  },

  /** Returns the multiples of a step on the clock, whose offset may change in between, and the offset of each. */
  times(step) {
    const found = [], last = this.from + this.width() * this.scale;
    this.offsets.forEach(([begin, offset], place) => {
      const from = place ? Math.max(begin, this.from) : this.from, to = Math.min(this.offsets[place + 1]?.[0] ?? Infinity, last);
      for (let at = Math.ceil((from + offset) / step) * step - offset; at < to; at += step) found.push([at, offset]);
    });
    return found;
  },

  /** Returns the offset of the clock from UTC at an instant. */
  offset(at) { return (this.offsets.findLast(([begin]) => begin <= at) ?? this.offsets[0])[1]; },

  /** Returns the day of an instant with its weekday, if it has one. */
  day(at) {
    const text = this.label(at, DAY);
    return text.startsWith('day') ? text : `${['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'][new Date(at + this.offset(at)).getUTCDay()]} ${text}`;
  },

  label(at, step) {
    const local = at + this.offset(at), date = new Date(local), two = number => String(number).padStart(2, '0');
    const time = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}` + (step < 60e3 ? `:${two(date.getUTCSeconds())}` : '');
    const early = local < 315532800e3; // a log without a date
    const day = early ? `day ${Math.floor(local / 864e5) + 1}` : `${date.getUTCFullYear()}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`;
    if (step >= DAY) return day;
    return date.getUTCHours() === 0 && date.getUTCMinutes() === 0 && step >= 60e3 ? `${day} ${time}` : time;
  },

  paintGroup(group, index) {
    const { context } = this, place = this.places[index];
    context.fillStyle = this.ink.ink;
    context.font = '600 12px system-ui, sans-serif';
    const unit = group.unit > 1 ? `, a row is ${group.unit} processors` : '';
    if (place.named) context.fillText(`${group.name && `${group.name}: `}${group.procs} processor${group.procs === 1 ? '' : 's'}${unit}`, 4, place.top - 6);
    context.strokeStyle = this.ink.rule;
    context.strokeRect(0.5, place.top - 0.5, this.width() - 1, place.height + 1);
    this.clipped(0, place.top, this.width(), place.height, () => {
      for (const [tile, from, to] of this.parts()) {
        const own = this.tile(index, this.level(), tile);
        const part = own.data ? [own, this.level(), tile] : this.coarser(group.name, this.level(), tile) ?? this.coarser(group.name, this.level(), tile, this.byBefore, this.darkBefore);
        if (!part) continue;
        this.inks = this.inksOf(part[0].by);
        this.paintTile(part[0].data, place, part[1], part[2], from, to, group);
      }
    });
    this.paintMarks(group.marks ?? [], place);
    if (this.ghost?.group === group.name) this.paintGhost(place, group);
  },

  /** Draws the lines between hosts or slots with their names, if there is room for all. */
  paintMarks(marks, place) {
    const { context } = this, foot = place.top + place.height;
    const lines = marks.map(([row, name]) => [foot - row * place.row, name]).sort(([one], [other]) => one - other);
    const tops = [place.top, ...lines.map(([y]) => y)];
    if (!lines.every(([y], at) => y - tops[at] >= MARKED_LEAST)) return;
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'end';
    lines.forEach(([y, name], at) => {
      Object.assign(context, { strokeStyle: this.ink.muted, lineWidth: 1 });
      context.setLineDash([2, 3]);
      context.beginPath();
      if (y < foot - 0.5) { context.moveTo(0, y); context.lineTo(this.width(), y); }
      context.stroke();
      context.setLineDash([]);
      Object.assign(context, { strokeStyle: this.ink.paper, lineWidth: 3, fillStyle: this.ink.muted });
      for (const write of ['strokeText', 'fillText']) context[write](name, this.width() - 4, (tops[at] + y) / 2 + 4);
    });
    Object.assign(context, { textAlign: 'start', lineWidth: 1 });
  },

  clipped(left, top, width, height, paint) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(left, top, width, height);
    this.context.clip();
    paint();
    this.context.restore();
  },

  paintTile(data, place, level, tile, from, to, group) {
    const begin = tile * COLUMNS * 2 ** level, end = begin + COLUMNS * 2 ** level;
    const left = this.x(Math.max(begin, from)), right = this.x(Math.min(end, to)) + 0.5;
    this.painted.push([data, place, left, right, group]);
    this.clipped(left, place.top, right - left, place.height, () => {
      if (data.image) {
        this.context.imageSmoothingEnabled = false;
        this.context.drawImage(data.image, this.x(begin), place.top, this.x(end) - this.x(begin), place.height);
      }
      for (const bar of data.bars) this.paintBar(bar, place);
    });
  },

  /** Where a bar is: its left end, its right end, and its width. */
  across(from, to) {
    const left = Math.max(this.x(from), -2), right = Math.min(this.x(to), this.edge + 2);
    return [left, right, Math.max(right - left, 0.75)];
  },

  /** Where a range of rows is: its top, and its height. */
  down([low, above], place) {
    const gap = place.row > 3 ? 1 : 0;
    return [place.top + place.height - above * place.row, Math.max((above - low) * place.row - gap, 0.5)];
  },

  fill(colour, alpha, left, top, width, height) {
    const { context } = this;
    context.fillStyle = colour;
    context.globalAlpha = alpha;
    context.fillRect(left, top, width, height);
    context.globalAlpha = 1;
  },

  paintBar([from, to, , kind, place, rows, title, promise, flags], at) {
    const { context } = this, [left, right, width] = this.across(from, to);
    const [fill, edge, text] = this.inks[place] ?? ['#888', '#555', '#fff'];
    if (promise !== null && Math.min(this.x(promise), left) > this.edge || right < 0 || left > this.edge && promise === null) return;
    // What has run is solid, and what may still run is pale.
    const now = kind === KIND.running ? Math.min(Math.max(this.x(this.present), left), left + width) : left + width;
    let largest = null;
    for (const range of rows) {
      const [top, height] = this.down(range, at);
      if (now > left) this.fill(fill, SOLID[kind], left, top, now - left, height);
      if (now < left + width) this.fill(fill, AHEAD, now, top, left + width - now, height);
      if (height > 4 && width > 3) {
        context.strokeStyle = kind === KIND.ran || kind === KIND.running ? edge : fill;
        context.lineWidth = 1;
        if (DASHED.includes(kind)) context.setLineDash([3, 3]);
        context.strokeRect(left + 0.5, top + 0.5, width - 1, height - 1);
        context.setLineDash([]);
      }
      if (flags & 1 && width >= 4) this.fill(this.ink.bad, 1, left + width - Math.min(4, width / 2), top, Math.min(4, width / 2), height);
      if (promise !== null && height >= 5) this.paintBracket(this.x(promise), OVER.includes(kind) ? this.x(from) : this.x(to), top, height, flags & 2);
      if (height > (largest?.[1] ?? 0)) largest = [top, height];
    }
    if (title && largest?.[1] >= 12) this.name(title, text, kind, left, now, left + width, largest);
  },

  /** Draws a promise: the latest start on the left, and on the right the end up to which the job may run. A job that was late left a gap between them. */
  paintBracket(from, to, top, height, unkept) {
    const colour = unkept ? this.ink.bad : this.ink.ink, arm = Math.max(Math.min(5, (to - from) / 3), 1.5);
    const rectangles = [[from, top, 1.5, height], [from, top, arm, 1.5], [from, top + height - 1.5, arm, 1.5]];
    if (to - from >= 6) rectangles.push([to - 1.5, top, 1.5, height], [to - arm, top, arm, 1.5], [to - arm, top + height - 1.5, arm, 1.5]);
    for (const rectangle of rectangles) this.fill(colour, 1, ...rectangle);
  },

  /** Writes the number and the name, or the number alone, or nothing: what does not fit is left out. */
  name(title, text, kind, left, now, right, [top, height]) {
    const { context } = this, solid = kind === KIND.ran || kind === KIND.running || kind === KIND.idle;
    const parts = solid ? [[left, now, text], [now, right, this.ink.ink]] : [[left, right, this.ink.ink]];
    context.font = '11px system-ui, sans-serif';
    for (const words of [title, title.split(' ')[0]]) {
      const wide = context.measureText(words).width;
      for (const [from, to, colour] of parts) {
        const x = Math.max(from, 0) + 6;
        if (x + wide > Math.min(to, this.edge) - 6) continue;
        context.fillStyle = colour;
        context.textBaseline = 'middle';
        context.fillText(words, x, top + height / 2 + 0.5);
        context.textBaseline = 'alphabetic';
        return;
      }
    }
  },

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
  },

  /** Outlines the chosen job and the one under the mouse in every schedule, with its likely start, and joins its bars. */
  paintMarked() {
    const { context } = this, colour = this.ink.ink;
    for (const [number, width] of [[this.chosen, 2.5], [this.hovered, 1.5]]) {
      if (number === null) continue;
      const ends = new Map();
      for (const [data, place, , , group] of this.painted) {
        for (const [from, to, job, , , rows, , , , likely] of data.bars) {
          if (job % RUN_NUMBERS !== number % RUN_NUMBERS) continue;
          const [left, , wide] = this.across(from, to);
          context.strokeStyle = colour;
          context.lineWidth = width;
          for (const range of rows) { const [top, height] = this.down(range, place); context.strokeRect(left, top, wide, height); }
          const [top, height] = this.down(rows[0], place);
          ends.set(group.name, [left, top + height / 2]);
          if (likely) {
            const [median, last] = likely.map(at => this.x(at));
            this.fill(colour, 1, median, top + height / 2 - 1, Math.max(last - median, 1), 2);
            this.fill(colour, 1, median - 1, top + height / 2 - 4, 2, 8);
          }
        }
      }
      context.lineWidth = 1;
      context.setLineDash([2, 2]);
      context.beginPath();
      for (const [x, y] of ends.values()) context.lineTo(x, y);
      context.stroke();
      context.setLineDash([]);
    }
  },

  /** Draws processors held and reserved, and jobs waiting, on the axis of the bars. */
  paintCurves() {
    if (!this.hasCurves) return;
    const parts = this.parts().map(([tile, from, to]) => [this.tile(null, this.level(), tile).data, tile, from, to]).filter(([data]) => data);
    const { context } = this, pools = this.pools.length, column = 2 ** this.level();
    const most = key => parts.reduce((most, [data]) => Math.max(most, ...data.map(pool => pool[key].most)), 0);
    const procs = Math.max(...this.groups.map(group => group.procs), 1), late = most('late');
    const words = pools > 1 || this.isFixed ? '' : ', and promised or planned (pale)';
    const low = (key, title, most) => [key, LOW, rounded(most), `${title}, scale to ${rounded(most)}`];
    const [waiting, requested, promised] = this.tops;
    const boxes = [['held', HELD, procs, `processors held${words}, of ${procs}`]];
    if (this.hasGpus) boxes.push(low('gpus', 'GPUs held', most('gpus')));
    if (this.hasQueue) boxes.push(low('waiting', 'jobs waiting', Math.max(waiting, most('waiting'))), low('requested', 'processors that they request', Math.max(requested, most('requested'))));
    if (this.hasPromises) boxes.push(low('early', `jobs ahead of their promises${late > 0 ? ', and late ones (red)' : ''}`, Math.max(promised, late, most('early'))));
    let top = this.below;
    for (const [key, height, high, title] of boxes) {
      context.font = '12px system-ui, sans-serif';
      context.fillStyle = this.ink.ink;
      context.fillText(title, 4, top + 13);
      if (pools > 1) this.nameCurves(top, 4 + context.measureText(title).width + 16);
      context.strokeStyle = this.ink.rule;
      context.lineWidth = 1;
      context.strokeRect(0.5, top + TITLE - 0.5, this.width() - 1, height);
      this.clipped(0, top + TITLE - 1, this.width(), height + 1, () => {
        for (let pool = 0; pool < pools; pool++) {
          const colour = this.colourOf(pool);
          for (const [data, tile] of parts) {
            const part = data[pool];
            if (!part) continue;
            const rise = value => top + TITLE + height - Math.min(value / high, 1) * (height - 2), at = place => this.x((tile * COLUMNS + place) * column);
            if (pools === 1 && key === 'held') this.area(part.reserved.map((value, place) => value + part.held[place]), at, rise, colour, 0.25);
            if (pools === 1) this.area(part[key], at, rise, colour, 0.55);
            else this.steps(part[key], at, rise, pool, isCovered(parts, pool, key));
            if (key === 'early') this.area(part.late, at, rise, this.ink.bad, 0.55);
          }
        }
      });
      top += TITLE + height;
    }
  },

  /** Draws the held processors over all the time, and the part that is shown. */
  paintStrip() {
    if (this.isFile) return;
    const { context } = this, top = this.stripTop(), [from, to] = this.known(), scale = Math.max((to - from) / this.width(), 1);
    const level = Math.ceil(Math.log2(scale)), part = COLUMNS * 2 ** level, procs = Math.max(...this.groups.map(group => group.procs), 1);
    const rise = value => top + STRIP - Math.min(value / procs, 1) * STRIP, x = at => (at - from) / scale;
    this.clipped(0, top, this.width(), STRIP, () => {
      for (let tile = Math.floor(from / part); tile * part < to; tile++) {
        const data = this.tile(null, level, tile).data;
        if (data?.[0]) this.area(data[0].held, place => x(tile * part + place * 2 ** level), rise, this.ink.muted, 0.4);
      }
    });
    context.strokeStyle = this.ink.rule;
    context.lineWidth = 1;
    context.strokeRect(0.5, top + 0.5, this.width() - 1, STRIP - 1);
    const left = Math.max(x(this.from), 0), right = Math.min(x(this.from + this.scale * this.width()), this.width());
    context.strokeStyle = this.ink.ink;
    context.lineWidth = 2;
    context.strokeRect(Math.min(left, this.width() - 3), top + 1, Math.max(right - left, 3), STRIP - 2);
  },

  stripTop() { return this.below + this.curved() + GAP; },

  /** Returns the height below the bars. */
  beneath() { return this.curved() + GAP + STRIP; },

  /** Writes the names of the pools behind the title of the curves, each with its line. */
  nameCurves(top, x) {
    const { context } = this;
    this.pools.forEach(({ name }, pool) => {
      const wide = context.measureText(name).width;
      if (x + wide + 36 > this.width()) return;
      this.stroke(pool, () => { context.moveTo(x, top + 9); context.lineTo(x + 26, top + 9); });
      context.fillText(name, x + 32, top + 13);
      x += wide + 52;
    });
  },

  /** Fills what is below a step function, in one piece: pieces side by side have seams. */
  area(values, at, rise, colour, alpha) {
    const { context } = this;
    context.beginPath();
    context.moveTo(at(0), rise(0));
    for (let place = 0; place < values.length;) {
      const first = place;
      while (place < values.length && values[place] === values[first]) place++;
      context.lineTo(at(first), rise(values[first]));
      context.lineTo(at(place), rise(values[first]));
    }
    context.lineTo(at(values.length), rise(0));
    Object.assign(context, { fillStyle: colour, globalAlpha: alpha });
    context.fill();
    context.globalAlpha = 1;
  },

  steps(values, at, rise, pool, isCovered) {
    const { context } = this;
    this.stroke(pool, () => values.forEach((value, place) => { context.lineTo(at(place), rise(value)); context.lineTo(at(place + 1), rise(value)); }), isCovered);
  },

  /** Draws a line of a pool. One that lies below another one is so wide that both are visible. */
  stroke(pool, path, isCovered = false) {
    const { context } = this;
    Object.assign(context, { strokeStyle: this.colourOf(pool), lineWidth: isCovered ? 5 : 1.5, globalAlpha: isCovered ? 0.45 : 1 });
    context.setLineDash(isCovered ? [] : DASHES[pool % DASHES.length].split(' ').filter(Boolean));
    context.beginPath();
    path();
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  },

  /** Returns the colour of the curve of a pool: that of its jobs in the legend of the queues. */
  colourOf(pool) {
    const { entries } = this.legends.find(legend => legend.by === 'queue') ?? this.legends[0];
    return entries[Math.min(pool, entries.length - 1)][this.ink.theme][0];
  },
};

/** Returns whether the curve of a pool lies below that of a later one. */
function isCovered(parts, pool, key) {
  const others = parts[0][0].slice(pool + 1).map((_, place) => pool + 1 + place);
  const isSame = (one, other) => one.length === other?.length && one.every((value, at) => value === other[at]);
  return others.some(other => parts.every(([data]) => !data[pool] || isSame(data[pool][key], data[other]?.[key])));
}

/** Returns the next round number: 1, 2 or 5 with zeros. */
function rounded(number) {
  const ten = 10 ** Math.floor(Math.log10(Math.max(number, 1)));
  return [1, 2, 5, 10].map(step => step * ten).find(step => step >= number);
}

/** Returns a part with its shade as a small picture. */
export function prepared({ bars, shade }) {
  // Wide bars first, so that short ones stay visible and can be clicked.
  bars.sort((one, other) => (other[1] - other[0]) - (one[1] - one[0]));
  if (!shade) return { bars };
  const image = document.createElement('canvas'), bands = shade.bands;
  Object.assign(image, { width: COLUMNS, height: bands });
  const pixels = image.getContext('2d'), cells = pixels.createImageData(COLUMNS, bands);
  let cell = 0;
  for (const [count, alpha, colour] of shade.runs) {
    for (const end = cell + count; cell < end; cell++) {
      if (!alpha) continue;
      const at = 4 * ((bands - 1 - cell % bands) * COLUMNS + Math.floor(cell / bands));
      cells.data[at] = 17 * (colour >> 8);
      cells.data[at + 1] = 17 * (colour >> 4 & 15);
      cells.data[at + 2] = 17 * (colour & 15);
      cells.data[at + 3] = alpha;
    }
  }
  pixels.putImageData(cells, 0, 0);
  return { bars, image };
}

/** Returns the curves of a part as a value for each column. */
export function curves(pools) {
  const values = runs => runs.flatMap(([count, tenths]) => Array(count).fill(tenths / 10));
  return pools.map(pool => Object.fromEntries(Object.entries(pool).map(([key, runs]) => {
    const found = values(runs);
    return [key, Object.assign(found, { most: Math.max(...found) })];
  })));
}
