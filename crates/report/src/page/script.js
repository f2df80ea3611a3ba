// Comfort for the reader: values under the pointer, a schedule that can be zoomed, a theme, charts to save.
// The page says everything without it.
(() => {
  'use strict';

  const { style, schedule, themes, charts } = JSON.parse(document.getElementById('charts').textContent);
  const SVG = 'http://www.w3.org/2000/svg';

  /** An element of HTML with its text. */
  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  /** An element of SVG. */
  function drawn(name, attributes, text = '') {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  }

  function button(text, label, press) {
    const made = element('button', text, { type: 'button', 'aria-label': label, title: label });
    made.addEventListener('click', press);
    return made;
  }

  // ---- Theme: as the system has it, unless the reader chooses. A page from a file may have nowhere to keep the choice.

  const memory = {
    get() { try { return localStorage.getItem('miserly-theme'); } catch { return null; } },
    set(theme) { try { localStorage.setItem('miserly-theme', theme); } catch { /* It lasts as long as the page does. */ } },
  };

  const root = document.documentElement;
  const dark = () => (root.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';

  /** Whether the text of charts is enlarged, as in the style. */
  const narrow = () => matchMedia('screen and (max-width: 40rem)').matches;

  function themeSwitch() {
    const known = memory.get();
    if (known === 'dark' || known === 'light') root.dataset.theme = known;
    const press = () => {
      root.dataset.theme = dark() ? 'light' : 'dark';
      memory.set(root.dataset.theme);
    };
    document.querySelector('header').prepend(button('Light / dark', 'Switch between light and dark', press));
  }

  // ---- The read-out beside the pointer.

  const tip = element('div', '', { class: 'tip', role: 'status', hidden: '' });

  function say(text, event) {
    tip.hidden = !text;
    if (!text) return;
    if (tip.textContent !== text) tip.textContent = text;
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - box.width - 4);
    const above = event.clientY - box.height - 14;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${above > 4 ? above : event.clientY + 20}px`;
  }

  /** Where the pointer is, in the units of the drawing. */
  function place(svg, event) {
    const point = new DOMPoint(event.clientX, event.clientY);
    return point.matrixTransform(svg.getScreenCTM().inverse());
  }

  function listen(svg, read) {
    const show = (event) => say(read(place(svg, event), event), event);
    svg.addEventListener('pointermove', show);
    svg.addEventListener('pointerdown', show);
    svg.addEventListener('pointerleave', () => say(''));
  }

  /** Elements that bring their own text say it at once, and on touch; the browser's own way would be slow, and twice. */
  function titles(svg) {
    for (const title of svg.querySelectorAll('title')) {
      title.parentNode.setAttribute('aria-label', title.textContent);
      title.remove();
    }
    listen(svg, (_, event) => event.target.getAttribute('aria-label'));
  }

  const inside = ({ left, top, right, bottom }, { x, y }) => x >= left - 4 && x <= right + 4 && y >= top - 4 && y <= bottom + 4;

  /** The point nearest to the pointer. */
  function nearest(series, at) {
    let best = null;
    for (const { name, points } of series) {
      for (const [x, y, first, second] of points) {
        const far = (x - at.x) ** 2 + (y - at.y) ** 2;
        if (!best || far < best.far) best = { far, x, y, text: `${name ? `${name}\n` : ''}x ${first}\ny ${second}` };
      }
    }
    return best;
  }

  function points(svg, { plot, series }) {
    const ring = drawn('circle', { class: 'ring', r: 5, visibility: 'hidden' });
    svg.append(ring);
    svg.addEventListener('pointerleave', () => ring.setAttribute('visibility', 'hidden'));
    listen(svg, (at) => {
      const best = inside(plot, at) ? nearest(series, at) : null;
      ring.setAttribute('visibility', best ? 'visible' : 'hidden');
      if (!best) return '';
      ring.setAttribute('cx', best.x);
      ring.setAttribute('cy', best.y);
      return best.text;
    });
  }

  // ---- Schedules: the same drawing of any part of the window.

  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000,
    1728000, 4320000, 8640000];

  /** A duration. The drawing prints durations the same way. */
  function time(secs) {
    const whole = Math.round(Math.abs(secs));
    const parts = [[Math.floor(whole / 86400), 'd'], [Math.floor(whole / 3600) % 24, 'h'], [Math.floor(whole / 60) % 60, 'm'], [whole % 60, 's']];
    const shown = parts.filter(([value]) => value > 0);
    if (!shown.length) return '0s';
    return (secs < 0 ? '−' : '') + shown.map(([value, unit]) => `${value}${unit}`).join('');
  }

  const many = (count, one) => `${count} ${count === 1 ? one : `${one}s`}`;

  // ---- Dates, as the drawing prints them.

  const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

  /** From a second of the log to the local clock. */
  function shift(clock, secs) {
    const known = clock.shifts.findLast(([from]) => from <= secs) || clock.shifts[0];
    return known[1];
  }

  /** The parts of a local time: date, time, month and day. */
  function parts(local) {
    const text = new Date(Math.floor(local) * 1000).toISOString();
    const [date, rest] = text.split('T');
    return { date, time: rest.slice(0, rest.startsWith('00', 6) ? 5 : 8), day: `${Number(date.slice(-2))} ${MONTHS[Number(date.slice(-5, -3)) - 1]}` };
  }

  class Schedule {
    constructor(svg, data) {
      Object.assign(this, { svg, data, from: data.from, to: data.to });
      this.colour = 'reason';
      this.found = null;
      this.jobs = svg.querySelector('.jobs');
      this.legend = svg.querySelector('.legend');
      this.numbers = svg.querySelector('.numbers');
      this.ticks = svg.querySelector('.ticks.x');
      this.grid = svg.querySelector('.grid');
      this.areas = [...svg.querySelectorAll('.queue .area')];
    }

    x(secs) {
      const { left, right } = this.data.plot;
      const share = (secs - this.from) / (this.to - this.from);
      return left + Math.min(1, Math.max(0, share)) * (right - left);
    }

    /** Where a line begins: processors are counted from below, slots with their processors from above. */
    y(line) {
      const { plot: { top, bottom }, procs, slots } = this.data;
      const share = line / (procs * slots);
      return slots > 1 ? top + share * (bottom - top) : bottom - share * (bottom - top);
    }

    /** Which line is there. */
    line(y) {
      const { plot: { top, bottom }, procs, slots } = this.data;
      const share = (slots > 1 ? y - top : bottom - y) / (bottom - top);
      return Math.min(Math.max(Math.floor(share * procs * slots), 0), procs * slots - 1);
    }

    at(x) {
      const { left, right } = this.data.plot;
      return this.from + ((x - left) / (right - left)) * (this.to - this.from);
    }

    /** Shows the window of that length around the middle, within the whole one. */
    show(middle, length) {
      const { from, to } = this.data;
      const long = Math.max(Math.min(length, to - from), Math.min(1, to - from));
      this.from = Math.min(Math.max(middle - long / 2, from), to - long);
      this.to = this.from + long;
      this.draw();
    }

    draw() {
      const paths = new Map();
      const labels = [];
      const size = narrow() ? 16 : 12;
      for (const job of this.data.jobs) {
        const [number, , , start, end, , , pes] = job;
        if (end <= this.from || start >= this.to) continue;
        const [left, right] = [this.x(start), this.x(end)];
        let tallest = null;
        for (const [low, high] of pes) {
          const [top, bottom] = [this.y(high + 1), this.y(low)].sort((one, other) => one - other);
          const thin = right - left <= 3 || bottom - top <= 3;
          const key = `${thin ? 'job thin' : 'job'} ${this.painted(job)}`;
          if (!paths.has(key)) paths.set(key, []);
          paths.get(key).push(`M${left.toFixed(2)} ${top.toFixed(2)}h${Math.max(right - left, 0.5).toFixed(2)}V${bottom.toFixed(2)}H${left.toFixed(2)}Z`);
          if (!tallest || bottom - top > tallest.tall) tallest = { tall: bottom - top, y: (top + bottom) / 2 + 4.2 };
        }
        const text = String(number);
        if (tallest && tallest.tall > size && right - left > text.length * size * 0.6 + 4) labels.push(drawn('text', { 'text-anchor': 'middle', x: (left + right) / 2, y: tallest.y }, text));
      }
      const thinFirst = [...paths].sort(([one], [other]) => (one < other ? 1 : -1));
      this.jobs.replaceChildren(...thinFirst.map(([key, d]) => drawn('path', { class: key, d: d.join('') })));
      this.numbers.replaceChildren(...labels);
      this.mark();
      this.waiting();
      this.axis();
    }

    /** An instant: its date, or the time of the log. */
    instant(secs) {
      const { clock } = this.data;
      if (!clock) return time(secs);
      const { date, time: clockTime } = parts(secs + shift(clock, secs));
      return `${date} ${clockTime}`;
    }

    /** The ticks of the axis: their places in seconds of the log, and their texts. */
    instants(step) {
      const { clock } = this.data;
      const first = clock ? shift(clock, this.from) : 0;
      const found = [];
      for (let at = Math.ceil((this.from + first) / step) * step; at - first <= this.to + 7200; at += step) {
        const secs = clock ? at - shift(clock, at - first) : at;
        if (secs > this.to) break;
        const { day, time: clockTime } = clock ? parts(at) : {};
        const dated = at % 86400 === 0 ? day : found.length ? clockTime : `${day} ${clockTime}`;
        found.push([secs, clock ? dated : time(at)]);
      }
      return found;
    }

    /** Draws the waiting jobs below the schedule. */
    waiting() {
      if (!this.data.queue) return;
      const { steps, panels } = this.data.queue;
      const first = Math.max(steps.findLastIndex(([at]) => at <= this.from), 0);
      const shown = steps.slice(first).filter(([at]) => at < this.to);
      panels.forEach(({ top, bottom, high }, n) => {
        const line = shown.map((step) => `H${this.x(step[0]).toFixed(2)}V${(bottom - (step[n + 1] / high) * (bottom - top)).toFixed(2)}`);
        this.areas[n].setAttribute('d', `M${this.x(this.from)} ${bottom}${line.join('')}H${this.x(this.to)}V${bottom}Z`);
      });
    }

    /** The jobs that wait at an instant. */
    queued(secs) {
      const { steps } = this.data.queue;
      const [, jobs, procs] = steps[Math.max(steps.findLastIndex(([at]) => at <= secs), 0)];
      return `${many(jobs, 'job')} waiting for ${many(procs, 'processor')}\n${this.instant(secs)}`;
    }

    inQueue(at) {
      const { left, right } = this.data.plot;
      return Boolean(this.data.queue) && this.data.queue.panels.some(({ top, bottom }) => inside({ left, right, top, bottom }, at));
    }

    /** The class of a job's colour. */
    painted(job) {
      return this.classes ? this.classes.get(job) : `${this.data.scale}${job[1]}`;
    }

    /** Frames the job that was searched. */
    mark() {
      this.svg.querySelectorAll('.found').forEach((frame) => frame.remove());
      for (const [, , , start, end, , , pes] of this.data.jobs.filter(([number]) => number === this.found)) {
        if (end <= this.from || start >= this.to) continue;
        for (const [low, high] of pes) {
          const [top, bottom] = [this.y(high + 1), this.y(low)].sort((one, other) => one - other);
          const x = this.x(start);
          this.svg.append(drawn('rect', { class: 'found ring', x, y: top, width: Math.max(this.x(end) - x, 2), height: Math.max(bottom - top, 2) }));
        }
      }
    }

    /** Shows the job of that number with the time around it. Returns whether it is in the window. */
    find(number) {
      const parts = this.data.jobs.filter(([one]) => one === number);
      this.found = parts.length ? number : null;
      if (!parts.length) {
        this.draw();
        return false;
      }
      const from = Math.min(...parts.map(([, , , start]) => start));
      const to = Math.max(...parts.map(([, , , , end]) => end));
      this.show((Math.max(from, this.data.from) + Math.min(to, this.data.to)) / 2, Math.min(this.to - this.from, Math.max((to - from) * 4, 600)));
      return true;
    }

    /** Colours the jobs by another attribute, and says so in the legend. */
    paint(colour) {
      this.colour = colour;
      const groups = GROUPS[colour] && GROUPS[colour](this.data.jobs);
      this.classes = groups && new Map(groups.flatMap(({ look, jobs }) => jobs.map((job) => [job, look])));
      this.svg.querySelectorAll('.legend').forEach((legend) => legend.remove());
      if (!groups && this.legend) this.svg.insertBefore(this.legend, this.grid);
      if (groups) this.svg.insertBefore(legend(groups.filter(({ jobs }) => jobs.length)), this.grid);
      this.draw();
    }

    axis() {
      const { top, bottom, left } = this.data.plot;
      const step = STEPS.find((candidate) => candidate >= (this.to - this.from) / 7) || 86400 * Math.ceil((this.to - this.from) / 604800);
      const marks = [];
      const lines = [...this.grid.children].filter((line) => line.getAttribute('x1') !== line.getAttribute('x2'));
      const letter = narrow() ? 10 : 7;
      let free = -Infinity;
      for (const [at, text] of this.instants(step)) {
        const x = this.x(at);
        const half = (text.length * letter) / 2;
        const fits = x - half > free;
        if (fits) free = x + half + 6;
        marks.push(drawn('line', { x1: x, x2: x, y1: bottom, y2: bottom + 5 }), drawn('text', { 'text-anchor': 'middle', x, y: bottom + 18.8 }, fits ? text : ''));
        if (x - left > 0.5) lines.push(drawn('line', { x1: x, x2: x, y1: top, y2: bottom }));
      }
      this.ticks.replaceChildren(...marks);
      this.grid.replaceChildren(...lines);
    }

    /** What runs at a place of the drawing. */
    read(at) {
      if (this.inQueue(at)) return this.queued(this.at(at.x));
      if (!inside(this.data.plot, at)) return '';
      const { procs, slots } = this.data;
      const secs = this.at(at.x);
      const pe = this.line(at.y);
      const near = ((this.to - this.from) / 600) * 2;
      const holds = ([, , , start, end, , , pes], slack) => start - slack <= secs && secs < end + slack && pes.some(([low, high]) => low <= pe && pe <= high);
      const job = this.data.jobs.find((one) => holds(one, 0)) || this.data.jobs.find((one) => holds(one, near));
      const slot = slots > 1 ? `slot ${Math.floor(pe / procs)}, ` : '';
      if (!job) return `${slot}processor ${pe % procs}, free\n${this.instant(secs)}`;
      const [number, , submit, start, end, user, key, pes, part] = job;
      const wide = pes.reduce((sum, [low, high]) => sum + high - low + 1, 0);
      const who = user === null ? '' : `, user ${user}`;
      return `${slot}job ${number}, ${wide} ${wide === 1 ? 'processor' : 'processors'}${who}${key ? `\n${key}` : ''}\nsubmitted ${this.instant(submit)}, ${part ? `stay ${part[0]} of ${part[1]}` : `waited ${time(start - submit)}`}\nran ${time(end - start)}: ${this.instant(start)} to ${this.instant(end)}`;
    }
  }

  // Groups of jobs by an attribute, each with its name and the class of its colour.

  const NAMED = 5;

  /** The users with the most processor time, and all others. */
  function byUser(jobs) {
    const work = new Map();
    for (const [, , , start, end, user, , pes] of jobs) work.set(user, (work.get(user) || 0) + (end - start) * wide(pes));
    const users = [...work].sort(([, one], [, other]) => other - one).map(([user]) => user);
    const named = users.slice(0, NAMED).map((user, n) => ({ name: user === null ? 'no user' : `user ${user}`, look: `s${n}`, jobs: jobs.filter((job) => job[5] === user) }));
    const rest = jobs.filter((job) => users.indexOf(job[5]) >= NAMED);
    return [...named, { name: 'others', look: 's6', jobs: rest }];
  }

  /** Steps of an ordered value. Each step is up to its limit. */
  function steps(jobs, value, limits, names) {
    const step = (job) => limits.findIndex((limit) => value(job) <= limit);
    return names.map((name, n) => ({ name, look: `v${n}`, jobs: jobs.filter((job) => step(job) === n) }));
  }

  function bySize(jobs) {
    return steps(jobs, (job) => wide(job[7]), [1, 4, 16, 64, Infinity], ['1 processor', '2 to 4', '5 to 16', '17 to 64', 'over 64']);
  }

  /** By the bounded slowdown of the whole job, whose parts may be several. */
  function bySlowdown(jobs) {
    const whole = new Map();
    for (const [number, , submit, start, end] of jobs) {
      const known = whole.get(number) || { submit, end, ran: 0 };
      whole.set(number, { submit, end: Math.max(end, known.end), ran: known.ran + end - start });
    }
    const slowdown = ([number]) => {
      const { submit, end, ran } = whole.get(number);
      return 1 + Math.max(end - submit - ran, 0) / Math.max(ran, 10);
    };
    return steps(jobs, slowdown, [1, 2, 10, 100, Infinity], ['slowdown 1', 'up to 2', 'up to 10', 'up to 100', 'over 100']);
  }

  const GROUPS = { user: byUser, size: bySize, slowdown: bySlowdown };

  const wide = (pes) => pes.reduce((sum, [low, high]) => sum + high - low + 1, 0);

  /** A row of names with their colours. Its space is that of the drawing's own legend. */
  function legend(groups) {
    const row = drawn('g', { class: 'legend' });
    let x = 8;
    for (const { name, look } of groups) {
      const entry = drawn('g', { transform: `translate(${x} 9)` });
      entry.append(drawn('rect', { class: `job ${look}`, x: 2, y: -6, width: 18, height: 12 }), drawn('text', { x: 26, y: 4.2 }, name));
      row.append(entry);
      x += 26 + name.length * (narrow() ? 9 : 7) + 8;
    }
    return row;
  }

  function gantt(svg, data, tools, hint) {
    const schedule = new Schedule(svg, data);
    const length = () => schedule.to - schedule.from;
    const middle = () => (schedule.from + schedule.to) / 2;
    const actions = [
      ['+', 'Zoom in', () => schedule.show(middle(), length() / 2)],
      ['−', 'Zoom out', () => schedule.show(middle(), length() * 2)],
      ['←', 'Earlier', () => schedule.show(middle() - length() / 2, length())],
      ['→', 'Later', () => schedule.show(middle() + length() / 2, length())],
      ['Whole', 'Show the whole window', () => schedule.show(middle(), Infinity)],
    ];
    tools.append(...actions.map(([text, label, press]) => button(text, label, press)));
    const search = element('input', '', { type: 'search', inputmode: 'numeric', placeholder: 'job number', 'aria-label': 'Find a job by its number' });
    search.addEventListener('change', () => {
      const found = search.value.trim() === '' || schedule.find(Number(search.value));
      if (search.value.trim() === '') schedule.find(null);
      search.setCustomValidity(found ? '' : 'not in this period');
      search.reportValidity();
    });
    const colour = element('select', '', { 'aria-label': 'Colour of the jobs' });
    for (const [value, text] of [['reason', data.scale === 'd' ? 'colour: change' : 'colour: reason'], ['user', 'colour: user'], ['size', 'colour: size'], ['slowdown', 'colour: slowdown']]) colour.append(element('option', text, { value }));
    colour.addEventListener('change', () => schedule.paint(colour.value));
    tools.append(search, ...(svg.querySelector('.legend') ? [colour] : []));
    hint.textContent = 'Drag: zoom. Shift-drag: move. Double click: zoom in.';
    svg.classList.add('zoom');
    let held = null;
    let due = 0;
    svg.addEventListener('pointerdown', (event) => {
      // Fingers scroll the page; they have the buttons.
      if (event.pointerType !== 'mouse' || event.button !== 0) return;
      held = { x: place(svg, event).x, middle: middle(), moves: event.shiftKey };
      if (!held.moves) {
        held.box = drawn('rect', { class: 'selection', y: data.plot.top, height: data.plot.bottom - data.plot.top, width: 0 });
        svg.append(held.box);
      }
      svg.setPointerCapture(event.pointerId);
    });
    /** The selected part of the plot. */
    const selected = (event) => {
      const { left, right } = data.plot;
      return [held.x, place(svg, event).x].map((x) => Math.min(Math.max(x, left), right)).sort((one, other) => one - other);
    };
    svg.addEventListener('pointermove', (event) => {
      if (!held) return;
      if (held.box) {
        const [from, to] = selected(event);
        held.box.setAttribute('x', from);
        held.box.setAttribute('width', to - from);
        return;
      }
      const { left, right } = data.plot;
      const moved = ((held.x - place(svg, event).x) / (right - left)) * length();
      cancelAnimationFrame(due);
      due = requestAnimationFrame(() => held && schedule.show(held.middle + moved, length()));
    });
    const release = () => {
      if (held && held.box) held.box.remove();
      held = null;
    };
    svg.addEventListener('pointerup', (event) => {
      const [from, to] = held && held.box ? selected(event).map((x) => schedule.at(x)) : [0, 0];
      const dragged = held && held.box && Math.abs(place(svg, event).x - held.x) > 4;
      release();
      if (dragged) schedule.show((from + to) / 2, to - from);
    });
    svg.addEventListener('pointercancel', release);
    svg.addEventListener('dblclick', (event) => schedule.show(schedule.at(place(svg, event).x), length() / 4));
    listen(svg, (at) => (held ? '' : schedule.read(at)));
  }

  // ---- Matrices: the same drawing at any instant of the window.

  const COLOURS = 6;
  const TOLD = 16;

  class Matrix {
    constructor(svg, data, description) {
      Object.assign(this, { svg, data, description });
      this.places = svg.querySelector('.places');
      this.numbers = svg.querySelector('.numbers');
      this.guests = svg.querySelector('.guests');
      this.instant = svg.querySelector('.instant');
      this.events = this.changes();
      this.show(this.events.findLastIndex((event) => event <= data.at));
    }

    /** The instants at which a place is taken or left, the window's begin among them. */
    changes() {
      const { from, to, places } = this.data;
      const within = places.flatMap(([, , , came, left]) => [came, left]).filter((at) => at > from && at < to);
      return [...new Set([from, ...within])].sort((one, other) => one - other);
    }

    /** Shows how all stands from that event on. */
    show(event) {
      this.event = Math.min(Math.max(event, 0), this.events.length - 1);
      const at = this.events[this.event];
      const places = this.data.places.filter(([, , , from, to]) => from <= at && at < to);
      const used = new Map();
      const turns = new Map();
      for (const [job, slot, own, , , pes] of places) {
        const taken = used.get(slot) || [0, 0];
        taken[own ? 0 : 1] += this.wide(pes);
        used.set(slot, taken);
        turns.set(job, (turns.get(job) || 0) + 1);
      }
      // A slot is used as long as some job has its own place there.
      for (const [slot, [own]] of used) if (!own) used.delete(slot);
      this.draw(places, turns, used.size);
      this.say(at, used);
    }

    wide(pes) {
      return pes.reduce((sum, [low, high]) => sum + high - low + 1, 0);
    }

    /** Where a range of processors of a slot lies. */
    rect(slot, [low, high]) {
      const { plot: { left, right, top, bottom }, procs, slots } = this.data;
      const tall = (bottom - top) / Math.max(slots, 1);
      const gap = Math.min(tall * 0.1, 2);
      const x = (pe) => left + (pe / procs) * (right - left);
      return { x: x(low), y: top + slot * tall + gap / 2, wide: Math.max(x(high + 1) - x(low), 0.5), tall: Math.max(tall - gap, 0.5) };
    }

    draw(places, turns, used) {
      const [drawings, numbers, guests] = [[], [], []];
      for (const [job, slot, own, , , pes] of places.filter(([, slot]) => slot < this.data.slots)) {
        const rects = pes.map((range) => this.rect(slot, range));
        const d = rects.map(({ x, y, wide, tall }) => `M${x.toFixed(2)} ${y.toFixed(2)}h${wide.toFixed(2)}v${tall.toFixed(2)}H${x.toFixed(2)}Z`).join('');
        drawings.push(drawn('path', { class: `job ${own ? '' : 'guest '}s${job % COLOURS}`, d, role: 'img', tabindex: -1, 'aria-label': this.told(job, slot, own, pes, turns.get(job), used) }));
        const widest = rects.reduce((one, other) => (other.wide > one.wide ? other : one));
        const text = String(this.data.jobs[job][0]);
        if (widest.wide > text.length * 7.7 + 4 && widest.tall > 12) (own ? numbers : guests).push(drawn('text', { 'text-anchor': 'middle', x: widest.x + widest.wide / 2, y: widest.y + widest.tall / 2 + 4.2 }, text));
      }
      this.places.replaceChildren(...drawings);
      this.numbers.replaceChildren(...numbers);
      this.guests.replaceChildren(...guests);
      // One of them is reached by the tab key, the others from there.
      if (drawings.length) drawings[0].setAttribute('tabindex', 0);
    }

    told(job, slot, own, pes, turns, used) {
      const [number, submit, user] = this.data.jobs[job];
      const whose = own ? 'its own' : 'alternate: no other job needs its processors there';
      const who = user === null ? '' : `, user ${user}`;
      const share = Math.round((100 * turns) / used);
      return `job ${number}, ${many(this.wide(pes), 'processor')}${who}\nin slot ${slot}, ${whose}\nruns in ${turns} of ${many(used, 'slot')}: ${share} % of the time\nsubmitted ${time(submit)}`;
    }

    say(at, used) {
      const slots = [...used].sort(([one], [other]) => one - other).map(([slot, [own, others]]) => `slot ${slot}: ${own}${others ? ` + ${others}` : ''}`);
      const more = slots.length > TOLD ? `; and ${slots.length - TOLD} more` : '';
      const taken = slots.length ? ` Processors taken, of ${this.data.procs}, by jobs of the slot + by others: ${slots.slice(0, TOLD).join('; ')}${more}.` : '';
      this.instant.textContent = `at ${time(at)}: ${many(used.size, 'slot')} used`;
      this.description.textContent = `At ${time(at)}: ${many(used.size, 'slot')} used.${taken}`;
    }
  }

  function matrix(svg, data, tools, description) {
    const picture = new Matrix(svg, data, description);
    const slider = element('input', '', { type: 'range', min: 0, max: picture.events.length - 1, step: 1, 'aria-label': 'Time, from event to event' });
    const move = (event) => {
      picture.show(event);
      slider.value = picture.event;
      slider.setAttribute('aria-valuetext', picture.instant.textContent);
    };
    description.setAttribute('role', 'status');
    slider.addEventListener('input', () => move(Number(slider.value)));
    tools.append(
      button('←', 'Event before', () => move(picture.event - 1)),
      slider,
      button('→', 'Next event', () => move(picture.event + 1)),
    );
    move(picture.event);
    svg.addEventListener('keydown', (event) => {
      const jobs = [...picture.places.children];
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const next = step && jobs[jobs.indexOf(event.target) + step];
      if (!next) return;
      event.preventDefault();
      next.focus();
    });
    svg.addEventListener('focusin', ({ target }) => {
      const box = target.getBoundingClientRect();
      say(target.getAttribute('aria-label') || '', { clientX: box.left, clientY: box.top });
    });
    svg.addEventListener('focusout', () => say(''));
    listen(svg, (_, event) => event.target.getAttribute('aria-label') || '');
  }

  // ---- A chart as a file of its own, as it is shown now.

  /** The drawing as a document with this style. */
  function documentOf(figure, svg, css) {
    const copy = svg.cloneNode(true);
    copy.removeAttribute('aria-labelledby');
    copy.querySelectorAll('.ring, .selection').forEach((ring) => ring.remove());
    copy.prepend(drawn('title', {}, figure.querySelector('figcaption strong, figcaption h2').textContent), drawn('style', {}, css));
    return new Blob([new XMLSerializer().serializeToString(copy)], { type: 'image/svg+xml' });
  }

  function download(file, name) {
    const link = element('a', '', { href: URL.createObjectURL(file), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function save(figure, svg) {
    const css = ['r', 'd'].includes(charts[figure.dataset.chart]?.scale) ? style + schedule : style;
    download(documentOf(figure, svg, css), `${figure.dataset.chart}.svg`);
  }

  /** Pixels of an image for each unit of the drawing. */
  const PIXELS = 3;

  /** Saves the chart as an image in the theme of the page. */
  async function saveImage(figure, svg) {
    const url = URL.createObjectURL(documentOf(figure, svg, themes[dark() ? 1 : 0]));
    const image = new Image();
    image.src = url;
    await image.decode();
    const { width, height } = svg.viewBox.baseVal;
    const canvas = element('canvas', '', { width: Math.round(width * PIXELS), height: Math.round(height * PIXELS) });
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(url);
    canvas.toBlob((file) => file && download(file, `${figure.dataset.chart}.png`), 'image/png');
  }

  /** Prints the chart alone. The browser's dialog can save it as PDF. */
  function printOne(figure) {
    figure.classList.add('printed');
    root.classList.add('one');
    addEventListener('afterprint', () => {
      figure.classList.remove('printed');
      root.classList.remove('one');
    }, { once: true });
    print();
  }

  themeSwitch();
  document.body.append(tip);
  addEventListener('scroll', () => say(''), { passive: true });
  for (const figure of document.querySelectorAll('figure[data-chart]')) {
    const svg = figure.querySelector('svg');
    const tools = element('div', '', { class: 'tools' });
    const hint = element('span', '', { class: 'hint' });
    const description = figure.querySelector('.description');
    const data = charts[figure.dataset.chart];
    if (data && data.kind === 'gantt') gantt(svg, data, tools, hint);
    else if (data && data.kind === 'matrix') matrix(svg, data, tools, description);
    else if (data) points(svg, data);
    else titles(svg);
    tools.append(
      button('SVG', 'Save this chart as an SVG file', () => save(figure, svg)),
      button('PNG', 'Save this chart as a PNG image', () => saveImage(figure, svg)),
      button('PDF', 'Print this chart, or save it as PDF', () => printOne(figure)),
    );
    if (hint.textContent) tools.append(hint);
    // What changes in length with every event must not move what leads to them.
    if (description) description.before(tools);
    else figure.append(tools);
  }
})();
