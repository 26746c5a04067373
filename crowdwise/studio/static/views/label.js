// Label: one example at a time, by keyboard; every answer is saved before the next example comes.
import { html } from "../html.js";
import { useEffect, useRef, useState } from "../vendor/hooks.js";
import { blob, get, post } from "../api.js";
import { deliver } from "../lib/deliver.js";
import { count, interval, percent, plural } from "../lib/format.js";
import { labelKey } from "../lib/keys.js";
import { numberIn } from "../lib/url.js";
import { useKeys, useStudio } from "../state.js";
import { Panel, Shown } from "./common.js";

const RULES = [
  ["uncertain", "Most informative first"], ["easy", "Easy first, then harder"], ["classifier", "Least certain for the classifier"],
  ["random", "At random"], ["check", "Known answers only"],
];
const SHORT = 60;

/** What the server has for a person, and how to answer; one thing at a time. */
function useLabelling(person, rule, check) {
  const [state, set] = useState(null);
  const [note, setNote] = useState(null);
  const [problem, setProblem] = useState(null);
  const isBusy = useRef(true);
  const look = async (signal) => get("label.json", { person, rule, check }, { signal });
  useEffect(() => {
    const stop = new AbortController();
    isBusy.current = true;
    look(stop.signal).then(
      (found) => { set(found); setProblem(null); isBusy.current = false; },
      (error) => error.name === "AbortError" || setProblem(error),
    );
    return () => stop.abort();
  }, [person, rule, check]);
  const act = async (path, body, words) => {
    if (isBusy.current) return;
    isBusy.current = true;
    try {
      const done = await deliver(post, look, path, { person, ...body }, state);
      setNote({ ...words, checked: done.checked });
      set(await look());
      setProblem(null);
    } catch (error) {
      setProblem(error);
    }
    isBusy.current = false;
  };
  return { state, note, problem, act };
}

function SignIn({ people, go, params }) {
  const [name, set] = useState("");
  const begin = (event) => {
    event.preventDefault();
    if (name.trim()) go("label", { ...params, person: name.trim() });
  };
  return html`<h1>Label</h1><form class="panel sign-in" onSubmit=${begin}>
    <label for="person">Your name: your answers and estimated accuracy are stored under it.</label>
    <input id="person" type="text" autocomplete="name" maxlength="200" value=${name} onInput=${(event) => set(event.target.value)} />
    <p><button class="button strong" disabled=${!name.trim()}>Begin</button></p>
    ${people.length > 0 && html`<p class="note">Go on as ${people.slice(0, 6).map((one, k) => html`<span key=${one}>${k ? ", " : ""}<button type="button" class="link" onClick=${() => go("label", { ...params, person: one })}><bdi>${one}</bdi></button></span>`)}</p>`}
  </form>`;
}

/** Whether a checked answer was right, or what was done last. */
function Feedback({ note, classes, isShown }) {
  if (!note) return html`<p class="feedback" role="status"></p>`;
  if (note.checked && isShown) {
    const { is_right, code } = note.checked;
    return html`<p class="feedback" role="status">${is_right ? html`<span class="good">Correct: <bdi>${classes[code]}</bdi></span>` : html`<span class="bad">The known answer is <bdi>${classes[code]}</bdi>; yours was <bdi>${classes[note.code]}</bdi>.</span>`}</p>`;
  }
  return html`<p class="feedback muted" role="status">${note.text}</p>`;
}

function Ask({ state, act, answer, problem, note, isFeedback }) {
  const { next, classes } = state;
  const what = useRef(null);
  useEffect(() => { if (document.activeElement === document.body || document.activeElement?.closest(".ask")) what.current?.focus({ preventScroll: true }); }, [next?.row]);
  if (!next) return html`<section class="panel ask"><h2>Nothing left</h2><p>You have answered or skipped everything under this rule. Another rule may offer more.</p><${Feedback} note=${note} classes=${classes} isShown=${isFeedback} />
    <div class="side-answers"><button class="button" onClick=${() => act("undo.json", {}, { text: "Undone" })}>Undo <kbd>Backspace</kbd></button></div></section>`;
  return html`<section class="panel ask" aria-label="Example">
    <p class="note">Example <bdi>${next.example}</bdi></p>
    <div class="what" tabindex="-1" ref=${what}><${Shown} row=${next.row} text=${next.text ?? next.example} large /></div>
    <div class="answers" role="group" aria-label="Answers">${classes.map((name, k) => html`<button class="answer" key=${k} onClick=${() => answer(k)}>${k < 9 && html`<kbd>${k + 1}</kbd>`}<bdi>${name}</bdi></button>`)}</div>
    <div class="side-answers"><button class="button" onClick=${() => act("skip.json", { row: next.row }, { text: "Skipped" })}>Skip <kbd>Space</kbd></button>
      <button class="button" disabled=${state.last.length === 0} onClick=${() => act("undo.json", {}, { text: "Undone" })}>Undo <kbd>Backspace</kbd></button></div>
    <${Feedback} note=${note} classes=${classes} isShown=${isFeedback} />
    ${problem && html`<p class="banner" role="alert">${problem.message}</p>`}
  </section>`;
}

function Last({ state, act }) {
  const change = (one, event) => {
    const code = Number(event.target.value);
    act("answer.json", { row: one.row, code }, { text: `Changed to ${state.classes[code]}`, code });
  };
  if (!state.last.length) return html`<p class="note">The last ten answers are listed here and can be changed.</p>`;
  return html`<ol class="last">${state.last.map((one, k) => html`<li key=${`${one.row}-${k}`}><span class="excerpt"><bdi>${(one.text ?? one.example).slice(0, SHORT)}</bdi></span>
    <select aria-label=${`Answer for ${one.example}`} value=${one.code === null ? "" : String(one.code)} onChange=${(event) => change(one, event)}>
      ${one.code === null && html`<option value="" disabled>skipped</option>`}${state.classes.map((name, code) => html`<option key=${code} value=${String(code)}>${name}</option>`)}</select></li>`)}</ol>`;
}

function Progress({ state }) {
  const { answers, skipped, left, checked, right, accuracy } = state.progress;
  const share = answers + left > 0 ? answers / (answers + left) : 1;
  return html`<dl class="facts">
      <div><dt>${answers === 1 ? "answer" : "answers"}</dt><dd>${count(answers)}</dd></div>
      <div><dt>left</dt><dd>${count(left)}</dd></div>
      <div><dt>your accuracy${accuracy.low !== null ? ` (${interval(accuracy.low, accuracy.high, 0)})` : ""}</dt><dd>${accuracy.value === null ? "not yet known" : percent(accuracy.value, 0)}</dd></div>
    </dl>
    <div class="meter" role="progressbar" aria-label="Answered" aria-valuenow=${Math.round(100 * share)} aria-valuemin="0" aria-valuemax="100"><div style=${{ width: `${100 * share}%` }}></div></div>
    <p class="note">${checked > 0 ? `${count(right)} of ${plural(checked, "checked answer")} correct` : "Accuracy is estimated from agreement with the consensus"}${skipped ? `; ${count(skipped)} skipped` : ""}</p>`;
}

async function download(format) {
  const { blob: file, name } = await blob("export", { format });
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(file), download: name ?? `labels.${format}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function Export({ hasTexts }) {
  const [problem, set] = useState(null);
  const save = (format) => download(format).then(() => set(null), set);
  return html`<div class="side-answers"><button class="button" onClick=${() => save("csv")}>Labels, CSV</button><button class="button" onClick=${() => save("consensus")}>Consensus, CSV</button>${hasTexts && html`<button class="button" onClick=${() => save("label-studio")}>Label Studio</button>`}</div>
    ${problem && html`<p class="banner" role="alert">${problem.message}</p>`}`;
}

function Settings({ rule, check, isFeedback, set, start }) {
  const rules = RULES.filter(([id]) => (id !== "classifier" || start.has.features) && (id !== "check" || start.has.truth));
  return html`<div class="tools"><label class="field">Order <select value=${rule} onChange=${(event) => set({ rule: event.target.value })}>${rules.map(([id, name]) => html`<option key=${id} value=${id}>${name}</option>`)}</select></label>
    ${start.has.truth && html`<label class="field">Known answers mixed in <select value=${String(check)} onChange=${(event) => set({ check: event.target.value })}><option value="0">none</option><option value="0.1">1 in 10</option><option value="0.2">1 in 5</option><option value="0.5">1 in 2</option></select></label>
    <label class="field"><input type="checkbox" checked=${isFeedback} onChange=${(event) => set({ feedback: event.target.checked ? "1" : undefined })} /> tell people whether checked answers are correct</label>`}</div>`;
}

function Seat({ person, params, start, go }) {
  const rule = RULES.some(([id]) => id === params.rule) ? params.rule : "uncertain";
  const check = numberIn(params.check, 0, 0, 1);
  const isFeedback = params.feedback === "1";
  const { state, note, problem, act } = useLabelling(person, rule, check);
  const answer = (code) => act("answer.json", { row: state.next.row, code }, { text: `Saved: ${state.classes[code]}`, code });
  useKeys((event) => {
    const meaning = state && labelKey(event, state.classes.length);
    if (!meaning || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    if (meaning.do === "undo") act("undo.json", {}, { text: "Undone" });
    else if (state.next && meaning.do === "answer") answer(meaning.index);
    else if (state.next) act("skip.json", { row: state.next.row }, { text: "Skipped" });
  });
  if (!state) return problem ? html`<p class="banner" role="alert">${problem.message}</p>` : html`<p class="note" role="status">Loading</p>`;
  return html`<h1 class="quiet">Label</h1>
    <${Settings} rule=${rule} check=${check} isFeedback=${isFeedback} start=${start} set=${(change) => go("label", { ...params, ...change }, { replace: true })} />
    <div class="grid side"><${Ask} state=${state} act=${act} answer=${answer} problem=${problem} note=${note} isFeedback=${isFeedback} />
      <div class="stack">
        <${Panel} id="progress" title=${html`<bdi>${person}</bdi>`} note=${html`<button class="link" onClick=${() => go("label", { ...params, person: undefined })}>another person</button>`}><${Progress} state=${state} /></${Panel}>
        <${Panel} id="last" title="Last answers"><${Last} state=${state} act=${act} /></${Panel}>
        <${Panel} id="export" title="Export"><${Export} hasTexts=${start.has.texts} /></${Panel}>
      </div></div>`;
}

export function Label() {
  const { start, address, go } = useStudio();
  const { params } = address;
  if (!params.person) return html`<${SignIn} people=${start.people} go=${go} params=${params} />`;
  return html`<${Seat} key=${params.person} person=${params.person} params=${params} start=${start} go=${go} />`;
}
