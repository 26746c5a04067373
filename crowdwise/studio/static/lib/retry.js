// A server that is gone comes back: ask again, less and less often.

/** Milliseconds until attempt number `attempt` (from 0): doubling, with a part at random so that pages do not come at once. */
export function delay(attempt, random = Math.random) {
  const longest = Math.min(250 * 2 ** Math.min(attempt, 16), 5000);
  return Math.round(longest * (0.5 + 0.5 * random()));
}

/** Whether an answer of the server means that asking again can help. */
export function isTemporary(status) {
  return status === 0 || status === 502 || status === 503 || status === 504;
}

/** Call until it succeeds or fails for good; `lost` hears of each failed attempt. */
export async function untilDone(call, { wait = (ms) => new Promise((done) => setTimeout(done, ms)), lost = () => {} } = {}) {
  for (let attempt = 0; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (!error.temporary) throw error;
      lost(attempt);
      await wait(delay(attempt));
    }
  }
}
