// The chosen job: its dependencies, the history of its promise, its use of resources, and its output.

import { isByKey } from './list.js';
import { counted, element, memory, rove, share, svg, write } from './tables.js';

// The size of a job in the graph, and the room between two.
const WIDE = 150, HIGH = 40, ACROSS = 46, DOWN = 10;
// The letters that have room in it.
const LETTERS = 20;
// The pause between two questions for the output, and the most of it that is kept.
const AGAIN = 1000, KEPT = 2 ** 18;

const cut = text => text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text;

/** Returns what a terminal shows of a line: the part behind the last return that is not at its end. */
const visible = line => line.replace(/\r+$/, '').split('\r').at(-1);

/** Draws the unfinished jobs before a job and those behind it, from left to right. */
export function graph(into, found, chosen, choose) {
  into.hidden = !found;
  if (!found) return into.replaceChildren();
  const steps = [...new Set(found.nodes.map(node => node.step))].sort((one, other) => one - other), places = new Map(), counts = new Map();
  for (const node of found.nodes) {
    const row = counts.get(node.step) ?? 0;
    counts.set(node.step, row + 1);
    places.set(node.number, [2 + steps.indexOf(node.step) * (WIDE + ACROSS), 2 + row * (HIGH + DOWN)]);
  }
  for (const [step, count] of Object.entries(found.left_out ?? {})) counts.set(+step, (counts.get(+step) ?? 0) + (count ? 0.5 : 0));
  const high = Math.max(...counts.values()) * (HIGH + DOWN), wide = steps.length * (WIDE + ACROSS) - ACROSS + 4;
  const edges = found.edges.map(([one, other]) => {
    const [[left, top], [right, bottom]] = [places.get(one), places.get(other)], from = left + WIDE, middle = (from + right) / 2;
    return svg('path', { class: 'edge', d: `M${from} ${top + HIGH / 2} C${middle} ${top + HIGH / 2} ${middle} ${bottom + HIGH / 2} ${right - 2} ${bottom + HIGH / 2}`, 'marker-end': 'url(#arrow)' });
  });
  const nodes = found.nodes.map(({ number, label, name, state, word }) => {
    const [left, top] = places.get(number), isChosen = number === chosen;
    const text = (y, words, kind) => svg('text', { x: left + 8, y: top + y, class: kind }, words);
    const node = svg('g', { class: `node ${state}`, 'data-job': number, role: 'button', tabindex: -1, 'aria-label': `${cut(`${label} ${name}`)} ${word}`, 'aria-current': isChosen },
      svg('title', {}, `${label} ${name}: ${word}`), svg('rect', { x: left, y: top, width: WIDE, height: HIGH, rx: 5 }), text(16, cut(`${label} ${name}`), 'name'), text(32, word, 'word'));
    const act = event => { if (!isChosen) choose(number, event.type === 'keydown' || isByKey(event)); };
    node.addEventListener('click', act);
    node.addEventListener('keydown', event => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); act(event); } });
    return node;
  });
  const more = Object.entries(found.left_out ?? {}).map(([step, count]) => svg('text', { class: 'word', x: 10 + steps.indexOf(+step) * (WIDE + ACROSS), y: high - 4 }, `and ${counted(count, 'other job')}`));
  const arrow = svg('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: 'auto' }, svg('path', { d: 'M0 0 L8 4 L0 8 z', class: 'tip' }));
  const drawn = svg('svg', { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: 'group', 'aria-label': 'Dependencies; arrow keys move' }, svg('defs', {}, arrow), ...edges, ...nodes, ...more);
  into.replaceChildren(element('h3', {}, 'Dependencies ', element('small', {}, 'a job waits for the end of those on its left')), element('div', { class: 'scroll' }, drawn));
  rove(drawn, () => [...drawn.querySelectorAll('.node')]);
}

/** Shows what the daemon has of a job: its command, its use of resources, and the history of its promise. */
export function details(into, { lines, used, measured, history }) {
  const list = element('dl', {}, ...lines.flatMap(([key, text]) => [element('dt', {}, key), element('dd', {}, text)]));
  const row = (kind, cells) => element('tr', {}, ...cells.map(cell => element(kind, kind === 'th' ? { scope: 'col' } : {}, cell)));
  const table = (caption, head, rows) => rows.length ? element('table', { class: 'small' }, element('caption', {}, caption), element('thead', {}, row('th', head)), element('tbody', {}, ...rows.map(cells => row('td', cells)))) : null;
  const bar = part => { const drawn = element('span', { class: 'share', 'aria-hidden': true }); share(drawn, [[Math.min(part, 1), part > 1 ? '--bad' : '--held']]); return drawn; };
  const rest = one => one.share == null ? one.used ? '' : 'use not measured' : element('span', {}, bar(one.share), `${Math.round(100 * one.share)} %`);
  into.replaceChildren(list,
    table(`Used of what was requested, ${measured}`, ['Resource', 'Used', 'Requested', 'Share'], used.map(one => [one.what, one.used, one.asked, rest(one)])) ?? (measured ? element('p', { class: 'muted' }, `Used processors and memory: ${measured}.`) : ''),
    table('History of the promise', ['At', 'Start', 'Moved', 'Cause'], history.map(({ at, start, moved, why }) => [at, start, moved, why])) ?? '');
}

/** Follows the output of a job: what comes is appended, until it is stopped or the job has ended. */
export class Output {
  /** `read` returns the part from a byte on, and `isOver` whether the job has ended. */
  constructor(into, { read, isOver, failed }) {
    Object.assign(this, { into, read, isOver, failed, end: null, rest: '', timer: null, turn: 0 });
    this.done = document.createTextNode('');
    this.last = document.createTextNode('');
    this.size = element('span', { class: 'muted', role: 'status' });
    this.button = element('button', { type: 'button', onclick: () => this.follows ? this.stop() : this.start() });
    this.text = element('pre', { tabindex: 0, 'aria-label': 'The end of the output' }, this.done, this.last);
    this.box = element('div', { class: 'output' }, element('div', { class: 'tools' }, this.button, this.size), this.text);
    this.start();
  }

  start() {
    this.follows = true;
    write(this.button, 'Stop following');
    this.ask(++this.turn);
  }

  stop(words = 'Follow') {
    this.follows = false;
    this.turn++;
    clearTimeout(this.timer);
    write(this.button, words);
  }

  /** Reads again and again. A read that began before the last start or stop is dropped. */
  async ask(turn) {
    const wasOver = this.isOver();
    try {
      const part = await this.read(this.end);
      if (turn !== this.turn) return;
      this.take(part);
      // What a job wrote before its end is here with the question after it.
      if (wasOver && part.end >= part.size) return this.stop('Read again');
    } catch (error) {
      if (turn !== this.turn) return;
      this.stop('Read again');
      return this.failed(error, this.end === null);
    }
    // Nobody reads a page in the background.
    const again = () => document.hidden ? this.timer = setTimeout(again, AGAIN) : this.ask(turn);
    this.timer = setTimeout(again, AGAIN);
  }

  take({ text, size, cut, end }) {
    const atEnd = this.text.scrollHeight - this.text.scrollTop - this.text.clientHeight < 30;
    if (!this.box.isConnected) this.into.replaceChildren(this.box);
    if (cut && this.end !== null) { this.rest = ''; this.done.data = '(something is left out here)\n'; }
    const lines = (this.rest + text).split('\n');
    const last = lines.pop();
    if (lines.length) this.done.appendData(`${lines.map(visible).join('\n')}\n`);
    // A program that shows its progress may write one line without end.
    this.rest = (visible(last) + (last.endsWith('\r') ? '\r' : '')).slice(-KEPT);
    this.last.data = visible(this.rest);
    if (this.done.length > KEPT) this.done.deleteData(0, this.done.length - KEPT / 2);
    const isCut = cut && this.end === null;
    this.end = end;
    write(this.size, isCut ? `the end of ${memory(size)}` : size ? memory(size) : 'empty so far');
    // A reader who has scrolled up stays there.
    if (text && atEnd) this.text.scrollTop = this.text.scrollHeight;
  }
}
