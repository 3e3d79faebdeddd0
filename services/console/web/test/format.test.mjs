import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const plain = (text) => text.replaceAll("\u00a0", " ");
const { bytes, brief, count, list, plural, rate, span, unix, hex } = await load("/src/format.ts");

test("sizes have decimal units and at most three digits", () => {
  for (const [n, want] of [[0, "0 B"], [999, "999 B"], [1000, "1.0 kB"], [12_345, "12 kB"], [999_400, "999 kB"], [999_600, "1.0 MB"], [2_400_000_000n, "2.4 GB"]]) {
    assert.equal(plain(bytes(n)), want, String(n));
  }
});

test("spans have at most two units", () => {
  const table = [
    [0, "0 s"], [0.000_004, "4 µs"], [0.0021, "2.1 ms"], [0.038, "38 ms"], [0.4, "0.4 s"], [1, "1 s"], [9.96, "10.0 s"], [59, "59 s"],
    [60, "1 min"], [200, "3 min 20 s"], [3599, "59 min"], [3600, "1 h"], [93_400, "1 d 1 h"], [86_400 * 211, "211 d"], [Infinity, "never"], [-3, "0 s"],
  ];
  for (const [s, want] of table) assert.equal(plain(span(s)), want, String(s));
});

test("numbers and rates are short", () => {
  assert.equal(count(4096n), "4,096");
  for (const [n, want] of [[0, "0"], [1.234, "1.23"], [64.24, "64.2"], [4096, "4,096"], [18_400, "18.4k"], [480_000, "480k"], [12_000_000, "12M"], [Infinity, "∞"]]) {
    assert.equal(brief(n), want);
  }
  for (const [n, want] of [[0, "0 /s"], [812, "812 /s"], [0.5, "30 /min"], [0.001, "3.6 /h"]]) assert.equal(plain(rate(n)), want);
});

test("words", () => {
  assert.equal(list(["p0"]), "p0");
  assert.equal(list(["p0", "p1", "p2"]), "p0, p1 and p2");
  assert.equal(plural(1, "job"), "1 job");
  assert.equal(plural(3n, "class", "classes"), "3 classes");
  assert.equal(hex(new Uint8Array([0, 15, 255]), 2), "000f");
});

test("a missing time is not 1970", () => {
  assert.equal(unix(undefined), undefined);
  assert.equal(unix({ seconds: 0n, nanos: 0 }), undefined);
  assert.equal(unix({ seconds: 5n, nanos: 500_000_000 }), 5.5);
});
