// The address of the page is its state: a view and its parameters. The token never stays in it.

/** The token of an address, and the fragment without it. */
export function takeToken(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const token = parts.get("token");
  parts.delete("token");
  const rest = parts.toString();
  return { token, hash: rest ? `#${rest}` : "" };
}

/** What an address asks for: the view by its path, the parameters as text. */
export function readAddress(pathname, search) {
  const view = pathname.replace(/^\/+|\/+$/g, "") || "start";
  return { view, params: Object.fromEntries(new URLSearchParams(search)) };
}

/** The address of a view; parameters without a value are left out, and their order is fixed. */
export function writeAddress(view, params = {}) {
  const kept = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
  kept.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  const search = new URLSearchParams(kept.map(([key, value]) => [key, String(value)])).toString();
  return (view === "start" ? "/" : `/${view}`) + (search ? `?${search}` : "");
}

/** A number from an address, or what stands in for it where it is none or out of range. */
export function numberIn(text, otherwise, low = -Infinity, high = Infinity) {
  const value = text === undefined || text === null || String(text).trim() === "" ? NaN : Number(text);
  return Number.isFinite(value) && value >= low && value <= high ? value : otherwise;
}

/** A rectangle from an address, "x0,x1,y0,y1" in the units of the axes, or null. */
export function boxIn(text) {
  const values = (text ?? "").split(",").map((part) => numberIn(part, NaN));
  if (values.length !== 4 || values.some(Number.isNaN)) return null;
  const [x0, x1, y0, y1] = values;
  return x0 <= x1 && y0 <= y1 ? { x0, x1, y0, y1 } : null;
}

/** A rectangle as text of an address. */
export function boxText(box) {
  return box ? [box.x0, box.x1, box.y0, box.y1].map((value) => Number(value.toPrecision(6))).join(",") : null;
}
