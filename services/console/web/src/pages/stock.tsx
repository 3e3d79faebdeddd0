// Stock: levels between their watermarks, rates, and who has reserved what until when.
import { useMemo } from "preact/hooks";
import { useWorld } from "../app";
import { stockService } from "../api";
import { brief, count, list, plural, rate, seconds, sentence, span, unix } from "../format";
import { Kind } from "../gen/lodge/job/v1/job_pb";
import type { AwayParty, Stock } from "../gen/lodge/stock/v1/stock_pb";
import { ReservationState, type Reservation } from "../gen/lodge/tuples/v1/tuples_pb";
import { usePast, useSeries } from "../history";
import { useLive, useNow } from "../live";
import { Chart } from "../parts/chart";
import { Choice, Empty, Page, Section } from "../parts/page";
import { Ago, At, Left, Meter, State, type Tone } from "../parts/state";
import { Table } from "../parts/table";
import { usePlace, withQuery } from "../router";
import { classKey, classWords } from "../words";
import { PartyStock } from "./partystock";

export function StockPage() {
  const { session } = useWorld();
  return session.process.role === "party" ? <PartyStock /> : <ClusterStock />;
}

interface Level {
  stock: Stock[];
  asOf?: number;
  away: AwayParty[];
}

const keyOf = (s: Stock) => classKey(s.class, s.epoch);

function toneOf(s: Stock): Tone {
  const empty = seconds(s.timeToEmpty);
  if (s.heldBack) return "warn";
  if (s.policy && s.available === 0n) return "bad";
  if (empty !== undefined && empty < 600) return "bad";
  if (s.policy && !s.policy.paused && s.available < s.policy.low) return s.inProduction > 0n ? "busy" : "warn";
  return "good";
}

function nameOf(s: Stock): string {
  const words = classWords(s.class);
  return `${words.kind}${words.rest ? ` ${words.rest}` : ""}`;
}

function verdict(level: Level): { tone: Tone; text: string; more: string } {
  const { stock, away, asOf } = level;
  const held = stock.filter((s) => s.heldBack);
  const soon = stock.filter((s) => s.timeToEmpty).sort((a, b) => seconds(a.timeToEmpty)! - seconds(b.timeToEmpty)!)[0];
  const more = [
    soon ? `The class is ${[classWords(soon.class).rest, soon.class?.params].filter(Boolean).join(" · ")}.` : "",
    held.length ? `${plural(held.length, "policy is", "policies are")} held back: ${held[0]!.heldBack}.` : "",
  ].filter(Boolean).join(" ");
  if (away.length > 0) return { tone: "bad", text: `Nothing can be reserved while ${list(away.map((a) => a.name))} ${away.length > 1 ? "are" : "is"} away.`, more };
  if (asOf === undefined) return { tone: "quiet", text: "Not all parties have reported their stock yet.", more };
  if (soon) {
    const left = seconds(soon.timeToEmpty)!;
    return { tone: left < 600 ? "bad" : left < 3600 ? "warn" : "good", text: `${sentence(classWords(soon.class).kind)} run out in ${span(Math.round(left))} at this rate.`, more };
  }
  const low = stock.filter((s) => s.policy && s.available < s.policy.low);
  if (low.length > 0) return { tone: low.some((s) => s.inProduction === 0n) ? "warn" : "busy", text: `${plural(low.length, "class is", "classes are")} below the low watermark.`, more };
  if (stock.length === 0) return { tone: "quiet", text: "There is no stock.", more: "" };
  return { tone: "good", text: "Every stock is above its low watermark.", more };
}

function ClusterStock() {
  const place = usePlace();
  const live = useLive<Level>("stock", async (signal, emit) => {
    for await (const m of stockService.watchStock({}, { signal })) emit({ stock: m.stock, asOf: unix(m.asOf), away: m.away });
  });
  const level = live.value;
  const say = level ? verdict(level) : { tone: "quiet" as Tone, text: "Waiting for the stock.", more: "" };
  const chosen = level?.stock.find((s) => keyOf(s) === place.query.get("class"));
  const stock = level?.stock ?? [];
  return (
    <Page title="Stock" verdict={say.text} tone={say.tone} aside={say.more} live={live} terminal={["lodge stock --watch", "lodge reservations list --open"]}>
      {level && stock.length === 0 ? (
        <Empty command="lodge stock policies set --kind scalar --low 100000 --high 500000 --batch 60000">Set a policy, and the coordinator keeps tuples in stock:</Empty>
      ) : (
        <Section title="Levels" note={level?.asOf ? <>as all parties reported <Ago at={level.asOf} /></> : undefined}>
          <Table
            caption="Levels of stock"
            rows={stock}
            id={keyOf}
            tone={(s) => (chosen === s ? "row-on" : undefined)}
            columns={[
              { head: "Tuples", cell: (s) => <a href={withQuery({ class: keyOf(s) })} aria-current={chosen === s ? "true" : undefined}>{classWords(s.class).kind}</a> },
              { head: "Of", cell: (s) => <span class="soft">{[classWords(s.class).rest, s.class?.params, `epoch ${String(s.epoch)}`].filter(Boolean).join(" · ")}</span> },
              { head: "Tenant", cell: (s) => s.class?.tenant || "–" },
              { head: "Level", cell: (s) => <Gauge s={s} /> },
              { head: "Available", num: true, cell: (s) => <b>{count(s.available)}</b> },
              { head: "Reserved", num: true, cell: (s) => count(s.reserved) },
              { head: "Making", num: true, cell: (s) => count(s.inProduction) },
              { head: "Rate in", num: true, cell: (s) => rate(s.madePerSecond) },
              { head: "Rate out", num: true, cell: (s) => rate(s.reservedPerSecond) },
              {
                head: "Empty or full",
                cell: (s) =>
                  s.timeToEmpty ? <State tone={toneOf(s)}>empty in {span(Math.round(seconds(s.timeToEmpty)!))}</State>
                    : s.timeToFull && seconds(s.timeToFull)! >= 1 ? <State tone="busy">full in {span(Math.round(seconds(s.timeToFull)!))}</State>
                  : <State tone={toneOf(s)}>{s.available === 0n ? "empty" : "steady"}</State>,
              },
              {
                head: "Watermarks",
                cell: (s) => s.heldBack ? <span title={s.heldBack}><State tone="warn">held back</State></span> : !s.policy ? "none" : s.policy.paused ? "paused" : <span class="soft">{brief(Number(s.policy.low))}–{brief(Number(s.policy.high))}</span>,
              },
            ]}
          />
        </Section>
      )}
      <History chosen={chosen} stock={stock} />
      <Reservations />
    </Page>
  );
}

// Gauge is the level of a stock between its watermarks.
function Gauge(props: { s: Stock }) {
  const { s } = props;
  const [available, reserved, making] = [Number(s.available), Number(s.reserved), Number(s.inProduction)];
  const high = Number(s.policy?.high ?? 0n);
  const whole = Math.max(1, high * 1.1, available + reserved + making);
  const marks = s.policy ? [Number(s.policy.low) / whole, high / whole] : [];
  const label = `${count(s.available)} available, ${count(s.reserved)} reserved, ${count(s.inProduction)} in production${s.policy ? `, watermarks ${count(s.policy.low)} and ${count(s.policy.high)}` : ""}`;
  return (
    <Meter
      label={label}
      marks={marks}
      parts={[
        { share: available / whole, kind: `fill ${toneOf(s)}` },
        { share: reserved / whole, kind: "reserved" },
        { share: making / whole, kind: "making" },
      ]}
    />
  );
}

const spans: Record<string, number> = { "1 h": 3600, "6 h": 21600, "24 h": 86400, "7 d": 604800 };

// History shows the last hour of a class, or of the classes that move; with Prometheus it goes further back.
function History(props: { chosen?: Stock; stock: Stock[] }) {
  const { session } = useWorld();
  const place = usePlace();
  const all = useSeries();
  const shown = session.prometheus ? (place.query.get("span") ?? "1 h") : "1 h";
  const { chosen } = props;
  const wanted = useMemo(() => {
    const levels = all.filter((s) => s.name === "lodge_stock_tuples" && s.labels.state === "available");
    const c = chosen?.class;
    if (!c) return levels.slice(0, 12);
    const kind = Kind[c.kind].toLowerCase();
    return all.filter((s) => s.name === "lodge_stock_tuples" && s.labels.kind === kind && s.labels.field === c.field && s.labels.params === c.params && ["available", "reserved", "in_production"].includes(s.labels.state ?? ""));
  }, [all, chosen && keyOf(chosen)]);
  const past = usePast(wanted, spans[shown] ?? 3600).value;
  if (!past || wanted.length === 0) return null;
  const charts = chosen ? [{ title: "Tuples by state", series: wanted }] : wanted.map((s) => ({ title: [s.labels.kind, s.labels.field, s.labels.tenant].filter(Boolean).join(" · "), series: [s] }));
  return (
    <Section
      title={chosen ? `History of ${nameOf(chosen)}` : "History"}
      note={chosen ? undefined : "choose a class above for more"}
      tools={
        <>
          {chosen && <a href={withQuery({ class: undefined })}>All classes</a>}
          {session.prometheus && <Choice label="Span" options={Object.keys(spans).map((t) => ({ text: t, href: withQuery({ span: t === "1 h" ? undefined : t }), on: t === shown }))} />}
        </>
      }
    >
      <div class={chosen ? undefined : "charts small"}>
        {charts.map((c, i) => (
          <Chart key={c.title} title={c.title} end={past.end} step={past.step} unit={brief} height={chosen ? 180 : 110}
            lines={c.series.map((s, j) => ({ label: (s.labels.state ?? "").replace("_", " "), color: chosen ? j : i, values: past.series[s.key] ?? [] }))}
            limit={chosen?.policy ? { value: Number(chosen.policy.low), label: "low watermark" } : undefined}
          />
        ))}
      </div>
    </Section>
  );
}

// Words for the states of a reservation.
export const reservationWords: Record<ReservationState, [string, Tone]> = {
  [ReservationState.UNSPECIFIED]: ["unknown", "quiet"], [ReservationState.RESERVED]: ["reserved", "busy"],
  [ReservationState.CONSUMED]: ["delivered", "good"], [ReservationState.WITHDRAWN]: ["withdrawn", "quiet"],
  [ReservationState.RELEASED]: ["released", "quiet"], [ReservationState.ERASED]: ["erased", "quiet"],
};

function Reservations() {
  const place = usePlace();
  const open = place.query.get("reservations") !== "all";
  const live = useLive<Reservation[]>(`reservations ${open}`, async (signal, emit) => {
    emit((await stockService.listReservations({ open, limit: 100 }, { signal })).reservations);
  }, 3000);
  return (
    <Section
      title="Reservations"
      note="by tenant and lease"
      tools={<Choice label="Reservations" options={[{ text: "Open", href: withQuery({ reservations: undefined }), on: open }, { text: "All", href: withQuery({ reservations: "all" }), on: !open }]} />}
    >
      {live.value?.length === 0 ? (
        <Empty command="lodge reserve --kind scalar --field p128 --count 1000 --wait">No reservation is {open ? "open" : "known"}. A client reserves tuples with:</Empty>
      ) : (
        <ReservationTable rows={live.value ?? []} />
      )}
    </Section>
  );
}

// ReservationTable lists reservations, those of one tenant together and the first lease to end first.
export function ReservationTable(props: { rows: Reservation[] }) {
  const now = useNow();
  const rows = [...props.rows].sort((a, b) => (a.class?.tenant ?? "").localeCompare(b.class?.tenant ?? "") || (unix(a.lease) ?? 0) - (unix(b.lease) ?? 0));
  return (
    <Table
      caption="Reservations"
      rows={rows}
      id={(r) => r.id}
      columns={[
        { head: "Id", cell: (r) => <code>{r.id}</code> },
        { head: "Tenant", cell: (r) => r.class?.tenant || "–" },
        { head: "Tuples", cell: (r) => <>{count(r.count)} {classWords(r.class).kind} <span class="soft">{classWords(r.class).rest}</span></> },
        { head: "State", cell: (r) => { const [text, tone] = reservationWords[r.state]; return <State tone={tone}>{text}</State>; } },
        { head: "Made by", cell: (r) => r.owner || "–" },
        { head: "For", cell: (r) => (r.client || list([...new Set(r.clients)]) || <span class="soft">any client</span>) },
        { head: "Lease", cell: (r) => { const end = unix(r.lease); return end !== undefined && end < now ? <>ended <At at={end} /></> : <><Left at={end} /> left</>; } },
      ]}
    />
  );
}
