// Network: bytes and time by peer and round, as a heat map, and the links.
import { useMemo } from "preact/hooks";
import { may, useWorld } from "../app";
import { bytes, list, seconds, span } from "../format";
import { add, growth, means, rates, usePast, useSeries, type Past, type Series } from "../history";
import { Chart } from "../parts/chart";
import { HeatMap, type Cell } from "../parts/heatmap";
import { Choice, Empty, Page, Section } from "../parts/page";
import type { Tone } from "../parts/state";
import { usePlace, withQuery } from "../router";

type Measure = "sent" | "received" | "time";

const measures: Record<Measure, string> = { sent: "Bytes sent", received: "Bytes received", time: "Time" };
const spans: Record<string, number> = { "5 min": 300, "15 min": 900, "1 h": 3600 };
const further: Record<string, number> = { "6 h": 21600, "24 h": 86400 };

export function NetworkPage() {
  const { session, status } = useWorld();
  const place = usePlace();
  const all = useSeries();
  const choices = session.prometheus ? { ...spans, ...further } : spans;
  const shown = place.query.get("span") ?? "1 h";
  const window = choices[shown] ?? 3600;
  const measure = (place.query.get("measure") ?? "sent") in measures ? ((place.query.get("measure") ?? "sent") as Measure) : "sent";
  const wanted = useMemo(
    () => all.filter((s) => s.name === "lodge_peer_bytes_total" || /^lodge_round_(duration|compute)_seconds_(sum|count)$/.test(s.name) || /^lodge_peer_round_trip_seconds_(sum|count)$/.test(s.name)),
    [all],
  );
  const live = usePast(wanted, window);
  const past = live.value;
  const links = (status.value?.links ?? []).filter((l) => l.name !== status.value?.name);
  const down = links.filter((l) => l.since && !l.reachable);
  const measured = links.filter((l) => l.reachable && l.roundTrip).sort((a, b) => seconds(b.roundTrip)! - seconds(a.roundTrip)!);
  const slowest = measured[0];
  const say: [Tone, string] = down.length
    ? ["bad", `${list(down.map((l) => l.name))} ${down.length > 1 ? "do" : "does"} not respond.`]
    : slowest ? [seconds(slowest.roundTrip)! > 0.3 ? "warn" : "good", `The slowest link is to ${slowest.name}: ${span(seconds(slowest.roundTrip)!)} there and back.`]
    : ["quiet", "No link has been measured yet."];
  const party = session.process.role === "party";
  const total = past ? wanted.filter((s) => s.name === "lodge_peer_bytes_total" && s.labels.direction === "sent").reduce((n, s) => n + growth(past.series[s.key]), 0) : 0;
  return (
    <Page
      title="Network" verdict={say[1]} tone={say[0]} live={status} terminal={["lodge status", "lodge doctor"]}
      aside={party && past ? `${bytes(total)} sent to all peers in the last ${shown === "1 h" ? "hour" : shown}.` : undefined}
    >
      <Section
        title="By peer and round"
        note={party ? undefined : "the coordinator takes no part in rounds"}
        tools={
          party && (
            <>
              <Choice label="Measure" options={(Object.keys(measures) as Measure[]).map((m) => ({ text: measures[m], href: withQuery({ measure: m === "sent" ? undefined : m }), on: m === measure }))} />
              <Choice label="Span" options={Object.keys(choices).map((t) => ({ text: t, href: withQuery({ span: t === "1 h" ? undefined : t }), on: t === shown }))} />
            </>
          )
        }
      >
        {!party ? (
          <Empty>Parties exchange the messages of rounds with each other. The console of a party shows this map, with its own peers.</Empty>
        ) : !may(session, "operate") ? (
          <Empty>The traffic of all tenants together is for operators. Add the permission “operate” to this client in the configuration of the party.</Empty>
        ) : past ? (
          <Matrix past={past} series={wanted} measure={measure} shown={shown} />
        ) : (
          <Empty command="lodge jobs submit --kind scalar --epoch 1 --count 10000">No message has been sent yet. Run a job:</Empty>
        )}
      </Section>
      {past && <History past={past} series={wanted} shown={shown} />}
    </Page>
  );
}

// rounds lists the rounds in the order in which their protocols run them, as far as the names tell.
function roundsOf(series: Series[]): [string, string][] {
  const seen = new Map<string, [string, string]>();
  for (const s of series) if (s.labels.round !== undefined) seen.set(`${s.labels.protocol}/${s.labels.round}`, [s.labels.protocol ?? "", s.labels.round]);
  return [...seen.values()].sort((a, b) => a[0].localeCompare(b[0]) || a[1].localeCompare(b[1], undefined, { numeric: true }));
}

function Matrix(props: { past: Past; series: Series[]; measure: Measure; shown: string }) {
  const { past, series, measure } = props;
  const table = useMemo(() => {
    if (measure === "time") return times(past, series);
    const counted = series.filter((s) => s.name === "lodge_peer_bytes_total" && s.labels.direction === measure);
    const columns = [...new Set(counted.map((s) => s.labels.peer ?? ""))].sort();
    const rows = roundsOf(counted).map(([protocol, round]) => ({
      group: protocol,
      name: round,
      cells: columns.map((peer): Cell => {
        const s = counted.find((c) => c.labels.protocol === protocol && c.labels.round === round && c.labels.peer === peer);
        const value = s ? growth(past.series[s.key]) : 0;
        return { value, text: value > 0 ? bytes(value) : "" };
      }),
    }));
    return { columns, rows: rows.filter((r) => r.cells.some((c) => c.value > 0)) };
  }, [past, series, measure]);
  if (table.rows.length === 0) {
    return <Empty command="lodge jobs submit --kind scalar --epoch 1 --count 10000">No round ran in the last {props.shown}. Choose a longer span, or run a job:</Empty>;
  }
  return <HeatMap label={`${measures[measure]} in the last ${props.shown === "1 h" ? "hour" : props.shown}`} {...table} />;
}

// times is the mean time of each round, and how much of it the party waited or computed.
function times(past: Past, series: Series[]) {
  const part = (name: string, protocol: string, round: string) => {
    const s = series.find((c) => c.name === name && c.labels.protocol === protocol && c.labels.round === round);
    return s ? growth(past.series[s.key]) : 0;
  };
  const columns = ["mean", "computing", "waiting", "in total"];
  const rows = roundsOf(series.filter((s) => s.name === "lodge_round_duration_seconds_sum")).map(([protocol, round]) => {
    const ran = part("lodge_round_duration_seconds_count", protocol, round);
    const all = part("lodge_round_duration_seconds_sum", protocol, round);
    const computed = part("lodge_round_compute_seconds_sum", protocol, round);
    const cell = (value: number): Cell => ({ value, text: value > 0 ? span(value) : "" });
    return { group: protocol, name: round, cells: ran > 0 ? [cell(all / ran), cell(computed / ran), cell(Math.max(0, all - computed) / ran), cell(all)] : [cell(0), cell(0), cell(0), cell(0)] };
  });
  return { columns, rows: rows.filter((r) => r.cells.some((c) => c.value > 0)) };
}

function History(props: { past: Past; series: Series[]; shown: string }) {
  const { past, series } = props;
  const trips = [...new Set(series.filter((s) => s.name === "lodge_peer_round_trip_seconds_sum").map((s) => s.labels.peer ?? ""))].sort();
  const counted = series.filter((s) => s.name === "lodge_peer_bytes_total");
  const peers = [...new Set(counted.map((s) => s.labels.peer ?? ""))].sort();
  const flow = (peer: string, direction: string) =>
    add(...counted.filter((s) => s.labels.peer === peer && s.labels.direction === direction).map((s) => rates(past.series[s.key], past.step)));
  if (trips.length === 0) return null;
  const perSecond = (n: number) => `${bytes(n)}/s`;
  return (
    <Section title={`The last ${props.shown === "1 h" ? "hour" : props.shown}`}>
      <div class="charts">
        <Chart
          title="Round trip" unit={span} end={past.end} step={past.step}
          lines={trips.map((peer, i) => ({ label: peer, color: i, values: means(past.series[`lodge_peer_round_trip_seconds_sum{peer="${peer}"}`], past.series[`lodge_peer_round_trip_seconds_count{peer="${peer}"}`]) }))}
        />
        {peers.length > 0 && (
          <>
            <Chart title="Sent" unit={perSecond} end={past.end} step={past.step} lines={peers.map((peer, i) => ({ label: peer, color: Math.max(i, trips.indexOf(peer)), values: flow(peer, "sent") }))} />
            <Chart title="Received" unit={perSecond} end={past.end} step={past.step} lines={peers.map((peer, i) => ({ label: peer, color: Math.max(i, trips.indexOf(peer)), values: flow(peer, "received") }))} />
          </>
        )}
      </div>
    </Section>
  );
}
