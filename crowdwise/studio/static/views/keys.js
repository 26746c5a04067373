// All keys, in one place.
import { html } from "../html.js";
import { useEffect, useRef } from "../vendor/hooks.js";

const KEYS = [
  ["1 to 9", "Label: answer with this class"],
  ["Space", "Label: skip"],
  ["Backspace", "Label: undo"],
  ["j, k or arrows", "Examples: next, previous"],
  ["n, p", "Examples: next page, previous page"],
  ["g then s, e, l, m", "Go to the first page, Explore, Label, Model"],
  ["/", "Search"],
  ["?", "This list"],
];

export function Keys({ close }) {
  const dialog = useRef(null);
  useEffect(() => dialog.current.showModal(), []);
  return html`<dialog ref=${dialog} onClose=${close} aria-labelledby="keys-title">
    <h2 id="keys-title">Keys</h2>
    <dl>${KEYS.map(([key, words]) => html`<dt key=${key}><kbd>${key}</kbd></dt><dd>${words}</dd>`)}</dl>
    <button class="button" onClick=${() => dialog.current.close()}>Close</button>
  </dialog>`;
}
