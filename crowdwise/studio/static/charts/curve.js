// Curves over the positions of a slider, which stands right below: the mark is where the slider is.
import uPlot from "../vendor/uplot.js";
import { html } from "../html.js";
import { useEffect, useRef } from "../vendor/hooks.js";
import { css } from "../lib/colour.js";
import { number, percent } from "../lib/format.js";
import { useColours, useWidth } from "../state.js";

export const LEFT = 58;
export const RIGHT = 58;
const FONT = "11.5px system-ui, sans-serif";

function axisOf(k, colour, soft, side, isShare) {
  const text = isShare ? (value) => percent(value, 1) : (value) => number(value, 4);
  return {
    scale: `y${k}`, side, size: LEFT, gap: 4, stroke: css(colour), font: FONT, ticks: { show: false },
    grid: { show: side === 3, stroke: css(soft), width: 1 }, space: 26, values: (_, all) => all.map(text),
  };
}

function setup({ width, height, series, labels, at, colours }) {
  const [ink, rule, warm] = [colours("soft"), colours("rule"), colours("warm")];
  const lines = [colours("accent"), warm];
  const drawn = series.slice(0, 2);
  const scales = { x: { time: false, range: () => [0, labels.length - 1] } };
  drawn.forEach((_, k) => { scales[`y${k}`] = { range: (_u, low, high) => uPlot.rangeNum(low, high, 0.1, true) }; });
  const axes = [{ stroke: css(ink), font: FONT, size: 26, gap: 4, grid: { show: false }, ticks: { show: false }, space: 46, values: (_, all) => all.map((k) => (Number.isInteger(k) ? number(labels[k], 3) : "")) }];
  drawn.forEach((one, k) => axes.push(axisOf(k, lines[k], rule, k ? 1 : 3, one.isShare)));
  const mark = (u) => {
    const x = Math.round(u.valToPos(at.current, "x", true)) + 0.5;
    u.ctx.save();
    u.ctx.strokeStyle = css(colours("ink"));
    u.ctx.setLineDash([4, 4]);
    u.ctx.beginPath();
    u.ctx.moveTo(x, u.bbox.top);
    u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
    u.ctx.stroke();
    u.ctx.restore();
  };
  return {
    width, height, scales, axes, legend: { show: false }, cursor: { show: false },
    padding: [8, drawn.length > 1 ? 0 : RIGHT, 0, 0], hooks: { draw: [mark] },
    series: [{}, ...drawn.map((one, k) => ({ label: one.title, scale: `y${k}`, stroke: css(lines[k]), width: 2, dash: k ? [7, 4] : undefined, points: { show: false } }))],
  };
}

/** Up to two series over the entries of `labels`; `at` is a place among them, fractions too. */
export function Curve({ series, labels, at, height = 150, title }) {
  const [box, width] = useWidth();
  const colours = useColours();
  const plot = useRef(null);
  const place = useRef(at);
  place.current = at;
  const look = css(colours("accent"));
  useEffect(() => {
    const data = [labels.map((_, k) => k), ...series.slice(0, 2).map((one) => one.values)];
    plot.current = new uPlot(setup({ width, height, series, labels, at: place, colours }), data, box.current);
    return () => plot.current.destroy();
  }, [series, labels, width, height, look]);
  useEffect(() => plot.current?.redraw(false, false), [at]);
  return html`<div class="curve-box" ref=${box} role="img" aria-label=${title}></div>`;
}
