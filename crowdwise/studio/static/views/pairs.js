// Pairs of annotators: Cohen's kappa; a cell opens the examples on which the two differ.
import { html } from "../html.js";
import { count, number } from "../lib/format.js";
import { useData, useStudio } from "../state.js";
import { Panel, Waiting } from "./common.js";
import { ExampleList } from "./examples.js";

function Cell({ one, other, kappa, chosen, choose }) {
  if (one === other) return html`<span class="cell self"></span>`;
  if (kappa === null) return html`<span class="cell self" title="Too few examples in common"></span>`;
  const look = { "--share": `${Math.round(Math.min(Math.abs(kappa), 1) * 45)}%`, "--tint": kappa < 0 ? "var(--warm)" : "var(--accent)" };
  return html`<button class=${`cell ${chosen ? "chosen" : ""}`} style=${look} aria-pressed=${chosen ? "true" : "false"}
    aria-label=${`${one} and ${other}: kappa ${number(kappa, 2)}`} onClick=${choose}>${kappa.toFixed(2).replace(/^(-?)0/, "$1")}</button>`;
}

function Grid({ grid, pair, choose }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Grid of pairs"><table class="pair-grid">
    <thead><tr><td></td>${grid.annotators.map((name) => html`<th key=${name} scope="col"><span>${name}</span></th>`)}</tr></thead>
    <tbody>${grid.annotators.map((one, i) => html`<tr key=${one}><th scope="row" title=${one}><bdi>${one}</bdi></th>
      ${grid.annotators.map((other, j) => html`<td key=${other}><${Cell} one=${one} other=${other} kappa=${grid.kappa[i][j]} chosen=${pair.includes(one) && pair.includes(other)} choose=${() => choose(one, other)} /></td>`)}</tr>`)}</tbody>
  </table></div>`;
}

export function Pairs({ kept }) {
  const { version, address, go } = useStudio();
  const { params } = address;
  const state = useData("pairs.json", {}, version);
  const pair = params.one && params.other ? [params.one, params.other] : [];
  const choose = (one, other) => go("pairs", { ...kept, one, other });
  return html`<${Waiting} state=${state}>${({ pairs }) => {
    if (!pairs) return html`<${Panel} id="pairs" title="Pairs"><p class="note">No two annotators share enough examples to be compared.</p></${Panel}>`;
    return html`<div class="stack">
      <${Panel} id="pairs" title="Agreement of pairs" note=${`Cohen's kappa of ${count(pairs.total)} pairs: 80% are between ${number(pairs.low, 2)} and ${number(pairs.high, 2)}`}>
        <${Grid} grid=${pairs.grid} pair=${pair} choose=${choose} />
        <p class="note">The ${count(pairs.grid.annotators.length)} annotators with the most labels. Blue: more agreement than chance gives, orange: less. A cell opens the examples on which the two differ.</p>
      </${Panel}>
      ${pair.length > 0 && html`<${Panel} id="apart" title=${html`<bdi>${pair[0]}</bdi> and <bdi>${pair[1]}</bdi> differ on`}><${ExampleList} fixed=${{ one: pair[0], other: pair[1] }} /></${Panel}>`}
    </div>`;
  }}</${Waiting}>`;
}
