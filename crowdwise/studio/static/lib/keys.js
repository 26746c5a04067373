// What a key means. Keys that belong to the browser, or to a field that is typed in, mean nothing.

const TYPED = new Set(["INPUT", "TEXTAREA", "SELECT"]);

function isFree(event) {
  const target = event.target;
  const typed = target && TYPED.has(target.tagName) && !["checkbox", "radio", "range"].includes(target.type);
  return !(event.ctrlKey || event.metaKey || event.altKey || event.isComposing || typed || target?.isContentEditable);
}

/** Label: 1 to 9 answer, space skips, backspace undoes. A key that is held down answers once. */
export function labelKey(event, classes) {
  if (!isFree(event) || event.repeat) return null;
  if (/^[1-9]$/.test(event.key)) {
    const index = Number(event.key) - 1;
    return index < classes ? { do: "answer", index } : null;
  }
  const onButton = ["BUTTON", "A"].includes(event.target?.tagName);
  if (event.key === " ") return onButton ? null : { do: "skip" };
  return event.key === "Backspace" ? { do: "undo" } : null;
}

/** Lists: j or arrow down, k or arrow up, enter opens, left and right turn the page. */
export function listKey(event) {
  if (!isFree(event)) return null;
  const moves = { j: "down", ArrowDown: "down", k: "up", ArrowUp: "up", n: "next", p: "previous", Home: "first", End: "last" };
  return moves[event.key] ?? null;
}

/** Everywhere: g then a letter goes to a seat, slash searches, question mark shows the keys. */
export function pageKey(event, previous) {
  if (!isFree(event)) return null;
  if (previous === "g") return { s: "start", e: "explore", l: "label", m: "model" }[event.key] ?? null;
  return { "/": "search", "?": "keys" }[event.key] ?? null;
}
