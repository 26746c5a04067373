// What all views share: the address, data of the server, colours of the page.
import { createContext } from "./vendor/preact.js";
import { useContext, useEffect, useRef, useState } from "./vendor/hooks.js";
import { get } from "./api.js";
import { parseColour } from "./lib/colour.js";
import { readAddress, writeAddress } from "./lib/url.js";

/** What is the same on all pages: the first screen's data, the version of the labels, the address and how to change it. */
export const Studio = createContext(null);
export const useStudio = () => useContext(Studio);

const POSITION = ["steepness", "l2", "without"];
const BEFORE = POSITION.map((name) => `before_${name}`);
const pick = (params, names) => Object.fromEntries(names.filter((name) => params[name] !== undefined).map((name) => [name, params[name]]));

/** The position of an address, as parameters of a request. */
export const positionOf = (params) => pick(params, POSITION);
/** The same with the position before it. */
export const movesOf = (params) => pick(params, [...POSITION, ...BEFORE]);

/** The address as state: what it is, and a function that changes it (a new entry of the history unless it replaces). */
export function useAddress() {
  const read = () => readAddress(location.pathname, location.search);
  const [address, set] = useState(read);
  useEffect(() => {
    const moved = () => set(read());
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  const go = (view, params = {}, { replace = false } = {}) => {
    const next = writeAddress(view, params);
    if (next === location.pathname + location.search) return;
    history[replace ? "replaceState" : "pushState"](null, "", next);
    set(read());
  };
  return [address, go];
}

/** Data of a path, asked again when the parameters or the version change; old data stay until there are new ones. */
export function useData(path, params, version = 0) {
  const [state, set] = useState({ data: null, key: null, words: "", problem: null });
  const key = params === null ? null : `${path} ${JSON.stringify(params)} ${version}`;
  useEffect(() => {
    if (key === null) return undefined;
    const stop = new AbortController();
    const waiting = (words) => set((old) => ({ ...old, words }));
    get(path, params, { signal: stop.signal, waiting }).then(
      (data) => set({ data, key, words: "", problem: null }),
      (problem) => problem.name === "AbortError" || set((old) => ({ ...old, key, words: "", problem })),
    );
    return () => stop.abort();
  }, [key]);
  return { ...state, isLoading: key !== null && state.key !== key };
}

/** How wide an element is, again when that changes. */
export function useWidth(start = 400) {
  const element = useRef(null);
  const [width, set] = useState(start);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => set(Math.max(Math.floor(entry.contentRect.width), 60)));
    watch.observe(element.current);
    return () => watch.disconnect();
  }, []);
  return [element, width];
}

/** Colours of the styles by their names, again when light becomes dark. */
export function useColours() {
  const [, redraw] = useState(0);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => redraw((n) => n + 1);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  const styles = getComputedStyle(document.querySelector(".crowdwise-studio"));
  return (name) => parseColour(styles.getPropertyValue(`--${name}`));
}

/** The version of the labels, asked every second while the page can be seen. */
export function useNow() {
  const [now, set] = useState(null);
  useEffect(() => {
    const stop = new AbortController();
    let timer = null;
    const look = async () => {
      if (!document.hidden) await get("now.json", {}, { signal: stop.signal }).then(set, () => {});
      if (!stop.signal.aborted) timer = setTimeout(look, 1000);
    };
    look();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, []);
  return now;
}

/** Hear keys: of the whole page, or of the widget in a notebook. */
export function useKeys(pressed) {
  const root = useStudio()?.root ?? window;
  useEffect(() => {
    root.addEventListener("keydown", pressed);
    return () => root.removeEventListener("keydown", pressed);
  });
}
