// Jobs over time: when each waited and ran, at every party, round by round.
import { useEffect, useRef, useState } from "preact/hooks";
import { moment, span, unix } from "../format";
import type { Job, PartyProgress } from "../gen/lodge/coordinator/v1/coordinator_pb";
import { roundsOf } from "../rounds";
import { ended, jobWords, partyName, stateWord } from "../words";

const head = 20;
const pad = 7;

// Timeline draws jobs between two times, with a lane for each party. A tall timeline names the parties and rounds of
// its only job; otherwise each job is a link.
export function Timeline(props: { jobs: Job[]; from: number; to: number; tall?: boolean; label: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const size = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    size.observe(box.current!);
    return () => size.disconnect();
  }, []);
  const narrow = width < 480;
  const lane = props.tall ? 26 : 9;
  const left = props.tall ? 56 : narrow ? 0 : 176;
  const gap = props.tall || !narrow ? 0 : 17;
  const scale = (t: number) => left + ((Math.max(props.from, Math.min(props.to, t)) - props.from) / (props.to - props.from)) * (width - left);
  let y = head;
  const rows = props.jobs.map((job) => {
    const parties = job.parties.length > 0 ? job.parties : [undefined];
    const row = { job, parties, top: y, height: Math.max(gap + parties.length * lane + 2 * pad, 28) };
    y += row.height;
    return row;
  });
  return (
    <div ref={box} class="timeline">
      {width > 0 && (
        <svg width={width} height={y} role={props.tall ? "img" : "group"} aria-label={props.label}>
          <defs>
            <pattern id="waits" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <rect width="5" height="5" class="waits-ground" />
              <rect width="2" height="5" class="waits-line" />
            </pattern>
          </defs>
          <Ticks from={props.from} to={props.to} left={left} width={width} height={y} scale={scale} />
          {rows.map((r) => {
            const first = r.top + gap + (r.height - gap - r.parties.length * lane) / 2;
            const lanes = r.parties.map((p, i) => <Lane key={i} job={r.job} party={p} y={first + i * lane} lane={lane} scale={scale} to={props.to} />);
            if (props.tall) return <g key={r.job.id}>{lanes}</g>;
            return (
              <Row key={r.job.id} job={r.job} top={r.top} height={r.height} left={left} width={width}>
                {lanes}
              </Row>
            );
          })}
        </svg>
      )}
    </div>
  );
}

function Ticks(props: { from: number; to: number; left: number; width: number; height: number; scale: (t: number) => number }) {
  const times = ticks(props.from, props.to, (props.width - props.left) / 90);
  const close = times.length > 1 && times[1]! - times[0]! < 60;
  return (
    <>
      {times.map((t) => (
        <g key={t} class="tick">
          <line x1={props.scale(t)} x2={props.scale(t)} y1="16" y2={props.height} />
          <text x={props.scale(t)} y="11">
            {close ? moment(t).slice(-8) : moment(t).slice(-8, -3)}
          </text>
        </g>
      ))}
    </>
  );
}

// Row is one job of a timeline: its name and its lanes, as a link.
function Row(props: { job: Job; top: number; height: number; left: number; width: number; children: preact.ComponentChildren }) {
  const { job, top, left } = props;
  const words = jobWords(job);
  const [state] = stateWord(job.state);
  return (
    <a href={`/jobs/${job.id}`} class="row" aria-label={`${words.what}, ${state}`}>
      <title>{`${words.what}\n${words.detail}\n${state}${job.reason ? `: ${job.reason}` : ""}`}</title>
      <rect class="ground" x="0" y={top} width={props.width} height={props.height} />
      <text class="what" x={left ? 0 : 2} y={left ? top + props.height / 2 + 4 : top + 15}>
        {left ? cut(words.what, 26) : `${words.what}, ${state}`}
      </text>
      {props.children}
    </a>
  );
}

// Lane is the session of a job at one party: first it waits to start, then it runs.
function Lane(props: { job: Job; party?: PartyProgress; y: number; lane: number; scale: (t: number) => number; to: number }) {
  const { job, party, y, scale, to } = props;
  const tall = props.lane > 16;
  const height = props.lane - (tall ? 6 : 2);
  const status = party?.status;
  const begun = unix(job.started) ?? (ended(job.state) ? unix(job.ended) : undefined);
  const created = unix(job.created) ?? begun ?? to;
  const from = begun === undefined ? undefined : (unix(status?.started) ?? begun);
  const until = unix(status?.ended) ?? unix(job.ended) ?? to;
  const [, tone] = stateWord(status && ended(status.state) && !ended(job.state) ? status.state : job.state);
  const g = status?.progress;
  const waits = g && g.waitingFor.length > 0 && !ended(job.state) ? unix(g.since) : undefined;
  const rounds = party && from !== undefined ? roundsOf(job, party.party).filter((r) => r.from < until) : [];
  const length = (a: number, b: number, least: number) => Math.max(least, scale(b) - scale(a));
  return (
    <>
      {tall && party && <text class="party" x="0" y={y + height - 5}>{cut(party.name || `party ${party.party}`, 7)}</text>}
      <rect class="queued" x={scale(created)} y={y + height / 2 - 1} width={length(created, from ?? to, 1)} height="2" />
      {from !== undefined && <rect class={`bar ${tone}`} x={scale(from)} y={y} width={length(from, until, 2)} height={height} rx="1" />}
      {waits !== undefined && (
        <rect class="waits" x={scale(waits)} y={y} width={length(waits, until, 2)} height={height}>
          <title>{`${party!.name} has waited ${span(to - waits)} for ${g!.waitingFor.map((w) => partyName(job, w)).join(", ")}`}</title>
        </rect>
      )}
      {rounds.map((r) => {
        const [a, b] = [scale(Math.max(r.from, from!)), scale(Math.min(r.to ?? until, until))];
        const text = `${r.index} ${r.round}`;
        return (
          <g key={text}>
            {r.from > from! && <rect class="cut" x={a} y={y} width="1.5" height={height} />}
            {tall && b - a > text.length * 7 && waits !== r.from && <text class="round" x={a + 6} y={y + height - 5.5}>{text}</text>}
            <title>{`round ${text}`}</title>
          </g>
        );
      })}
    </>
  );
}

// cut shortens text to a number of characters.
function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

// ticks returns round times between two times, at most a number of them.
export function ticks(from: number, to: number, most: number): number[] {
  const steps = [10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400];
  const step = steps.find((s) => (to - from) / s <= Math.max(1, most)) ?? 86400;
  const times: number[] = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) if ((t - from) / (to - from) > 0.03 && (to - t) / (to - from) > 0.03) times.push(t);
  return times;
}
