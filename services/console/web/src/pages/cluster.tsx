// The cluster: every process, its version, certificate and link, and what is down since when.
import { useMemo } from "preact/hooks";
import { useWorld } from "../app";
import { bytes, date, list, plural, seconds, span, unix } from "../format";
import { add, latest, means, rates, usePast, useSeries } from "../history";
import { useNow } from "../live";
import { Chart } from "../parts/chart";
import { Empty, Page, Section } from "../parts/page";
import { Ago, Name, State, type Tone } from "../parts/state";
import { Table } from "../parts/table";
import { Topology } from "../parts/topology";
import { LinkState, type GetStatusResponse, type Link } from "../gen/lodge/status/v1/status_pb";

// Row is one process of the table.
interface Row {
  name: string;
  self: boolean;
  up: boolean;
  known: boolean;
  ready: boolean;
  since?: number;
  started?: number;
  version: string;
  expires?: number;
  trip?: number;
  roster: string;
  state?: LinkState;
}

const hex = (b: Uint8Array) => Array.from(b, (x) => x.toString(16).padStart(2, "0")).join("");

function rowsOf(s: GetStatusResponse): Row[] {
  const own: Row = {
    name: s.name, self: true, up: true, known: true, ready: s.ready, since: unix(s.started), started: unix(s.started), version: s.version,
    expires: unix(s.certificateNotAfter), roster: hex(s.rosterHash),
  };
  const others = s.links.filter((l) => l.name !== s.name).map((l: Link): Row => ({
    name: l.name, self: false, up: l.reachable, known: l.since !== undefined, ready: l.ready, since: unix(l.since), started: unix(l.started),
    version: l.version, expires: unix(l.certificateNotAfter), trip: seconds(l.roundTrip), roster: hex(l.rosterHash), state: l.state,
  }));
  return [own, ...others];
}

function stateOf(r: Row): [Tone, string] {
  if (!r.known) return ["quiet", "not polled yet"];
  if (!r.up) return ["bad", "down"];
  if (!r.ready) return ["warn", "up, not ready"];
  return ["good", "ready"];
}

// verdict says in one sentence how the cluster is.
function verdict(rows: Row[], now: number): { tone: Tone; text: string; more: string } {
  const down = rows.filter((r) => r.known && !r.up);
  const versions = new Set(rows.map((r) => r.version).filter(Boolean));
  const rosters = new Set(rows.map((r) => r.roster).filter(Boolean));
  const expiring = rows.filter((r) => r.expires !== undefined).sort((a, b) => a.expires! - b.expires!)[0];
  const days = expiring ? Math.floor((expiring.expires! - now) / 86400) : undefined;
  const more = [
    versions.size > 1 ? `${versions.size} versions run: ${[...versions].join(", ")}.` : versions.size ? `Version ${[...versions][0]} everywhere.` : "",
    days !== undefined ? `The first certificate to expire is that of ${expiring!.name}, ${days < 0 ? "which has expired" : `in ${plural(days, "day")}`}.` : "",
  ].filter(Boolean).join(" ");
  if (down.length > 0) {
    const longest = Math.min(...down.map((d) => d.since ?? now));
    const verb = down.length === 1 ? "has been down" : "are down; the first has been";
    return { tone: "bad", text: `${list(down.map((d) => d.name))} ${verb} for ${span(Math.max(1, Math.floor(now - longest)))}.`, more };
  }
  if (rosters.size > 1) return { tone: "bad", text: "The processes have different rosters.", more };
  const unready = rows.filter((r) => r.known && !r.ready);
  if (unready.length > 0) return { tone: "warn", text: `${list(unready.map((r) => r.name))} ${unready.length === 1 ? "is" : "are"} not ready.`, more };
  if (days !== undefined && days < 30) return { tone: "warn", text: "Every process is up; a certificate expires soon.", more };
  if (rows.some((r) => !r.known)) return { tone: "quiet", text: "Waiting for the first poll of the parties.", more };
  return { tone: "good", text: `All ${rows.length} processes are up and ready.`, more };
}

export function ClusterPage() {
  const { session, status } = useWorld();
  const now = useNow();
  const traffic = useTraffic();
  const s = status.value;
  if (!s) {
    return (
      <Page title="Cluster" verdict="Waiting for the status of the process." tone="quiet" live={status} terminal={["lodge status"]}>
        {null}
      </Page>
    );
  }
  const rows = rowsOf(s);
  const say = verdict(rows, now);
  const detailed = s.links.length > 0;
  return (
    <Page title="Cluster" verdict={say.text} tone={say.tone} aside={say.more} live={status} terminal={["lodge status", "lodge doctor"]}>
      <div class="cluster">
        {detailed && (
          <Topology
            self={s.name}
            role={session.process.role}
            peers={rows.filter((r) => !r.self).map((r) => ({ name: r.name, up: r.up, known: r.known, trip: r.trip, flow: traffic.now[r.name] }))}
          />
        )}
        <div>
        <Section title="Processes" note={`as seen by ${s.name}`}>
          <Table
            caption="Processes"
            rows={rows}
            id={(r) => r.name}
            tone={(r) => (r.known && !r.up ? "row-bad" : undefined)}
            columns={[
              { head: "Process", cell: (r) => <Name you={r.self}>{r.name}</Name> },
              {
                head: "State",
                cell: (r) => {
                  const [tone, text] = stateOf(r);
                  return (
                    <State tone={tone}>
                      {text}
                      {r.known && <span class="soft"> for <Ago at={r.up ? (r.started ?? r.since) : r.since} suffix="" /></span>}
                    </State>
                  );
                },
              },
              { head: "Version", cell: (r) => r.version || "–" },
              { head: "Certificate", cell: (r) => <Expiry at={r.expires} now={now} /> },
              { head: "Round trip", num: true, cell: (r) => (r.self ? "" : r.up && r.trip !== undefined ? span(r.trip) : "–") },
              { head: "Traffic", num: true, cell: (r) => (r.self ? "" : traffic.now[r.name] === undefined ? "–" : `${bytes(traffic.now[r.name]!)}/s`) },
              { head: "Roster", cell: (r) => (r.roster ? <code title={r.roster}>{r.roster.slice(0, 8)}</code> : "–") },
            ]}
          />
          {!detailed && <Empty command="lodge status">This identity sees only this process. Add the permission “status” to see its links.</Empty>}
        </Section>
        <Trips traffic={traffic} />
        </div>
      </div>
    </Page>
  );
}

function Expiry(props: { at?: number; now: number }) {
  if (props.at === undefined) return <>–</>;
  const left = props.at - props.now;
  if (left < 0) return <State tone="bad">expired {date(props.at)}</State>;
  if (left < 30 * 86400) return <State tone="warn">{span(left)} left</State>;
  return <span title={`${span(left)} left`}>{date(props.at)}</span>;
}

// Traffic is the bytes per second to and from each peer, now and in the last hour.
interface Traffic {
  now: Record<string, number>;
  past: Record<string, (number | null)[]>;
  end: number;
  step: number;
}

// useTraffic returns the traffic from the process's counters.
function useTraffic(): Traffic {
  const all = useSeries();
  const wanted = useMemo(() => all.filter((s) => s.name === "lodge_peer_bytes_total"), [all]);
  const past = usePast(wanted, 3600).value;
  return useMemo(() => {
    const by: Record<string, (number | null)[][]> = {};
    for (const s of wanted) (by[s.labels.peer ?? ""] ??= []).push(rates(past?.series[s.key], past?.step ?? 5));
    const sums = Object.fromEntries(Object.entries(by).map(([peer, values]) => [peer, add(...values)]));
    const now = Object.fromEntries(Object.entries(sums).map(([peer, values]) => [peer, latest(values.slice(-3)) ?? 0]));
    return { now, past: sums, end: past?.end ?? 0, step: past?.step ?? 5 };
  }, [wanted, past]);
}

// Trips shows the history of the links.
function Trips(props: { traffic: Traffic }) {
  const all = useSeries();
  const wanted = useMemo(() => all.filter((s) => /^lodge_peer_round_trip_seconds_(sum|count)$/.test(s.name)), [all]);
  const past = usePast(wanted, 3600).value;
  const { traffic } = props;
  const peers = [...new Set(wanted.map((s) => s.labels.peer ?? ""))].sort();
  const flows = Object.keys(traffic.past).sort();
  if (!past || peers.length === 0) return null;
  const trips = peers.map((peer, i) => ({
    label: peer,
    color: i,
    values: means(past.series[`lodge_peer_round_trip_seconds_sum{peer="${peer}"}`], past.series[`lodge_peer_round_trip_seconds_count{peer="${peer}"}`]),
  }));
  return (
    <Section title="The last hour">
      <div class="charts">
        <Chart title="Round trip by party" lines={trips} end={past.end} step={past.step} unit={span} />
        {flows.length > 0 && (
          <Chart
            title="Traffic by party"
            lines={flows.map((peer, i) => ({ label: peer, color: Math.max(0, peers.indexOf(peer)) || i, values: traffic.past[peer]! }))}
            end={traffic.end}
            step={traffic.step}
            unit={(n) => `${bytes(n)}/s`}
          />
        )}
      </div>
    </Section>
  );
}
