// Steepness and l2: sliders that refit while they are dragged, below exact curves over their whole range.
import { html } from "../html.js";
import { useEffect, useState } from "../vendor/hooks.js";
import { Curve } from "../charts/curve.js";
import { count, number, percent, plural } from "../lib/format.js";
import { between, placeIn } from "../lib/scale.js";
import { useStudio } from "../state.js";
import { Link } from "./common.js";

const STEPS = 100;
const DECADES = 4;
// The slider works before the curve is there, which brings its own positions.
const GRID = Array.from({ length: 20 }, (_, k) => Math.round(200 * (k / 19) ** 2) / 10);
const round = (value) => Number(value.toPrecision(4));

function Slider({ id, name, value, place, last, ends, onPlace, children }) {
  return html`<div>
    <div class="knob-head"><label for=${id}>${name}</label><output for=${id}>${number(value)}</output></div>
    ${children}
    <div class=${children ? "under-curve" : ""}>
      <input id=${id} type="range" min="0" max=${last * STEPS} step="1" value=${Math.round(place * STEPS)}
        aria-valuetext=${number(value)} onInput=${(event) => onPlace(Number(event.target.value) / STEPS)} />
      <div class="knob-ends"><span>${ends[0]}</span><span>${ends[1]}</span></div>
    </div>
  </div>`;
}

function Criteria({ criteria }) {
  return html`<p class="keys-of">${criteria.slice(0, 2).map((one, k) => html`<span key=${one.name}>
    <span class=${`key line ${k ? "dashed" : "first-line"}`}></span> ${one.title}, ${one.higher_is_better ? "higher is better" : "lower is better"} </span>`)}</p>`;
}

function Steepness({ curve, words, live, move }) {
  const hasCurve = useStudio().start.follows === "sums";
  const grid = curve?.steepness ?? GRID;
  const place = placeIn(grid, live.steepness ?? 0);
  return html`<${Slider} id="steepness" name="Steepness" value=${live.steepness} place=${place} last=${grid.length - 1}
    ends=${["every example counts the same", "contested examples count less"]} onPlace=${(at) => move({ steepness: round(between(grid, at)) })}>
    ${curve ? html`<${Criteria} criteria=${curve.criteria} />
      <${Curve} series=${curve.criteria} labels=${grid} at=${place} title=${`Over the steepness: ${curve.criteria.map((one) => one.title).join("; ")}`} />` : hasCurve && html`<div class="curve-box"><p class="note" role="status">Computing the curve over all steepnesses. ${words}</p></div>`}
  </${Slider}>`;
}

function Penalty({ origin, live, move }) {
  const low = Math.log10(origin) - DECADES;
  const place = Math.log10(live.l2) - low;
  return html`<${Slider} id="l2" name="l2" value=${live.l2} place=${Math.min(Math.max(place, 0), 2 * DECADES)} last=${2 * DECADES}
    ends=${["free coefficients", "small coefficients"]} onPlace=${(at) => move({ l2: round(10 ** (low + at)) })} />`;
}

/** What is different from the last position. */
function Moved({ moves, params }) {
  const { data, isLoading, words } = moves;
  if (!data) return html`<p class="note" role="status">${words || (isLoading ? "Comparing with the last position" : "Move a slider to see what changes.")}</p>`;
  const { flipped, reranked } = data;
  const list = { ...params, order: "flipped" };
  return html`<p class="stat" role="status"><b>${count(flipped.total)}</b>${flipped.total === 1 ? "answer" : "answers"} flipped
      ${flipped.total > 0 && html` <${Link} view="examples" params=${list}>show</${Link}>`}</p>
    <p class="stat"><b>${count(reranked.length)}</b>${reranked.length === 1 ? "annotator" : "annotators"} re-ranked</p>
    <p class="note">since ${[["steepness", number(data.before.steepness)], data.before.l2 === null ? null : ["l2", number(data.before.l2)]].filter(Boolean).map((pair) => pair.join(" ")).join(", ")}${data.before.without ? `, without ${data.before.without}` : ""}
      ${reranked.slice(0, 3).map((one) => html`<span key=${one.annotator}>; <bdi>${one.annotator}</bdi> ${one.before} to ${one.after}</span>`)}</p>`;
}

export function Knobs({ curve, live, move, refit, moves, params, words, reset }) {
  const { start } = useStudio();
  const [origin] = useState(start.position.l2);
  const moved = params.steepness !== undefined || params.l2 !== undefined || params.without !== undefined;
  return html`<section class="panel knobs" aria-label="Steepness and l2">
    <${Steepness} curve=${curve.data} words=${curve.words} live=${live} move=${move} />
    <div class="knob-side">
      ${start.has.l2 && live.l2 > 0 && html`<${Penalty} origin=${origin || 1} live=${live} move=${move} />`}
      ${refit && html`<p class="stat"><b>${count(Math.round(refit.effective))}</b>effective examples of ${count(refit.examples)} (${percent(refit.effective / refit.examples, 0)})</p>`}
      ${live.without && html`<p><span class="chip">without <bdi>${live.without}</bdi><button aria-label=${`Include ${live.without} again`} onClick=${() => move({ without: null })}>include again</button></span></p>`}
      <p class="note" role="status">${words || start.recomputed}</p>
      ${moved && html`<p><button class="button" onClick=${reset}>Back to the session's settings</button></p>`}
    </div>
    <div class="moved">${moved || moves.data ? html`<${Moved} moves=${moves} params=${params} />` : html`<p class="note">Drag the steepness: ${plural(start.size.examples, "example")} are refitted, and what changes is counted here.</p>`}</div>
  </section>`;
}
