// The first screen: what the labels show, in three sentences and four numbers, and where to go on.
import { html } from "../html.js";
import { count, plural } from "../lib/format.js";
import { useData, useStudio } from "../state.js";
import { Link, Waiting } from "./common.js";

/** Three sentences and four numbers, asked for by this screen alone: they take long where examples are many. */
function Summary({ headline, numbers }) {
  const last = headline.length - 1;
  return html`<div class="lead">${headline.map((sentence, k) => html`<p key=${k} class=${k === last ? "act" : ""}>${sentence}</p>`)}</div>
    <dl class="numbers">${numbers.map((one) => html`<div key=${one.name} class=${one.act ? "act" : ""}>
      <dt>${one.name}<br /><span class="note">${one.note}</span></dt><dd class="figure">${one.value}</dd></div>`)}</dl>`;
}

export function Start() {
  const { start, version } = useStudio();
  const { size } = start;
  const hasLabels = size.labels > 0;
  const state = useData("summary.json", hasLabels ? {} : null, version);
  return html`<div class="first">
    <p class="eyebrow">crowdwise studio</p>
    <h1><bdi>${start.title}</bdi></h1>
    <p class="note">${plural(size.examples, "example")}, ${plural(size.annotators, "annotator")}, ${plural(size.labels, "label")}</p>
    ${hasLabels ? html`<p class="note">${start.model}</p><${Waiting} state=${state}>${(data) => html`<${Summary} ...${data} />`}</${Waiting}>`
      : html`<div class="lead"><p>No labels yet. ${plural(size.examples, "example")} in ${plural(start.classes.length, "class", "classes")} can be labelled; the consensus is updated after every answer.</p></div>`}
    <nav class="grid three doors" aria-label="Next steps">
      <${Link} class="door" view="explore"><b>Explore</b><span>Change how much contested examples count, and see which answers flip and which annotators move.</span></${Link}>
      <${Link} class="door" view="label"><b>Label</b><span>Answer the most informative examples; the consensus is updated after every answer.</span></${Link}>
      <${Link} class="door" view="model"><b>Model</b><span>What was learned, its accuracy${start.has.truth ? " on known answers" : ""}, and automatic decisions with their reasons.</span></${Link}>
    </nav>
    ${start.people.length > 0 && html`<p class="note doors">Answered here: ${start.people.slice(0, 8).map((name, k) => html`<span key=${name}>${k ? ", " : ""}<${Link} view="label" params=${{ person: name }}><bdi>${name}</bdi></${Link}></span>`)}${start.people.length > 8 ? ` and ${count(start.people.length - 8)} more` : ""}</p>`}
  </div>`;
}
