// Words for the values of the protocol.
import type { Tone } from "./parts/state";
import { count, list, span, unix } from "./format";
import { JobState, Kind, MaskForm, Purpose, type Blame, type Shape } from "./gen/lodge/job/v1/job_pb";
import type { Job } from "./gen/lodge/coordinator/v1/coordinator_pb";
import type { Class } from "./gen/lodge/tuples/v1/tuples_pb";

const kinds: Record<Kind, string> = {
  [Kind.UNSPECIFIED]: "unknown", [Kind.KEYS]: "keys", [Kind.SCALAR]: "scalar triples", [Kind.MATRIX]: "matrix triples",
  [Kind.PROOF]: "proofs", [Kind.SQUARE]: "squares", [Kind.RANDOM]: "random values", [Kind.BIT]: "random bits",
  [Kind.INVERSE]: "inverses", [Kind.INPUT]: "input masks", [Kind.MASKS]: "decryption masks", [Kind.RESHARE]: "new key shares",
  [Kind.CONVOLUTION]: "convolutions",
};

// kindWord names what a job makes.
export function kindWord(kind: Kind): string {
  return kinds[kind] ?? `kind ${kind}`;
}

// shapeWord describes the dimensions of a product: 128×128×128.
export function shapeWord(shape: Shape | undefined): string {
  const c = shape?.convolution;
  if (c) return `${c.channels}×${c.height}×${c.width} by ${c.outputs}×${c.kernelHeight}×${c.kernelWidth}`;
  return shape && shape.rows > 0 ? `${shape.rows}×${shape.inner}×${shape.columns}` : "";
}

// classWords names a class of tuples: its kind, its field and what sets it apart.
export function classWords(c: Class | undefined): { kind: string; rest: string } {
  if (!c) return { kind: "tuples", rest: "" };
  const rest = [c.field, shapeWord(c.shape)];
  if (c.kind === Kind.INPUT) rest.push(`of party ${c.inputParty}`);
  if (c.noSacrifice) rest.push("without sacrifice");
  if (c.quorum.length > 0) rest.push(`quorum ${c.quorum.join(", ")}`);
  if (c.kind === Kind.MASKS) rest.push(c.form === MaskForm.PAPER ? "paper" : "exact");
  return { kind: kindWord(c.kind), rest: rest.filter(Boolean).join(" · ") };
}

// classKey identifies a class in addresses.
export function classKey(c: Class | undefined, epoch: bigint): string {
  const words = classWords(c);
  return [c?.tenant, words.kind, words.rest, c?.params, String(epoch)].filter(Boolean).join("/").replace(/[^\w/×]+/g, "-");
}

const purposes: Record<Purpose, string> = {
  [Purpose.UNSPECIFIED]: "unknown", [Purpose.TRIPLES]: "tuples", [Purpose.DECRYPTION]: "decryption", [Purpose.THRESHOLD]: "threshold",
};

// purposeWord names what keys are for.
export function purposeWord(purpose: Purpose): string {
  return purposes[purpose] ?? `purpose ${purpose}`;
}

const states: Record<JobState, [string, Tone]> = {
  [JobState.UNSPECIFIED]: ["unknown", "quiet"], [JobState.PENDING]: ["waiting", "quiet"], [JobState.PREPARING]: ["preparing", "busy"],
  [JobState.GENERATING]: ["generating", "busy"], [JobState.VERIFYING]: ["verifying", "busy"], [JobState.STORING]: ["storing", "busy"],
  [JobState.ACTIVATING]: ["activating", "busy"], [JobState.COMPLETED]: ["completed", "good"], [JobState.FAILED]: ["failed", "bad"],
  [JobState.CANCELLED]: ["cancelled", "quiet"], [JobState.TIMED_OUT]: ["timed out", "bad"],
};

// stateWord names the state of a job, with its tone.
export function stateWord(state: JobState): [string, Tone] {
  return states[state] ?? [`state ${state}`, "quiet"];
}

// ended reports whether a job in this state has ended.
export function ended(state: JobState): boolean {
  return state >= JobState.COMPLETED;
}

// jobWords says what a job makes: "4,096 matrix triples".
export function jobWords(job: Job): { what: string; detail: string } {
  const r = job.request;
  if (!r) return { what: "unknown", detail: "" };
  if (r.kind === Kind.KEYS) {
    return { what: `keys for ${purposeWord(r.purpose)}`, detail: [r.params, r.threshold ? `threshold ${r.threshold}` : ""].filter(Boolean).join(" · ") };
  }
  const n = r.count > 0n ? `${count(r.count)} ` : "";
  return { what: n + kindWord(r.kind), detail: [r.field, shapeWord(r.shape), r.params].filter(Boolean).join(" · ") };
}

// jobTook is how long a job ran or has run, in seconds.
export function jobTook(job: Job, now: number): number | undefined {
  const from = unix(job.started);
  return from === undefined ? undefined : (unix(job.ended) ?? now) - from;
}

// work returns the least finished fraction of a job over its parties, and the time that is left at this pace.
export function work(job: Job, now: number): { share: number; left?: number } | undefined {
  let least: number | undefined;
  for (const p of job.parties) {
    const g = p.status?.progress;
    if (!g || g.workTotal === 0n) continue;
    const share = Number(g.workDone) / Number(g.workTotal);
    if (least === undefined || share < least) least = share;
  }
  if (least === undefined) return undefined;
  const took = jobTook(job, now);
  return { share: least, left: least > 0.02 && least < 1 && took ? (took * (1 - least)) / least : undefined };
}

// leftWords says how long a job still takes.
export function leftWords(w: { share: number; left?: number } | undefined): string {
  if (!w) return "";
  const done = `${Math.floor(w.share * 100)}\u00a0%`;
  return w.left === undefined ? done : `${done}, about ${span(w.left)} left`;
}

// partyName finds the name of a party of a job by its index.
export function partyName(job: Job | undefined, party: number): string {
  return job?.parties.find((p) => p.party === party)?.name || `party ${party}`;
}

// blameWords says who failed which check.
export function blameWords(job: Job, blame: Blame): string {
  return `${partyName(job, blame.party)} failed the check “${blame.check}”`;
}

// Delay is how long a job has been kept waiting, and by whom.
interface Delay {
  job: Job;
  who: string[];
  round: number;
  waited: number;
}

// delay finds who keeps a job waiting: the parties that do not respond, or else those that most others wait for. It does
// not count what a party said before it stopped responding.
export function delay(job: Job, now: number): Delay | undefined {
  const votes = new Map<number, number>();
  let waited = 0;
  let round = 0;
  for (const p of job.parties) {
    const g = p.status?.progress;
    const since = unix(g?.since);
    if (ended(job.state) || !p.reachable || !g || g.waitingFor.length === 0 || since === undefined) continue;
    for (const party of g.waitingFor) votes.set(party, (votes.get(party) ?? 0) + 1);
    if (now - since > waited) [waited, round] = [now - since, g.roundIndex];
  }
  if (votes.size === 0) return undefined;
  const away = [...votes.keys()].filter((v) => job.parties.some((p) => p.party === v && !p.reachable));
  const top = Math.max(...votes.values());
  const who = away.length > 0 ? away : [...votes.keys()].filter((v) => votes.get(v) === top);
  return { job, who: who.sort((x, y) => x - y).map((v) => partyName(job, v)), round, waited };
}

// made sums what jobs make: "32 matrix triples and 4,000 scalar triples".
export function made(jobs: Job[]): string {
  const sums = new Map<string, bigint>();
  for (const job of jobs) {
    const r = job.request;
    const kind = r?.kind === Kind.KEYS ? jobWords(job).what : kindWord(r?.kind ?? Kind.UNSPECIFIED);
    sums.set(kind, (sums.get(kind) ?? 0n) + (r?.count ?? 0n));
  }
  return list([...sums].map(([kind, n]) => (n > 0n ? `${count(n)} ${kind}` : kind))) + (jobs.length > 1 ? ` in ${jobs.length} jobs` : "");
}
