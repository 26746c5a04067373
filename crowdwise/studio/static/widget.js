// The same sliders and the same label seat, inside a notebook: the address is a state of its own, keys are those of the widget.
import { html } from "./html.js";
import { render } from "./vendor/preact.js";
import { useState } from "./vendor/hooks.js";
import { setTransport } from "./api.js";
import { Studio, useData, useNow } from "./state.js";
import { Explore, EXPLORE_VIEWS } from "./views/explore.js";
import { Label } from "./views/label.js";

const SEATS = [["explore", "Explore"], ["label", "Label"]];

function Widget({ root }) {
  const [address, set] = useState({ view: "explore", params: {} });
  const now = useNow();
  const version = now?.version ?? 0;
  const state = useData("start.json", {}, version);
  const go = (view, params = {}) => {
    const kept = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
    set({ view, params: Object.fromEntries(kept.map(([name, value]) => [name, String(value)])) });
  };
  if (!state.data) return html`<p class="note" role="status">${state.problem?.message ?? "Loading"}</p>`;
  const seat = EXPLORE_VIEWS.has(address.view) ? "explore" : "label";
  return html`<${Studio.Provider} value=${{ start: state.data, version, address, go, now, root }}>
    <nav class="tabs" aria-label="Seats">${SEATS.map(([id, name]) => html`<button key=${id} class="tab" aria-current=${seat === id ? "page" : undefined} onClick=${() => go(id)}>${name}</button>`)}</nav>
    ${seat === "explore" ? html`<${Explore} />` : html`<${Label} />`}
  </${Studio.Provider}>`;
}

/** Show a session in an element; `ask` is asked in the place of a server. Gives a function that ends it. */
export function mount(element, ask) {
  setTransport(ask);
  const root = document.createElement("div");
  root.className = "crowdwise-studio in-notebook";
  root.tabIndex = 0;
  root.setAttribute("role", "region");
  root.setAttribute("aria-label", "crowdwise session");
  element.append(root);
  // Keys typed here are not those of the notebook.
  root.addEventListener("keydown", (event) => event.stopPropagation());
  render(html`<${Widget} root=${root} />`, root);
  return () => {
    render(null, root);
    root.remove();
  };
}
