// Small signs of state: always a shape and a word, never a colour alone.
import type { ComponentChildren } from "preact";
import { full, moment, span } from "../format";
import { useNow } from "../live";

export type Tone = "good" | "busy" | "warn" | "bad" | "quiet";

const shapes: Record<Tone, ComponentChildren> = {
  good: <circle cx="6" cy="6" r="3.6" fill="currentColor" />,
  busy: (
    <>
      <circle cx="6" cy="6" r="3.4" fill="none" stroke="currentColor" stroke-width="1.6" />
      <path d="M6 2.6a3.4 3.4 0 0 1 0 6.8z" fill="currentColor" />
    </>
  ),
  warn: <path d="M6 1.2 11.3 10.6H.7z" fill="currentColor" />,
  bad: <path d="M2.2 2.2l7.6 7.6M9.8 2.2 2.2 9.8" stroke="currentColor" stroke-width="2.4" stroke-linecap="round" fill="none" />,
  quiet: <circle cx="6" cy="6" r="3" fill="none" stroke="currentColor" stroke-width="1.5" />,
};

// Mark is the shape of a tone. Text beside it says the same.
export function Mark(props: { tone: Tone }) {
  return (
    <svg class={`mark ${props.tone}`} viewBox="0 0 12 12" aria-hidden="true">
      {shapes[props.tone]}
    </svg>
  );
}

// State is a mark with its word.
export function State(props: { tone: Tone; children: ComponentChildren }) {
  return (
    <span class={`state ${props.tone}`}>
      <Mark tone={props.tone} />
      <span>{props.children}</span>
    </span>
  );
}

// Ago is a time as a distance from now.
export function Ago(props: { at: number | undefined; suffix?: string }) {
  const now = useNow();
  if (props.at === undefined) return <>–</>;
  return (
    <time dateTime={new Date(props.at * 1000).toISOString()} title={full(props.at)}>
      {span(Math.max(1, Math.floor(now - props.at)))}
      {props.suffix ?? " ago"}
    </time>
  );
}

// Left is the time until a moment.
export function Left(props: { at: number | undefined; over?: string }) {
  const now = useNow();
  if (props.at === undefined) return <>–</>;
  const rest = props.at - now;
  return (
    <time dateTime={new Date(props.at * 1000).toISOString()} title={full(props.at)}>
      {rest > 0 ? span(Math.ceil(rest)) : (props.over ?? "over")}
    </time>
  );
}

// At is a time on the clock, or a date.
export function At(props: { at: number | undefined }) {
  if (props.at === undefined) return <>–</>;
  return (
    <time dateTime={new Date(props.at * 1000).toISOString()} title={full(props.at)}>
      {moment(props.at)}
    </time>
  );
}

// Name is the name of a process.
export function Name(props: { children: string; you?: boolean }) {
  return (
    <span class="name">
      {props.children}
      {props.you && <span class="you"> this process</span>}
    </span>
  );
}

// Meter is a bar that fills: a part of a whole, with marks at limits. The text beside it has the values.
export function Meter(props: { parts: { share: number; kind: string }[]; marks?: number[]; label: string }) {
  let at = 0;
  return (
    <svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={props.label}>
      <rect class="track" x="0" y="0" width="100" height="8" />
      {props.parts.map((p) => {
        const width = Math.max(0, Math.min(100 - at, p.share * 100));
        const x = at;
        at += width;
        return width > 0 && <rect key={p.kind} class={p.kind} x={x} y="0" width={width} height="8" />;
      })}
      {(props.marks ?? []).map((m) => (
        <line key={m} class="limit" x1={m * 100} x2={m * 100} y1="0" y2="8" vector-effect="non-scaling-stroke" />
      ))}
    </svg>
  );
}
