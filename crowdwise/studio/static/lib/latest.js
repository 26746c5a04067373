// The latest value wins: one call at a time, and while it runs only the last value that came is kept.

/**
 * A function of a value. `call(value, {signal, slow})` says by `slow()` that it waits for something long: then a newer
 * value ends it. `done(result, value)` hears of the calls that were made, `failed(error, value)` of those that were not.
 */
export function latest(call, done, failed = () => {}) {
  let running = null;
  let waiting = null;
  async function run(value) {
    const stop = new AbortController();
    running = { stop, isSlow: false };
    const slow = () => {
      running.isSlow = true;
      if (waiting) stop.abort();
    };
    try {
      done(await call(value, { signal: stop.signal, slow }), value);
    } catch (error) {
      if (!stop.signal.aborted) failed(error, value);
    }
    running = null;
    if (waiting) {
      const next = waiting.value;
      waiting = null;
      run(next);
    }
  }
  return (value) => {
    if (!running) return void run(value);
    waiting = { value };
    if (running.isSlow) running.stop.abort();
  };
}
