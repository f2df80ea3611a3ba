// The parts of the page that are not drawn: pools, tables, one job, what starts now, changes.

/** Returns an element with text or children. Text is never read as markup. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (value !== false && value != null) made.setAttribute(key, value === true ? '' : value);
  }
  made.append(...children.filter(child => child != null));
  return made;
}

/** Sets a text if it is another one: the same text again would be read again, and would end a selection. */
export function write(into, text) {
  if (into.textContent !== text) into.textContent = text;
}

/** Makes these elements the children, in this order. One that has the focus is never moved, because a move would end the focus. */
export function arrange(into, wanted) {
  const kept = new Set(wanted);
  for (const node of [...into.children]) if (!kept.has(node)) node.remove();
  const still = wanted.findIndex(node => node.contains(document.activeElement)), first = still < 0 ? wanted.length : still;
  const put = (node, next) => { if (node.parentNode !== into || node.nextElementSibling !== next) into.insertBefore(node, next); };
  for (let place = first - 1; place >= 0; place--) put(wanted[place], wanted[place + 1] ?? null);
  for (let place = first + 1; place < wanted.length; place++) {
    const node = wanted[place], next = wanted[place - 1].nextElementSibling;
    if (node !== next) into.insertBefore(node, next);
  }
}

/** Fills a bar with shares of it, each with the name of its colour. */
export function share(bar, shares) {
  let from = 0;
  const stops = shares.map(([size, colour]) => `var(${colour}) ${100 * from}% ${100 * (from += size)}%`);
  const next = `linear-gradient(90deg, ${[...stops, `transparent ${100 * from}%`].join(', ')})`;
  if (bar.dataset.shares === next) return;
  bar.dataset.shares = next;
  bar.style.background = next;
}

/** Makes elements one stop of the tab key. The arrow keys move among them. */
export function rove(into, stops = () => [...into.querySelectorAll('button')]) {
  const all = stops();
  if (all.length && !all.some(stop => stop.tabIndex === 0 && all.filter(other => other.tabIndex === 0).length === 1)) all.forEach((stop, at) => stop.setAttribute('tabindex', at ? -1 : 0));
  into.onkeydown = event => {
    const now = stops(), at = now.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: now.length - 1 }[event.key];
    if (at < 0 || to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const next = now[Math.min(Math.max(to, 0), now.length - 1)];
    now[at].setAttribute('tabindex', -1);
    next.setAttribute('tabindex', 0);
    next.focus();
  };
}

export const memory = bytes => {
  for (const [unit, size] of [['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]])
    if (bytes >= size) return `${+(bytes / size).toFixed(1)} ${unit}`;
  return `${bytes} B`;
};

export const span = millis => {
  if (millis < 0) return `-${span(-millis)}`;
  const minutes = Math.floor(millis / 60e3), hours = Math.floor(minutes / 60);
  if (hours >= 48) return `${Math.floor(hours / 24)} d ${hours % 24} h`;
  return hours ? `${hours} h ${minutes % 60} min` : minutes ? `${minutes} min` : `${Math.floor(millis / 1000)} s`;
};

export const counted = (number, word) => `${number} ${word}${number === 1 ? '' : 's'}`;

const percent = (part, whole) => whole ? Math.round(100 * part / whole) : 0;

/** Returns whether what an element shows has changed since it was asked last. */
function isNew(into, value) {
  const key = JSON.stringify(value), before = into.dataset.key;
  into.dataset.key = key;
  return key !== before;
}

/** Shows the pools: held, reserved and free are told apart by pattern and in words, not by colour alone. */
export function pools(into, moment) {
  if (!isNew(into, moment.pools.map(({ hosts, holes, ...pool }) => pool))) return;
  into.replaceChildren(...moment.pools.map(pool => {
    const words = `${pool.held} of ${pool.cpus} processors held, ${pool.reserved} idle but reserved, ${pool.free} free${pool.offline ? `, ${pool.offline} offline` : ''}`;
    const box = element('div', { class: 'pool' },
      element('h3', {}, `${pool.name} `, element('small', {}, `${pool.policy}; promises ${pool.promises || 'unknown'}`)),
      bar(pool, words),
      element('p', {}, `${words} (${percent(pool.held, pool.cpus)} %); ${pool.running} running, ${pool.waiting} waiting`));
    box.append(day(pool.day));
    if (pool.memory) box.append(element('p', {}, `${memory(pool.memory_held)} of ${memory(pool.memory)} of memory held`));
    if (pool.stopped) box.append(element('p', { class: 'stopped' }, `stopped: ${pool.stopped}`));
    return box;
  }));
}

export function svg(name, attributes, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function bar(pool, words) {
  const id = `hatch-${pool.name}`.replace(/\W/g, '-'), whole = pool.cpus || 1;
  const hatch = svg('pattern', { id, width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
    svg('rect', { width: 2.4, height: 6, fill: 'var(--reserved)' }));
  const part = (from, size, fill) => svg('rect', { x: `${100 * from / whole}%`, width: `${100 * size / whole}%`, height: '100%', fill });
  return element('div', { class: 'bar', role: 'img', 'aria-label': words },
    svg('svg', { 'aria-hidden': true }, svg('defs', {}, hatch), part(0, pool.held, 'var(--held)'), part(pool.held, pool.reserved, `url(#${id})`)));
}

/** Draws the use of the last day. */
function day(used) {
  const mean = Math.round(used.reduce((sum, part) => sum + part, 0) / Math.max(used.length, 1));
  const hours = used.length < 4 ? `${15 * used.length} min` : `${Math.floor(used.length / 4)} h`;
  const points = used.map((part, place) => `${place},${100 - part} ${place + 1},${100 - part}`).join(' ');
  return element('div', { class: 'day', role: 'img', 'aria-label': `${mean} percent used in the last ${hours}` },
    element('span', {}, `last ${hours}: ${mean} %`),
    svg('svg', { 'aria-hidden': true, viewBox: `0 0 ${used.length} 100`, preserveAspectRatio: 'none' },
      svg('polygon', { points: `0,100 ${points} ${used.length},100`, fill: 'var(--held)', 'fill-opacity': 0.5 })));
}

/** Shows the last changes. */
export function changes(list, found) {
  if (!isNew(list, found)) return;
  list.replaceChildren(...Object.keys(found).sort((one, other) => other - one).map(number => found[number]).map(change => element('li', {}, element('span', { class: 'muted' }, `${change.text.slice(-8)} `), change.sentence)));
  if (!list.children.length) list.replaceChildren(element('li', { class: 'muted' }, 'none since this page was started'));
}

/** Tells the median time before the first promise. */
const early = slack => slack <= -1000 ? `at most ${span(-slack)} after` : slack < 1000 ? 'at or before' : `${span(slack)} or more before`;

/** Shows the promises that were late or lost. */
export function missed(into, list) {
  into.hidden = !list.length;
  const [summary, lines] = into.children;
  write(summary, `${counted(list.length, 'promise')} that ${list.length === 1 ? 'was' : 'were'} late or lost`);
  lines.replaceChildren(...list.map(({ sentence }) => element('li', {}, sentence)));
}

/** Shows promises and forecasts. */
export function account(into, { account: { promises, kept, late, lost, withdrawn, open, at_risk: risk, forecasts }, slack }) {
  const parts = [`promises: ${promises} given, ${kept} kept, ${late} late, ${lost} lost, ${withdrawn} withdrawn, ${open} open (${risk} at risk)`];
  if (slack != null) parts.push(`half of the jobs start ${early(slack)} their first promise`);
  if (forecasts) {
    const [half, most, nearly] = forecasts.kept.map(kept => percent(kept, forecasts.audited));
    parts.push(`of ${counted(forecasts.audited, 'started job')} with a forecast ${half} % started by the likely start, ${most} % by the bound of 80 %, ${nearly} % by that of 95 %`);
  }
  write(into, promises || forecasts ? parts.join('; ') : '');
}
