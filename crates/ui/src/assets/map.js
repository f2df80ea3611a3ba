// The map: which jobs hold which processors of which host. Cells are for the eye and the mouse, the buttons below them for all.

import { isByKey } from './list.js';
import { counted, element, memory, rove } from './tables.js';

// The most cells of a line, and the most lines of a host.
const ACROSS = 64, LINES = 16;
// The most processors of a pool that have a cell each; on a larger one neighbours with the same use are one cell.
const SINGLE_MOST = 1024;
// The most jobs that are listed for a group of hosts or processors: those with the most processors there. The most that are listed for one host.
const LISTED_MOST = 6, LISTED_OF_HOST = 64;
// The letters of a number for which a cell may have room.
const LETTERS = 4;

const words = { held: 'held', opportunistic: 'idle, with an opportunistic job', idle: 'idle', reserved: 'idle but reserved', offline: 'offline' };

/** Shows the map. It is made anew only if it has changed, and the focus stays on the same job of the same host. */
export function processors(into, known, { hosts, names }, chosen, choose) {
  const named = job => { const [name, user] = names[job] ?? []; return name === undefined ? '' : ` ${name} (${user})`; };
  const pools = known.slice(0, hosts.length).map((pool, place) => ({ ...pool, hosts: hosts[place] }));
  const key = JSON.stringify(pools.map(pool => [pool.name, pool.host_count, pool.hosts.map(host => [host, jobs(host).map(({ job }) => named(job))])]));
  if (into.dataset.key !== key) {
    const focus = into.contains(document.activeElement) ? document.activeElement.dataset.place : null, top = into.scrollTop;
    into.replaceChildren(...pools.flatMap(pool => [
      element('h3', {}, pool.name, pool.hosts.length > 1 ? element('small', {}, ` ${size(pool)}`) : null),
      element('ul', { class: pool.hosts.length > 1 ? 'hosts' : 'hosts alone' }, ...pool.hosts.map((host, place) => tile(host, pool.name, `${pool.name} ${place}`, named, pool.cpus + pool.offline <= SINGLE_MOST, pool.hosts.length !== pool.host_count))),
    ]));
    into.dataset.key = key;
    into.scrollTop = top;
    const stops = [...into.querySelectorAll('button')], still = stops.find(button => button.dataset.place === focus);
    for (const button of stops) button.tabIndex = -1;
    if (stops.length) (still ?? stops[0]).tabIndex = 0;
    if (focus !== null) (still ?? stops[0])?.focus({ preventScroll: true });
  }
  for (const part of into.querySelectorAll('[data-job]')) {
    if (+part.dataset.job === chosen) part.setAttribute('aria-current', 'true');
    else part.removeAttribute('aria-current');
  }
  into.onclick = event => { const part = event.target.closest('[data-job]'); if (part) choose(+part.dataset.job, isByKey(event)); };
  rove(into);
}

/** Returns how many hosts or processors a pool has, and in how many groups they are. */
const size = pool => (pool.host_count > 1 ? `${pool.host_count} hosts` : `${pool.cpus} processors`) +
  (pool.hosts.length === pool.host_count ? '' : ` in ${pool.hosts.length} groups`);

/** Returns the jobs of a host, each with its processors. */
function jobs(host) {
  const found = new Map();
  for (const part of host.parts.filter(part => part.job !== undefined)) {
    const known = found.get(part.job) ?? { job: part.job, label: part.label, cpus: 0, numbers: [], opportunistic: part.use === 'opportunistic', estimated: part.estimated };
    known.cpus += part.cpus;
    if (!part.estimated) known.numbers.push(...part.numbers ?? []);
    found.set(part.job, known);
  }
  return [...found.values()];
}

const where = ({ cpus, numbers, opportunistic, estimated }) => (numbers.length ? numbers.map(([low, high]) => low === high ? low : `${low}-${high}`).join(', ')
  : `${estimated ? 'about ' : ''}${counted(cpus, 'processor')}`) + (opportunistic ? ', on idle processors' : '');

function tile(host, pool, place, named, single, grouped) {
  const amounts = [`${host.held} of ${host.cpus} held${grouped ? ` (${Math.round(100 * host.held / host.cpus)} %)` : ''}`, host.reserved ? `${host.reserved} idle but reserved` : null, `${host.free} free`,
    host.offline ? `${host.offline} offline` : null, host.memory ? `${memory(host.memory_held)} of ${memory(host.memory)} of memory` : null,
    host.unusable ? `unusable: ${host.unusable}` : null].filter(Boolean).join(', ');
  const all = jobs(host), shown = grouped ? all.toSorted((one, other) => other.cpus - one.cpus).slice(0, LISTED_MOST).map(found => ({ ...found, numbers: [] })) : all.slice(0, LISTED_OF_HOST);
  const more = all.length - shown.length;
  const list = shown.map(found => element('button', { type: 'button', 'data-job': found.job, 'data-place': `${place} ${found.job}` },
    `${found.label}${named(found.job)}: ${where(found)}`));
  return element('li', {}, element('p', {}, host.name === pool ? null : element('strong', {}, `${host.name} `), amounts), cells(host, named, single), element('div', { class: 'holders' }, ...list, more ? element('span', { class: 'muted' }, `and ${counted(more, 'other job')}`) : null));
}

/** Draws the processors: one by one if their numbers are known and they are few. On a large host a cell is several of them, and each part has one
 *  cell at least. */
function cells(host, named, single) {
  const total = host.parts.reduce((sum, part) => sum + part.cpus, 0), unit = Math.max(1, Math.ceil(total / (ACROSS * LINES)));
  const across = Math.max(1, Math.min(ACROSS, Math.ceil(total / unit))), made = [];
  let sum = 0, cell = 0;
  for (const part of host.parts) {
    sum += part.cpus;
    const text = part.job === undefined ? `${part.cpus} ${words[part.use]}` : `job ${part.label}${named(part.job)}`;
    const alone = single && unit === 1 && part.numbers?.length === 1, first = alone ? part.numbers[0][0] - cell : 0;
    for (let left = Math.max(Math.round(sum / unit), cell + 1) - cell, run = 0; left > 0;) {
      const column = cell % across, room = Math.min(left, across - column), width = alone ? 1 : room;
      const drawn = element('span', { class: part.use, title: alone ? `processor ${first + cell}: ${part.job === undefined ? words[part.use] : `${part.estimated ? 'perhaps ' : ''}${text}`}` : text, 'data-job': part.job }, part.job === undefined || run > 0 || part.label.length > LETTERS * room ? '' : element('b', {}, element('i', {}, part.label)));
      // Cells side by side have the number of their job once.
      if (alone && run === 0) drawn.style.setProperty('--run', run = room);
      run -= width;
      drawn.style.gridColumn = `${column + 1} / span ${width}`;
      drawn.style.gridRow = Math.floor(cell / across) + 1;
      made.push(drawn);
      cell += width;
      left -= width;
    }
  }
  const grid = element('div', { class: 'cells', 'aria-hidden': 'true' }, ...made);
  grid.style.gridTemplateColumns = `repeat(${across}, minmax(0, 1fr))`;
  return grid;
}
