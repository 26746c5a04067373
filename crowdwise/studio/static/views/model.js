// Model: what was learned, how good it is beside the consensus, mistakes beside the bound, and automatic decisions with their reasons.
import { html } from "../html.js";
import { Reliability } from "../charts/reliability.js";
import { Bar, Interval } from "../charts/small.js";
import { count, interval, number, percent, plural } from "../lib/format.js";
import { positionOf, useData, useStudio } from "../state.js";
import { Panel, Waiting } from "./common.js";

function Coefficients({ parts }) {
  const largest = Math.max(...parts.flatMap((part) => part.rows.map((row) => Math.abs(row.value))), 1e-12);
  return parts.map((part) => html`<div key=${part.of}>${parts.length > 1 && html`<h3><bdi>${part.of}</bdi></h3>`}
    <ul class="words-list">${part.rows.map((row) => html`<li key=${row.name}><bdi>${row.name}</bdi><${Bar} share=${row.value / largest} centred /><span class="number">${number(row.value)}</span></li>`)}</ul>
    ${part.total > part.rows.length && html`<p class="note">The ${count(part.rows.length)} largest of ${count(part.total)}.</p>`}</div>`);
}

function Share({ name, part }) {
  if (!part || part.value === null) return null;
  return html`<tr><th scope="row">${name}</th><td class="with-bar"><${Interval} value=${part.value} low=${part.low} high=${part.high} />${percent(part.value)}<small>${interval(part.low, part.high)}</small></td></tr>`;
}

function Settings({ name, settings }) {
  return html`<dl class="settings columns"><div><dt>model</dt><dd>${name}</dd></div>${Object.entries(settings).map(([key, value]) => html`<div key=${key}><dt>${key}</dt><dd>${typeof value === "number" ? number(value, 4) : String(value)}</dd></div>`)}</dl>`;
}

const shown = (value) => (typeof value === "number" ? number(value) : typeof value === "boolean" ? (value ? "yes" : "no") : String(value));

function Choices({ choices }) {
  if (!choices.length) return html`<p class="note">No automatic decisions.</p>`;
  return html`<ul class="decisions">${choices.map((one) => html`<li key=${one.name}><b>${one.name}: ${shown(one.chosen)}</b>
    ${one.limit !== null && one.score !== null && html`<small>score ${number(one.score)}, limit ${number(one.limit)}</small>`}<br /><span class="muted">${one.reason}</span></li>`)}</ul>`;
}

/** Classifier beside consensus beside majority, as far as each was measured. */
function Quality({ classifier, check }) {
  const known = check && { value: check.accuracy, low: check.low, high: check.high };
  if (!classifier && !check) return html`<p class="note">Accuracy cannot be measured yet: it needs known answers, from --truth or from an expert in Label.</p>`;
  return html`<table><tbody>
    <${Share} name="Consensus, on known answers" part=${known} />
    ${check?.majority !== undefined && html`<${Share} name="Majority vote, on known answers" part=${{ value: check.majority, low: null, high: null }} />`}
    <${Share} name="Classifier, on known answers" part=${classifier?.truth} />
    <${Share} name="Classifier, against the consensus" part=${classifier?.consensus} />
  </tbody></table>
  <p class="note">${check ? `${plural(check.n, "known answer")}, each held out. ${confidenceWords(check)}` : ""} ${classifier ? "The classifier is evaluated on examples that it has not seen." : ""}</p>`;
}

/** Whether stated confidence is what known answers bear out. */
function confidenceWords(check) {
  const stated = percent(check.confidence);
  if (check.confidence > check.high) return `Overconfident: predicted ${stated} correct, actual ${percent(check.accuracy)}.`;
  if (check.confidence < check.low) return `Underconfident: predicted ${stated} correct, actual ${percent(check.accuracy)}.`;
  return `Mean confidence ${stated}.`;
}

/** Mistakes of a perceptron as examples get harder, beside the most that it can make. */
function Theory({ theory }) {
  const most = Math.max(...theory.regions.map((region) => region.mistakes), 1);
  const words = theory.regions.map((region) => `${region.mistakes} in part ${region.region}`).join(", ");
  return html`<p>${theory.words}</p>
    <dl class="facts"><div><dt>mistakes</dt><dd>${count(theory.mistakes)}</dd></div><div><dt>bound of Theorem ${theory.theorem ?? 2}</dt><dd>${theory.bound === null ? "none" : count(Math.round(theory.bound))}</dd></div>
      ${theory.novikoff !== undefined && theory.novikoff !== null && html`<div><dt>Novikoff’s bound, for any order</dt><dd>${count(Math.round(theory.novikoff))}</dd></div>`}</dl>
    <div class="regions" role="img" aria-label=${`Mistakes, from easy to hard examples: ${words}`}>${theory.regions.map((region) => html`<div key=${region.region} title=${`${region.mistakes} mistakes`} style=${{ height: `${(100 * region.mistakes) / most}%` }}></div>`)}</div>
    <p class="regions-ends"><span>easy examples</span><span>mistakes per region, at most ${count(most)}</span><span>hard examples</span></p>`;
}

export function Model() {
  const { start, version, address } = useStudio();
  const state = useData("model.json", start.size.labels > 0 ? positionOf(address.params) : null, version);
  if (start.size.labels === 0) return html`<h1>Model</h1><p class="lead">There are no labels yet.</p>`;
  return html`<h1 class="quiet">Model</h1><${Waiting} state=${state}>${(data) => html`<div class="stack">
    <div class="grid two">
      <${Panel} id="quality" title="Accuracy" busy=${state.isLoading}><${Quality} classifier=${data.classifier} check=${data.truth_check} /></${Panel}>
      ${data.reliability ? html`<${Panel} id="reliability" title="Reliability" note="on the diagonal, confidence equals accuracy"><${Reliability} bins=${data.reliability} /></${Panel}>`
        : html`<${Panel} id="choices" title="Automatic decisions"><${Choices} choices=${data.choices} /></${Panel}>`}
    </div>
    ${data.theory && html`<${Panel} id="theory" title="Mistakes and their bound"><${Theory} theory=${data.theory} /></${Panel}>`}
    ${data.coefficients.length > 0 && html`<${Panel} id="coefficients" title="Most important features" note=${`${plural(data.coefficients[0].total, "coefficient")}${data.coefficients.length === 1 ? `; blue favours ${data.coefficients[0].of}` : ""}`}><${Coefficients} parts=${data.coefficients} /></${Panel}>`}
    ${data.reliability && html`<${Panel} id="choices" title="Automatic decisions"><${Choices} choices=${data.choices} /></${Panel}>`}
    <${Panel} id="settings" title="Settings"><${Settings} name=${data.name} settings=${data.settings} /></${Panel}>
  </div>`}</${Waiting}>`;
}
