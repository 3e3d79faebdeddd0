// Charts over time, with the values under the pointer in the legend.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { latest } from "../history";
import { moment } from "../format";

// Line is one series of a chart. Its color is the number of a hue of the palette.
export interface Line {
  label: string;
  values: (number | null)[];
  color: number;
}

// Chart draws lines that end at the same time. The unit formats values.
export function Chart(props: {
  title: string;
  lines: Line[];
  end: number;
  step: number;
  unit: (n: number) => string;
  limit?: { value: number; label: string };
  height?: number;
}) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const unit = useRef(props.unit);
  unit.current = props.unit;
  const [at, setAt] = useState<number | null>(null);
  const [theme, setTheme] = useState(0);
  const length = Math.max(0, ...props.lines.map((l) => l.values.length));
  const shape = props.lines.map((l) => l.label + l.color).join("|") + (props.limit ? props.limit.label : "");

  useEffect(() => onTheme(() => setTheme((n) => n + 1)), []);
  useEffect(() => {
    if (!box.current) return;
    const made = new uPlot(options(box.current, props, (n) => unit.current(n), setAt), data(props, length), box.current);
    plot.current = made;
    const size = new ResizeObserver(() => box.current && made.setSize({ width: box.current.clientWidth, height: made.height }));
    size.observe(box.current);
    return () => {
      size.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [shape, theme, props.height]);
  useEffect(() => plot.current?.setData(data(props, length)), [props.end, length, props.lines]);

  const time = at === null ? undefined : props.end - (length - 1 - at) * props.step;
  const words = props.lines.map((l) => {
    const value = at === null ? latest(l.values) : l.values[at];
    return { label: l.label, color: l.color, text: value == null ? "–" : props.unit(value) };
  });
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{props.title}</span>
        <span class="chart-time">{time === undefined ? "now" : moment(time)}</span>
      </figcaption>
      <div ref={box} class="plot" role="img" aria-label={`${props.title}. Now: ${words.map((w) => `${w.label} ${w.text}`).join(", ")}`} />
      <ul class="legend">
        {words.map((w) => (
          <li key={w.label}>
            <svg class="swatch" viewBox="0 0 10 4" aria-hidden="true">
              <rect class={`hue${w.color % 8}`} width="10" height="4" rx="2" />
            </svg>
            {w.label} <b>{w.text}</b>
          </li>
        ))}
        {props.limit && (
          <li>
            <svg class="swatch" viewBox="0 0 10 4" aria-hidden="true">
              <path class="limit" d="M0 2h10" />
            </svg>
            {props.limit.label} <b>{props.unit(props.limit.value)}</b>
          </li>
        )}
      </ul>
    </figure>
  );
}

// A chart shows at least this many seconds, so that a young process has a readable axis.
const shortest = 300;

function data(props: { lines: Line[]; end: number; step: number; limit?: { value: number } }, length: number): uPlot.AlignedData {
  const x = Array.from({ length }, (_, i) => props.end - (length - 1 - i) * props.step);
  const rows = props.lines.map((l) => Array.from({ length }, (_, i) => l.values[i - length + l.values.length] ?? null));
  if (props.limit) rows.push(x.map(() => props.limit!.value));
  return [x, ...rows];
}

function options(
  box: HTMLElement, props: { lines: Line[]; limit?: { value: number }; height?: number },
  unit: (n: number) => string, point: (index: number | null) => void,
): uPlot.Options {
  const style = getComputedStyle(box);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const font = `11px ${style.fontFamily}`;
  const axis = { stroke: color("--soft"), font, ticks: { show: false }, grid: { stroke: color("--hair"), width: 1 } };
  return {
    width: box.clientWidth || 320,
    height: props.height ?? 148,
    padding: [8, 4, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
    scales: {
      x: { time: true, range: (_, low, high) => [Math.min(low ?? 0, (high ?? 0) - shortest), high ?? shortest] },
      y: { range: (_, low, high) => [Math.min(0, low ?? 0), high == null || high <= 0 ? 1 : high * 1.08] },
    },
    axes: [
      { ...axis, size: 24, space: 64, values: (_, times) => times.map((t) => (t % 60 ? moment(t).slice(-8) : moment(t).slice(-8, -3))) },
      { ...axis, size: 62, space: 36, values: (_, values) => values.map(unit) },
    ],
    series: [
      {},
      ...props.lines.map((l) => ({
        label: l.label,
        stroke: color(`--hue${l.color % 8}`),
        width: 1.6,
        fill: props.lines.length === 1 ? color(`--hue${l.color % 8}`) + "22" : undefined,
        // Points show only where they are far apart: in the first minute, and between gaps.
        points: { size: 4, fill: color(`--hue${l.color % 8}`) },
        spanGaps: false,
      })),
      ...(props.limit ? [{ label: "limit", stroke: color("--soft"), width: 1, dash: [4, 4], points: { show: false } }] : []),
    ],
    hooks: { setCursor: [(u) => point(u.cursor.idx ?? null)] },
  };
}

const themed = new Set<() => void>();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => themed.forEach((f) => f()));

function onTheme(then: () => void): () => void {
  themed.add(then);
  return () => void themed.delete(then);
}

// themeChanged tells the charts to read their colours again.
export function themeChanged() {
  for (const tell of themed) tell();
}
