// This process: its store, memory, disks, evaluators and pins.
import { useMemo } from "preact/hooks";
import { useWorld } from "../app";
import { brief, bytes, count, hex, list, plural, unix } from "../format";
import type { GetStatusResponse, LinearDistance } from "../gen/lodge/status/v1/status_pb";
import { add, growth, latest, rates, usePast, useSeries } from "../history";
import { Chart } from "../parts/chart";
import { Empty, Facts, Page, Section } from "../parts/page";
import { Ago, At, Left, Meter, State, type Tone } from "../parts/state";
import { Table } from "../parts/table";

function verdict(s: GetStatusResponse, party: boolean): { tone: Tone; text: string } {
  const name = party ? s.name : `The ${s.name}`;
  const low = s.volumes.filter((v) => v.low);
  if (s.store?.fault) return { tone: "bad", text: `The store cannot be written: ${s.store.fault}.` };
  if (s.store?.quarantine) return { tone: "bad", text: "The store is in quarantine." };
  if (low.length > 0) return { tone: "bad", text: `New work is refused: too little space on ${list(low.map((v) => v.name))}.` };
  if (!s.ready) return { tone: "warn", text: `${name} is not ready.` };
  if (s.maxMemoryBytes > 0n && s.rssBytes * 10n > s.maxMemoryBytes * 9n) return { tone: "warn", text: "Memory is nearly used up." };
  return { tone: "good", text: s.activeSessions > 0 ? `${name} is well and runs ${plural(s.activeSessions, "session")}.` : `${name} is well and idle.` };
}

export function ProcessPage() {
  const { session, status } = useWorld();
  const s = status.value;
  const party = session.process.role === "party";
  const title = party ? "This party" : "This process";
  const terminal = ["lodge status", ...(party ? ["lodge store stats --config party.yaml", "lodge store check --config party.yaml"] : []), "lodge log-level"];
  if (!s) {
    return (
      <Page title={title} verdict="Waiting for the status of the process." tone="quiet" live={status} terminal={terminal}>
        {null}
      </Page>
    );
  }
  const say = verdict(s, party);
  return (
    <Page title={title} verdict={say.text} tone={say.tone} live={status} terminal={terminal} aside={<>Up for <Ago at={unix(s.started)} suffix="" />, version {s.version}, protocol {s.protocolVersion}.</>}>
      <div class="pair">
        <Section title="Memory">
          <Memory s={s} />
        </Section>
        <Section title={party ? "Store" : "Identity"}>
          {s.store && (
            <Facts
              items={[
                ["Kind", s.store.postgres ? "PostgreSQL" : "embedded"],
                ["State", s.store.fault ? <State tone="bad">{s.store.fault}</State> : s.store.quarantine ? <State tone="bad">{s.store.quarantine}</State> : <State tone="good">stores and delivers</State>],
                ["Id", <code title={hex(s.store.id)}>{hex(s.store.id, 8)}</code>],
                ["Generation", count(s.store.generation)],
              ]}
            />
          )}
          <Facts
            items={[
              ["Certificate", <><At at={unix(s.certificateNotAfter)} />, <Left at={unix(s.certificateNotAfter)} over="expired" /> left</>],
              ["Roster", <code title={hex(s.rosterHash)}>{hex(s.rosterHash, 8)}</code>],
              ["Log level", s.logLevel ? <>{s.logLevel.level}{s.logLevel.until && <> for <Left at={unix(s.logLevel.until)} /></>}</> : "–"],
            ]}
          />
        </Section>
      </div>
      <Section title="Disks" note="below the minimum the process refuses new work">
        {s.volumes.length === 0 ? (
          <Empty>This identity does not see the disks. Add the permission “status” to this client.</Empty>
        ) : (
          <Table
            caption="Disks"
            rows={s.volumes}
            id={(v) => v.name}
            columns={[
              { head: "Volume", cell: (v) => v.name },
              { head: "State", cell: (v) => (v.low ? <State tone="bad">low</State> : <State tone="good">enough</State>) },
              {
                head: "Use",
                cell: (v) => (
                  <Meter
                    label={`${bytes(v.totalBytes - v.freeBytes)} of ${bytes(v.totalBytes)} used`}
                    parts={[{ share: Number(v.totalBytes - v.freeBytes) / Math.max(1, Number(v.totalBytes)), kind: v.low ? "fill bad" : "fill" }]}
                    marks={[1 - Number(v.minFreeBytes) / Math.max(1, Number(v.totalBytes))]}
                  />
                ),
              },
              { head: "Free", num: true, cell: (v) => bytes(v.freeBytes) },
              { head: "Total", num: true, cell: (v) => bytes(v.totalBytes) },
              { head: "Minimum free", num: true, cell: (v) => bytes(v.minFreeBytes) },
            ]}
          />
        )}
      </Section>
      {party && <Evaluators />}
      <Load party={party} />
      {s.linear.length > 0 && <Distances rows={s.linear} />}
      <Section title="Pinned parameters" note="equal at all parties, or they refuse each other">
        {s.params.length === 0 ? (
          <Empty command="lodge params list">No parameter set is pinned. Choose one and pin it in the configuration:</Empty>
        ) : (
          <Facts items={s.params.map((p) => [p.name, <code title={hex(p.hash)}>{hex(p.hash, 8)}</code>])} />
        )}
      </Section>
    </Page>
  );
}

function Memory(props: { s: GetStatusResponse }) {
  const { s } = props;
  const whole = Math.max(1, Number(s.maxMemoryBytes || s.peakRssBytes));
  const share = Number(s.rssBytes) / whole;
  return (
    <>
      <Meter label={`${bytes(s.rssBytes)} in use`} parts={[{ share, kind: share > 0.9 ? "fill warn" : "fill" }]} marks={[Math.min(1, Number(s.peakRssBytes) / whole)]} />
      <Facts
        items={[
          ["In use", bytes(s.rssBytes)],
          ["Peak", bytes(s.peakRssBytes)],
          ["Limit of all sessions", s.maxMemoryBytes ? bytes(s.maxMemoryBytes) : "none"],
          ["Running sessions", String(s.activeSessions)],
        ]}
      />
    </>
  );
}

// Evaluators shows the processes that compute for this party.
function Evaluators() {
  const all = useSeries();
  const wanted = useMemo(() => all.filter((x) => x.name.startsWith("lodge_evaluator_") && !x.name.includes("_bucket")), [all]);
  const past = usePast(wanted, 3600).value;
  const names = [...new Set(wanted.filter((x) => x.name === "lodge_evaluator_up").map((x) => x.labels.evaluator ?? ""))].sort();
  const at = (name: string, evaluator: string, more: (l: Record<string, string>) => boolean = () => true) =>
    wanted.filter((x) => x.name === name && x.labels.evaluator === evaluator && more(x.labels));
  const now = (name: string, evaluator: string) => latest(past?.series[at(name, evaluator)[0]?.key ?? ""]) ?? 0;
  const grew = (name: string, evaluator: string, more?: (l: Record<string, string>) => boolean) => at(name, evaluator, more).reduce((n, x) => n + growth(past?.series[x.key]), 0);
  return (
    <Section title="Evaluators" note="processes without secrets that compute products for this party">
      {names.length === 0 ? (
        <Empty command="lodge evaluator --config evaluator.yaml">This party computes everything itself. To spread the work, start evaluators:</Empty>
      ) : (
        <Table
          caption="Evaluators"
          rows={names}
          id={(n) => n}
          columns={[
            { head: "Evaluator", cell: (n) => <span class="name">{n}</span> },
            {
              head: "State",
              cell: (n) => (now("lodge_evaluator_excluded", n) ? <State tone="bad">excluded: it was wrong</State> : now("lodge_evaluator_up", n) ? <State tone="good">{plural(now("lodge_evaluator_up", n), "address", "addresses")} up</State> : <State tone="bad">down</State>),
            },
            { head: "Requests in the last hour", num: true, cell: (n) => count(Math.round(grew("lodge_evaluator_requests_total", n))) },
            { head: "Not completed", num: true, cell: (n) => count(Math.round(grew("lodge_evaluator_requests_total", n, (l) => l.outcome !== "ok"))) },
            { head: "Wrong results", num: true, cell: (n) => count(Math.round(grew("lodge_evaluator_mismatches_total", n))) },
            { head: "Bytes", num: true, cell: (n) => bytes(grew("lodge_evaluator_bytes_total", n)) },
          ]}
        />
      )}
    </Section>
  );
}

// Load shows memory, processor and calls over the last hour, as far as the process keeps them.
function Load(props: { party: boolean }) {
  const all = useSeries();
  const wanted = useMemo(
    () => all.filter((x) => ["process_resident_memory_bytes", "process_cpu_seconds_total", "go_goroutines", "lodge_store_bytes"].includes(x.name) || x.name === "lodge_rpc_duration_seconds_count"),
    [all],
  );
  const past = usePast(wanted, 3600).value;
  if (!past || wanted.length === 0) return null;
  const values = (name: string) => past.series[name];
  const calls = wanted.filter((x) => x.name === "lodge_rpc_duration_seconds_count");
  const by = (ok: boolean) => add(...calls.filter((x) => (x.labels.code === "ok" || x.labels.code === "OK") === ok).map((x) => rates(past.series[x.key], past.step)));
  const common = { end: past.end, step: past.step };
  return (
    <Section title="The last hour">
      <div class="charts small">
        {values("process_resident_memory_bytes") && <Chart title="Memory" lines={[{ label: "in use", color: 0, values: values("process_resident_memory_bytes")! }]} unit={bytes} {...common} />}
        {values("process_cpu_seconds_total") && <Chart title="Processor" lines={[{ label: "cores in use", color: 1, values: rates(values("process_cpu_seconds_total"), past.step) }]} unit={brief} {...common} />}
        {calls.length > 0 && (
          <Chart title="Calls" unit={(n) => `${brief(n)} /s`} {...common}
            lines={[{ label: "answered", color: 0, values: by(true) }, { label: "with an error", color: 3, values: by(false) }]} />
        )}
        {props.party && values("lodge_store_bytes") && <Chart title="Store" lines={[{ label: "size", color: 2, values: values("lodge_store_bytes")! }]} unit={bytes} {...common} />}
      </div>
    </Section>
  );
}

function Distances(props: { rows: LinearDistance[] }) {
  return (
    <Section title="Statistical distance of products on shares" note="what pairs of clients have spent of their budgets">
      <Table
        caption="Statistical distance"
        rows={props.rows}
        id={(d) => `${d.client}/${d.with}`}
        columns={[
          { head: "Key of", cell: (d) => d.client },
          { head: "Matrices of", cell: (d) => d.with },
          { head: "Products", num: true, cell: (d) => count(d.products) },
          { head: "Spent", num: true, cell: (d) => (d.products ? <>2<sup>{d.logSpent.toFixed(1)}</sup></> : "0") },
          { head: "Budget", num: true, cell: (d) => <>2<sup>{d.logBudget.toFixed(1)}</sup></> },
          { head: "State", cell: (d) => (d.lost ? <State tone="bad">unknown since a restore</State> : d.logSpent >= d.logBudget ? <State tone="bad">used up</State> : <State tone="good">left</State>) },
        ]}
      />
    </Section>
  );
}
