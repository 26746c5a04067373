// Small pictures of tables: a value with its interval, a bar, a line of a few values.
import { html } from "../html.js";
import { clamp, linear } from "../lib/scale.js";

/** A dot on a line from 0 to 1, with its interval; a mark where chance is. */
export function Interval({ value, low, high, warm = false }) {
  if (value === null || value === undefined) return null;
  const x = (share) => 100 * clamp(share, 0, 1);
  const kind = warm ? " below" : "";
  return html`<svg class="bar" viewBox="-4 0 108 12" aria-hidden="true">
    <line class="track-line" x1="0" y1="6" x2="100" y2="6" />
    ${low !== null && low !== undefined && html`<line class=${`interval${kind}`} x1=${x(low)} y1="6" x2=${x(high)} y2="6" />`}
    <circle class=${`dot${kind}`} cx=${x(value)} cy="6" r="3.6" />
  </svg>`;
}

/** A bar as long as a share; from the middle if it can be negative. */
export function Bar({ share, centred = false }) {
  const value = clamp(share ?? 0, -1, 1);
  const x = centred ? 50 + Math.min(value, 0) * 50 : 0;
  const width = Math.abs(value) * (centred ? 50 : 100);
  return html`<svg class="bar" viewBox="0 0 100 12" aria-hidden="true" preserveAspectRatio="none">
    <rect class="track" x="0" y="2" width="100" height="8" rx="2" />
    <rect class=${value < 0 ? "below" : "fill"} x=${x} y="2" width=${width} height="8" rx="2" />
  </svg>`;
}

/** How a value moves over the positions of a slider, and where it is now. */
export function Spark({ values, at }) {
  const known = values.filter((value) => value !== null);
  if (known.length < 2) return null;
  const across = linear([0, values.length - 1], [2, 98]);
  const up = linear([Math.min(...known), Math.max(...known)], [19, 3]);
  const points = values.map((value, k) => (value === null ? null : `${across.at(k).toFixed(1)},${up.at(value).toFixed(1)}`)).filter(Boolean);
  const low = Math.floor(clamp(at, 0, values.length - 1));
  const next = Math.min(low + 1, values.length - 1);
  const here = (values[low] ?? 0) + ((values[next] ?? 0) - (values[low] ?? 0)) * (at - low);
  return html`<svg class="spark" viewBox="0 0 100 22" aria-hidden="true"><polyline class="thin" points=${points.join(" ")} />
    <circle class="dot" cx=${across.at(clamp(at, 0, values.length - 1))} cy=${up.at(here)} r="3" /></svg>`;
}
