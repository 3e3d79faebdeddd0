// Stock as one party holds it: its batches by class, and the reservations that it recorded.
import { tuplesService } from "../api";
import { bytes, count, plural, unix } from "../format";
import { BatchState, type Batch, type Reservation } from "../gen/lodge/tuples/v1/tuples_pb";
import { useLive } from "../live";
import { Empty, Page, Section } from "../parts/page";
import { At, State, type Tone } from "../parts/state";
import { Table } from "../parts/table";
import { classKey, classWords } from "../words";
import { useWorld } from "../app";
import { ReservationTable } from "./stock";

// pageLimit bounds how many pages of a list the page reads.
const pageLimit = 20;

// useBatches follows the batches that are not used up.
export function useBatches() {
  return useLive<{ batches: Batch[]; cut: boolean }>("batches", async (signal, emit) => {
    const batches: Batch[] = [];
    let after = "";
    for (let i = 0; i < pageLimit; i++) {
      const page = await tuplesService.listBatches({ states: [BatchState.LOCKED, BatchState.AVAILABLE], after, limit: 200 }, { signal });
      batches.push(...page.batches);
      after = page.next;
      if (!after) break;
    }
    emit({ batches, cut: after !== "" });
  }, 5000);
}

interface Sum {
  key: string;
  first: Batch;
  batches: number;
  free: bigint;
  locked: bigint;
  stranded: bigint;
  erased: bigint;
  held: bigint;
  newest?: number;
}

// sums adds the batches of each class and epoch.
function sums(batches: Batch[]): Sum[] {
  const by = new Map<string, Sum>();
  for (const b of batches) {
    const key = classKey(b.class, b.epoch);
    const s = by.get(key) ?? { key, first: b, batches: 0, free: 0n, locked: 0n, stranded: 0n, erased: 0n, held: 0n };
    by.set(key, s);
    s.batches++;
    s.free += b.free.reduce((n, span) => n + span.count, 0n);
    if (b.state === BatchState.LOCKED) s.locked += b.count;
    if (b.stranded) s.stranded += b.count - b.erased;
    s.erased += b.erased;
    s.held += (b.count - b.erased) * b.tupleBytes;
    s.newest = Math.max(s.newest ?? 0, unix(b.created) ?? 0);
  }
  return [...by.values()].sort((a, b) => a.key.localeCompare(b.key));
}

export function PartyStock() {
  const { session, status } = useWorld();
  const live = useBatches();
  const reserved = useLive<Reservation[]>("own reservations", async (signal, emit) => {
    emit((await tuplesService.listReservations({ states: [1], limit: 200 }, { signal })).reservations);
  }, 5000);
  const rows = sums(live.value?.batches ?? []);
  const quarantine = status.value?.store?.quarantine;
  const total = rows.reduce((n, r) => n + r.held, 0n);
  const tone: Tone = quarantine ? "bad" : rows.length ? "good" : "quiet";
  const name = session.process.name;
  const text = quarantine
    ? "This party neither stores nor delivers tuples: its store is in quarantine."
    : rows.length ? `This party holds shares of ${plural(rows.length, "class", "classes")} of tuples, ${bytes(total)}.` : "This party holds no tuples.";
  return (
    <Page
      title="Stock" verdict={text} tone={live.value ? tone : "quiet"}
      aside="Rates, watermarks and forecasts belong to the coordinator: its console shows them."
      live={live} terminal={[`lodge batches list --party ${name}`, `lodge reservations list --party ${name}`]}
    >
      <Section title="Held here" note={live.value?.cut ? "the first batches; the terminal lists all" : "batches that are not used up"}>
        {live.value && rows.length === 0 ? (
          <Empty command="lodge stock policies set --kind scalar --low 100000 --high 500000 --batch 60000">No batch has been made, or all are used up. A policy at the coordinator keeps tuples in stock:</Empty>
        ) : (
          <Table
            caption="Tuples held by this party"
            rows={rows}
            id={(r) => r.key}
            columns={[
              { head: "Tuples", cell: (r) => classWords(r.first.class).kind },
              { head: "Of", cell: (r) => <span class="soft">{[classWords(r.first.class).rest, r.first.class?.params].filter(Boolean).join(" · ")}</span> },
              { head: "Tenant", cell: (r) => r.first.class?.tenant || "–" },
              { head: "Epoch", num: true, cell: (r) => String(r.first.epoch) },
              { head: "Batches", num: true, cell: (r) => count(r.batches) },
              { head: "Free", num: true, cell: (r) => <b>{count(r.free)}</b> },
              { head: "Not active yet", num: true, cell: (r) => count(r.locked) },
              { head: "Stranded", num: true, cell: (r) => (r.stranded > 0n ? <State tone="warn">{count(r.stranded)}</State> : "0") },
              { head: "Size", num: true, cell: (r) => bytes(r.held) },
              { head: "Newest", cell: (r) => <At at={r.newest} /> },
            ]}
          />
        )}
      </Section>
      <Section title="Reservations" note="recorded here and not delivered">
        {reserved.value?.length === 0 ? (
          <Empty command="lodge reserve --kind scalar --field p128 --count 1000 --wait">No reservation is open at this party. A client reserves tuples with:</Empty>
        ) : (
          <ReservationTable rows={reserved.value ?? []} />
        )}
      </Section>
    </Page>
  );
}
