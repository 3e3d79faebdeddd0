// What is committed under dist, as browsers receive it.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import test from "node:test";
import { gzipSync } from "node:zlib";

const dist = new URL("../dist/", import.meta.url);
const files = readdirSync(dist, { recursive: true, withFileTypes: true }).filter((f) => f.isFile()).map((f) => f.name);
const read = (name) => readFileSync(new URL(name === "index.html" ? name : `assets/${name}`, dist));

test("everything together has less than 300 kB compressed", () => {
  const sizes = Object.fromEntries(files.map((name) => [name, name.endsWith(".woff2") ? read(name).length : gzipSync(read(name), { level: 9 }).length]));
  const total = Object.values(sizes).reduce((a, b) => a + b, 0);
  assert.ok(files.length > 6, "the build has few files");
  assert.ok(total > 50_000 && total < 300_000, `${total} bytes: ${JSON.stringify(sizes)}`);
});

test("the page needs no inline script or style, and nothing from elsewhere", () => {
  const page = read("index.html").toString();
  assert.match(page, /<script type="module"[^>]* src="\/assets\/console-[\w-]+\.js"><\/script>/);
  assert.doesNotMatch(page, /<style|style=|\son\w+=|<script>|<script type="module">|https?:/);
  for (const name of files.filter((f) => /\.(js|css)$/.test(f))) {
    const text = read(name).toString();
    assert.doesNotMatch(text, /\beval\(|new Function\(|setAttribute\("style"|@import|url\((?:["']?)(?:https?:|data:)/, name);
    const elsewhere = (text.match(/https?:\/\/[\w.-]+/g) ?? []).filter((a) => !/^http:\/\/www\.w3\.org$/.test(a));
    assert.deepEqual(elsewhere, [], name);
  }
});

test("every asset is named by its content", () => {
  for (const name of files) assert.match(name, /^(index\.html|licences\.txt|[\w-]+-[\w-]{8}\.(js|css|svg|woff2))$/);
});
