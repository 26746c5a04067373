// All annotators: accuracy with its interval, agreement, class bias, weight and how it moves, flags.
import { html } from "../html.js";
import { useState } from "../vendor/hooks.js";
import { Bar, Interval, Spark } from "../charts/small.js";
import { count, interval, percent, plural } from "../lib/format.js";
import { placeIn } from "../lib/scale.js";
import { positionOf, useData, useStudio } from "../state.js";
import { Flags, Link, Panel, Waiting } from "./common.js";

const FIRST = 50;

/** The class that an annotator gives too often or too seldom, and by how much. */
export function strongestBias(row, classes) {
  let best = -1;
  row.bias.forEach((value, k) => { if (value !== null && (best < 0 || Math.abs(value) > Math.abs(row.bias[best]))) best = k; });
  return best < 0 ? null : { name: classes[best], value: row.bias[best] };
}

const COLUMNS = [
  { id: "annotator", name: "Annotator", of: (row) => row.annotator },
  { id: "labels", name: "Labels", of: (row) => row.labels, number: true, wide: true },
  { id: "accuracy", name: "Accuracy", of: (row) => row.accuracy ?? -1 },
  { id: "agrees", name: "Agreement", of: (row) => row.agrees_with_consensus ?? -1, number: true, wide: true },
  { id: "weight", name: "Weight", of: (row) => row.expertise ?? -1 },
  { id: "steepness", name: "By steepness", wide: true },
  { id: "bias", name: "Class bias", of: (row) => Math.max(...row.bias.map((value) => Math.abs(value ?? 0)), 0), wide: true },
  { id: "flags", name: "Flags", of: (row) => row.flags.length, wide: true },
];

function compare(a, b) {
  return typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
}

function Head({ column, sort, onSort }) {
  const sorted = sort.id === column.id ? (sort.down ? "descending" : "ascending") : undefined;
  const kind = `${column.number ? "number" : ""} ${column.wide ? "wide" : ""}`;
  return html`<th scope="col" class=${kind} aria-sort=${sorted}>${column.of ? html`<button onClick=${() => onSort(column.id)}>${column.name}</button>` : column.name}</th>`;
}

function Row({ row, classes, largest, spark, kept }) {
  const bias = strongestBias(row, classes);
  return html`<tr>
    <th scope="row"><${Link} view="annotator" params=${{ ...kept, name: row.annotator }}><bdi>${row.annotator}</bdi></${Link}><div class="narrow"><${Flags} flags=${row.flags} /></div></th>
    <td class="number wide">${count(row.labels)}</td>
    <td class="with-bar"><${Interval} value=${row.accuracy} low=${row.accuracy_low} high=${row.accuracy_high} warm=${row.flags.length > 0} />${percent(row.accuracy)}<small class="wide">${interval(row.accuracy_low, row.accuracy_high)}</small></td>
    <td class="number wide">${percent(row.agrees_with_consensus)}</td>
    <td><${Bar} share=${(row.expertise ?? 0) / largest} /></td>
    <td class="wide">${spark && html`<${Spark} ...${spark} />`}</td>
    <td class="wide">${bias && Math.abs(bias.value) >= 0.05 ? html`<bdi>${bias.name}</bdi> ${bias.value > 0 ? "+" : "-"}${percent(Math.abs(bias.value), 0)}` : ""}</td>
    <td class="wide"><${Flags} flags=${row.flags} /></td>
  </tr>`;
}

function sortedRows(rows, { id, down }) {
  const of = COLUMNS.find((column) => column.id === id)?.of ?? COLUMNS[4].of;
  return [...rows].sort((a, b) => (down ? -1 : 1) * compare(of(a), of(b)));
}

export function Annotators({ curve, live, kept }) {
  const { version, address, go } = useStudio();
  const { params } = address;
  const state = useData("annotators.json", positionOf(params), version);
  const [most, setMost] = useState(FIRST);
  const sort = { id: params.sort ?? "weight", down: params.down !== "0" };
  const set = (change) => go("annotators", { ...params, ...change }, { replace: true });
  const onSort = (id) => set({ sort: id, down: sort.id === id && sort.down ? "0" : id === "annotator" && sort.id !== id ? "0" : undefined });
  const lines = new Map((curve?.annotators ?? []).map((name, k) => [name, curve.expertise[k]]));
  const at = curve ? placeIn(curve.steepness, live.steepness ?? 0) : 0;
  return html`<${Panel} id="annotators" title="Annotators" busy=${state.isLoading}
    note=${state.data && state.data.shown < state.data.total ? `${count(state.data.shown)} of ${count(state.data.total)}: those flagged and those with the most labels` : ""}>
    <div class="tools">
      <label class="field">Search <input type="search" value=${params.search ?? ""} onInput=${(event) => set({ search: event.target.value })} /></label>
      <label class="field"><input type="checkbox" checked=${params.flagged === "1"} onChange=${(event) => set({ flagged: event.target.checked ? "1" : undefined })} /> only flagged</label>
    </div>
    <${Waiting} state=${state}>${(data) => {
      const words = (params.search ?? "").toLowerCase();
      const rows = sortedRows(data.rows.filter((row) => row.annotator.toLowerCase().includes(words) && (params.flagged !== "1" || row.flags.length)), sort);
      const largest = Math.max(...data.rows.map((row) => row.bar ?? 0), 1e-12);
      return html`<div class="scroll" tabindex="0" role="region" aria-label="Table of annotators"><table>
        <thead><tr>${COLUMNS.map((column) => html`<${Head} key=${column.id} column=${column} sort=${sort} onSort=${onSort} />`)}</tr></thead>
        <tbody>${rows.slice(0, most).map((row) => html`<${Row} key=${row.annotator} row=${{ ...row, expertise: row.bar ?? row.expertise }} classes=${data.classes} largest=${largest} kept=${kept}
          spark=${lines.has(row.annotator) ? { values: lines.get(row.annotator), at } : null} />`)}</tbody>
      </table></div>
      ${rows.length > most && html`<p class="pager"><button class="button" onClick=${() => setMost(most + FIRST)}>Show ${plural(Math.min(FIRST, rows.length - most), "more", "more")}</button></p>`}
      ${rows.length === 0 && html`<p class="note">No annotator matches.</p>`}
      ${!data.comparable && html`<p class="note">The weights of these annotators cannot be compared: they share too few examples.</p>`}`;
    }}</${Waiting}>
  </${Panel}>`;
}
