import assert from "node:assert/strict";
import { test } from "node:test";

const lib = new URL("../../../crowdwise/studio/static/lib/", import.meta.url);
const load = (name) => import(new URL(name, lib));
const { takeToken, readAddress, writeAddress, numberIn, boxIn, boxText } = await load("url.js");
const { percent, count, plural, interval, number, signed, listed } = await load("format.js");
const { linear, ticks, clamp, between, placeIn } = await load("scale.js");
const { parseColour, mix, ramp, contrast } = await load("colour.js");
const { pixels, binned, brushed, countIn } = await load("bins.js");
const { labelKey, listKey, pageKey } = await load("keys.js");
const { delay, isTemporary, untilDone } = await load("retry.js");
const { latest } = await load("latest.js");
const { deliver, wasDone } = await load("deliver.js");

test("the token is taken out of the fragment and what else is there stays", () => {
  assert.deepEqual(takeToken("#token=a%2Bb"), { token: "a+b", hash: "" });
  assert.deepEqual(takeToken("#token=x&part=2"), { token: "x", hash: "#part=2" });
  assert.deepEqual(takeToken(""), { token: null, hash: "" });
});

test("an address is read as it was written, whatever the names", () => {
  for (const name of ["a b", "<img src=x onerror=alert(1)>", "ü&=?#%", "../..", "100%"]) {
    const address = new URL(writeAddress("explore", { annotator: name, steepness: 2.5, page: null }), "http://x");
    assert.deepEqual(readAddress(address.pathname, address.search), {
      view: "explore",
      params: { annotator: name, steepness: "2.5" },
    });
  }
  assert.equal(writeAddress("start"), "/");
  assert.equal(writeAddress("explore", { b: 1, a: 0 }), writeAddress("explore", { a: 0, b: 1 }));
  assert.deepEqual(readAddress("/", ""), { view: "start", params: {} });
});

test("odd numbers and rectangles of an address are passed over", () => {
  assert.equal(numberIn("3.5", 1), 3.5);
  for (const odd of [undefined, "", " ", "NaN", "1e999", "-Infinity", "two"]) assert.equal(numberIn(odd, 1), 1);
  assert.equal(numberIn("12", 1, 0, 10), 1);
  assert.deepEqual(boxIn("0,0.5,-1,2"), { x0: 0, x1: 0.5, y0: -1, y1: 2 });
  assert.equal(boxText(boxIn("0,0.5,-1,2")), "0,0.5,-1,2");
  for (const odd of [undefined, "", "1,2,3", "1,2,3,4,5", "2,1,0,1", "a,b,c,d"]) assert.equal(boxIn(odd), null);
  assert.equal(boxText(null), null);
});

test("numbers are written as people read them", () => {
  assert.equal(percent(0.921), "92.1%");
  assert.equal(percent(1), "100%");
  assert.equal(percent(0.99999), "100.0%");
  assert.equal(percent(-0.00001, 0), "0%");
  assert.equal(percent(null), "unknown");
  assert.equal(percent(NaN), "unknown");
  assert.equal(count(1234567), "1,234,567");
  assert.equal(plural(1, "label"), "1 label");
  assert.equal(plural(2, "class", "classes"), "2 classes");
  assert.equal(interval(0.819, 0.964), "81.9 to 96.4");
  assert.equal(interval(null, 1), "");
  assert.deepEqual([0, 0.12345, 12.34, 999.9, 12345.6, 1e-9, 3e12].map((v) => number(v)), ["0", "0.123", "12.3", "1000", "12,346", "1.00e-9", "3.00e12"]);
  assert.equal(number(Infinity), "unknown");
  assert.deepEqual([1.5, -1.5, 0].map((v) => signed(v)), ["+1.5", "-1.5", "0"]);
  assert.equal(listed([]), "none");
  assert.equal(listed(["a"]), "a");
  assert.equal(listed(["a", "b"]), "a and b");
  assert.equal(listed(["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
});

test("axes go there and back, and marks are round numbers inside", () => {
  const axis = linear([2, 4], [100, 0]);
  assert.equal(axis.at(3), 50);
  assert.equal(axis.value(axis.at(2.7)), 2.7);
  assert.deepEqual(ticks(0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(ticks(-3, 7, 4), [0, 5]);
  assert.deepEqual(ticks(2, 2), [2]);
  for (const [low, high] of [[0, 1e-9], [-1e6, 3e7], [0.123, 0.456]]) {
    const marks = ticks(low, high);
    assert.ok(marks.length >= 2 && marks.length <= 7, String(marks));
    assert.ok(marks.every((mark) => mark >= low - 1e-12 && mark <= high * (1 + 1e-9)));
  }
  assert.equal(clamp(5, 0, 1), 1);
  assert.equal(between([0, 1, 4], 1.5), 2.5);
  assert.equal(placeIn([0, 1, 4], 2.5), 1.5);
  for (const value of [-1, 0, 0.3, 1, 3.9, 4, 9]) assert.ok(Math.abs(between([0, 1, 4], placeIn([0, 1, 4], value)) - clamp(value, 0, 4)) < 1e-12);
  assert.equal(placeIn([3], 9), 0);
});

test("colours: parsed, mixed, and contrast as WCAG has it", () => {
  assert.deepEqual(parseColour("#0b5fa5"), [11, 95, 165]);
  assert.deepEqual(parseColour("rgb(11, 95, 165)"), [11, 95, 165]);
  assert.throws(() => parseColour("blue"), /Expected a colour/);
  assert.deepEqual(mix([0, 0, 0], [10, 20, 30], 0.5), [5, 10, 15]);
  const table = ramp([0, 0, 0], [255, 255, 255], 3);
  assert.deepEqual([...table], [0, 0, 0, 128, 128, 128, 255, 255, 255]);
  assert.equal(contrast([0, 0, 0], [255, 255, 255]).toFixed(2), "21.00");
  assert.equal(contrast([119, 119, 119], [255, 255, 255]).toFixed(2), "4.48");
});

test("a density: every example is in a cell, empty cells are clear, more is darker, row 0 is at the bottom", () => {
  const counts = binned([0, 0.1, 0.99, 1, 2], [0, 0.1, 1, 1, 0], [0, 1], [0, 1], 2, 2);
  assert.deepEqual([...counts], [2, 0, 0, 2]);
  const out = pixels([1, 0, 0, 100], 2, 2, ramp([255, 255, 255], [0, 0, 0]));
  assert.equal(out[4 * 2 + 3], 255);
  assert.equal(out[4 * 0 + 3], 0);
  assert.ok(out[4 * 1] < out[4 * 2]);
  assert.equal(out[4 * 1], 0);
  assert.equal(pixels([0, 0], 2, 1, ramp([0, 0, 0], [1, 1, 1])).reduce((a, b) => a + b), 0);
});

test("a brush gives ranges of values from any corner, and a click gives none", () => {
  const across = linear([0, 10], [0, 100]);
  const up = linear([0, 1], [50, 0]);
  const box = { x0: 2, x1: 6, y0: 0.2, y1: 0.8 };
  assert.deepEqual(brushed({ x: 20, y: 40 }, { x: 60, y: 10 }, across, up), box);
  assert.deepEqual(brushed({ x: 60, y: 10 }, { x: 20, y: 40 }, across, up), box);
  assert.equal(brushed({ x: 20, y: 20 }, { x: 22, y: 21 }, across, up), null);
  assert.equal(countIn([1, 2, 3, 4], 2, 2, [0, 10], [0, 1], { x0: 0, x1: 4, y0: 0, y1: 1 }), 4);
});

const key = (name, more = {}) => ({ key: name, target: { tagName: "BODY" }, ...more });

test("label keys: digits of classes, space, backspace; never while typing or held down", () => {
  assert.deepEqual(labelKey(key("1"), 3), { do: "answer", index: 0 });
  assert.equal(labelKey(key("4"), 3), null);
  assert.equal(labelKey(key("0"), 3), null);
  assert.deepEqual(labelKey(key(" "), 3), { do: "skip" });
  assert.deepEqual(labelKey(key("Backspace"), 3), { do: "undo" });
  assert.equal(labelKey(key("1", { repeat: true }), 3), null);
  for (const held of ["ctrlKey", "metaKey", "altKey", "isComposing"]) assert.equal(labelKey(key("1", { [held]: true }), 3), null);
  assert.equal(labelKey(key("1", { target: { tagName: "INPUT", type: "text" } }), 3), null);
  assert.deepEqual(labelKey(key("1", { target: { tagName: "INPUT", type: "checkbox" } }), 3), { do: "answer", index: 0 });
  assert.equal(labelKey(key(" ", { target: { tagName: "BUTTON" } }), 3), null);
});

test("keys of lists and of the page", () => {
  assert.equal(listKey(key("j")), "down");
  assert.equal(listKey(key("ArrowUp")), "up");
  assert.equal(listKey(key("x")), null);
  assert.equal(pageKey(key("e"), "g"), "explore");
  assert.equal(pageKey(key("e"), null), null);
  assert.equal(pageKey(key("/"), null), "search");
});

test("attempts come less and less often, with a part at random, and never stop", () => {
  assert.deepEqual([0, 1, 2, 10, 1000].map((k) => delay(k, () => 1)), [250, 500, 1000, 5000, 5000]);
  assert.deepEqual([0, 1].map((k) => delay(k, () => 0)), [125, 250]);
  assert.ok(isTemporary(503) && isTemporary(0) && !isTemporary(401) && !isTemporary(422) && !isTemporary(500));
});

test("a call is repeated while its error is temporary, and not after one for good", async () => {
  const gone = () => Object.assign(new Error("gone"), { temporary: true });
  let calls = 0;
  const lost = [];
  const wait = async () => {};
  const result = await untilDone(async () => { if (++calls < 4) throw gone(); return "there"; }, { wait, lost: (k) => lost.push(k) });
  assert.equal(result, "there");
  assert.deepEqual(lost, [0, 1, 2]);
  await assert.rejects(untilDone(async () => { throw new Error("wrong"); }, { wait }), /wrong/);
});

const turn = () => new Promise((done) => setImmediate(done));

function calls() {
  const all = [];
  const seen = [];
  const call = (value, { signal, slow }) =>
    new Promise((resolve, reject) => {
      all.push({ value, resolve, reject, slow });
      signal.addEventListener("abort", () => reject(new Error("stopped")));
    });
  const push = latest(call, (result, value) => seen.push([result, value]), (error, value) => seen.push([error.message, value]));
  return { all, seen, push };
}

test("the latest value wins: one call at a time, values between are passed over, errors do not stop it", async () => {
  const { all, seen, push } = calls();
  [1, 2, 3, 4].forEach((value) => push(value));
  assert.deepEqual(all.map((one) => one.value), [1]);
  all[0].resolve("one");
  await turn();
  assert.deepEqual(all.map((one) => one.value), [1, 4]);
  all[1].reject(new Error("lost"));
  await turn();
  push(5);
  all[2].resolve("five");
  await turn();
  assert.deepEqual(seen, [["one", 1], ["lost", 4], ["five", 5]]);
});

test("a call that waits for something long is ended by a newer value, whichever comes first", async () => {
  const { all, seen, push } = calls();
  push(1);
  all[0].slow();
  push(2);
  await turn();
  assert.deepEqual(all.map((one) => one.value), [1, 2]);
  push(3);
  all[1].slow();
  await turn();
  assert.deepEqual(all.map((one) => one.value), [1, 2, 3]);
  all[2].slow();
  all[2].resolve("three");
  await turn();
  assert.deepEqual(seen, [["three", 3]]);
});

const person = (last, answers) => ({ last, progress: { answers, skipped: 0 } });

test("an answer whose acknowledgement got lost is looked for, and sent again only if it is not there", async () => {
  const gone = Object.assign(new Error("gone"), { temporary: true });
  for (const isSaved of [true, false]) {
    const sent = [];
    const send = async (path, body) => {
      sent.push(body);
      if (sent.length === 1) throw gone;
      return { row: body.row, checked: null };
    };
    const look = async () => person(isSaved ? [{ row: 7, code: 1 }] : [{ row: 3, code: 0 }], 1);
    const found = await deliver(send, look, "answer.json", { row: 7, code: 1 }, person([{ row: 3, code: 0 }], 1));
    assert.equal(found.row, 7);
    assert.equal(sent.length, isSaved ? 1 : 2);
  }
  await assert.rejects(deliver(async () => { throw new Error("wrong"); }, null, "answer.json", {}, null), /wrong/);
});

test("a skipped example and an undone answer are recognised too", () => {
  const before = person([{ row: 3, code: 0 }, { row: 2, code: 0 }], 2);
  assert.ok(wasDone("skip.json", { row: 4 }, before, person([{ row: 4, code: null }], 3)));
  assert.ok(!wasDone("skip.json", { row: 4 }, before, before));
  assert.ok(wasDone("undo.json", {}, before, person([{ row: 2, code: 0 }], 1)));
  assert.ok(!wasDone("undo.json", {}, before, before));
});
