// Colours of charts from those of the page's styles.

/** "#0b5fa5" or "rgb(11, 95, 165)" as three numbers. */
export function parseColour(text) {
  const hex = /^#([0-9a-f]{6})$/i.exec(text.trim());
  if (hex) return [0, 2, 4].map((from) => parseInt(hex[1].slice(from, from + 2), 16));
  const parts = text.match(/[\d.]+/g);
  if (!parts || parts.length < 3) throw new Error(`Expected a colour such as #0b5fa5, got ${text}`);
  return parts.slice(0, 3).map(Number);
}

export const mix = (from, to, share) => from.map((value, k) => Math.round(value + (to[k] - value) * share));
export const css = (colour) => `rgb(${colour.join(" ")})`;

/** Colours from none to full in equal steps, as one table of red, green, blue. */
export function ramp(from, to, steps = 256) {
  const table = new Uint8ClampedArray(3 * steps);
  for (let k = 0; k < steps; k++) table.set(mix(from, to, k / (steps - 1)), 3 * k);
  return table;
}

/** The contrast between two colours as WCAG defines it, from 1 to 21. */
export function contrast(one, other) {
  const light = (colour) => {
    const [r, g, b] = colour.map((value) => (value / 255 <= 0.03928 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b);
  return (bright + 0.05) / (dark + 0.05);
}
