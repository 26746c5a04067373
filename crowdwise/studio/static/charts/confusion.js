// What an annotator answers where the consensus is something: a row per class of the consensus.
import { html } from "../html.js";
import { percent } from "../lib/format.js";

export function Confusion({ matrix, classes, caption }) {
  return html`<div class="scroll"><table class="confusion">
    <caption>${caption}</caption>
    <thead><tr><td></td>${classes.map((name, k) => html`<th key=${k} scope="col"><bdi>${name}</bdi></th>`)}</tr></thead>
    <tbody>${matrix.map((row, i) => html`<tr key=${i}><th scope="row"><bdi>${classes[i]}</bdi></th>
      ${row.map((share, j) => html`<td key=${j} class=${i === j ? "right" : "wrong"} style=${{ "--share": `${Math.round(42 * (share ?? 0))}%` }}>${share === null ? "" : percent(share, 0)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}
