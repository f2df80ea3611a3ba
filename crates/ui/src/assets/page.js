// The page: takes states from the server, and shows them. A new state replaces the old one as a whole.

import { Chart } from './chart.js';
import { account, changes, counted, element, jobs, memory, pools, span } from './tables.js';

const $ = id => document.getElementById(id);
const stored = { get: () => sessionStorage.getItem('key'), set: key => sessionStorage.setItem('key', key) };

const given = document.querySelector('meta[name=key]');
if (given) {
  stored.set(given.content);
  given.remove();
  history.replaceState(null, '', '/');
}

let state = null, moment = null, chosen = null, instant = null;

/** Sends a request with the key of this visit. */
async function ask(path, options = {}) {
  const headers = { authorization: `Bearer ${stored.get() ?? ''}` };
  if (options.body) headers['content-type'] = 'application/json';
  const response = await fetch(path, { ...options, headers });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({ message: response.statusText }));
  throw Object.assign(new Error(problem.message), { status: response.status });
}

const chart = new Chart($('chart'), {
  load: async query => (await ask(`/api/tile?${new URLSearchParams(query)}`)).json(),
  choose: job => choose(job),
});
// For measurements of the frames.
globalThis.chart = chart;

function show() {
  if (!state) return;
  moment = instant === null || moment === null ? state.moment : moment;
  document.title = `${state.moment.title} - Miserly`;
  $('now').textContent = moment.text + (instant === null ? '' : ' (in the past)');
  document.querySelector('h1').textContent = state.moment.title;
  account($('account'), state.moment);
  pools($('pools'), moment);
  lists();
  changes($('changes'), state.changes);
  for (const id of ['holes-section', 'changes-section']) $(id).hidden = !state.moment.live;
  if (state.moment.live) holes();
  chart.chosen = chosen;
  chart.update(state, instant);
  problem(state.problem);
}

function lists() {
  const find = $('find').value.trim().toLowerCase(), own = $('own').checked;
  const shown = line => (!own || line.own) && (!find || [line.label, line.name, line.user].some(text => text.toLowerCase().includes(find)));
  for (const [name, words, all] of [['waiting', 'Waiting, in the order of their starts', moment.waiting_count],
    ['running', 'Running', moment.running_count], ['ended', 'Ended last', null]]) {
    jobs($(name), moment[name], shown, chosen, choose);
    const listed = moment[name].length, cut = all !== null && listed < all ? ` (${listed} of ${all})` : all === null ? '' : ` (${all})`;
    $(name).caption.textContent = words + cut;
  }
}

function problem(text) {
  $('problem').hidden = !text;
  $('problem').textContent = text ? `Not up to date: ${text}` : '';
}

const line = number => ['waiting', 'running', 'ended'].flatMap(list => moment[list]).find(line => line.number === number);

/** Shows a job below the chart. */
function choose(number) {
  chosen = number;
  chart.chosen = number;
  chart.draw();
  lists();
  const found = number === null ? null : line(number), box = $('detail');
  box.hidden = number === null;
  if (number === null) return;
  const close = element('button', { type: 'button', onclick: () => choose(null) }, 'Close');
  const head = element('h2', {}, found ? `Job ${found.label}: ${found.name}` : `Job ${number}`);
  const words = element('p', { id: 'sentence' }, found ? `${found.sentence}.` : 'It is in none of the lists below.');
  box.replaceChildren(head, words);
  if (found) box.append(element('p', { class: 'muted' }, `${found.user}; ${counted(found.procs, 'processor')}, ${span(found.limit)} at most` +
    (found.memory ? `, ${memory(found.memory)} of memory` : '')));
  const tools = element('div', { class: 'tools' }, close);
  if (found?.own && instant === null) {
    tools.prepend(element('button', { type: 'button', onclick: () => output(number) }, 'Output'));
    if (state.actions) tools.prepend(...changesOf(found));
  }
  box.append(tools, element('div', { id: 'result' }));
}

/** Returns the buttons that change a job. */
function changesOf(found) {
  const button = (text, effect, body) => element('button', { type: 'button', onclick: () => confirm(found.number, effect, body) }, text);
  const promise = found.promised ? `; it loses its promise (${found.start_text})` : '';
  if (found.state === 'held') return [button('Release', `Job ${found.label} gets a new window.`, { do: 'release' }),
    button('Cancel', `Job ${found.label} is withdrawn.`, { do: 'cancel' })];
  if (found.state === 'running' || found.state === 'suspended') {
    const cancel = button('Cancel', `Job ${found.label} ends now, and ${counted(found.procs, 'processor')} become free.`, { do: 'cancel' });
    return [cancel, button('Extend by 30 min', `Job ${found.label} may run 30 min longer, if no promise breaks.`, { do: 'extend', by: 1800 })];
  }
  if (found.state === 'ended') return [];
  return [button('Hold', `Job ${found.label} is held${promise}.`, { do: 'hold' }),
    button('Cancel', `Job ${found.label} is withdrawn${promise}.`, { do: 'cancel' })];
}

/** Tells the effect of a change before it is made. */
function confirm(number, effect, body) {
  const result = $('result');
  const yes = element('button', { type: 'button', id: 'confirm', onclick: async () => {
    try {
      await ask(`/api/jobs/${number}`, { method: 'POST', body: JSON.stringify(body) });
      result.replaceChildren(element('p', { class: 'good' }, 'Done.'));
    } catch (error) {
      result.replaceChildren(element('p', { class: 'bad' }, error.message));
    }
  } }, 'Do it');
  const no = element('button', { type: 'button', onclick: () => result.replaceChildren() }, 'No');
  result.replaceChildren(element('p', {}, effect), element('div', { class: 'tools' }, yes, no));
  yes.focus();
}

async function output(number) {
  const result = $('result');
  try {
    const tail = await (await ask(`/api/jobs/${number}/log`)).json();
    const text = element('pre', { tabindex: 0, 'aria-label': 'The end of the output' }, tail.text || '(empty)');
    result.replaceChildren(element('p', { class: 'muted' }, tail.cut ? `the end of ${memory(tail.size)}` : memory(tail.size)), text,
      element('button', { type: 'button', onclick: () => output(number) }, 'Read again'));
    text.scrollTop = text.scrollHeight;
  } catch (error) {
    result.replaceChildren(element('p', { class: 'bad' }, error.message));
  }
}

/** Shows what starts now: a click fills the command line, and shows the promise as an outline in the chart. */
function holes() {
  const found = moment.pools.flatMap((pool, place) => pool.holes.map(hole => ({ ...hole, pool, place })));
  const key = JSON.stringify(found.map(hole => [hole.place, hole.procs, hole.until && Math.round(hole.until / 60e3)]));
  if ($('holes').dataset.key === key) return;
  $('holes').dataset.key = key;
  const time = hole => hole.until === null ? 'any time' : `at most ${span(hole.until - moment.now)}`;
  const buttons = found.map(hole => element('button', { type: 'button', onclick: () => fill(hole) },
    `${counted(hole.procs, 'processor')} of ${hole.pool.name} for ${time(hole)}`));
  $('holes').replaceChildren(...(buttons.length ? buttons : [element('p', { class: 'muted' }, instant === null
    ? 'Nothing starts now; what would be promised is told by the line below.' : 'Known for the present only.')]), asking());
}

function asking() {
  const field = (id, label, value, more) => element('label', {}, `${label} `, element('input', { id, type: 'number', min: 1, value, ...more }));
  return element('form', { id: 'ask', onsubmit: event => { event.preventDefault(); quote(); } },
    field('ask-procs', 'Processors', 1), ' ', field('ask-minutes', 'Minutes', 60), ' ',
    element('label', {}, 'Queue ', element('select', { id: 'ask-queue' }, ...state.moment.pools.map(pool => element('option', {}, pool.name)))), ' ',
    element('button', {}, 'When?'), element('p', { id: 'quoted', role: 'status' }));
}

function fill(hole) {
  const minutes = hole.until === null ? 60 : Math.max(1, Math.floor((hole.until - moment.now) / 60e3));
  $('ask-procs').value = hole.procs;
  $('ask-minutes').value = minutes;
  $('ask-queue').value = hole.pool.name;
  quote();
}

async function quote() {
  const [cpus, minutes, queue] = [+$('ask-procs').value, +$('ask-minutes').value, $('ask-queue').value];
  const place = state.moment.pools.findIndex(pool => pool.name === queue);
  try {
    const { windows: [window], forecast } = await (await ask('/api/quote', { method: 'POST', body: JSON.stringify({ cpus, time: 60 * minutes, queue }) })).json();
    const start = window ? Date.parse(window.start) : forecast ? Date.parse(forecast.median) : null;
    const when = start === null ? 'no start would be promised' : start <= state.moment.now + 1000 ? 'starts at once'
      : `${window ? 'would be promised a start by' : 'would likely start at'} ${chart.label(start, 60e3)}`;
    $('quoted').replaceChildren(`Such a job ${when}: `, element('code', {}, `miserly submit --queue ${queue} --cpus ${cpus} --time ${minutes}min -- COMMAND`));
    const group = state.groups.findIndex(group => group.name === queue);
    chart.ghost = start === null ? null : { group: group < 0 ? place : group, from: start, to: start + 60e3 * minutes, procs: cpus };
  } catch (error) {
    $('quoted').replaceChildren(element('span', { class: 'bad' }, error.message));
    chart.ghost = null;
  }
  chart.draw();
}

/** Moves to an instant of the past, or back to the present. */
let moving = 0;
async function move() {
  const [from] = state.range ?? [state.moment.now], slider = $('slider'), turn = ++moving;
  const last = slider.value === slider.max;
  instant = last ? null : Math.round(from + (state.moment.now - from) * slider.value / slider.max);
  $('instant').textContent = last ? 'now' : chart.label(instant, 864e5) + ' ' + chart.label(instant, 60e3).slice(-5);
  const found = last ? null : await (await ask(`/api/moment?at=${instant}`)).json();
  if (turn !== moving) return;
  moment = found;
  if (instant !== null) chart.show(instant);
  show();
  slider.setAttribute('aria-valuetext', $('instant').textContent);
}

/** Follows the states of the server. After a break it goes on by itself. */
async function follow() {
  let pause = 500;
  for (;;) {
    try {
      const response = await ask('/api/events');
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ''; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        pause = 500;
        rest += value;
        const events = rest.split('\n\n');
        rest = events.pop();
        const last = events.flatMap(event => event.split('\n')).findLast(text => text.startsWith('data:'));
        if (last) take(JSON.parse(last.slice(5)));
      }
      problem('the connection was closed; it is tried again');
    } catch (error) {
      if (error.status === 401) return problem(error.message);
      problem(`${error.message}; it is tried again`);
    }
    await new Promise(resolve => setTimeout(resolve, pause));
    pause = Math.min(2 * pause, 8000);
  }
}

function take(next) {
  state = next;
  if (instant === null) moment = next.moment;
  show();
  globalThis.shownVersion = next.version;
  globalThis.shownAt = performance.now();
  if (chosen !== null && !$('result')?.childNodes.length) choose(chosen);
}

// Time goes by between two states, too.
setInterval(() => {
  if (!state?.moment.live || instant !== null || document.hidden || state.problem) return;
  chart.pass(state.moment.now + performance.now() - globalThis.shownAt);
}, 1000);

for (const [id, act] of Object.entries({ back: () => chart.pan(-160), forth: () => chart.pan(160), wider: () => chart.zoom(2), closer: () => chart.zoom(0.5),
  fit: () => chart.fit(), live: () => { $('slider').value = $('slider').max; move(); chart.goLive(); } })) $(id).addEventListener('click', act);
$('slider').addEventListener('input', () => state && move().catch(error => problem(error.message)));
for (const id of ['find', 'own']) $(id).addEventListener('input', () => state && lists());
document.addEventListener('keydown', event => {
  if (event.key === 'Escape' && chosen !== null) choose(null);
  if (event.key === '/' && !/INPUT|SELECT/.test(document.activeElement.tagName)) { event.preventDefault(); $('find').focus(); }
});

const first = $('state');
if (first) take(JSON.parse(first.textContent));
else if (!stored.get()) problem('this page has no key; open the link that `miserly ui` printed');
follow();
