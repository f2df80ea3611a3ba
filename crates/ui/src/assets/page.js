// The page: takes contents from the server, and shows them. It says which rows and which parts of the chart it wants.

import { addressOf, parsed, picture, png, save } from './address.js';
import { Chart, KIND, RUN_NUMBERS, unpacked } from './chart.js';
import { Output, details, graph } from './job.js';
import { COLUMNS, List, WINDOW } from './list.js';
import { processors } from './map.js';
import { ANSWER_MOST, follow } from './state.js';
import { account, arrange, changes, counted, element, memory, missed, pools, rove, span, write } from './tables.js';

const $ = id => document.getElementById(id);
const stored = { get: () => sessionStorage.getItem('key'), set: key => sessionStorage.setItem('key', key) };

const given = document.querySelector('meta[name=key]');
if (given) {
  stored.set(given.content);
  given.remove();
  history.replaceState(null, '', `/${location.hash}`);
}

// The pause before a question is asked again that had no answer.
const LATER = 1000;
// The least pause between two readings of the dependencies of a job, and of what could not be read.
const ABOUT_EVERY = 5e3;
// After this time an answer on a start is asked for again.
const ANSWER_STAYS = 60e3;
// The time that a tenth of a second of a play shows: a day in ten seconds.
const PLAYED = 864e3;
// A larger difference between the clock of the page and a new state: the clock of the server was set.
const CLOCK_MOST = 120e3;

let state = null, moment = null, instant = null;
// The number of the chosen job, or of the chosen array if it is a whole one, and what is known of it.
let chosen = null, whole = false, known = null;
// The arrays whose jobs are listed below them.
const open = new Set();
// The bar on which the chosen job was clicked, and the element that had the focus then.
let clicked = null, opener = null;

/** Sends a request with the key of this visit. */
async function ask(path, options = {}) {
  const headers = { authorization: `Bearer ${stored.get() ?? ''}` };
  if (options.body) headers['content-type'] = 'application/json';
  const response = await fetch(path, { ...options, headers });
  // Whole seconds. The daemon is on the machine of the server.
  if (state?.daemon) hear(Date.parse(response.headers.get('date')));
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({ message: response.statusText }));
  throw Object.assign(new Error(problem.message), { status: response.status });
}

// The parts beside the state that the server has sent, and those that the chart waits for.
let parts = null, changed = () => {};
const awaited = new Map();

const chart = new Chart($('chart'), {
  load,
  bar: unpacked,
  choose: bar => choose(bar?.job ?? null, false, bar),
  hover: (bar, event) => hover(bar, event),
  moved: () => remember(),
});

/** Returns a part of the chart: one that is here, or that comes with the next event. One that does not come is asked for again, with more time. */
function load(kind, query, pause) {
  const name = nameOf(kind, query), here = parts?.[listOf(kind)][name];
  if (here) return Promise.resolve(here);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => answer(name, null), ANSWER_MOST + 10 * pause);
    awaited.set(name, { kind, query, timer, waiting: [...awaited.get(name)?.waiting ?? [], { resolve, reject }] });
    queueMicrotask(changed);
  });
}

const nameOf = (kind, query) => `${kind} ${Object.values(query).join(' ')}`;
const listOf = kind => kind === 'tile' ? 'tiles' : 'curves';

function answer(name, found) {
  const asked = awaited.get(name);
  awaited.delete(name);
  clearTimeout(asked?.timer);
  for (const { resolve, reject } of asked?.waiting ?? []) found ? resolve(found) : reject(new Error('no answer'));
}

/** Returns what the page wants beside the state: rows, and the parts of the chart that are on the screen or awaited. */
function wants() {
  const wanted = { lists: instant === null ? shownRows() : null, tiles: {}, curves: {}, map: instant === null && isNear('processors'), changes: isNear('changes-section') };
  for (const { kind, query } of [...state ? chart.shownTiles() : [], ...awaited.values()]) wanted[listOf(kind)][nameOf(kind, query)] = query;
  return wanted;
}

/** Takes the parts for a new state. A part of a group that has another place now is asked for again. */
function takeParts(next, version, isInPlace) {
  parts = next;
  for (const [name] of [...awaited]) {
    const kind = name.split(' ', 1)[0], found = parts[listOf(kind)][name];
    if (found !== undefined) answer(name, found);
  }
  for (const tile of isInPlace ? chart.shownTiles() : []) {
    const found = parts[listOf(tile.kind)][nameOf(tile.kind, tile.query)];
    if (found) chart.bring(tile, found, version);
  }
}
// For measurements of the frames and of the stream.
Object.assign(globalThis, { chart, wants });

/** The present: the state may be half a minute old. */
const clock = () => state.moment.live ? performance.now() + ahead : state.moment.now;

/** How far the clock of the server is ahead of that of the page, at least. */
let ahead = -Infinity;
function hear(at) {
  if (at > 0) ahead = Math.max(ahead, at - performance.now());
}

/** Whether what is shown follows the present. */
const follows = () => state.moment.live && instant === null && !state.problem && !problems.has('connection');

/** Writes the instant that is shown. */
function tick() {
  const at = follows() ? clock() : moment.now, text = moment.text || `${chart.label(at, 864e5)} ${chart.label(at, 1e3)}`;
  write($('now'), instant === null ? text : `${text} (in the past)`);
}


function show() {
  if (!state) return;
  document.title = `${state.moment.title} - Miserly`;
  write(document.querySelector('h1'), state.moment.title);
  $('note').hidden = !moment.note;
  write($('note'), moment.note ? `In the past: ${moment.note}.` : '');
  headline();
  account($('account'), state.moment);
  missed($('missed'), state.moment.account.missed);
  pools($('pools'), moment);
  // The rows of an earlier instant stay as they are.
  if (rowsOf !== instant) lists();
  map();
  $('changes-section').hidden = !state.moment.live;
  $('holes-section').hidden = !state.daemon;
  if (state.daemon) offers();
  chart.chosen = chosen;
  const first = chart.version < 0;
  // A log has numbers for users: why its jobs started says more.
  if (first && state.runs && state.legends.some(legend => legend.by === 'reason')) chart.by = 'reason';
  chart.update(state, instant);
  colours();
  if (first) arriveFirst();
  tick();
  slide();
  describe();
  problem('state', state.problem);
}

/** Shows the sentences above the chart. A number leads to its list. */
function headline() {
  const into = $('headline'), key = JSON.stringify(state.headline);
  if (into.dataset.key === key) return;
  into.dataset.key = key;
  const held = into.contains(document.activeElement);
  into.replaceChildren(...state.headline.map(({ text, list }) => list ? element('button', { type: 'button', class: 'link', onclick: () => showList(list) }, text) : text));
  if (held) into.querySelector('button')?.focus({ preventScroll: true });
}

function showList(list) {
  if (list === 'missed') $('missed').open = true;
  const filtered = { kept: ['kept', false], missed: ['missed', false], failed: ['failed_lately', true], own: ['all', true] }[list];
  if (filtered) {
    [$('which').value, $('own').checked] = filtered;
    filter();
  }
  $({ missed: 'missed', own: 'filters' }[list] ?? 'ended').scrollIntoView({ block: 'start', behavior: 'instant' });
}

/** Shows what the colours mean, and offers the others. */
function colours() {
  const by = $('by'), names = state.legends.map(legend => legend.by);
  if (JSON.stringify(names) !== JSON.stringify([...by.options].map(option => option.value))) {
    by.replaceChildren(...state.legends.map(legend => element('option', { value: legend.by }, `by ${legend.title}`)));
  }
  if (!names.includes(chart.by)) chart.by = names[0];
  by.value = chart.by;
  const theme = chart.dark.matches ? 'dark' : 'light', shown = chart.legend().entries.filter(entry => entry.bars);
  const key = JSON.stringify([theme, shown]);
  if ($('colours').dataset.key === key) return;
  $('colours').dataset.key = key;
  $('colours').replaceChildren(...shown.map(({ name, bars, [theme]: [fill, edge] }) => {
    const sample = element('span', { class: 'key' });
    Object.assign(sample.style, { background: fill, borderColor: edge });
    return element('li', {}, sample, `${name} `, element('small', {}, `(${bars})`));
  }));
}

/** Shows a card beside the bar under the mouse, after a moment of rest. */
const cards = new Map();
let resting = null, over = null;
function hover(bar, event) {
  const job = bar?.job ?? null;
  if (job === null || job !== over) $('card').hidden = true;
  if (job !== over) {
    over = job;
    clearTimeout(resting);
    if (job !== null) resting = setTimeout(() => card(job), 80);
  }
  if (job === null) return;
  const box = $('picture').getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  const left = x < box.width / 2;
  Object.assign($('card').style, { left: left ? `${x + 14}px` : '', right: left ? '' : `${box.width - x + 14}px`, top: `${y + 14}px` });
}

/** Returns the card of a job: the last one known for this version of the state. */
async function cardOf(job) {
  const key = `${state.version} ${job}`;
  if (cards.size > 200) cards.clear();
  if (!cards.has(key)) {
    const asked = ask(`/api/card/${job}`).then(answer => answer.json());
    cards.set(key, asked);
    asked.catch(() => cards.delete(key));
  }
  return cards.get(key);
}

async function card(job) {
  const found = await cardOf(job).catch(() => null);
  if (!found || over !== job) return;
  $('card').replaceChildren(element('h3', {}, found.title), table(found));
  $('card').hidden = false;
}

const table = ({ lines }) => element('dl', {}, ...lines.flatMap(([key, text]) => [element('dt', {}, key), element('dd', {}, text)]));

/** The address has what is shown. A choice and a jump can be undone by going back; a move of the chart only changes the address. */
let remembering = null, restoring = false;
function remember(isStep = false) {
  if (restoring || !state) return;
  clearTimeout(remembering);
  const write = () => {
    const next = addressOf({ chart, chosen, whole, past: wanted });
    if (next !== location.hash) history[isStep ? 'pushState' : 'replaceState'](null, '', `/${next}`);
  };
  if (isStep) write();
  else remembering = setTimeout(write, 250);
}

/** Shows what the address has. */
async function restore() {
  const found = parsed(location.hash);
  if (!found || !state) return;
  restoring = true;
  if (state.legends.some(legend => legend.by === found.by)) chart.by = found.by;
  const job = found.array ?? found.job;
  if (job !== chosen || whole !== (found.array !== null)) [chosen, whole, known, clicked] = [job, found.array !== null, null, null];
  chart.chosen = whole ? null : chosen;
  if (found.zoom !== null && found.at !== null) chart.view(found.at, found.zoom);
  else if (found.zoom !== null && state.moment.live) chart.live(found.zoom);
  try {
    if (found.past !== wanted) await go(found.past);
  } finally {
    restoring = false;
  }
  lists();
  show();
}

/** Opens the view of the address, or a run at its busiest hour. */
function arriveFirst() {
  if (parsed(location.hash)) return restore();
  if (state.opening.at !== undefined) go(state.opening.at);
}

/** Tells what became of a file or of the link. */
let reported = null;
function report(text, stays = false) {
  clearTimeout(reported);
  write($('saved'), text);
  if (!stays) reported = setTimeout(() => write($('saved'), ''), 5e3);
}

async function saveAs(kind) {
  try {
    const svg = await (await ask(`/api/picture?${picture(chart)}`)).text();
    if (kind === 'pdf') return await (await import('./print.js')).printPicture(svg);
    save(kind === 'svg' ? new Blob([svg], { type: 'image/svg+xml' }) : await png(svg), `miserly.${kind}`);
  } catch (error) {
    report(`Not saved: ${error.message}`);
  }
}

async function copyLink() {
  remember();
  const link = location.origin + location.pathname + addressOf({ chart, chosen, whole, past: wanted });
  const copied = await navigator.clipboard.writeText(link).then(() => true, () => false);
  report(copied ? 'Copied. The link has no key: another browser first needs one of `miserly ui`.' : link, !copied);
}

/** Shows the processors of the instant, and the last changes, if they are here. */
function map() {
  const found = instant === null ? parts?.map : moment.map;
  if (found) processors($('map'), moment.pools, found, chosen, choose);
  if (parts?.changes) changes($('changes'), parts.changes);
}

/** The sections that are on the screen or near it: what is in the others is asked for when they come. */
const near = new Set();
const isNear = id => near.has(id);
const nearness = new IntersectionObserver(entries => {
  for (const { target, isIntersecting } of entries) isIntersecting ? near.add(target.id) : near.delete(target.id);
  changed();
  offers();
}, { rootMargin: '50% 0px' });
for (const id of ['holes-section', 'processors', 'changes-section']) nearness.observe($(id));

/** The columns that are hidden, and the orders of the lists, as this browser remembers them. */
const kept = (() => {
  const none = { hidden: Object.keys(COLUMNS).filter(name => COLUMNS[name].isOptional), sort: {} };
  try {
    const { hidden, sort } = JSON.parse(localStorage.getItem('tables') ?? '{}');
    const isOrder = order => order === null || ((order.by === 'job' || order.by in COLUMNS) && typeof order.down === 'boolean');
    return { hidden: hidden?.filter(name => name in COLUMNS) ?? none.hidden, sort: Object.fromEntries(Object.entries(sort ?? {}).filter(([, order]) => isOrder(order))) };
  } catch {
    return none;
  }
})();

function keepTables() {
  // A browser may refuse to remember.
  try { localStorage.setItem('tables', JSON.stringify(kept)); } catch { /* The page does without. */ }
}

const listed = Object.entries({ own: 'Your jobs', waiting: 'Waiting, in the order of their starts', running: 'Running', ended: 'Ended last' }).map(([name, words]) => {
  const list = new List($(name === 'own' ? 'own-jobs' : name), words, {
    ask: () => lists(),
    choose: (number, byKey, array = false) => choose(number, byKey, null, array),
    toggle,
    columns: () => Object.keys(COLUMNS).filter(column => !kept.hidden.includes(column)),
    sort: kept.sort[name] ?? null,
    sorted: () => { kept.sort[name] = list.sort; keepTables(); lists(); },
  });
  return [name, list];
});

for (const [name, { title }] of Object.entries(COLUMNS)) {
  const box = element('input', { type: 'checkbox', onchange: () => {
    kept.hidden = box.checked ? kept.hidden.filter(other => other !== name) : [...kept.hidden, name];
    keepTables();
    redraw();
  } });
  box.checked = !kept.hidden.includes(name);
  $('columns').lastElementChild.append(element('label', {}, box, ` ${title}`));
}

const redraw = () => { for (const [, list] of listed) list.draw({ chosen, whole, open }); };

/** Shows the rows that the filters admit, from the first one on. */
function filter() {
  for (const [, list] of listed) list.top();
  lists();
}

function toggle(array) {
  if (!open.delete(array)) open.add(array);
  lists();
}

/** Asks for the rows that are shown: by the stream, or once for an earlier instant. There is one question at a time, and the next one has all that
 *  was wanted meanwhile. */
let asking = false, wanting = false, later = null;
// The instant of the rows that are shown.
let rowsOf = null;
async function lists() {
  if (!state) return;
  if (instant === null) {
    rowsOf = null;
    return changed();
  }
  wanting = true;
  if (asking) return;
  asking = true;
  try {
    while (wanting && instant !== null) {
      wanting = false;
      const at = instant, signal = AbortSignal.timeout(2 * ANSWER_MOST);
      const found = await (await ask(`/api/lists?at=${at}`, { method: 'POST', body: JSON.stringify(shownRows()), signal })).json();
      if (at !== instant) continue;
      rowsOf = at;
      arrived(found);
    }
  } catch (error) {
    problem('lists', `the jobs cannot be read: ${error.message}`);
    clearTimeout(later);
    // Without the key nothing comes back.
    if (error.status !== 401) later = setTimeout(lists, LATER);
  } finally {
    asking = false;
  }
}

/** Returns the question for the rows that are shown. */
function shownRows() {
  const of = what => listed.map(([, list]) => what(list));
  return { from: of(list => list.from), sort: of(list => list.sort), count: WINDOW, find: $('find').value.trim(), own: $('own').checked, which: $('which').value,
    open: [...open].sort((one, other) => one - other), chosen: chosen === null ? null : [chosen, whole] };
}

/** Shows rows of the server, and what is known of the chosen job if they are the answer for it. */
function arrived(found) {
  problem('lists', null);
  const held = document.activeElement.closest('tr[data-job]')?.dataset.job;
  for (const [name, list] of listed) list.draw({ chosen, whole, open }, found[name]);
  const rows = listed.some(([name]) => found[name].total), filtered = $('find').value.trim() || $('own').checked || $('which').value !== 'all';
  write($('no-match'), rows || !filtered ? '' : 'No job matches.');
  // A job that went to another list keeps the focus.
  if (held && !document.activeElement.closest('tr[data-job]')) rowOf(+held)?.focus({ preventScroll: true });
  if (chosen === null || found.asked?.[0] !== chosen || found.asked[1] !== whole) return;
  known = found.chosen;
  describe();
}

const rowOf = (number, array) => listed.map(([, list]) => list.button(number, array)).find(button => button);

/** Tells or ends a problem of one kind: of the connection, of the state, of the past. */
const problems = new Map();
function problem(kind, text) {
  if (text && kind !== 'past') expire();
  if (text) problems.set(kind, text);
  else problems.delete(kind);
  $('problem').hidden = !problems.size;
  write($('problem'), problems.size ? `Not up to date: ${[...problems.values()].join('; ')}` : '');
}

/** Shows a job below the chart, or none; or an array. A job that a key chose gets the focus. */
function choose(number, byKey = false, bar = null, array = false) {
  if (number !== null && !$('detail').contains(document.activeElement)) opener = document.activeElement;
  [chosen, whole, clicked] = [number, array, bar];
  known = number === null ? null : listed.map(([, list]) => list.find(number, array)).find(row => row) ?? null;
  if (number !== null) forgetError();
  chart.chosen = array ? null : number;
  chart.draw();
  redraw();
  map();
  describe();
  lists();
  remember(true);
  if (number === null) return;
  if (!bar && !array) cardOf(number).then(({ window }) => { if (window && chosen === number) chart.reveal(...window); }, () => {});
  // A box that is higher than the window is shown from its top. Without motion, for all.
  for (const id of ['detail', 'detail-title']) $(id).scrollIntoView({ block: 'nearest', behavior: 'instant' });
  if (byKey) $('detail-title').focus({ preventScroll: true });
}

/** Ends the view of a job. The focus goes back to where the job was chosen, unless it is elsewhere by now. */
function close() {
  const [number, array, focus] = [chosen, whole, document.activeElement];
  const elsewhere = focus !== document.body && focus !== opener && !$('detail').contains(focus);
  choose(null);
  if (elsewhere) return;
  const place = opener?.dataset.place, same = [...$('map').querySelectorAll('button')].find(button => button.dataset.place === place);
  const into = opener?.isConnected && opener !== document.body ? opener : same ?? rowOf(number, array) ?? $('chart');
  into.focus({ preventScroll: true });
  into.scrollIntoView({ block: 'nearest', behavior: 'instant' });
}

/** Updates the texts on the chosen job in place, so that the focus, a question and an output stay. */
function describe() {
  const box = $('detail');
  box.hidden = chosen === null;
  if (chosen === null) return;
  const name = whole ? `array ${chosen}` : String(chosen), found = known;
  if (box.dataset.job !== name) {
    following?.stop();
    following = null;
    for (const part of ['result', 'more', 'graph']) $(part).replaceChildren();
    delete $('graph').dataset.key;
  }
  box.dataset.job = name;
  if (!found) clicked = chart.bar(chosen, clicked?.group) ?? clicked;
  write($('detail-title'), found ? `${whole ? 'Array' : 'Job'} ${found.label}: ${found.name}` : `Job ${chosen % RUN_NUMBERS}`);
  write($('sentence'), found ? `${found.sentence}.` : clicked ? `${sentence(clicked)}.` : 'It is in none of the lists below.');
  write($('detail-facts'), found ? `${found.user}; ${counted(found.procs, 'processor')}, ${span(found.limit)} at most${whole ? ' for each job' : ''}` +
    (found.memory ? `, ${memory(found.memory)} of memory` : '') + (found.comment ? `; comment: ${found.comment}` : '') : clicked ? `${width(clicked)} of ${clicked.group}; in none of the lists below` : '');
  tools(found);
  policies();
  aboutJob(found);
}

/** Shows the dependencies of the chosen job, and what the daemon has of it, whenever its row has changed. The dependencies may change with any state.
 *  What could not be read is asked for again. */
let aboutRow = null, aboutAt = -Infinity, aboutLater = null;
async function aboutJob(found) {
  const number = chosen, isJob = !whole && state.moment.live && instant === null, into = $('more');
  const row = JSON.stringify([number, isJob, found?.state, found?.word, found?.start_text, found?.sentence]);
  const key = isJob ? `${state.version} ${row}` : row;
  if (into.dataset.key === key) return;
  clearTimeout(aboutLater);
  const pause = aboutAt + ABOUT_EVERY - performance.now();
  if (row === aboutRow && pause > 0) {
    aboutLater = setTimeout(describe, pause);
    return;
  }
  [aboutRow, aboutAt] = [row, performance.now()];
  const isNew = into.dataset.row !== row;
  into.dataset.key = key;
  if (isNew) delete into.dataset.row;
  // Nothing is null, and a failure is undefined.
  const read = path => isJob ? ask(`/api/jobs/${number}${path}`).then(answer => answer.json()).catch(() => undefined) : null;
  const [before, detail] = await Promise.all([read('/dependencies'), isNew && state.daemon ? read('') : null]);
  if (into.dataset.key !== key || chosen !== number) return;
  if (before !== undefined) dependencies(before, number);
  if (detail) details(into, detail);
  else if (!isJob) into.replaceChildren();
  if (before === undefined || detail === undefined) delete into.dataset.key;
  else into.dataset.row = row;
}

/** Draws the dependencies of the chosen job if they have changed. A job in the graph keeps the focus. */
function dependencies(found, number) {
  const into = $('graph'), key = JSON.stringify([number, found]);
  if (into.dataset.key === key) return;
  into.dataset.key = key;
  const held = into.contains(document.activeElement) ? document.activeElement.dataset.job : undefined;
  graph(into, found, number, (other, byKey) => choose(other, byKey));
  if (held !== undefined) into.querySelector(`[data-job='${held}']`)?.focus({ preventScroll: true });
}

/** Shows the facts about the chosen job, of a run under each policy. */
async function policies() {
  const into = $('policies'), key = `${state.version} ${chosen} ${whole}`, count = state.daemon ? 1 : state.moment.pools.length;
  if (into.dataset.key === key) return;
  if (whole || into.dataset.job !== String(chosen)) into.replaceChildren();
  Object.assign(into.dataset, { key, job: chosen });
  if (whole) return;
  const isRun = chart.isRun(), numbers = isRun ? Array.from({ length: count }, (_, pool) => chosen % RUN_NUMBERS + pool * RUN_NUMBERS) : [chosen];
  const found = await Promise.all(numbers.map(number => cardOf(number).catch(() => null)));
  if (into.dataset.key !== key) return;
  if (found.includes(null)) delete into.dataset.key;
  into.replaceChildren(...found.flatMap((card, pool) => card ? [element('div', {}, isRun && count > 1 ? element('h3', {}, state.moment.pools[pool].name) : null, table(card))] : []));
}

/** Returns an instant with its day. */
const dated = at => at < 2534e11 ? `${chart.label(at, 864e5)} ${chart.label(at, 60e3).split(' ').at(-1)}` : 'the year 10000 or later';

/** Returns the end of the minute of a limit: an earlier one would not be true. */
const minute = at => 60e3 * Math.ceil(at / 60e3);

/** Tells the processors of a bar. */
const width = ({ least, most }) => least === most ? counted(most, 'processor') : `${least} to ${most} processors`;

/** Tells the times of a bar. */
function sentence({ kind, from, to, likely }) {
  const start = dated(from), end = dated(to), latest = dated(minute(to));
  switch (kind) {
    case KIND.ran: return `ran from ${start} to ${end} (${span(to - from)})`;
    case KIND.running: return `runs since ${start}, until ${latest} at most`;
    case KIND.promised: return `starts by ${dated(minute(from))}, ends by ${latest}`;
    case KIND.planned: return `planned start ${start}, no promise; would end by ${latest}`;
    case KIND.likely: return `likely start ${start}${likely ? `, with 95 % by ${dated(minute(likely[1]))}` : ''}`;
    default: return `on idle processors from ${start} to ${end}`;
  }
}

/** Makes the buttons of the chosen job anew if its state or the rights have changed. */
function tools(found) {
  const into = $('detail-tools'), number = chosen, own = instant === null && found?.own === true && state.daemon;
  const key = JSON.stringify([number, whole, own, state.actions, whole ? possible(found?.array) : found?.state]), same = into.dataset.job === `${whole} ${number}`;
  if (into.dataset.key === key) return;
  Object.assign(into.dataset, { key, job: `${whole} ${number}` });
  const held = into.contains(document.activeElement) ? document.activeElement.textContent : null;
  const made = own && state.actions ? whole ? changesOfArray(found) : changesOf(found) : [];
  if (own && !whole) made.push(element('button', { type: 'button', onclick: () => output(number) }, 'Follow the output'));
  made.push(element('button', { type: 'button', onclick: close }, 'Close'));
  into.replaceChildren(...made);
  if (held !== null) (made.find(button => button.textContent === held) ?? made.at(-1)).focus({ preventScroll: true });
  if (same) forgetError();
  if (same && $('confirm')) tell('The job has changed, so nothing was done.', 'bad');
}

/** Tells what became of a request, and keeps the focus that its button had. */
function tell(text, kind) {
  const told = element('p', { class: kind, tabindex: -1 }, text), held = $('result').contains(document.activeElement);
  $('result').replaceChildren(told);
  if (held) told.focus({ preventScroll: true });
}

/** Ends the message that there was no output: there may be one by now. */
function forgetError() {
  const told = $('result').querySelector('[data-of=output]');
  if (!told) return;
  if (told === document.activeElement) $('detail-title').focus({ preventScroll: true });
  told.remove();
}

/** Returns the buttons that change a job. What a change does is told from the state at the click. */
function changesOf({ number, label, state: now, of_array: array }) {
  const freed = procs => `${counted(procs, 'processor')} then ${procs === 1 ? 'becomes' : 'become'} free`;
  const path = `jobs/${number}`;
  const cancel = asks('Cancel', () => `Withdraw job ${label}?`, path, { do: 'cancel' });
  const all = array == null ? [] : [cancelOf(array)];
  if (now === 'held') return [asks('Release', () => `Release job ${label} into a new window?`, path, { do: 'release' }), cancel, ...all];
  if (now === 'ended') return [];
  if (now !== 'running' && now !== 'suspended') return [asks('Hold', () => `Hold job ${label}?`, path, { do: 'hold' }), cancel, ...all];
  return [asks('Cancel', () => `End job ${label} now? ${freed(known?.procs ?? 0)}.`, path, { do: 'cancel' }), ...all,
    asks('Extend by 30 min', () => `Let job ${label} run 30 min longer?`, path, { do: 'extend', by: 1800 })];
}

/** Returns a button of a change that tells its effect first. */
const asks = (text, effect, path, body) => element('button', { type: 'button', onclick: event => askBefore(path, effect(), body, event.currentTarget) }, text);

const cancelOf = array => asks('Cancel the array', () => `Cancel all unfinished jobs of array ${array}?`, `arrays/${array}`, { do: 'cancel' });

/** Returns which changes an array admits. */
const possible = array => array && [array.waiting > 0, array.held > 0, array.waiting + array.held + array.running > 0];

function changesOfArray({ number, array }) {
  const [hold, release, cancel] = possible(array), path = `arrays/${number}`;
  return [hold && asks('Hold', () => `Hold the waiting jobs of array ${number}?`, path, { do: 'hold' }),
    release && asks('Release', () => `Release the held jobs of array ${number} into new windows?`, path, { do: 'release' }),
    cancel && cancelOf(number)].filter(Boolean);
}

/** Tells the effect of a change before it is made: what it does to the job, and which promises it moves. */
async function askBefore(path, effect, body, button) {
  const result = $('result'), key = () => $('detail-tools').dataset.key, before = key();
  tell('The daemon is asked which promises move.', 'muted');
  const [asked, number, array] = [result.firstElementChild, chosen, whole];
  const request = { method: 'POST', body: JSON.stringify(body), signal: AbortSignal.timeout(10e3) };
  const [moves, kind] = await ask(`/api/${path}/effect`, request).then(answer => answer.json())
    .then(lines => [lines.join('\n'), null], error => [error.message, 'bad']);
  if (chosen !== number || whole !== array || asked !== result.firstElementChild) return;
  if (key() !== before) return tell('The job has changed, so nothing was done.', 'bad');
  const yes = element('button', { type: 'button', id: 'confirm', 'aria-describedby': 'effect moves', onclick: () => change(path, body) }, 'Do it');
  const no = element('button', { type: 'button', onclick: () => { result.replaceChildren(); button.focus(); } }, 'No');
  const told = [element('p', { id: 'effect' }, effect), element('p', { id: 'moves', class: kind }, moves)];
  // Who has gone on to something else keeps the focus there.
  const waits = [button, document.body].includes(document.activeElement) || result.contains(document.activeElement);
  // Without an answer of the daemon nothing can be done.
  const offered = kind === 'bad' ? [no] : [yes, no];
  result.replaceChildren(...told, element('div', { class: 'tools' }, ...offered));
  if (waits) offered[0].focus();
}

async function change(path, body) {
  const [number, array] = [chosen, whole];
  tell('The daemon is asked.', 'muted');
  const [text, kind] = await ask(`/api/${path}`, { method: 'POST', body: JSON.stringify(body) })
    .then(answer => answer.status === 204 ? [] : answer.json())
    .then(lines => [['Done.', ...lines].join(' '), 'good'], error => [error.message, 'bad']);
  if (chosen === number && whole === array) tell(text, kind);
}

/** Follows the output of a job. */
let following = null;
function output(number) {
  following?.stop();
  const isHere = () => chosen === number && !whole;
  following = new Output($('result'), {
    read: from => ask(`/api/jobs/${number}/log${from === null ? '' : `?from=${from}`}`).then(answer => answer.json()),
    isOver: () => known?.state === 'ended',
    failed: (error, isFirst) => {
      if (!isHere()) return;
      if (!isFirst) return write(following.size, error.message);
      tell(error.message, 'bad');
      $('result').firstElementChild.dataset.of = 'output';
    },
  });
}

/** Asks what starts now, while that is on the screen: the server offers only what the daemon would start. */
let offeredAt = -Infinity, offering = null;
function offers() {
  if (!state?.daemon) return;
  queues($('ask-queue'), state.moment.pools.map(pool => pool.name));
  if (instant !== null) return holes([], 'Known for the present only.');
  if (!isNear('holes-section') || offering !== null) return;
  offering = setTimeout(async () => {
    offeredAt = performance.now();
    const found = await ask('/api/offers', { signal: AbortSignal.timeout(2 * ANSWER_MOST) }).then(answer => answer.json(), error => error);
    offering = null;
    if (instant !== null) return;
    if (found instanceof Error) holes([], `What starts now is not known: ${found.message}`);
    else holes(found, 'Nothing would start now. The line below asks for a promise.');
  }, Math.max(0, offeredAt + 1e3 * state.offers_every - performance.now()));
}

/** Shows what starts now: a click fills the form, and shows the promise as an outline in the chart. */
function holes(found, none) {
  const list = $('holes'), made = new Map([...list.children].map(button => [button.dataset.key, button]));
  arrange(list, found.map(offer => {
    const key = `${offer.procs} ${offer.queue}`;
    const button = made.get(key) ?? element('button', { type: 'button', 'data-key': key, onclick: event => fill(event.currentTarget.offer) });
    button.offer = offer;
    write(button, `${counted(offer.procs, 'processor')} of ${offer.queue} for ${span(60e3 * offer.minutes)}`);
    return button;
  }));
  $('no-holes').hidden = found.length > 0;
  write($('no-holes'), none);
}

/** Offers the queues. The chosen one stays. */
function queues(select, names) {
  if (JSON.stringify(names) === JSON.stringify([...select.options].map(option => option.value))) return;
  const before = select.value;
  select.replaceChildren(...names.map(name => element('option', {}, name)));
  if (names.includes(before)) select.value = before;
  else forget();
}

function fill({ procs, minutes, queue }) {
  Object.assign($('ask-procs'), { value: procs });
  Object.assign($('ask-minutes'), { value: minutes });
  $('ask-queue').value = queue;
  quote();
}

/** The time of the answer that is shown, and the number of the last question: an answer to an earlier one is not shown. */
let answered = null, question = 0;

/** Replaces the answer by a text, or by none. */
function forget(text = '', kind = 'muted') {
  question++;
  answered = null;
  chart.ghost = null;
  chart.draw();
  $('quoted').replaceChildren(...text ? [element('span', { class: kind }, text)] : []);
}

/** Ends an answer that is no longer true. */
function expire() {
  if (answered !== null) forget('The answer was no longer up to date. Ask again.');
}

/** Checks the numbers of the question. Returns the field that is wrong, after the message on it. */
function wrong(empty) {
  const fields = [['ask-procs', 'Processors'], ['ask-minutes', 'Minutes']].map(([id, name]) => [$(id), name]);
  const is = field => !field.validity.valid && (empty || !field.validity.valueMissing);
  for (const [field] of fields) field.ariaInvalid = is(field) ? 'true' : null;
  const found = fields.find(([field]) => is(field));
  if (found) forget(`${found[1]}: a whole number from 1 on is needed.`, 'bad');
  return found?.[0];
}

async function quote() {
  const field = wrong(true);
  if (field) return field.focus();
  const [cpus, minutes, queue] = [+$('ask-procs').value, +$('ask-minutes').value, $('ask-queue').value];
  const turn = ++question;
  if (answered !== null) answered = performance.now();
  try {
    const response = await ask('/api/quote', { method: 'POST', body: JSON.stringify({ cpus, time: 60 * minutes, queue }) });
    const { windows: [window], forecast, starts_now: isAtOnce } = await response.json();
    if (turn !== question) return;
    const start = window ? Date.parse(window.start) : forecast ? Date.parse(forecast.median) : null;
    const when = start === null ? 'no start would be promised' : isAtOnce ? 'starts at once'
      : window ? `would be promised a start by ${chart.label(minute(start), 60e3)}` : `would likely start at ${chart.label(start, 60e3)}`;
    const words = `Such a job ${when}: `, command = `miserly submit --queue ${queue} --cpus ${cpus} --time ${minutes}min -- COMMAND`;
    // The same text again would be read again, and would end a selection.
    if ($('quoted').textContent !== words + command) $('quoted').replaceChildren(words, element('code', {}, command));
    chart.ghost = start === null ? null : { group: queue, from: start, to: start + 60e3 * minutes, procs: cpus };
    answered = performance.now();
    chart.draw();
  } catch (error) {
    if (turn === question) forget(error.message, 'bad');
  }
}

/** Places the slider at the wanted instant, on steps that follow the known time. Its end is the present. */
let wanted = null;
function slide() {
  const [from, step] = state.replay, slider = $('slider'), last = Math.max(1, Math.ceil((state.moment.now - from) / step));
  slider.max = last;
  slider.value = wanted === null ? last : Math.min(Math.max(Math.round((wanted - from) / step), 0), last);
}

/** Moves to the instant of the slider, or back to the present. */
function move() {
  const [from, step] = state.replay, slider = $('slider');
  go(slider.value === slider.max ? null : from + step * slider.value);
}

/** Moves by steps. Behind the last one is the present. */
function step(by) {
  const [from, step] = state.replay, before = wanted ?? from + step * $('slider').max;
  const at = Math.max(from, before + by * step);
  go(at < state.moment.now ? at : null);
}

/** Moves to an instant, or to the present. What is shown changes with the answer, and stays if there is none. */
let moving = null;
async function go(at) {
  moving?.abort();
  const turn = moving = new AbortController();
  wanted = at;
  slide();
  remember();
  if (at === null) return arrive(null, state.moment);
  named(at);
  try {
    const found = await (await ask(`/api/moment?at=${at}`, { signal: turn.signal })).json();
    if (turn === moving) arrive(at, found);
  } catch (error) {
    if (turn !== moving) return;
    wanted = instant;
    slide();
    named(instant, moment.text);
    problem('past', `the instant cannot be shown: ${error.message}`);
  }
}

/** Moves through the time, a day in ten seconds, or stops. The picture moves with the instant. */
let playing = null;
function play() {
  const isRunning = playing !== null;
  clearInterval(playing);
  playing = isRunning || !state ? null : setInterval(() => {
    // One question at a time: a slow answer slows the play.
    if (moving !== null && wanted !== instant) return;
    const span = chart.scale * chart.width(), at = (wanted ?? state.replay[0]) + PLAYED;
    if (at >= state.moment.now) return play();
    chart.view(at, span);
    go(at);
  }, 100);
  write($('play'), playing === null ? 'Play' : 'Stop');
}

function arrive(at, found) {
  [instant, moment] = [at, found];
  problem('past', null);
  named(at, found.text);
  if (at !== null) chart.show(at);
  show();
}

/** Names an instant beside the slider: as the server does, whose clock knows summer time then, as soon as its answer is here. */
function named(at, text) {
  const [, step] = state.replay, time = step < 60e3 ? 1e3 : 60e3;
  write($('instant'), at === null ? 'now' : text ?? `${chart.label(at, 864e5)} ${chart.label(at, time).split(' ').at(-1)}`);
  $('slider').setAttribute('aria-valuetext', $('instant').textContent);
}

function take(content) {
  const next = content.state, names = groups => JSON.stringify(groups?.map(group => group.name));
  const isInPlace = names(state?.groups) === names(next.groups), isNew = state?.version !== content.version;
  if (content.chart) takeParts(content.chart, content.version, isInPlace);
  if (isNew) takeState(next);
  else map();
  if (instant === null && content.lists) arrived(content.lists);
}

function takeState(next) {
  state = next;
  if (instant === null) moment = next.moment;
  const difference = next.moment.now - performance.now();
  if (difference > ahead || difference < ahead - CLOCK_MOST) ahead = difference;
  show();
  globalThis.shownVersion = next.version;
  // For tests of the differences.
  globalThis.shownState = next;
}

// Time goes by between two states, too.
setInterval(() => {
  if (!state) return;
  if (document.hidden) return;
  if (answered !== null && performance.now() - answered > ANSWER_STAYS) quote();
  if (!follows()) return;
  chart.pass(clock());
  tick();
}, 1000);

for (const [id, act] of Object.entries({ back: () => chart.pan(-160), forth: () => chart.pan(160), wider: () => chart.zoom(2), closer: () => chart.zoom(0.5),
  fit: () => { chart.fit(); remember(true); }, live: () => { if (playing !== null) play(); if (state) go(null); chart.goLive(); remember(true); }, play,
  link: copyLink, svg: () => saveAs('svg'), png: () => saveAs('png'), pdf: () => saveAs('pdf') })) $(id).addEventListener('click', act);
$('slider').addEventListener('input', () => state && move());
$('by').addEventListener('change', () => { chart.by = $('by').value; colours(); chart.draw(); });
chart.dark.addEventListener('change', () => state && colours());
addEventListener('popstate', restore);
$('ask').addEventListener('submit', event => { event.preventDefault(); quote(); });
// A field that is empty while it is typed is no mistake yet.
$('ask').addEventListener('input', () => { if (!wrong(false)) forget(); });
for (const id of ['find', 'own', 'which']) $(id).addEventListener('input', filter);
for (const bar of document.querySelectorAll('[role=toolbar]')) rove(bar);
document.addEventListener('keydown', event => {
  if (event.key === 'Escape' && chosen !== null) close();
  const types = /INPUT|SELECT/.test(document.activeElement.tagName) && document.activeElement !== $('slider');
  if (types || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === '/') { event.preventDefault(); $('find').focus(); $('filters').scrollIntoView(); }
  if (state && (event.key === ',' || event.key === '.')) step(event.key === ',' ? -1 : 1);
});

const first = $('state');
let begin = null;
if (first) {
  // The page as the server drew it is painted first. A page in the background has no frames.
  if (!document.hidden) await new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)));
  const found = JSON.parse(first.textContent);
  takeState(found);
  // Behind a proxy another server may answer by now.
  if (given) begin = { version: found.version, state: found };
} else if (!stored.get()) problem('connection', 'this page has no key; open the link that `miserly ui` printed last, and then this address in the same tab');
changed = follow({ ask, take, wants, known: begin, problem: text => problem('connection', text),
  unanswered: () => { for (const name of [...awaited.keys()]) answer(name, null); } });
