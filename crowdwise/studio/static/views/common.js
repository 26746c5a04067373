// Parts that many views have.
import { html } from "../html.js";
import { useEffect, useState } from "../vendor/hooks.js";
import { blob } from "../api.js";
import { writeAddress } from "../lib/url.js";
import { useStudio } from "../state.js";

/** A link inside the page: a click changes the address, and it can be copied or opened in a tab of its own. */
export function Link({ view, params = {}, children, ...rest }) {
  const { go } = useStudio();
  const follow = (event) => {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(view, params);
  };
  return html`<a href=${writeAddress(view, params)} onClick=${follow} ...${rest}>${children}</a>`;
}

export function Panel({ title, note, children, busy = false, id }) {
  return html`<section class="panel" aria-labelledby=${id} id=${`${id}-panel`}>
    <header><h2 id=${id}>${title}</h2>${note && html`<p class="note">${note}</p>`}</header>
    <div class="busy-box" aria-busy=${busy ? "true" : "false"}>${children}</div>
  </section>`;
}

/** What a view shows before its data are there, or in their place. */
export function Waiting({ state, children }) {
  if (state.problem) return html`<p class="banner" role="alert">${state.problem.message}</p>`;
  if (!state.data) return html`<p class="note" role="status">${state.words || "Loading"}</p>`;
  return children(state.data);
}

export function Flags({ flags }) {
  return flags.map((flag) => html`<span class="flag" key=${flag}>${flag}</span>`);
}

/** The picture of an example, fetched with the token. */
export function Picture({ row, text, large = false }) {
  const [url, set] = useState(null);
  useEffect(() => {
    const stop = new AbortController();
    let made = null;
    blob("picture", { row }, stop.signal).then(
      (found) => set((made = URL.createObjectURL(found.blob))),
      () => {},
    );
    return () => {
      stop.abort();
      if (made) URL.revokeObjectURL(made);
    };
  }, [row]);
  if (!url) return html`<p class="note">${text ?? "Picture"}</p>`;
  return html`<img class=${large ? "" : "thumb"} src=${url} alt=${text ?? "Picture of the example"} />`;
}

/** A text or a picture, whichever the examples are. */
export function Shown({ row, text, large }) {
  const { start } = useStudio();
  if (start.has.pictures) return html`<${Picture} row=${row} text=${text} large=${large} />`;
  return text ? html`<p class="text"><bdi>${text}</bdi></p>` : null;
}
