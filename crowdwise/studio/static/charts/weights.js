// Levels of disagreement: how many examples each has, and what an example there weighs.
import { html } from "../html.js";
import { count, number } from "../lib/format.js";
import { linear, ticks } from "../lib/scale.js";
import { useWidth } from "../state.js";

const [LEFT, RIGHT, TOP, BOTTOM] = [44, 44, 10, 40];

export function Weights({ levels, height = 210 }) {
  const [box, width] = useWidth();
  const most = Math.max(...levels.map((level) => level.examples), 1);
  const largest = Math.max(...levels.map((level) => level.weight), 1e-12);
  const end = Math.max(...levels.map((level) => level.disagreement), 1e-9);
  const gap = Math.min(...levels.slice(1).map((level, k) => level.disagreement - levels[k].disagreement), end);
  const half = Math.max(Math.min(((width - LEFT - RIGHT) * gap) / (2.3 * end), 14), 1);
  const across = linear([0, end], [LEFT + half, width - RIGHT - half]);
  const examples = linear([0, most], [height - BOTTOM, TOP]);
  const weight = linear([0, largest], [height - BOTTOM, TOP]);
  const line = levels.map((level) => `${across.at(level.disagreement).toFixed(1)},${weight.at(level.weight).toFixed(1)}`).join(" ");
  const words = `Weight of an example by disagreement: ${number(levels[0]?.weight)} at ${number(levels[0]?.disagreement)}, ${number(levels.at(-1)?.weight)} at ${number(levels.at(-1)?.disagreement)}`;
  return html`<div ref=${box}>
    <svg class="picture" viewBox=${`0 0 ${width} ${height}`} height=${height} role="img" aria-label=${words}>
      ${ticks(0, most, 3).map((value) => html`<g key=${`n${value}`}>
        <line class="grid" x1=${LEFT} x2=${width - RIGHT} y1=${examples.at(value)} y2=${examples.at(value)} />
        <text class="tick" x=${LEFT - 6} y=${examples.at(value) + 4} text-anchor="end">${value >= 1e4 ? `${number(value / 1000)}k` : count(value)}</text></g>`)}
      ${[0, 0.5, 1].map((share) => html`<text key=${`w${share}`} class="tick second" x=${width - RIGHT + 6} y=${weight.at(share * largest) + 4}>${number(share * largest, 2)}</text>`)}
      ${levels.map((level) => html`<rect key=${level.disagreement} class="level" x=${across.at(level.disagreement) - half} width=${2 * half} y=${examples.at(level.examples)} height=${Math.max(height - BOTTOM - examples.at(level.examples), 0)} />`)}
      <polyline class="curve" points=${line} />
      ${levels.length <= 24 && levels.map((level) => html`<circle key=${`d${level.disagreement}`} class="dot below" r="3.6" cx=${across.at(level.disagreement)} cy=${weight.at(level.weight)} />`)}
      ${ticks(0, end, 4).map((value) => html`<text key=${`x${value}`} class="tick" x=${across.at(value)} y=${height - BOTTOM + 17} text-anchor="middle">${number(value)}</text>`)}
      <text class="axis" x=${(LEFT + width - RIGHT) / 2} y=${height - 4} text-anchor="middle">disagreement</text>
    </svg>
    <p class="keys-of"><span class="key level-key"></span> examples <span class="key line"></span> weight of an example</p>
  </div>`;
}
