import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const { delay, made } = await load("/src/words.ts");

const at = (seconds) => ({ seconds: BigInt(seconds), nanos: 0 });
const party = (n, waitingFor, since, reachable = true) => ({ party: n, name: `p${n}`, reachable, status: { progress: { waitingFor, since: at(since), roundIndex: 9 } } });
const running = (...parties) => ({ state: 3, parties, request: { kind: 2, count: 16n } });

test("the party that the others wait for keeps a job waiting", () => {
  const found = delay(running(party(0, [2], 90), party(1, [0, 2], 95), party(2, [], 99)), 100);
  assert.deepEqual([found.who, found.waited, found.round], [["p2"], 10, 9]);
});

test("a party that does not respond is named alone, and what it said before does not count", () => {
  const found = delay(running(party(0, [1, 2], 90), party(1, [0, 2], 90), party(2, [0, 1], 10, false)), 100);
  assert.deepEqual([found.who, found.waited], [["p2"], 10]);
});

test("nobody keeps a job waiting that computes or has ended", () => {
  assert.equal(delay(running(party(0, [], 90)), 100), undefined);
  assert.equal(delay({ ...running(party(0, [1], 90)), state: 8 }, 100), undefined);
});

test("jobs of one kind are summed", () => {
  const job = (kind, count) => ({ request: { kind, count, purpose: 1 }, parties: [] });
  assert.equal(made([job(3, 16n), job(3, 16n)]), "32 matrix triples in 2 jobs");
  assert.equal(made([job(2, 4000n)]), "4,000 scalar triples");
  assert.equal(made([job(1, 0n)]), "keys for tuples");
});
