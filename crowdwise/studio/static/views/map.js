// The map: all examples by margin and disagreement; a rectangle filters the list below it.
import { html } from "../html.js";
import { Density } from "../charts/density.js";
import { number } from "../lib/format.js";
import { boxIn, boxText } from "../lib/url.js";
import { positionOf, useData, useStudio } from "../state.js";
import { Panel, Waiting } from "./common.js";
import { ExampleList } from "./examples.js";

const SIDES = [["x0", "margin from"], ["x1", "to"], ["y0", "disagreement from"], ["y1", "to"]];

/** The same rectangle by keyboard. */
function Sides({ map, box, set }) {
  const whole = { x0: map.margin_edges[0], x1: map.margin_edges.at(-1), y0: map.disagreement_edges[0], y1: map.disagreement_edges.at(-1) };
  const now = box ?? whole;
  return html`<div class="tools" role="group" aria-label="Rectangle">${SIDES.map(([side, name]) => html`<label class="field" key=${side}>${name}
      <input type="number" step="0.05" value=${number(now[side], 4)} onChange=${(event) => {
        const next = { ...now, [side]: Number(event.target.value) };
        if (Number.isFinite(next[side]) && next.x0 <= next.x1 && next.y0 <= next.y1) set(next);
      }} /></label>`)}
    ${box && html`<button class="button" onClick=${() => set(null)}>All examples</button>`}</div>`;
}

export function MapView() {
  const { version, address, go } = useStudio();
  const { params } = address;
  const map = useData("map.json", positionOf(params), version);
  const box = boxIn(params.box);
  const set = (next) => go("map", { ...params, box: boxText(next), page: undefined });
  const fixed = box ? { margin_low: box.x0, margin_high: box.x1, disagreement_low: box.y0, disagreement_high: box.y1 } : {};
  return html`<div class="stack">
    <${Panel} id="map" title="All examples" note="stronger colour = more examples; drag a rectangle to filter the list" busy=${map.isLoading}>
      <${Waiting} state=${map}>${(data) => html`<${Density} map=${data} box=${box} onBox=${set} height=${360} title="Density of all examples by margin and disagreement" />
        <p class="note">Margin: ${data.margin_is}.</p>
        <${Sides} map=${data} box=${box} set=${set} />`}</${Waiting}>
    </${Panel}>
    <${Panel} id="inside" title=${box ? "Examples inside the rectangle" : "Examples"}><${ExampleList} fixed=${fixed} /></${Panel}>
  </div>`;
}
