// The rounds of running jobs, as this page has seen them. The services report only the current round of a party;
// the page remembers the earlier ones while it is open.
import { unix } from "./format";
import type { Job } from "./gen/lodge/coordinator/v1/coordinator_pb";

// Seen is a round of one party: its name, and when the page saw it begin and end.
export interface Seen {
  round: string;
  index: number;
  from: number;
  to?: number;
}

const log = new Map<string, Seen[]>();
const most = 400;

// watchRounds remembers the current rounds of jobs.
export function watchRounds(jobs: Job[], now: number) {
  for (const job of jobs) {
    for (const p of job.parties) {
      const g = p.status?.progress;
      const key = `${job.id}/${job.ordinal}/${p.party}`;
      const seen = log.get(key);
      const last = seen?.[seen.length - 1];
      const over = unix(p.status?.ended);
      if (last && last.to === undefined && (over !== undefined || !g)) last.to = over ?? now;
      if (!g?.round || over !== undefined) continue;
      if (last && last.index === g.roundIndex && last.round === g.round) continue;
      const from = unix(g.since) ?? now;
      if (last && last.to === undefined) last.to = from;
      const first = { round: g.round, index: g.roundIndex, from };
      if (seen) seen.push(first);
      else log.set(key, [first]);
    }
  }
  while (log.size > most) log.delete(log.keys().next().value!);
}

// roundsOf returns the rounds that this page has seen of a party's session.
export function roundsOf(job: Job, party: number): Seen[] {
  return log.get(`${job.id}/${job.ordinal}/${party}`) ?? [];
}
