import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const { add, growth, latest, means, parseSeries, rates } = await load("/src/series.ts");

test("names of series are parsed, with escapes", () => {
  assert.deepEqual(parseSeries("go_goroutines").labels, {});
  const s = parseSeries(String.raw`lodge_x{a="1",b="q\"uo\\te, {\n"}`);
  assert.equal(s.name, "lodge_x");
  assert.deepEqual(s.labels, { a: "1", b: 'q"uo\\te, {\n' });
});

test("a counter that restarts or is missing has no rate there", () => {
  assert.deepEqual(rates([0, 10, null, 40, 5, 15], 5), [null, 2, null, null, null, 2]);
});

test("growth counts across restarts", () => {
  assert.equal(growth([3, 10, null, 12, 4, 6]), 7 + 2 + 4 + 2);
  assert.equal(growth([]), 0);
});

test("the mean of a histogram needs new samples", () => {
  assert.deepEqual(means([0, 2, 2, 8], [0, 1, 1, 3], 1), [null, 2, null, 3]);
  assert.deepEqual(means([null, null, 1, 4], [null, null, 1, 2], 3), [null, null, null, 3], "a series that began inside the window");
});

test("sums ignore what is missing, unless everything is", () => {
  assert.deepEqual(add([1, null, null], [2, 3, null]), [3, 3, null]);
  assert.equal(latest([1, 2, null]), 2);
});
