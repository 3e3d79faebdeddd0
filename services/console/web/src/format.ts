// Formats numbers, sizes, times and identifiers for people.
import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";

const grouped = new Intl.NumberFormat("en-GB");

// count formats a whole number with separators: 4,096.
export function count(n: number | bigint): string {
  return grouped.format(n);
}

// brief formats a number in at most four characters and a unit: 12.3k.
export function brief(n: number): string {
  const size = Math.abs(n);
  if (!Number.isFinite(n)) return "∞";
  if (size === 0) return "0";
  if (size < 0.01) return size < 1e-4 ? n.toExponential(0) : String(Number(n.toPrecision(1)));
  if (size < 10) return String(Math.round(n * 100) / 100);
  for (const [limit, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]] as const) {
    if (size >= limit) {
      const scaled = n / (unit === "k" ? 1e3 : limit);
      return `${scaled < 100 ? scaled.toFixed(1).replace(/\.0$/, "") : Math.round(scaled)}${unit}`;
    }
  }
  return size < 100 ? String(Math.round(n * 10) / 10) : count(Math.round(n));
}

// bytes formats a size with decimal units: 1.2 GB.
export function bytes(size: number | bigint): string {
  let n = Number(size);
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (n >= 999.5 && unit < units.length - 1) {
    n /= 1000;
    unit++;
  }
  const text = unit === 0 || n >= 100 ? String(Math.round(n)) : n.toFixed(n < 10 ? 1 : 0);
  return `${text}\u00a0${units[unit]}`;
}

// rate formats a number of tuples per second.
export function rate(n: number): string {
  if (n === 0) return "0\u00a0/s";
  if (n < 1 / 60) return `${brief(n * 3600)}\u00a0/h`;
  if (n < 1) return `${brief(n * 60)}\u00a0/min`;
  return `${brief(n)}\u00a0/s`;
}

// span formats seconds with at most two units: 3 min 20 s.
export function span(seconds: number): string {
  if (!Number.isFinite(seconds)) return "never";
  const s = Math.max(0, seconds);
  if (s === 0) return "0\u00a0s";
  if (s < 1e-3) return `${Math.round(s * 1e6)}\u00a0µs`;
  if (s < 0.1) return `${(s * 1e3).toFixed(s < 0.01 ? 1 : 0)}\u00a0ms`;
  if (s < 10 && s % 1 > 0.05) return `${s.toFixed(1)}\u00a0s`;
  const units: [number, string][] = [[31557600, "y"], [86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  for (let i = 0; i < units.length; i++) {
    const [size, name] = units[i]!;
    if (s < size && i < units.length - 1) continue;
    const whole = Math.floor(s / size);
    const next = units[i + 1];
    if (!next || whole >= 20) return `${whole}\u00a0${name}`;
    const rest = Math.floor((s - whole * size) / next[0]);
    return rest > 0 ? `${whole}\u00a0${name} ${rest}\u00a0${next[1]}` : `${whole}\u00a0${name}`;
  }
  return "";
}

// seconds returns the number of seconds of a duration; undefined if there is none.
export function seconds(d: Duration | undefined): number | undefined {
  return d && Number(d.seconds) + d.nanos / 1e9;
}

// unix returns the seconds since 1970; undefined if there is no time.
export function unix(t: Timestamp | undefined): number | undefined {
  if (!t || (t.seconds === 0n && t.nanos === 0)) return undefined;
  return Number(t.seconds) + t.nanos / 1e9;
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

// moment formats a time in the browser's zone: the clock for today, and the day for other days.
export function moment(time: number, now = Date.now() / 1000): string {
  const at = new Date(time * 1000);
  const same = day.format(at) === day.format(new Date(now * 1000));
  return same ? clock.format(at) : `${day.format(at)}, ${clock.format(at).slice(0, 5)}`;
}

// date formats a day: 12 Mar 2027.
export function date(time: number): string {
  return day.format(new Date(time * 1000));
}

// full formats a time completely, for titles.
export function full(time: number): string {
  return new Date(time * 1000).toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC");
}

// hex returns bytes in hexadecimal, at most the first ones.
export function hex(data: Uint8Array, most = data.length): string {
  let text = "";
  for (const byte of data.subarray(0, most)) text += byte.toString(16).padStart(2, "0");
  return text;
}

// list joins words: "p0, p1 and p2".
export function list(words: readonly string[]): string {
  if (words.length <= 1) return words.join("");
  return `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;
}

// plural returns the count and the noun: "1 job", "3 jobs".
export function plural(n: number | bigint, one: string, many = `${one}s`): string {
  return `${count(n)} ${Number(n) === 1 ? one : many}`;
}

// sentence returns the text with a capital first letter.
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
