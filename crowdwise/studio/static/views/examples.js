// Lists of examples, a page at a time from the server, and one example opened.
import { html } from "../html.js";
import { useRef, useState } from "../vendor/hooks.js";
import { Bar } from "../charts/small.js";
import { count, number, percent, plural } from "../lib/format.js";
import { listKey } from "../lib/keys.js";
import { clamp } from "../lib/scale.js";
import { numberIn } from "../lib/url.js";
import { movesOf, positionOf, useData, useKeys, useStudio } from "../state.js";
import { Link, Panel, Shown, Waiting } from "./common.js";

const SIZE = 20;
const ORDERS = [
  ["hardest", "Hardest first"], ["easiest", "Easiest first"], ["contested", "Contested"], ["unsure", "Least confident first"],
  ["overridden", "Consensus overrides the majority"], ["flipped", "Flipped since the last position"],
];

function Given({ said }) {
  return html`<div class="said">${said.map((one) => html`<span key=${one.label}><b><bdi>${one.label}</bdi></b> ${count(one.n)}
    <span class="who">${one.annotators.slice(0, 6).map((name, k) => html`<span key=${name}>${k ? ", " : " "}<bdi>${name}</bdi></span>`)}${one.n > Math.min(one.annotators.length, 6) ? ` and ${count(one.n - Math.min(one.annotators.length, 6))} more` : ""}</span></span>`)}</div>`;
}

function Row({ row, isHere, choose, open }) {
  const overrides = row.first !== null && row.first !== row.label && !row.tied;
  return html`<li class=${isHere ? "here" : ""} onClick=${choose}>
    <div class="row-head"><${Link} class="id" view="example" params=${open} onFocus=${choose}><bdi>${row.example}</bdi></${Link}>
      <span><b><bdi>${row.label}</bdi></b> ${percent(row.sure)}${overrides ? html` <span class="warm">majority <bdi>${row.first}</bdi></span>` : ""}${row.tied ? html` <span class="warm">tie</span>` : ""}${row.truth !== null && row.truth !== undefined ? html` <small>known <bdi>${row.truth}</bdi></small>` : ""}</span></div>
    <${Shown} row=${row.row} text=${row.text} />
    <${Given} said=${row.said} />
    <p class="note">${plural(row.labels, "label")}, disagreement ${number(row.disagreement)}, margin ${number(row.margin, 2)}</p>
  </li>`;
}

function Pager({ data, turn }) {
  const pages = Math.max(Math.ceil(data.total / data.size), 1);
  return html`<nav class="pager" aria-label="Pages"><button class="button" disabled=${data.page === 0} onClick=${() => turn(data.page - 1)}>Previous</button>
    <span role="status">${plural(data.total, "example")}, page ${count(data.page + 1)} of ${count(pages)}</span>
    <button class="button" disabled=${data.page >= pages - 1} onClick=${() => turn(data.page + 1)}>Next</button></nav>`;
}

/** `fixed` are parameters that the view sets: a rectangle, or a pair of annotators. */
export function ExampleList({ fixed = {} }) {
  const { version, address, go } = useStudio();
  const { view, params } = address;
  const [here, setShown] = useState(0);
  const list = useRef(null);
  const place = useRef(0); // keys come faster than rows are drawn
  const setHere = (at) => setShown((place.current = at));
  const asked = { ...movesOf(params), ...fixed, order: params.order, search: params.search, page: numberIn(params.page, 0, 0), size: SIZE };
  const state = useData("examples.json", asked, version);
  const set = (change, replace = false) => go(view, { ...params, page: undefined, ...change }, { replace });
  const turn = (page) => { set({ page: page || undefined }); setHere(0); };
  const rows = state.data?.rows ?? [];
  const step = (event) => {
    const move = listKey(event);
    if (!move || !rows.length || event.target.type === "range") return;
    event.preventDefault();
    if (move === "next" && (state.data.page + 1) * SIZE < state.data.total) return turn(state.data.page + 1);
    if (move === "previous" && state.data.page > 0) return turn(state.data.page - 1);
    const next = { down: place.current + 1, up: place.current - 1, first: 0, last: rows.length - 1 }[move];
    if (next === undefined) return undefined;
    const at = clamp(next, 0, rows.length - 1);
    setHere(at);
    return list.current?.querySelectorAll("a.id")[at]?.focus();
  };
  useKeys(step);
  return html`<div class="tools">
      <label class="field">Order <select value=${params.order ?? "hardest"} onChange=${(event) => set({ order: event.target.value })}>${ORDERS.map(([id, name]) => html`<option key=${id} value=${id}>${name}</option>`)}</select></label>
      <label class="field">Search <input type="search" value=${params.search ?? ""} onInput=${(event) => set({ search: event.target.value }, true)} /></label>
    </div>
    <${Waiting} state=${state}>${(data) => html`<div class="busy-box" aria-busy=${state.isLoading ? "true" : "false"}>
      ${data.total === 0 && html`<p class="note">No example matches.</p>`}
      <ol class="rows" ref=${list}>${data.rows.map((row, k) => html`<${Row} key=${row.row} row=${row} isHere=${k === here} choose=${() => setHere(k)} open=${{ ...positionOf(params), row: row.row }} />`)}</ol>
      ${data.total > 0 && html`<${Pager} data=${data} turn=${turn} />`}</div>`}</${Waiting}>`;
}

export function Examples() {
  return html`<${Panel} id="examples" title="Examples" note=${html`<kbd>j</kbd> <kbd>k</kbd> next, previous`}><${ExampleList} /></${Panel}>`;
}

function Probabilities({ title, proba, classes }) {
  const order = proba.map((_, k) => k).sort((a, b) => proba[b] - proba[a]).slice(0, 10);
  return html`<h3>${title}</h3><ul class="moving">${order.map((k) => html`<li key=${k}><bdi>${classes[k]}</bdi><${Bar} share=${proba[k]} /><span class="number">${percent(proba[k])}</span></li>`)}</ul>`;
}

export function ExamplePage({ kept }) {
  const { version, address } = useStudio();
  const { params } = address;
  const state = useData("example.json", { ...positionOf(params), row: params.row ?? 0 }, version);
  return html`<p class="back"><${Link} view="examples" params=${kept}>All examples</${Link}></p>
    <${Waiting} state=${state}>${({ example, classes, proba, model_proba }) => html`<div class="grid side">
      <${Panel} id="example" title=${html`<bdi>${example.example}</bdi>`} note=${plural(example.labels, "label")}>
        <${Shown} row=${example.row} text=${example.text} large />
        <${Given} said=${example.said} />
        <p class="note">Disagreement ${number(example.disagreement)}, margin ${number(example.margin, 2)}${example.truth !== null && example.truth !== undefined ? `, known answer ${example.truth}` : ""}</p>
      </${Panel}>
      <${Panel} id="proba" title="Confidence"><div class="stack"><div><${Probabilities} title="Consensus" proba=${proba} classes=${classes} /></div>
        ${model_proba && html`<div><${Probabilities} title="Classifier, out of fold" proba=${model_proba} classes=${classes} /></div>`}</div></${Panel}>
    </div>`}</${Waiting}>`;
}
