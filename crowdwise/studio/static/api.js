// How the page asks the server. A server that is gone is asked again until it is back; a fit that is not there is waited for.
import { isTemporary, untilDone } from "./lib/retry.js";

const SEAT = Math.random().toString(36).slice(2);
const TOKEN = "crowdwise-token";
// These do not depend on a position, so there is nothing to be overtaken.
const FIXED = new Set(["start.json", "summary.json", "now.json", "pairs.json", "label.json"]);
const listeners = new Set();
let token = null;
let isLost = false;

/** What the server refused, with the field it names. */
export class Problem extends Error {
  constructor(status, text, field) {
    super(text);
    Object.assign(this, { status, field, temporary: isTemporary(status) });
  }
}

/** Keep the token for this tab; without one, take that of before. */
export function keepToken(given) {
  if (given) sessionStorage.setItem(TOKEN, given);
  token = given ?? sessionStorage.getItem(TOKEN);
  return token !== null;
}

/** Hear whether the server is there: `listener(isLost)`. */
export function onConnection(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function setLost(value) {
  if (value === isLost) return;
  isLost = value;
  listeners.forEach((listener) => listener(value));
}

let transport = async (method, address, body, signal) => {
  const headers = { Authorization: `Bearer ${token}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  return fetch(address, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store" });
};

/** Ask by other means than requests, as inside a notebook. */
export function setTransport(other) {
  transport = other;
}

async function ask(method, address, body, signal) {
  let response;
  try {
    response = await transport(method, address, body, signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    setLost(true);
    throw new Problem(0, "The studio is not responding.");
  }
  if (isTemporary(response.status)) throw new Problem(response.status, "The studio is starting.");
  setLost(false);
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw new Problem(response.status, told.problem ?? `The studio answered ${response.status}.`, told.field);
}

function addressOf(path, params) {
  const kept = Object.entries(params).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return `/${path}${kept.length ? `?${new URLSearchParams(kept)}` : ""}`;
}

const pause = (seconds, signal) =>
  new Promise((done, stop) => {
    const timer = setTimeout(done, 1000 * seconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      stop(new DOMException("No longer needed", "AbortError"));
    });
  });

/** Data of a path; `waiting` hears the words about a fit that is not there yet. */
export async function get(path, params = {}, { signal, waiting = () => {} } = {}) {
  const address = addressOf(path, FIXED.has(path) ? params : { ...params, seat: `${SEAT}.${path}` });
  for (;;) {
    const response = await untilDone(() => ask("GET", address, undefined, signal), { wait: (ms) => pause(ms / 1000, signal) });
    const data = await response.json();
    if (response.status !== 202) return data;
    waiting(data.words);
    await pause(Math.min(Math.max(data.seconds ?? 0.2, 0.05), 2), signal);
  }
}

/** Change something, once: what happened if the server goes away meanwhile is for the caller to find out. */
export async function post(path, body = undefined) {
  return (await ask("POST", `/${path}`, body ?? {})).json();
}

/** A picture or a file, as a blob. */
export async function blob(path, params, signal) {
  const response = await untilDone(() => ask("GET", addressOf(path, params), undefined, signal), { wait: (ms) => pause(ms / 1000, signal) });
  return { blob: await response.blob(), name: /filename="?([^";]+)/.exec(response.headers.get("content-disposition") ?? "")?.[1] };
}
