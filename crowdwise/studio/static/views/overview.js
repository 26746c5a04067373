// What the sliders change at once: weights of examples, weights of annotators, coefficients, and the map.
import { html } from "../html.js";
import { Density } from "../charts/density.js";
import { Bar, Spark } from "../charts/small.js";
import { Weights } from "../charts/weights.js";
import { count, number } from "../lib/format.js";
import { placeIn } from "../lib/scale.js";
import { boxText } from "../lib/url.js";
import { positionOf, useData, useStudio } from "../state.js";
import { Link, Panel, Waiting } from "./common.js";

const MOST = 12;

/** Annotators by their weight, and how it moves with the steepness. */
function Moving({ refit, curve, kept }) {
  const sorted = [...refit.annotators].sort((a, b) => (b.expertise ?? -1) - (a.expertise ?? -1));
  const shown = sorted.length <= MOST ? sorted : [...sorted.slice(0, MOST / 2), ...sorted.slice(-MOST / 2)];
  const largest = Math.max(...shown.map((one) => one.expertise ?? 0), 1e-12);
  const lines = new Map((curve?.annotators ?? []).map((name, k) => [name, curve.expertise[k]]));
  const at = curve ? placeIn(curve.steepness, refit.position.steepness ?? 0) : 0;
  return html`<ul class="moving">${shown.map((one) => html`<li key=${one.annotator}>
    <${Link} view="annotator" params=${{ ...kept, name: one.annotator }} class="link"><bdi>${one.annotator}</bdi></${Link}>
    <${Bar} share=${(one.expertise ?? 0) / largest} /><span class="number">${number(one.expertise, 2)}</span>
    ${lines.has(one.annotator) ? html`<${Spark} values=${lines.get(one.annotator)} at=${at} />` : html`<span></span>`}</li>`)}</ul>
    ${sorted.length > MOST && html`<p class="note">The ${MOST / 2} with the largest and the ${MOST / 2} with the smallest weight of ${count(sorted.length)}. <${Link} view="annotators" params=${kept}>All annotators</${Link}></p>`}`;
}

function Coefficients({ rows }) {
  const largest = Math.max(...rows.map((row) => Math.abs(row.value)), 1e-12);
  return html`<ul class="moving coefficients">${rows.slice(0, MOST).map((row) => html`<li key=${row.name}><bdi>${row.name}</bdi>
    <${Bar} share=${row.value / largest} centred /><span class="number">${number(row.value, 2)}</span></li>`)}</ul>`;
}

export function Overview({ refit, curve, kept }) {
  const { start, version, address, go } = useStudio();
  const map = useData("map.json", positionOf(address.params), version);
  if (!refit) return html`<p class="note" role="status">Loading</p>`;
  const hasCoefficients = refit.coefficients.length > 0;
  return html`<div class=${`grid ${hasCoefficients ? "three" : "two"}`}>
      <${Panel} id="weights" title="Weight by disagreement"><${Weights} levels=${refit.levels} /></${Panel}>
      <${Panel} id="moving" title="Annotators" note=${curve ? "weight, and how it moves with the steepness" : "weight"}><${Moving} refit=${refit} curve=${curve} kept=${kept} /></${Panel}>
      ${hasCoefficients && html`<${Panel} id="coefficients" title="Coefficients" note=${`of ${start.classes.at(-1)}, the largest`}><${Coefficients} rows=${refit.coefficients} /></${Panel}>`}
    </div>
    <div class="stack-below">
      <${Panel} id="map" title="All examples" note="stronger colour = more examples; draw a rectangle to list those inside" busy=${map.isLoading}>
        <${Waiting} state=${map}>${(data) => html`<${Density} map=${data} title="Density of all examples by margin and disagreement" onBox=${(box) => box && go("map", { ...kept, box: boxText(box) })} />
          <p class="note">Margin: ${data.margin_is}.</p>`}</${Waiting}>
      </${Panel}>
    </div>`;
}
