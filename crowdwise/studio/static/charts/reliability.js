// Stated confidence against the share that is correct; on the diagonal both are the same.
import { html } from "../html.js";
import { count, percent } from "../lib/format.js";
import { linear } from "../lib/scale.js";
import { useWidth } from "../state.js";

const [LEFT, RIGHT, TOP, BOTTOM] = [52, 14, 10, 44];

/** `bins`: {stated, value, low, high, n} each. */
export function Reliability({ bins, height = 300 }) {
  const [box, width] = useWidth();
  const least = Math.min(0.5, ...bins.map((bin) => Math.floor(10 * Math.min(bin.stated, bin.low)) / 10));
  const most = Math.max(...bins.map((bin) => bin.n));
  const across = linear([least, 1], [LEFT, width - RIGHT]);
  const up = linear([least, 1], [height - BOTTOM, TOP]);
  const marks = Array.from({ length: Math.round((1 - least) * 10) + 1 }, (_, k) => least + k / 10).filter((_, k) => k % (least < 0.4 ? 2 : 1) === 0);
  const words = bins.map((bin) => `stated ${percent(bin.stated, 0)}, correct ${percent(bin.value, 0)} of ${count(bin.n)}`).join("; ");
  return html`<div ref=${box}><svg class="picture" viewBox=${`0 0 ${width} ${height}`} height=${height} role="img" aria-label=${`Reliability: ${words}`}>
    ${marks.map((value) => html`<g key=${value}>
      <line class="grid" x1=${LEFT} x2=${width - RIGHT} y1=${up.at(value)} y2=${up.at(value)} />
      <text class="tick" x=${LEFT - 6} y=${up.at(value) + 4} text-anchor="end">${percent(value, 0)}</text>
      <text class="tick" x=${across.at(value)} y=${height - BOTTOM + 17} text-anchor="middle">${percent(value, 0)}</text></g>`)}
    <line class="diagonal" x1=${across.at(least)} y1=${up.at(least)} x2=${across.at(1)} y2=${up.at(1)} />
    ${bins.map((bin, k) => html`<g key=${`b${k}`}><title>${`stated ${percent(bin.stated)}, correct ${percent(bin.value)} of ${count(bin.n)}`}</title>
      <line class="interval" x1=${across.at(bin.stated)} x2=${across.at(bin.stated)} y1=${up.at(bin.low)} y2=${up.at(bin.high)} />
      <circle class="dot" cx=${across.at(bin.stated)} cy=${up.at(bin.value)} r=${3 + 5 * Math.sqrt(bin.n / most)} /></g>`)}
    <text class="axis" x=${(LEFT + width - RIGHT) / 2} y=${height - 6} text-anchor="middle">stated confidence</text>
    <text class="axis" transform=${`translate(13 ${(TOP + height - BOTTOM) / 2}) rotate(-90)`} text-anchor="middle">actually correct</text>
  </svg></div>`;
}
