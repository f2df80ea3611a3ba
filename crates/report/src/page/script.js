// Comfort for the reader: values under the pointer, a schedule that can be zoomed, a theme, charts to save.
// The page says everything without it.
(() => {
  'use strict';

  const { style, themes, charts } = JSON.parse(document.getElementById('charts').textContent);
  const SVG = 'http://www.w3.org/2000/svg';

  /* print */
  /* scene */

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
      schedules.forEach(redraw);
    };
    document.querySelector('header').prepend(button('Light / dark', 'Light / dark theme', press));
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
      // An element of SVG has no name without a role.
      if (!title.parentNode.hasAttribute('role')) title.parentNode.setAttribute('role', 'img');
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

  // ---- Schedules: the chart of the pages of machines and runs, with the bars and the curves of this page.

  /** A duration. The drawing prints durations the same way. */
  function time(secs) {
    const whole = Math.round(Math.abs(secs));
    const parts = [[Math.floor(whole / 86400), 'd'], [Math.floor(whole / 3600) % 24, 'h'], [Math.floor(whole / 60) % 60, 'm'], [whole % 60, 's']];
    const shown = parts.filter(([value]) => value > 0);
    if (!shown.length) return '0s';
    return (secs < 0 ? '−' : '') + shown.map(([value, unit]) => `${value}${unit}`).join('');
  }

  const many = (count, one) => `${count} ${count === 1 ? one : `${one}s`}`;

  // For tests, too.
  const schedules = globalThis.schedules = [];
  const themed = { get matches() { return dark(); }, addEventListener() {} };

  /** Returns the parts of the scene as a server would: all bars of a part one by one, and the means of its columns. */
  const local = ({ bars, legends, curves }) => async (kind, { group, from, column, columns, by }) => {
    const to = from + column * columns, place = legends.findIndex((legend) => legend.by === by);
    if (kind === 'tile') return { bars: bars[group].filter(([[begin, end]]) => begin < to && end > from).map(([bar, classes]) => bar.with(4, classes[place])) };
    return curves.map((curve) => Object.fromEntries(Object.entries(curve).map(([key, levels]) => [key, means(levels, from, column, columns)])));
  };

  /** Returns the means of a step function in columns, as runs of tenths. */
  function means(levels, from, column, columns) {
    const found = [];
    let next = levels.findIndex(([at]) => at > from);
    if (next < 0) next = levels.length;
    for (let begin = from; found.length < columns; begin += column) {
      let [at, area] = [begin, 0];
      for (; at < begin + column; ) {
        const until = Math.min(levels[next]?.[0] ?? Infinity, begin + column);
        area += (levels[next - 1]?.[1] ?? 0) * (until - at);
        if (until === levels[next]?.[0]) next++;
        at = until;
      }
      found.push([1, Math.round((area / column) * 10)]);
    }
    return found;
  }

  /** Draws as a canvas does, into elements of SVG: the calls of the painter. */
  class SvgContext {
    constructor(real) {
      Object.assign(this, { real, svg: drawn('svg', { xmlns: SVG, 'font-family': 'system-ui, sans-serif' }), globalAlpha: 1, lineWidth: 1, textAlign: 'start', dash: '', clips: 0 });
      this.into = [this.svg];
    }

    add(name, attributes, text) { this.into.at(-1).append(drawn(name, attributes, text)); }

    fillRect(x, y, width, height) { this.add('rect', { x, y, width, height, fill: this.fillStyle, 'fill-opacity': this.globalAlpha }); }

    strokeRect(x, y, width, height) { this.add('rect', { x, y, width, height, ...this.line() }); }

    line() { return { fill: 'none', stroke: this.strokeStyle, 'stroke-width': this.lineWidth, 'stroke-dasharray': this.dash || 'none' }; }

    write(text, x, y, look) {
      const [, bold, size] = /(600 )?(\d+)px/.exec(this.font);
      const middle = this.textBaseline === 'middle' ? size * 0.35 : 0;
      this.add('text', { x, y: y + middle, 'font-size': size, 'font-weight': bold ? 600 : 400, 'text-anchor': this.textAlign, ...look }, text);
    }

    fillText(text, x, y) { this.write(text, x, y, { fill: this.fillStyle }); }

    strokeText(text, x, y) { this.write(text, x, y, this.line()); }

    measureText(text) { this.real.font = this.font; return this.real.measureText(text); }

    setLineDash(dash) { this.dash = dash.join(' '); }

    beginPath() { this.path = ''; }

    moveTo(x, y) { this.path += `M${x} ${y}`; }

    lineTo(x, y) { this.path += `${this.path ? 'L' : 'M'}${x} ${y}`; }

    fill() { this.add('path', { d: this.path, fill: this.fillStyle, 'fill-opacity': this.globalAlpha }); }

    stroke() { this.add('path', { d: this.path, ...this.line() }); }

    rect(x, y, width, height) { this.box = { x, y, width, height }; }

    save() { this.into.push(this.into.at(-1)); }

    clip() {
      const id = `clip-${++this.clips}`, box = drawn('clipPath', { id }), group = drawn('g', { 'clip-path': `url(#${id})` });
      box.append(drawn('rect', this.box));
      this.into.at(-1).append(box, group);
      this.into[this.into.length - 1] = group;
    }

    restore() { this.into.pop(); }

    setTransform() {}

    clearRect() {}
  }

  /** Returns the schedule as it is shown, with its legend, as a drawing of its own. */
  function saved({ chart }) {
    const real = chart.context, context = chart.context = new SvgContext(real), width = chart.width();
    chart.isFile = true;
    chart.paint();
    Object.assign(chart, { context: real, isFile: false });
    let [x, y] = [4, chart.below + chart.curved() + 20];
    context.font = '12px system-ui, sans-serif';
    for (const { name, bars, [chart.ink.theme]: [fill] } of chart.legend().entries.filter((entry) => entry.bars)) {
      const text = `${name} (${bars})`, wide = 34 + context.measureText(text).width;
      if (x > 4 && x + wide > width) [x, y] = [4, y + 20];
      Object.assign(context, { fillStyle: fill });
      context.fillRect(x, y - 10, 16, 11);
      Object.assign(context, { fillStyle: chart.ink.ink });
      context.fillText(text, x + 21, y);
      x += wide;
    }
    const paper = drawn('rect', { width, height: y + 10, fill: chart.ink.paper });
    context.svg.prepend(paper);
    for (const [key, value] of Object.entries({ viewBox: `0 0 ${width} ${y + 10}`, width, height: y + 10 })) context.svg.setAttribute(key, value);
    return context.svg;
  }

  /** What the colours mean. */
  function colours({ chart, legend }) {
    const theme = dark() ? 'dark' : 'light';
    legend.replaceChildren(...chart.legend().entries.filter((entry) => entry.bars).map(({ name, bars, [theme]: [fill, edge] }) => {
      const entry = element('li', `${name} (${bars})`), sample = element('span', '');
      Object.assign(sample.style, { background: fill, borderColor: edge });
      entry.prepend(sample);
      return entry;
    }));
  }

  function redraw(schedule) {
    schedule.chart.draw();
    colours(schedule);
  }

  /** What a bar says of its job. */
  function told(chart, jobs, { job, from, to, group, most }) {
    const known = jobs.find(([number, start]) => number === job && start === from);
    if (!known) return `job ${job}`;
    const [, , submit, procs, user, note] = known, instant = (at) => `${chart.label(at, 864e5)} ${chart.label(at, 1e3).split(' ').at(-1)}`;
    const who = user === null ? '' : `, user ${user}`;
    return `job ${job}, ${many(procs, 'processor')}${who}\nsubmitted ${instant(submit)}\nstarts ${instant(from)} after ${time((from - submit) / 1000)}\nruns for ${time((to - from) / 1000)}\n${note}`;
  }

  function gantt(svg, { scene, by, jobs }, tools, hint) {
    const canvas = element('canvas', '', { tabindex: 0, role: 'application', 'aria-roledescription': 'chart', 'aria-labelledby': svg.getAttribute('aria-labelledby') });
    const legend = element('ul', '', { class: 'legend', 'aria-label': 'Colours' });
    svg.classList.add('still');
    svg.after(canvas, legend);
    const choose = (bar) => { chart.chosen = bar?.job ?? null; chart.draw(); };
    const chart = new Chart(canvas, { load: local(scene), choose, hover: (bar, event) => say(bar ? told(chart, jobs, bar) : '', event), isFixed: true, dark: themed });
    const schedule = { chart, legend }, [from, to] = scene.range;
    schedules.push(schedule);
    chart.by = scene.legends.some((known) => known.by === by) ? by : scene.legends[0].by;
    // All is over, and no line is that of the present.
    const moment = { now: 9e15, live: false, pools: scene.pools.map((name) => ({ name })) };
    chart.update({ ...scene, moment, opening: { from, to }, version: 0, runs: true, hasCurves: scene.curves.length > 0, hasQueue: scene.curves.some(({ waiting }) => waiting.length) }, null);
    const span = () => chart.scale * chart.width();
    const actions = [
      ['+', 'Zoom in', () => chart.zoom(0.5)],
      ['−', 'Zoom out', () => chart.zoom(2)],
      ['←', 'Earlier', () => chart.pan(-chart.width() / 2)],
      ['→', 'Later', () => chart.pan(chart.width() / 2)],
      ['Whole', 'Show the whole window', () => chart.view((from + to) / 2, to - from)],
    ];
    tools.append(...actions.map(([text, label, press]) => button(text, label, press)));
    const search = element('input', '', { type: 'search', inputmode: 'numeric', placeholder: 'job number', 'aria-label': 'Find a job by its number' });
    search.addEventListener('change', () => {
      const wanted = search.value.trim(), bars = scene.bars.flat().map(([bar]) => bar).filter((bar) => wanted !== '' && bar[2] === Number(wanted));
      chart.chosen = bars.length ? bars[0][2] : null;
      if (bars.length) {
        const [first, last] = [Math.max(Math.min(...bars.map(([begin]) => begin)), from), Math.min(Math.max(...bars.map(([, end]) => end)), to)];
        chart.view((first + last) / 2, Math.min(span(), Math.max(4 * (last - first), 6e5)));
      } else chart.draw();
      search.setCustomValidity(bars.length || wanted === '' ? '' : 'not in this period');
      search.reportValidity();
    });
    const colour = element('select', '', { 'aria-label': 'Colour of the jobs' });
    colour.append(...scene.legends.map(({ by: value, title }) => element('option', `colour: ${title}`, { value })));
    colour.value = chart.by;
    colour.addEventListener('change', () => {
      chart.by = colour.value;
      redraw(schedule);
    });
    tools.append(search, colour);
    colours(schedule);
    hint.textContent = 'Drag: move. Ctrl and the wheel: zoom. Keys: arrows, plus, minus, Home.';
    return schedule;
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
    copy.querySelectorAll('.ring').forEach((ring) => ring.remove());
    copy.prepend(drawn('title', {}, figure.querySelector('figcaption strong, figcaption h2').textContent), drawn('style', {}, css));
    return new Blob([new XMLSerializer().serializeToString(copy)], { type: 'image/svg+xml' });
  }

  function download(file, name) {
    const link = element('a', '', { href: URL.createObjectURL(file), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function save(figure, svg) {
    download(documentOf(figure, svg, style), `${figure.dataset.chart}.svg`);
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

  themeSwitch();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => schedules.forEach(redraw));
  document.body.append(tip);
  addEventListener('scroll', () => say(''), { passive: true });
  for (const figure of document.querySelectorAll('figure[data-chart]')) {
    const svg = figure.querySelector('svg');
    const tools = element('div', '', { class: 'tools' });
    const hint = element('span', '', { class: 'hint' });
    const description = figure.querySelector('.description');
    const data = charts[figure.dataset.chart];
    const schedule = data && data.kind === 'gantt' ? gantt(svg, data, tools, hint) : null;
    // A schedule is saved as it is shown.
    const picture = () => (schedule ? saved(schedule) : svg);
    if (data && data.kind === 'matrix') matrix(svg, data, tools, description);
    else if (data && !schedule) points(svg, data);
    else if (!schedule) titles(svg);
    tools.append(
      button('SVG', 'Save this chart as an SVG file', () => save(figure, picture())),
      button('PNG', 'Save this chart as a PNG image', () => saveImage(figure, picture())),
      button('PDF', 'Print this chart on a page of its size, or save it as PDF', async () => printPicture(await documentOf(figure, picture(), themes[dark() ? 1 : 0]).text())),
    );
    if (hint.textContent) tools.append(hint);
    // What changes in length with every event must not move what leads to them.
    if (description) description.before(tools);
    else figure.append(tools);
  }
})();
