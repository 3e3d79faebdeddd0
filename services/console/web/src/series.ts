// Series of metrics, and arithmetic on their values. A value is null where there is none.

// Series is one metric with its labels.
export interface Series {
  key: string;
  name: string;
  labels: Record<string, string>;
}

// Past has values of series at equal steps; the last value is from end, in seconds since 1970.
export interface Past {
  step: number;
  end: number;
  series: Record<string, (number | null)[]>;
}

// parseSeries reads a name in canonical form: name{a="b",c="d"}.
export function parseSeries(key: string): Series {
  const brace = key.indexOf("{");
  const labels: Record<string, string> = {};
  if (brace < 0) return { key, name: key, labels };
  for (const [, label, value] of key.slice(brace).matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)) {
    labels[label!] = value!.replace(/\\(.)/g, (_, c: string) => (c === "n" ? "\n" : c));
  }
  return { key, name: key.slice(0, brace), labels };
}

// rates turns a counter into changes per second. A counter that restarts has no rate at that step.
export function rates(values: (number | null)[] | undefined, step: number): (number | null)[] {
  return (values ?? []).map((value, i, all) => {
    const before = i > 0 ? all[i - 1] : null;
    return value === null || before === null || before === undefined || value < before ? null : (value - before) / step;
  });
}

// means divides the changes of a sum by those of a count, over a window of steps: the mean of a histogram.
export function means(sum: (number | null)[] = [], counted: (number | null)[] = [], window = 6): (number | null)[] {
  return sum.map((value, i) => {
    let from = Math.max(0, i - window);
    while (from < i && (sum[from] == null || counted[from] == null)) from++;
    const s = sum[from];
    const c = counted[from];
    const n = counted[i];
    if (value === null || s == null || c == null || n == null || n <= c || value < s) return null;
    return (value - s) / (n - c);
  });
}

// add adds series point by point; a point without any value is null.
export function add(...all: (number | null)[][]): (number | null)[] {
  const length = Math.max(0, ...all.map((a) => a.length));
  return Array.from({ length }, (_, i) => {
    let total: number | null = null;
    for (const values of all) {
      const value = values[i];
      if (value != null) total = (total ?? 0) + value;
    }
    return total;
  });
}

// growth is how much a counter grew in the window, across restarts.
export function growth(values: (number | null)[] | undefined): number {
  let total = 0;
  let last: number | null = null;
  for (const value of values ?? []) {
    if (value === null) continue;
    if (last !== null) total += value >= last ? value - last : value;
    last = value;
  }
  return total;
}

// latest is the newest value that is not null.
export function latest(values: (number | null)[] | undefined): number | undefined {
  for (let i = (values?.length ?? 0) - 1; i >= 0; i--) {
    const value = values![i];
    if (value != null) return value;
  }
  return undefined;
}
