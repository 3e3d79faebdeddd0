// Audit: the party's log, verified as it is read, and searchable.
import { useEffect, useState } from "preact/hooks";
import { may, useWorld } from "../app";
import { statusService } from "../api";
import { count, hex, plural, unix } from "../format";
import type { AuditEntry } from "../gen/lodge/status/v1/status_pb";
import { useLive } from "../live";
import { Empty, Page, Section } from "../parts/page";
import { At, State, type Tone } from "../parts/state";
import { Table } from "../parts/table";
import { go, usePlace, withQuery } from "../router";

// Groups of events that people look for together.
const groups: Record<string, string[]> = {
  reservations: ["reserved", "released", "expired"],
  deliveries: ["delivered", "replayed", "exported", "decrypted", "approved", "multiplied"],
  keys: ["mac_key_drawn", "mac_key_burnt", "mac_key_retired", "mac_check_failed", "epoch_drained", "epoch_retired", "multikey_made", "multikey_retired", "revoked"],
  conduct: ["accused", "pardoned", "unnamed", "stopped", "cleared", "quarantined", "evaluator_excluded"],
  policy: ["policy_set", "refused"],
};

export function AuditPage() {
  const { session } = useWorld();
  return session.process.role === "party" ? <Log /> : <NoLog />;
}

function NoLog() {
  return (
    <Page title="Audit" verdict="The coordinator keeps no audit log." tone="quiet" aside="Every party keeps its own, because no party trusts another’s." terminal={["lodge audit verify PATH", "lodge audit show PATH --tail 50"]}>
      <Section title="Entries">
        <Empty>Open this page in the console of a party to read and search its log.</Empty>
      </Section>
    </Page>
  );
}

function Log() {
  const { session, status } = useWorld();
  const place = usePlace();
  const text = place.query.get("q") ?? "";
  const group = place.query.get("events") ?? "";
  const before = place.query.get("before") ?? "";
  const head = status.value?.audit;
  const allowed = may(session, "operate");
  const live = useLive<{ entries: AuditEntry[]; next: bigint }>(allowed ? `audit ${before} ${text} ${group}` : undefined, async (signal, emit) => {
    const at = /^\d+$/.test(before) ? BigInt(before) : 0n;
    const { entries, next } = await statusService.listAuditEntries({ before: at, limit: 100, contains: text, events: groups[group] ?? [] }, { signal });
    emit({ entries, next });
  }, before ? 30_000 : 3000);
  const entries = live.value?.entries ?? [];
  const broken = live.problem?.code === "check_failed" || links(entries) < 0;
  const say: [Tone, string] = head?.fault ? ["bad", `The log cannot be extended: ${head.fault}.`]
    : broken ? ["bad", "The log was changed: its hash chain is broken."]
    : !allowed ? ["quiet", "This identity may not read the log."]
    : !live.value ? ["quiet", "Waiting for the log."]
    : head?.sequence === 0n ? ["quiet", "The log is empty."]
    : ["good", `The hash chain holds: ${plural(entries.length, "entry", "entries")} read here, ${head ? count(head.sequence) : "–"} in the log.`];
  return (
    <Page
      title="Audit" verdict={say[1]} tone={say[0]} live={live}
      aside={head && head.sequence > 0n ? <>It ends in <code title={hex(head.hash)}>{hex(head.hash, 16)}…</code>. Note the hash elsewhere: it proves every earlier entry.</> : undefined}
      terminal={[`lodge audit show PATH --tail 50`, `lodge audit verify PATH${head && head.sequence > 0n ? ` --head ${hex(head.hash)}` : ""}`]}
    >
      <Section title="Entries" note="newest first" tools={allowed && <Search text={text} group={group} />}>
        {!allowed ? (
          <Empty>Add the permission “operate” to this client in the configuration of the party to read its log here.</Empty>
        ) : live.value && entries.length === 0 ? (
          text || group || before ? <Empty>No entry matches. <a href="/audit">Show all entries</a></Empty> : <Empty command="lodge reserve --kind scalar --field p128 --count 1000 --wait">The log records reservations, deliveries, and what happens to keys. The first reservation makes the first entry:</Empty>
        ) : (
          <Entries rows={entries} />
        )}
        <p class="more">
          {before && <a href={withQuery({ before: undefined })}>Newest</a>}
          {live.value && live.value.next > 0n && <a href={withQuery({ before: String(live.value.next) })}>Older</a>}
        </p>
      </Section>
    </Page>
  );
}

// links counts the neighbours whose hashes this page compared, and returns -1 if one does not match. The party has
// verified each entry's own hash.
function links(entries: AuditEntry[]): number {
  let n = 0;
  for (let i = 0; i + 1 < entries.length; i++) {
    const [newer, older] = [entries[i]!, entries[i + 1]!];
    if (newer.sequence !== older.sequence + 1n) continue;
    if (hex(newer.previous) !== hex(older.hash)) return -1;
    n++;
  }
  return n;
}

function Search(props: { text: string; group: string }) {
  const [text, setText] = useState(props.text);
  useEffect(() => setText(props.text), [props.text]);
  return (
    <form
      class="search"
      role="search"
      onSubmit={(e) => {
        e.preventDefault();
        go(withQuery({ q: text.trim(), before: undefined }));
      }}
    >
      <label>
        <span class="unseen">Search the log</span>
        <input type="search" value={text} maxLength={128} placeholder="Client, tenant, batch…" onInput={(e) => setText(e.currentTarget.value)} />
      </label>
      <label>
        <span class="unseen">Events</span>
        <select value={props.group} onChange={(e) => go(withQuery({ events: e.currentTarget.value, before: undefined }))}>
          <option value="">All events</option>
          {Object.keys(groups).map((g) => (
            <option key={g} value={g}>
              {g.charAt(0).toUpperCase() + g.slice(1)}
            </option>
          ))}
        </select>
      </label>
      <button type="submit">Search</button>
    </form>
  );
}

function eventTone(event: string): Tone {
  if (/burnt|failed|accused|quarantined|excluded|stopped|torn/.test(event)) return "bad";
  if (/revoked|retired|refused|drained|unnamed/.test(event)) return "warn";
  return "quiet";
}

function Entries(props: { rows: AuditEntry[] }) {
  return (
    <Table
      caption="Entries of the audit log"
      rows={props.rows}
      id={(e) => String(e.sequence)}
      columns={[
        { head: "Number", cell: (e) => <span title={`hash ${hex(e.hash)}`}>{count(e.sequence)}</span> },
        { head: "Time", cell: (e) => <At at={unix(e.time)} /> },
        { head: "Event", cell: (e) => <State tone={eventTone(e.event)}>{e.event.replaceAll("_", " ")}</State> },
        { head: "Actor", cell: (e) => <>{e.actor || "this party"} {e.auth && <span class="soft">{e.auth}</span>}</> },
        { head: "Tenant", cell: (e) => e.tenant || "–" },
        {
          head: "Objects", wide: true,
          cell: (e) => (
            <>
              {e.objects.map((o) => <code key={o}>{o} </code>)}
              {e.ranges.slice(0, 4).map((r) => <code key={r.object + String(r.first)}>{r.object} {count(r.first)}–{count(r.first + r.count - 1n)} </code>)}
              {e.ranges.length > 4 && `and ${e.ranges.length - 4} more ranges`}
            </>
          ),
        },
        { head: "Count", num: true, cell: (e) => (e.count ? count(e.count) : "–") },
        { head: "Note", wide: true, cell: (e) => e.note || "–" },
        { head: "Hash", cell: (e) => <code title={hex(e.hash)}>{hex(e.hash, 5)}</code> },
      ]}
    />
  );
}
