// From values to places and back.

/** A straight axis: `at` gives the place of a value, `value` the value of a place. */
export function linear([low, high], [from, to]) {
  const width = high - low || 1;
  return {
    at: (value) => from + ((value - low) / width) * (to - from),
    value: (place) => low + ((place - from) / (to - from || 1)) * width,
  };
}

/** Round marks of an axis, about as many as wanted, all between its ends. */
export function ticks(low, high, wanted = 5) {
  if (!(high > low)) return [low];
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9));
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** The index of the entry of a rising list that is nearest to a value. */
export function nearest(list, value) {
  let best = 0;
  for (let k = 1; k < list.length; k++) if (Math.abs(list[k] - value) < Math.abs(list[best] - value)) best = k;
  return best;
}

/** The same on a list of powers, where distances are those of the logarithms. */
export function nearestPower(list, value) {
  return nearest(list.map((entry) => Math.log(Math.max(entry, 1e-300))), Math.log(Math.max(value, 1e-300)));
}
