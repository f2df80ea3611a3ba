// The contents of the server: all of one at the begin of a connection, and then differences.

// The server sends a comment each 15 s, so a longer silence is a broken connection.
const SILENCE_MOST = 45e3;
// It answers at once. After a sleep a connection that the browser kept may be broken, and nothing tells it.
export const ANSWER_MOST = 5e3;
// The pause before wants are sent again that had no answer.
const AGAIN = 1000;
// A longer time without a tick, and the computer slept.
const SLEEP_LEAST = 10e3;

/** Follows the contents of the server: the state, and the parts that the page wants. After a break it goes on by itself. `known` is the content
 *  of the page at its begin. Returns a function that is called when the page wants other parts. */
export function follow({ ask, take, problem, wants, unanswered, known }) {
  // The number of the connection, and the wants that the server knows of it; null until it has answered.
  let watcher = 0, sending = false, sent = null, again;
  const open = async (have, signal) => {
    const body = JSON.stringify(wants()), [own] = crypto.getRandomValues(new Uint32Array(1));
    [watcher, sent] = [own, null];
    const response = await ask(`/api/events?watcher=${own}${have ? `&have=${have.version}` : ''}`, { method: 'POST', body, signal });
    if (own === watcher) sent = body;
    changed();
    return response;
  };
  // One request at a time, so that none passes another. The server knows a late one of an earlier connection by its number.
  const changed = async () => {
    clearTimeout(again);
    if (sending || sent === null) return;
    sending = true;
    const own = watcher;
    let failed = null;
    try {
      for (let next; own === watcher && (next = JSON.stringify(wants())) !== sent;) {
        await ask(`/api/wants/${own}`, { method: 'POST', body: next, signal: AbortSignal.timeout(2 * ANSWER_MOST) });
        if (own === watcher) sent = next;
      }
    } catch (error) {
      failed = error;
      // A newer connection began with all that is wanted.
      if (own === watcher) unanswered(error);
    } finally {
      sending = false;
    }
    if (own !== watcher) changed();
    else if (failed && ![400, 401].includes(failed.status)) again = setTimeout(changed, AGAIN);
  };
  keepOn({ open, take, problem, known });
  return changed;
}

async function keepOn({ open, take, problem, known }) {
  for (let pause = 500, have = known; ; pause = Math.min(2 * pause, 8000), have = null) {
    try {
      await listen(open, have, next => {
        pause = 500;
        problem(null);
        if (next) take(next);
      });
      problem('the connection was closed; it is tried again');
    } catch (error) {
      if (error.status === 401) return problem(error.message);
      problem(`${error.message}; it is tried again`);
    }
    await new Promise(resolve => setTimeout(resolve, pause));
  }
}

/** Takes contents until the connection ends. Behind a frozen tunnel, or after a sleep, it would never end by itself. */
async function listen(open, have, arrived) {
  const stop = new AbortController(), silent = new Error('the server is silent');
  let timer = setTimeout(() => stop.abort(silent), ANSWER_MOST), tick = Date.now();
  // The clock of timers may stand still in a sleep. A page in the background has few ticks.
  let seen = !document.hidden;
  const ticks = setInterval(() => {
    const [before, was] = [tick, seen];
    [tick, seen] = [Date.now(), !document.hidden];
    if (was && seen && tick - before > SLEEP_LEAST) stop.abort(new Error('the computer slept'));
  }, 1000);
  try {
    const response = await open(have, stop.signal);
    clearTimeout(timer);
    timer = setTimeout(() => stop.abort(silent), SILENCE_MOST);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = '', content = have; ;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => stop.abort(silent), SILENCE_MOST);
      const events = (rest + value).split('\n\n');
      rest = events.pop();
      const next = events.reduce(received, content);
      arrived(next === content ? null : next);
      content = next;
    }
  } catch (error) {
    throw stop.signal.aborted ? stop.signal.reason : error;
  } finally {
    clearInterval(ticks);
    clearTimeout(timer);
    stop.abort();
  }
}

/** Returns the content after an event: all of it, or the difference to the last one. */
function received(content, event) {
  if (!event.startsWith('data:')) return content;
  const { version, from, patch } = JSON.parse(event.slice(5));
  // The next connection begins with all of the content.
  if (from !== undefined && from !== content?.state.version) throw new Error('a change was missed');
  return { version, ...patched({ state: content?.state, lists: content?.lists, chart: content?.chart }, patch) };
}

/** Returns a value after a patch, as patch.rs makes it. Parts that did not change are those of the old value. */
function patched(old, patch) {
  if (Array.isArray(patch)) return patch[0];
  const value = Array.isArray(old) ? [...old] : { ...old };
  if (Array.isArray(old) && patch['~']) {
    for (const [place, gone, came] of patch['~'].toReversed()) value.splice(place, gone, ...Array.isArray(came) ? came : patched(value.slice(place, place + gone), came));
    return value;
  }
  for (const [key, part] of Object.entries(patch)) {
    if (Array.isArray(part) && !part.length) delete value[key];
    else value[key] = patched(value[key], part);
  }
  return value;
}
