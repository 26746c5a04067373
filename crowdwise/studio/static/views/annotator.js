// One annotator: what they confuse, where they stand alone, how they did over time, and what happens without them.
import { html } from "../html.js";
import { Confusion } from "../charts/confusion.js";
import { Bar, Interval } from "../charts/small.js";
import { count, interval, percent, plural, signed } from "../lib/format.js";
import { positionOf, useData, useStudio } from "../state.js";
import { Flags, Link, Panel, Waiting } from "./common.js";
import { ExampleList } from "./examples.js";

function Alone({ alone }) {
  if (!alone.total) return html`<p class="note">No label of this annotator stands alone.</p>`;
  return html`<p class="note">${plural(alone.total, "label")} that no other annotator gave to an example of three labels or more${alone.total > alone.rows.length ? ", the least probable first" : ""}.</p>
    <table><thead><tr><th scope="col">Example</th><th scope="col">Answer</th><th scope="col">Consensus</th></tr></thead>
    <tbody>${alone.rows.map((row) => html`<tr key=${row.example}><th scope="row"><bdi>${row.example}</bdi></th><td><bdi>${row.said}</bdi></td><td><bdi>${row.label}</bdi></td></tr>`)}</tbody></table>`;
}

function Bias({ bias, classes }) {
  return html`<ul class="moving">${classes.map((name, k) => html`<li key=${name}><bdi>${name}</bdi><${Bar} share=${(bias[k] ?? 0) * 2} centred /><span class="number">${bias[k] === null ? "" : signed(bias[k], (value) => percent(value, 0))}</span></li>`)}</ul>`;
}

function OverTime({ parts }) {
  return html`<table><thead><tr><th scope="col">Answers</th><th scope="col">Agreement with the consensus</th><th scope="col" class="wide">Until</th></tr></thead>
    <tbody>${parts.map((part, k) => html`<tr key=${k}><th scope="row">${count(part.answers)}</th><td class="with-bar"><${Bar} share=${part.agrees} />${percent(part.agrees, 0)}</td><td class="wide">${part.to.replace("T", " ").slice(0, 16)}</td></tr>`)}</tbody></table>`;
}

function Matrix({ row, classes }) {
  if (row.confusion) return html`<${Confusion} matrix=${row.confusion} classes=${classes} caption="Rows: consensus. Columns: this annotator’s answers." />`;
  if (!row.mixed_up?.length) return html`<p class="note">Too few labels for a confusion matrix.</p>`;
  return html`<ul>${row.mixed_up.map((one, k) => html`<li key=${k}><bdi>${one.truth}</bdi> answered as <bdi>${one.said}</bdi>: ${percent(one.share, 0)}</li>`)}</ul>`;
}

export function Annotator({ move, kept }) {
  const { version, address } = useStudio();
  const { params } = address;
  const { name } = params;
  const isOut = params.without === name;
  const state = useData("annotator.json", name && !isOut ? { ...positionOf(params), name } : null, version);
  const back = html`<p class="back"><${Link} view="annotators" params=${kept}>All annotators</${Link}></p>`;
  if (isOut) return html`${back}<${Panel} id="annotator" title=${html`<bdi>${name}</bdi>`}><p>Left out: every panel shows the fit without this annotator.</p>
    <p class="tools"><button class="button" onClick=${() => move({ without: null })}>Include this annotator again</button></p></${Panel}>`;
  return html`${back}<${Waiting} state=${state}>${({ annotator: row, classes, over_time }) => html`<div class="stack">
    <${Panel} id="annotator" title=${html`<bdi>${row.annotator}</bdi>`} note=${plural(row.labels, "label")} busy=${state.isLoading}>
      <div class="tools"><${Flags} flags=${row.flags} />
        <span class="with-bar"><${Interval} value=${row.accuracy} low=${row.accuracy_low} high=${row.accuracy_high} warm=${row.flags.length > 0} /> accuracy ${percent(row.accuracy)} <small>${interval(row.accuracy_low, row.accuracy_high)}</small></span>
        <span>agreement with the consensus ${percent(row.agrees_with_consensus)}</span>
        <button class="button" onClick=${() => move({ without: row.annotator })}>Leave this annotator out</button></div>
    </${Panel}>
    <div class="grid two">
      <${Panel} id="confusion" title="Confusion"><${Matrix} row=${row} classes=${classes} /></${Panel}>
      <${Panel} id="bias" title="Class bias" note="share of their answers minus that of the consensus"><${Bias} bias=${row.bias} classes=${classes} /></${Panel}>
      <${Panel} id="alone" title="Stands alone"><${Alone} alone=${row.alone} /></${Panel}>
      ${over_time.length > 0 && html`<${Panel} id="time" title="Over time"><${OverTime} parts=${over_time} /></${Panel}>`}
    </div>
    <${Panel} id="apart" title="Examples labelled differently from the consensus"><${ExampleList} fixed=${{ one: row.annotator }} /></${Panel}>
  </div>`}</${Waiting}>`;
}
