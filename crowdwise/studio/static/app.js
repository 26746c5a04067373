// The page: takes the token out of the address, shows the seat that the address names, and keeps up with the server.
import { html } from "./html.js";
import { render } from "./vendor/preact.js";
import { useEffect, useRef, useState } from "./vendor/hooks.js";
import { keepToken, onConnection } from "./api.js";
import { pageKey } from "./lib/keys.js";
import { takeToken } from "./lib/url.js";
import { Studio, useAddress, useData, useKeys, useNow } from "./state.js";
import { Link } from "./views/common.js";
import { Explore, EXPLORE_VIEWS } from "./views/explore.js";
import { Keys } from "./views/keys.js";
import { Label } from "./views/label.js";
import { Model } from "./views/model.js";
import { Start } from "./views/start.js";

const SEATS = [["explore", "Explore"], ["label", "Label"], ["model", "Model"]];
const seatOf = (view) => (EXPLORE_VIEWS.has(view) ? "explore" : view);

function useLost() {
  const [isLost, set] = useState(false);
  useEffect(() => onConnection(set), []);
  return isLost;
}

/** Keys of the whole page: g and a letter go to a seat, slash to the search, question mark to the list of keys. */
function usePageKeys(go, setKeys) {
  const before = useRef(null);
  useKeys((event) => {
    const meaning = pageKey(event, before.current);
    before.current = event.key;
    if (meaning === null) return;
    if (meaning === "search") document.querySelector("main input[type=search]")?.focus();
    else if (meaning === "keys") setKeys(true);
    else go(meaning);
    event.preventDefault();
  });
}

function Status({ isLost, now }) {
  const [kind, words] = isLost ? ["lost", "Reconnecting"] : now?.is_pending ? ["busy", "Updating the model"] : ["", "Connected"];
  return html`<p class=${`status ${kind}`} role="status">${words}</p>`;
}

function Frame({ start, version, now, isLost, address, go }) {
  const [keys, setKeys] = useState(false);
  const seat = seatOf(address.view);
  const main = useRef(null);
  usePageKeys(go, setKeys);
  useEffect(() => {
    const name = SEATS.find(([id]) => id === seat)?.[1];
    document.title = [name, start.title, "crowdwise"].filter(Boolean).join(" · ");
  }, [seat, start.title]);
  useEffect(() => scrollTo(0, 0), [seat]);
  const Seat = { explore: Explore, label: Label, model: Model, start: Start }[seat] ?? Missing;
  return html`<${Studio.Provider} value=${{ start, version, address, go, now }}>
    <a class="skip-link" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>Skip to the content</a>
    <header class="bar-top"><div>
      <${Link} class="brand" view="start"><b>crowdwise</b><span><bdi>${start.title}</bdi></span></${Link}>
      <nav class="seats" aria-label="Seats">${SEATS.map(([id, name]) => html`<${Link} key=${id} view=${id} aria-current=${seat === id ? "page" : undefined}>${name}</${Link}>`)}</nav>
      <${Status} isLost=${isLost} now=${now} />
    </div></header>
    <main id="main" tabindex="-1" ref=${main}>
      ${isLost && html`<p class="banner" role="alert">The studio is not responding. Everything acknowledged is saved; the page goes on by itself when the studio runs again.</p>`}
      <${Seat} />
    </main>
    ${keys && html`<${Keys} close=${() => setKeys(false)} />`}
  </${Studio.Provider}>`;
}

function Missing() {
  return html`<h1>Page not found</h1><p><${Link} view="start">Go to the first page</${Link}></p>`;
}

function App() {
  const [address, go] = useAddress();
  const now = useNow();
  const isLost = useLost();
  // Results change with the labels, and again when the classifier has been fitted to them.
  const version = `${now?.version ?? 0}${now?.is_pending ? " pending" : ""}`;
  const state = useData("start.json", {}, version);
  if (state.problem?.status === 401) return html`<${NoToken} />`;
  if (state.problem && !state.data) return html`<main><p class="banner" role="alert">${state.problem.message}</p></main>`;
  if (!state.data) return html`<main><p class="note" role="status">${isLost ? "The studio is not responding yet" : state.words ? `Fitting: ${state.words}` : "Loading"}</p></main>`;
  return html`<${Frame} start=${state.data} ...${{ version, now, isLost, address, go }} />`;
}

function NoToken() {
  return html`<main><h1>This tab has no key</h1>
    <p class="lead">Open the address that crowdwise studio printed in the terminal: it ends in #token= and a key for this session.</p></main>`;
}

const { token, hash } = takeToken(location.hash);
if (token) history.replaceState(null, "", location.pathname + location.search + hash);
render(keepToken(token) ? html`<${App} />` : html`<${NoToken} />`, document.getElementById("app"));
