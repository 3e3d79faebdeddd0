// The recent past of the process's own metrics, from its ring buffer.
import { get } from "./api";
import { useLive, type Live } from "./live";
import { parseSeries, type Past, type Series } from "./series";

export * from "./series";

// useSeries lists the series that the process keeps.
export function useSeries(): Series[] {
  const live = useLive<Series[]>("series", async (signal, emit) => {
    const answer = await get<{ series: string[] }>("/api/series", signal);
    emit(answer.series.map(parseSeries));
  }, 30_000);
  return live.value ?? [];
}

// Requests name at most this many series; further back, in Prometheus, fewer.
const most = 60;
const mostOlder = 16;

// usePast follows the history of series over the last seconds.
export function usePast(series: Series[], seconds: number): Live<Past> {
  const names = series.map((s) => s.key);
  const key = names.length > 0 ? `past ${seconds} ${names.join(",")}` : undefined;
  const older = seconds > 3600;
  return useLive<Past>(key, async (signal, emit) => {
    const size = older ? mostOlder : most;
    const parts: Past[] = [];
    for (let i = 0; i < names.length; i += size) {
      const query = new URLSearchParams({ series: names.slice(i, i + size).join(","), since: String(seconds) });
      parts.push(await get<Past>(`/api/history?${query}`, signal));
    }
    const first = parts[0]!;
    emit({ step: first.step, end: first.end, series: Object.assign({}, ...parts.map((p) => p.series)) });
  }, older ? 30_000 : 5_000);
}
