// Numbers as people read them: 92.1%, 1,234, 3.2 million; nothing for what is not known.

const whole = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const isKnown = (value) => value !== null && value !== undefined && Number.isFinite(Number(value));

/** A share as a percentage; "unknown" where it is not known. */
export function percent(share, digits = 1) {
  if (!isKnown(share)) return "unknown";
  const text = (100 * share).toFixed(digits);
  const bare = text.replace(/\.0+$/, "");
  return `${bare === "-0" ? "0" : digits > 0 && (share === 0 || share === 1) ? bare : text}%`;
}

/** A whole number with separators. */
export function count(value) {
  return isKnown(value) ? whole.format(value) : "unknown";
}

/** A number with its noun. */
export function plural(value, noun, many = `${noun}s`) {
  return `${count(value)} ${value === 1 ? noun : many}`;
}

/** "81.9 to 96.4", both ends of an interval of shares in percent. */
export function interval(low, high, digits = 1) {
  return isKnown(low) && isKnown(high) ? `${(100 * low).toFixed(digits)} to ${(100 * high).toFixed(digits)}` : "";
}

/** Three figures, without an exponent where it can be avoided. */
export function number(value, figures = 3) {
  if (!isKnown(value)) return "unknown";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(figures - 1).replace("e+", "e");
  if (size >= 1000) return whole.format(value);
  return String(Number(value.toPrecision(figures)));
}

/** With a sign: +1.2, -0.4, 0. */
export function signed(value, text = number) {
  if (!isKnown(value) || value === 0) return text(value);
  return value > 0 ? `+${text(value)}` : text(value);
}

/** Names in a row: "a, b and 3 more". */
export function listed(names, most = 3) {
  if (names.length === 0) return "none";
  const shown = names.slice(0, most);
  const more = names.length - shown.length;
  if (more > 0) return `${shown.join(", ")} and ${count(more)} more`;
  return shown.length === 1 ? shown[0] : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}
