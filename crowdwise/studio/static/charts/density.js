// All examples by margin and disagreement, as a density; a rectangle that is drawn on it is a range of both.
import { html } from "../html.js";
import { useEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
import { brushed, pixels } from "../lib/bins.js";
import { ramp } from "../lib/colour.js";
import { number } from "../lib/format.js";
import { clamp, linear, ticks } from "../lib/scale.js";
import { useColours, useWidth } from "../state.js";

const [LEFT, RIGHT, TOP, BOTTOM] = [52, 12, 8, 44];

function draw(canvas, map, table) {
  const [nx, ny] = [map.margin_edges.length - 1, map.disagreement_edges.length - 1];
  const flat = new Float64Array(nx * ny);
  map.counts.forEach((row, column) => row.forEach((value, k) => { flat[k * nx + column] = value; }));
  canvas.width = nx;
  canvas.height = ny;
  canvas.getContext("2d").putImageData(new ImageData(pixels(flat, nx, ny, table), nx, ny), 0, 0);
}

/** `onBox` hears a rectangle in values, or null; without it the map is a picture. */
export function Density({ map, box, onBox, height = 320, title }) {
  const [frame, width] = useWidth();
  const colours = useColours();
  const canvas = useRef(null);
  const [drag, setDrag] = useState(null);
  const [x0, x1] = [map.margin_edges[0], map.margin_edges.at(-1)];
  const [y0, y1] = [map.disagreement_edges[0], map.disagreement_edges.at(-1)];
  const across = linear([x0, x1], [LEFT, width - RIGHT]);
  const up = linear([y0, y1], [height - BOTTOM, TOP]);
  const look = colours("accent").join();
  const table = useMemo(() => ramp(colours("raised"), colours("accent")), [look]);
  useEffect(() => draw(canvas.current, map, table), [map, table]);

  const place = (event) => {
    const rect = frame.current.getBoundingClientRect();
    return { x: clamp(event.clientX - rect.left, LEFT, width - RIGHT), y: clamp(event.clientY - rect.top, TOP, height - BOTTOM) };
  };
  const begin = (event) => {
    if (!onBox || event.button !== 0) return;
    event.preventDefault();
    event.currentTarget.setPointerCapture(event.pointerId);
    setDrag({ from: place(event), to: place(event) });
  };
  const move = (event) => drag && setDrag({ ...drag, to: place(event) });
  const end = (event) => {
    if (!drag) return;
    onBox(brushed(drag.from, place(event), across, up));
    setDrag(null);
  };
  const shown = drag ? brushed(drag.from, drag.to, across, up, 1) : box;
  const rect = shown && { x: across.at(Math.max(shown.x0, x0)), y: up.at(Math.min(shown.y1, y1)) };
  return html`<div class=${`density ${onBox ? "brushable" : ""}`} ref=${frame} style=${{ height: `${height}px` }}
    onPointerDown=${begin} onPointerMove=${move} onPointerUp=${end} onPointerCancel=${() => setDrag(null)}>
    <canvas ref=${canvas} role="img" aria-label=${title}
      style=${{ left: `${LEFT}px`, top: `${TOP}px`, width: `${width - LEFT - RIGHT}px`, height: `${height - TOP - BOTTOM}px` }}></canvas>
    <svg class="picture over" viewBox=${`0 0 ${width} ${height}`} height=${height} aria-hidden="true">
      ${ticks(x0, x1, 6).map((value) => html`<g key=${`x${value}`}><line class="grid faint" x1=${across.at(value)} x2=${across.at(value)} y1=${TOP} y2=${height - BOTTOM} />
        <text class="tick" x=${across.at(value)} y=${height - BOTTOM + 16} text-anchor="middle">${number(value)}</text></g>`)}
      ${ticks(y0, y1, 5).map((value) => html`<g key=${`y${value}`}><line class="grid faint" x1=${LEFT} x2=${width - RIGHT} y1=${up.at(value)} y2=${up.at(value)} />
        <text class="tick" x=${LEFT - 6} y=${up.at(value) + 4} text-anchor="end">${number(value)}</text></g>`)}
      <text class="axis" x=${(LEFT + width - RIGHT) / 2} y=${height - 8} text-anchor="middle">margin</text>
      <text class="axis" transform=${`translate(13 ${(TOP + height - BOTTOM) / 2}) rotate(-90)`} text-anchor="middle">disagreement</text>
      ${rect && html`<rect class="brush" x=${rect.x} y=${rect.y} width=${Math.max(across.at(Math.min(shown.x1, x1)) - rect.x, 1)} height=${Math.max(up.at(Math.max(shown.y0, y0)) - rect.y, 1)} />`}
    </svg>
  </div>`;
}
