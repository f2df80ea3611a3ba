// A list of jobs: the rows that are visible, and a few around them. The others are on the server.

import { arrange, counted, element, memory, share, span, write } from './tables.js';

/** The rows that are asked for at once. */
export const WINDOW = 20;
// A list with more rows scrolls in a box.
const BOXED_FROM = 9;
// The rows by which a window moves, so that several pages ask for the same ones, and those that are loaded above the visible ones.
const STEP = 5, ABOVE = 5;
// A longer name is shortened in its middle: names of a series differ at their ends.
const NAME_MOST = 36, NAME_END = 14;

/** The columns behind the number: what each shows of a row. Those that are optional are hidden at first; rare ones, while they are empty. */
export const COLUMNS = {
  name: { title: 'Name', text: row => short(row.name) },
  start: { title: 'Start', text: row => row.start_text },
  likely: { title: 'Likely', text: row => row.likely_text, isRare: true },
  state: { title: 'State', text: row => row.word },
  user: { title: 'User', text: row => row.user },
  pool: { title: 'Pool', text: row => row.pool_name, isRare: true },
  procs: { title: 'Cpus', text: row => row.procs },
  end: { title: 'End', text: row => row.end_text },
  submitted: { title: 'Submitted', text: row => row.submitted_text, isOptional: true },
  limit: { title: 'Limit', text: row => span(row.limit), isOptional: true },
  memory: { title: 'Memory', text: row => row.memory ? memory(row.memory) : '', isOptional: true },
  sentence: { title: 'In words', text: row => row.sentence, isUnsorted: true },
};

const short = name => name.length > NAME_MOST ? `${name.slice(0, NAME_MOST - NAME_END)}…${name.slice(-NAME_END)}` : name;

/** Returns whether a click is that of a key. */
export const isByKey = event => event.detail === 0;

export class List {
  /** `ask` asks for the rows from `from` on, `choose` shows a job or an array, `toggle` opens or closes an array, `columns` returns the shown
   *  columns, and `sorted` is called with the new order. */
  constructor(table, words, { ask, choose, toggle, columns, sorted, sort = null }) {
    Object.assign(this, { table, words, ask, choose, toggle, columns, sorted, sort });
    this.box = table.parentElement;
    this.body = table.tBodies[0];
    this.part = { all: 0, jobs: 0, total: 0, from: 0, order: [], rows: {} };
    this.from = 0; // the first wanted row
    this.at = 0; // the row that the keyboard is on
    this.goal = null; // the row that gets the focus when it is here
    this.rows = new Map();
    this.above = spacer();
    this.below = spacer();
    this.box.addEventListener('scroll', () => this.scrolled());
    this.box.addEventListener('keydown', event => this.move(event));
    this.box.addEventListener('focusin', event => {
      const row = event.target.closest('tr[data-row]');
      if (row) this.reach(+row.dataset.row);
    });
  }

  /** Returns the row of a job or of an array, if it is loaded. */
  find(number, whole = false) { return this.part.rows[keyOf(number, whole)]; }

  /** Returns the button of a row that is loaded. */
  button(number, whole = false) { return this.rows.get(keyOf(number, whole))?.querySelector('th button'); }

  /** Takes a part of the list, or draws the last one again. */
  draw({ chosen, whole, open }, part = this.part) {
    this.part = part;
    const held = this.body.contains(document.activeElement), many = part.total >= BOXED_FROM, height = this.height();
    const isUsed = name => part.order.some(key => !['', '-'].includes(COLUMNS[name].text(part.rows[key]) ?? ''));
    const columns = this.columns().filter(name => !COLUMNS[name].isRare || isUsed(name));
    this.head(columns);
    const rows = new Map();
    part.order.forEach((key, place) => {
      const row = part.rows[key], drawn = this.rows.get(key) ?? this.row(row);
      rows.set(key, drawn);
      this.fill(drawn, row, part.from + place, row.number === chosen && !row.array === !whole, open, columns);
    });
    this.rows = rows;
    this.box.classList.toggle('many', many);
    const after = part.total - part.from - rows.size;
    this.above.firstChild.style.height = `${part.from * height}px`;
    this.below.firstChild.style.height = `${after * height}px`;
    arrange(this.body, [...many && part.from ? [this.above] : [], ...rows.values(), ...many && after > 0 ? [this.below] : []]);
    if (many) this.table.setAttribute('aria-rowcount', part.total + 1);
    else this.table.removeAttribute('aria-rowcount');
    this.table.hidden = !part.total;
    write(this.table.caption, this.words + (part.jobs === part.all ? ` (${part.all})` : ` (${part.jobs} of ${part.all})`));
    this.at = Math.min(this.at, Math.max(part.total - 1, 0));
    this.reach(this.at);
    const goal = this.goal === null ? null : this.drawn(this.goal);
    if (goal) this.focus(goal);
    // A row that was scrolled away, or whose job has gone to another list, had the focus.
    else if (held && many && !this.body.contains(document.activeElement)) this.box.focus({ preventScroll: true });
    // Once all lists are drawn: a place that is read between two changes costs a layout.
    requestAnimationFrame(() => this.scrolled());
  }

  /** Makes the head of the table anew if the columns or the order have changed. A click on a title sorts. */
  head(columns) {
    const key = JSON.stringify([columns, this.sort]), { tHead } = this.table;
    if (tHead.dataset.key === key) return;
    const held = tHead.contains(document.activeElement) ? document.activeElement.dataset.by : null;
    tHead.dataset.key = key;
    tHead.rows[0].replaceChildren(...['job', ...columns].map(name => this.title(name, COLUMNS[name] ?? { title: 'Job' })));
    if (held !== null) tHead.querySelector(`[data-by=${held}]`)?.focus({ preventScroll: true });
    this.rows = new Map();
  }

  title(name, { title, isUnsorted }) {
    const isSorted = this.sort?.by === name, order = isSorted ? this.sort.down ? 'descending' : 'ascending' : null;
    const button = element('button', { type: 'button', tabindex: -1, 'data-by': name, onclick: () => this.order(name) }, title);
    return element('th', { scope: 'col', class: `c-${name}`, 'aria-sort': order }, isUnsorted ? title : button);
  }

  /** Sorts by a column: rising, then falling, then as the server does. */
  order(by) {
    this.sort = this.sort?.by !== by ? { by, down: false } : this.sort.down ? null : { by, down: true };
    this.top();
    this.sorted();
  }

  row({ number, array, label }) {
    const act = array ? () => this.toggle(number) : event => this.choose(number, isByKey(event));
    const button = element('button', { type: 'button', onclick: act }, label);
    const more = array ? element('button', { type: 'button', class: 'more', onclick: event => this.choose(number, isByKey(event), true) }, 'Details') : null;
    return element('tr', { role: 'row', [array ? 'data-array' : 'data-job']: number }, element('th', { scope: 'row', role: 'rowheader' }, button, more));
  }

  fill(drawn, row, place, current, open, columns) {
    const [button, more] = drawn.querySelectorAll('th button');
    drawn.className = [row.own ? 'own' : '', row.member ? 'member' : '', row.array ? 'array' : ''].filter(Boolean).join(' ');
    drawn.dataset.row = place;
    drawn.ariaRowIndex = place + 2;
    write(button, row.label);
    // Among all buttons of the page, a number says little.
    button.ariaLabel = row.array ? `array ${row.label} ${row.name}` : `${row.label} ${row.name}`;
    if (row.array) {
      button.ariaExpanded = open.has(row.number);
      more.ariaLabel = `Details of array ${row.number}`;
    }
    // The empty value, which a toggle would set, means false.
    if (current) drawn.setAttribute('aria-current', 'true');
    else drawn.removeAttribute('aria-current');
    columns.forEach((name, at) => {
      let cell = drawn.cells[at + 1];
      if (!cell) {
        // In a long list a text is cut after two lines.
        cell = element('td', { class: `c-${name}`, role: 'cell' }, name === 'state' && row.array ? element('span', { class: 'share' }) : null, element('span'));
        drawn.append(cell);
      }
      const text = String(COLUMNS[name].text(row) ?? '');
      write(cell.lastElementChild, text);
      cell.title = name === 'name' ? row.name : text;
      if (name === 'state' && row.array) progress(cell.firstElementChild, row.array);
    });
  }

  height() {
    if (this.wide !== innerWidth) {
      this.wide = innerWidth;
      this.high = parseFloat(getComputedStyle(this.box).getPropertyValue('--row')) * parseFloat(getComputedStyle(document.documentElement).fontSize);
    }
    return this.high;
  }

  /** Returns the rows that fit into the box. */
  page() { return Math.max(1, Math.floor(this.box.clientHeight / this.height()) - 2); }

  drawn(place) { return this.body.querySelector(`tr[data-row="${place}"]`); }

  /** Asks for the rows about the visible ones, if some of them are not here. */
  scrolled() {
    const { total, from, order } = this.part;
    const first = total >= BOXED_FROM ? Math.floor(this.box.scrollTop / this.height()) : 0, last = Math.min(first + this.page() + 3, total);
    const least = Math.max(0, Math.min(first, total - WINDOW));
    if (from <= least && from + order.length >= last) return;
    const wanted = Math.max(0, STEP * Math.floor((first - ABOVE) / STEP));
    if (wanted === this.from && this.asked === total) return;
    [this.from, this.asked] = [wanted, total];
    this.ask();
  }

  /** Shows the first rows. */
  top() {
    [this.from, this.at, this.box.scrollTop] = [0, 0, 0];
  }

  /** Makes a row the stop of the tab key: a list is one stop. */
  reach(place) {
    this.at = place;
    const loaded = this.drawn(place) ?? this.body.querySelector('tr[data-row]');
    for (const button of this.body.querySelectorAll('button')) button.tabIndex = loaded?.contains(button) ? 0 : -1;
  }

  /** Moves the focus among the rows; above the first one are the titles. */
  move(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const title = event.target.closest('thead th');
    if (title) return this.moveInHead(event, title);
    const inside = event.target === this.box || event.target.closest('tr[data-row]');
    const open = event.target.ariaExpanded, far = this.page();
    if (open === (event.key === 'ArrowRight' ? 'false' : 'true') && /^Arrow(Right|Left)$/.test(event.key)) return event.target.click();
    if (event.key === 'ArrowUp' && this.at === 0 && inside) {
      event.preventDefault();
      return this.table.tHead.querySelector('button').focus();
    }
    const to = { ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + far, PageUp: this.at - far, Home: 0, End: this.part.total - 1 }[event.key];
    if (!inside || to === undefined || !this.part.total) return;
    event.preventDefault();
    this.go(Math.min(Math.max(to, 0), this.part.total - 1));
  }

  moveInHead(event, title) {
    const next = { ArrowRight: title.nextElementSibling, ArrowLeft: title.previousElementSibling }[event.key]?.querySelector('button');
    if (event.key === 'ArrowDown') this.go(0);
    else if (next) next.focus();
    else return;
    event.preventDefault();
  }

  /** Moves the focus to a row, which may have to come first. */
  go(place) {
    this.at = this.goal = place;
    const row = this.drawn(place);
    if (row) return this.focus(row);
    this.box.scrollTop = Math.max(0, (place - this.page() / 2) * this.height());
    this.scrolled();
  }

  focus(row) {
    this.goal = null;
    row.querySelector('button').focus();
    row.scrollIntoView({ block: 'nearest', behavior: 'instant' });
  }
}

/** Shows how far an array is: done, failed, running, and the rest. */
function progress(bar, { held, waiting, running, ended, failed }) {
  const all = held + waiting + running + ended, done = ended - failed;
  const parts = [[done, 'done', '--good'], [failed, 'failed', '--bad'], [running, 'running', '--held']].filter(([count]) => count);
  share(bar, parts.map(([count, , colour]) => [count / all, colour]));
  const words = [...parts.map(([count, word]) => `${count} ${word}`), waiting ? `${waiting} waiting` : null, held ? `${held} held` : null].filter(Boolean);
  bar.role = 'img';
  bar.ariaLabel = `${counted(all, 'job')}: ${words.join(', ')}`;
  bar.title = bar.ariaLabel;
}

const keyOf = (number, array) => `${array ? 'a' : ''}${number}`;
const spacer = () => element('tr', { class: 'space', 'aria-hidden': 'true' }, element('td'));
