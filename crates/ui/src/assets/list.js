// A list of jobs: the rows that are visible, and a few around them. The others are on the server.

import { arrange, element, write } from './tables.js';

/** The rows that are asked for at once. A longer list scrolls in a box of its own. */
export const WINDOW = 40;
// The rows by which a window moves, so that several pages ask for the same ones, and those that are loaded above the visible ones.
const STEP = 10, ABOVE = 10;
// The height of a row of a long list, as in page.css.
const ROW_REM = 3;

/** Returns whether a click is that of a key. */
export const isByKey = event => event.detail === 0;

export class List {
  /** `ask` asks for the rows from `from` on, `choose` shows a job or an array, `toggle` opens or closes an array. */
  constructor(table, words, { ask, choose, toggle }) {
    Object.assign(this, { table, words, ask, choose, toggle });
    this.box = table.parentElement;
    this.body = table.tBodies[0];
    this.part = { all: 0, jobs: 0, total: 0, from: 0, rows: [] };
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
  find(number, whole = false) { return this.part.rows.find(row => row.number === number && !row.array === !whole); }

  /** Returns the button of a row that is loaded. */
  button(number, whole = false) { return this.rows.get(keyOf(number, whole))?.querySelector('th button'); }

  /** Takes a part of the list, or draws the last one again. */
  draw({ chosen, whole, open }, part = this.part) {
    this.part = part;
    const held = this.body.contains(document.activeElement), many = part.total > WINDOW, height = this.height();
    const rows = new Map();
    part.rows.forEach((row, place) => {
      const key = keyOf(row.number, row.array), drawn = this.rows.get(key) ?? this.row(row);
      rows.set(key, drawn);
      this.fill(drawn, row, part.from + place, row.number === chosen && !row.array === !whole, open, many);
    });
    this.rows = rows;
    this.box.classList.toggle('many', many);
    const after = part.total - part.from - part.rows.length;
    this.above.firstChild.style.height = `${part.from * height}px`;
    this.below.firstChild.style.height = `${after * height}px`;
    arrange(this.body, [...many && part.from ? [this.above] : [], ...rows.values(), ...many && after > 0 ? [this.below] : []]);
    if (many) this.table.setAttribute('aria-rowcount', part.total + 1);
    else this.table.removeAttribute('aria-rowcount');
    this.table.classList.toggle('one-pool', part.rows.every(row => row.pool_name == null));
    this.table.hidden = !part.total;
    write(this.table.caption, this.words + (part.jobs === part.all ? ` (${part.all})` : ` (${part.jobs} of ${part.all})`));
    this.at = Math.min(this.at, Math.max(part.total - 1, 0));
    this.reach(this.at);
    const goal = this.goal === null ? null : this.drawn(this.goal);
    if (goal) this.focus(goal);
    // A row that was scrolled away, or whose job has gone to another list, had the focus.
    else if (held && many && !this.body.contains(document.activeElement)) this.box.focus({ preventScroll: true });
    this.scrolled();
  }

  row({ number, array, label }) {
    const act = array ? () => this.toggle(number) : event => this.choose(number, isByKey(event));
    const button = element('button', { type: 'button', onclick: act }, label);
    const more = array ? element('button', { type: 'button', class: 'more', onclick: event => this.choose(number, isByKey(event), true) }, 'Details') : null;
    const cells = Array.from({ length: 9 }, (_, place) => element('td', { class: place === 3 ? 'number' : place === 8 ? 'sentence' : null }));
    // In a long list they are cut after two lines.
    for (const cell of cells.slice(4)) cell.append(element('span'));
    return element('tr', array ? { 'data-array': number } : { 'data-job': number }, element('th', { scope: 'row' }, button, more), ...cells);
  }

  fill(drawn, row, place, current, open, many) {
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
    const text = [row.name, row.user, row.pool_name, row.procs, row.word, row.start_text, row.likely_text, row.end_text, row.sentence];
    text.forEach((value, at) => {
      const cell = drawn.cells[at + 1];
      write(cell.firstElementChild ?? cell, String(value ?? ''));
      // What may be cut: of a short list the name.
      cell.title = at === 0 || many && at !== 3 ? cell.textContent : '';
    });
  }

  height() { return ROW_REM * parseFloat(getComputedStyle(document.documentElement).fontSize); }

  /** Returns the rows that fit into the box. */
  page() { return Math.max(1, Math.floor(this.box.clientHeight / this.height()) - 2); }

  drawn(place) { return this.body.querySelector(`tr[data-row="${place}"]`); }

  /** Asks for the rows about the visible ones, if some of them are not here. */
  scrolled() {
    const { total, from, rows } = this.part;
    const first = total > WINDOW ? Math.floor(this.box.scrollTop / this.height()) : 0, last = Math.min(first + this.page() + 3, total);
    const least = Math.max(0, Math.min(first, total - WINDOW));
    if (from <= least && from + rows.length >= last) return;
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

  /** Moves the focus among the rows. */
  move(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const inside = event.target === this.box || event.target.closest('tr[data-row]');
    const open = event.target.ariaExpanded, far = this.page();
    if (open === (event.key === 'ArrowRight' ? 'false' : 'true') && /^Arrow(Right|Left)$/.test(event.key)) return event.target.click();
    const to = { ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + far, PageUp: this.at - far, Home: 0, End: this.part.total - 1 }[event.key];
    if (!inside || to === undefined || !this.part.total) return;
    event.preventDefault();
    this.go(Math.min(Math.max(to, 0), this.part.total - 1));
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

const keyOf = (number, array) => `${array ? 'array' : 'job'} ${number}`;
const spacer = () => element('tr', { class: 'space', 'aria-hidden': 'true' }, element('td'));
