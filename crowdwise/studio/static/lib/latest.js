// The latest value wins: one call at a time, and while it runs only the last value that came is kept.

/** A function of a value; `done` gets (result, value) of each call, which may be fewer than there were values. */
export function latest(call, done, failed = () => {}) {
  let running = false;
  let waiting = null;
  async function run(value) {
    running = true;
    try {
      done(await call(value), value, waiting !== null);
    } catch (error) {
      failed(error, value);
    }
    running = false;
    if (waiting) {
      const next = waiting.value;
      waiting = null;
      run(next);
    }
  }
  return (value) => {
    if (running) waiting = { value };
    else run(value);
  };
}
