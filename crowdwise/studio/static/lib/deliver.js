// An answer whose acknowledgement got lost: was it saved or not? Look first, then send it again only if it was not.

const same = (one, other) => one?.row === other?.row && one?.code === other?.code;

/** Whether what was to be done shows in what the server has now, beside what it had before. */
export function wasDone(path, body, before, now) {
  if (path === "undo.json") return now.last.length !== before.last.length || !same(now.last[0], before.last[0]) || total(now) !== total(before);
  return same(now.last[0], { row: body.row, code: body.code ?? null });
}

const total = (state) => state.progress.answers + state.progress.skipped;

/** Send until it is known to be saved. `look` gives the state of the person, and waits for the server if need be. */
export async function deliver(send, look, path, body, before) {
  for (;;) {
    try {
      return await send(path, body);
    } catch (problem) {
      if (!problem.temporary) throw problem;
    }
    if (wasDone(path, body, before, await look())) return { row: body.row ?? null, checked: null };
  }
}
