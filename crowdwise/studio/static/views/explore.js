// Explore: the sliders on top, below them one of the views of what they change.
import { html } from "../html.js";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
import { get } from "../api.js";
import { latest } from "../lib/latest.js";
import { numberIn } from "../lib/url.js";
import { movesOf, positionOf, useData, useStudio } from "../state.js";
import { Annotator } from "./annotator.js";
import { Annotators } from "./annotators.js";
import { Link } from "./common.js";
import { ExamplePage, Examples } from "./examples.js";
import { Knobs } from "./knobs.js";
import { MapView } from "./map.js";
import { Overview } from "./overview.js";
import { Pairs } from "./pairs.js";

const TABS = [["explore", "Overview"], ["annotators", "Annotators"], ["pairs", "Pairs"], ["map", "Map"], ["examples", "Examples"]];
const VIEWS = { explore: Overview, annotators: Annotators, annotator: Annotator, pairs: Pairs, map: MapView, examples: Examples, example: ExamplePage };
const TAB_OF = { annotator: "annotators", example: "examples" };
const SETTLED = 350;

export const EXPLORE_VIEWS = new Set(Object.keys(VIEWS));

/** Where the sliders are, by the address or by the session. */
function positionIn(params, ours) {
  return {
    steepness: numberIn(params.steepness, ours.steepness, 0),
    l2: numberIn(params.l2, ours.l2, 0),
    without: params.without ?? null,
  };
}

/** Data that follow a position while it moves: the latest wins, and a fit that takes long says what it does. */
function useLive(path, position, version) {
  const [state, set] = useState({ data: null, words: "" });
  const push = useMemo(
    () => latest(
      (params, { signal, slow }) => get(path, params, { signal, waiting: (words) => { slow(); set((old) => ({ ...old, words: words || "Fitting" })); } }),
      (data) => set({ data, words: "" }),
      (problem) => set((old) => ({ ...old, words: problem.message })),
    ),
    [path],
  );
  const sent = useRef(null);
  const send = (wanted) => {
    const key = `${JSON.stringify(wanted)} ${version}`;
    if (key !== sent.current) push(wanted);
    sent.current = key;
  };
  useLayoutEffect(() => { if (position) send(position); }, [JSON.stringify(position), version]);
  return { ...state, send };
}

/** The next address after a move: the position before it goes along, so that both can be compared. */
function movedParams(params, before, change) {
  const next = { ...params, page: undefined };
  for (const [name, value] of Object.entries(before)) next[`before_${name}`] = value;
  for (const [name, value] of Object.entries(change)) next[name] = value;
  return next;
}

export function Explore() {
  const { start, version, address, go } = useStudio();
  const { view, params } = address;
  const settled = positionIn(params, start.position);
  const [drag, setDrag] = useState(null);
  const timer = useRef(null);
  const live = { ...settled, ...drag };
  const key = JSON.stringify(positionOf(params));
  useEffect(() => setDrag(null), [key]);
  const hasLabels = start.size.labels > 0;
  const refit = useLive("refit.json", hasLabels ? compact(live) : null, version);
  const hasCurve = hasLabels && start.follows === "sums";
  const curve = useData("curve.json", hasCurve ? withoutSteepness(compact(settled)) : null, version);
  const isCompared = Object.keys(params).some((name) => name.startsWith("before_"));
  const moves = useData("explore.json", isCompared ? movesOf(params) : null, version);
  const move = (change) => {
    const next = { ...drag, ...change };
    refit.send(compact({ ...settled, ...next })); // before anything is drawn
    setDrag(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => go(view, movedParams(params, settled, next)), SETTLED);
  };
  const reset = () => go(view, movedParams(params, settled, { steepness: null, l2: null, without: null }));
  if (!hasLabels) return html`<h1>Explore</h1><p class="lead">There are no labels yet. <${Link} view="label">Label a few examples</${Link}>, and come back.</p>`;
  const View = VIEWS[view];
  const kept = { ...movesOf(params) };
  return html`<h1 class="quiet">Explore</h1>
    <${Knobs} curve=${curve} live=${live} move=${move} refit=${refit.data} moves=${moves} params=${kept} words=${refit.words} reset=${reset} />
    <nav class="tabs" aria-label="Views">${TABS.map(([id, name]) => html`<${Link} key=${id} view=${id} params=${kept} aria-current=${(TAB_OF[view] ?? view) === id ? "page" : undefined}>${name}</${Link}>`)}</nav>
    <${View} key=${view} refit=${refit.data} curve=${curve.data} live=${live} kept=${kept} move=${move} />`;
}

const compact = (position) => Object.fromEntries(Object.entries(position).filter(([, value]) => value !== null && value !== undefined));
const withoutSteepness = ({ steepness, ...rest }) => rest;
