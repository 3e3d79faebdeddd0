// Data that stays current: server streams and polls that reconnect, and pause in hidden tabs.
import { useEffect, useRef, useState } from "preact/hooks";
import { problem, type Problem } from "./api";

// Live is the newest value, and the error of the last attempt if it failed.
export interface Live<T> {
  value?: T;
  problem?: Problem;
  // When the attempts began to fail, in milliseconds.
  failing?: number;
}

// Run reports values until it is aborted or the server ends the stream.
export type Run<T> = (signal: AbortSignal, emit: (value: T) => void) => Promise<void>;

// Values that a page shows at once when the reader returns to it.
const kept = new Map<string, unknown>();

// Hidden tabs stop after this long, so that forgotten tabs cost the process nothing.
const hiddenAfter = 20_000;

const slowest = 5_000;

// useLive runs a stream, or a poll with a pause of every milliseconds, while the component is mounted. Data with
// different keys is different data; without a key nothing runs.
export function useLive<T>(key: string | undefined, run: Run<T>, every = 0): Live<T> {
  const [state, setState] = useState<Live<T> & { key?: string }>({});
  const current = useRef(run);
  current.current = run;
  useEffect(() => {
    if (key === undefined) return;
    return whileVisible((signal) => repeat(key, signal, every, () => current.current, setState));
  }, [key, every]);
  if (state.key === key) return state;
  return { value: key === undefined ? undefined : (kept.get(key) as T | undefined) };
}

async function repeat<T>(
  key: string, signal: AbortSignal, every: number, run: () => Run<T>,
  set: (change: (old: Live<T> & { key?: string }) => Live<T> & { key?: string }) => void,
) {
  let failures = 0;
  while (!signal.aborted) {
    let pause = Math.max(every, 500);
    try {
      await run()(signal, (value) => {
        if (signal.aborted) return;
        failures = 0;
        kept.set(key, value);
        set(() => ({ key, value }));
      });
    } catch (error) {
      if (signal.aborted) return;
      const why = problem(error);
      pause = Math.max(every, Math.min(slowest, 500 * 2 ** failures++));
      set((old) => ({
        key,
        value: old.key === key ? old.value : (kept.get(key) as T | undefined),
        problem: why,
        failing: (old.key === key ? old.failing : undefined) ?? Date.now(),
      }));
    }
    await sleep(pause, signal);
  }
}

// whileVisible runs work until the returned function is called; work stops while the tab is hidden.
function whileVisible(work: (signal: AbortSignal) => Promise<void>): () => void {
  let stop: AbortController | undefined;
  let timer: number | undefined;
  const start = () => {
    stop = new AbortController();
    void work(stop.signal);
  };
  const change = () => {
    clearTimeout(timer);
    if (document.hidden) {
      timer = window.setTimeout(() => {
        stop?.abort();
        stop = undefined;
      }, hiddenAfter);
    } else if (!stop) {
      start();
    }
  };
  document.addEventListener("visibilitychange", change);
  start();
  return () => {
    document.removeEventListener("visibilitychange", change);
    clearTimeout(timer);
    stop?.abort();
  };
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}

// useNow returns the time in seconds, at least once per second.
export function useNow(): number {
  const [now, set] = useState(Date.now() / 1000);
  useEffect(() => {
    tickers.add(set);
    return () => void tickers.delete(set);
  }, []);
  return now;
}

const tickers = new Set<(now: number) => void>();
setInterval(() => {
  if (!document.hidden) for (const tick of tickers) tick(Date.now() / 1000);
}, 1000);
