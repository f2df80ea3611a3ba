// The states of the server: a whole one at the begin of a connection, and then differences.

// The server sends a comment each 15 s, so a longer silence is a broken connection.
const SILENCE_MOST = 45e3;
// It answers at once. After a sleep a connection that the browser kept may be broken, and nothing tells it.
export const ANSWER_MOST = 5e3;
// A longer time without a tick, and the computer slept.
const SLEEP_LEAST = 10e3;

/** Follows the states of the server. After a break it goes on by itself. */
export async function follow({ ask, take, problem }) {
  for (let pause = 500; ; pause = Math.min(2 * pause, 8000)) {
    try {
      await listen(ask, next => {
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

/** Takes states until the connection ends. Behind a frozen tunnel, or after a sleep, it would never end by itself. */
async function listen(ask, heard) {
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
    const response = await ask('/api/events', { signal: stop.signal });
    clearTimeout(timer);
    timer = setTimeout(() => stop.abort(silent), SILENCE_MOST);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = '', state = null; ;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => stop.abort(silent), SILENCE_MOST);
      const events = (rest + value).split('\n\n');
      rest = events.pop();
      const next = events.reduce(received, state);
      heard(next === state ? null : next);
      state = next;
    }
  } catch (error) {
    throw stop.signal.aborted ? stop.signal.reason : error;
  } finally {
    clearInterval(ticks);
    clearTimeout(timer);
    stop.abort();
  }
}

/** Returns the state after an event: a state, or the difference to the last one. */
function received(state, event) {
  const fields = Object.fromEntries(event.split('\n').map(text => [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1).trim()]));
  if (!fields.data) return state;
  const data = JSON.parse(fields.data);
  if (fields.event === 'state') return data;
  // The next connection begins with a whole state.
  if (data.from !== state?.version) throw new Error('a change was missed');
  return patched(state, data.patch);
}

/** Returns a value after a patch, as patch.rs makes it. Parts that did not change are those of the old value. */
function patched(old, patch) {
  if (Array.isArray(patch)) return patch[0];
  const value = Array.isArray(old) ? [...old] : { ...old };
  for (const [key, part] of Object.entries(patch)) {
    if (Array.isArray(part) && !part.length) delete value[key];
    else value[key] = patched(value[key], part);
  }
  return value;
}
