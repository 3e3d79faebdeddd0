// The keys that one party holds: epochs, MAC keys, threshold keys and multi-key contexts.
import { useWorld } from "../app";
import { keygenService, registryService, thresholdService, tuplesService } from "../api";
import { brief, bytes, count, hex, list, plural, sentence, unix } from "../format";
import { MaskForm } from "../gen/lodge/job/v1/job_pb";
import type { Epoch } from "../gen/lodge/keygen/v1/keygen_pb";
import type { ListPublishedResponse } from "../gen/lodge/multikey/v1/registry_pb";
import type { ThresholdKey } from "../gen/lodge/threshold/v1/threshold_pb";
import { MacKeyState, type MacKey } from "../gen/lodge/tuples/v1/tuples_pb";
import { useLive } from "../live";
import { Empty, Page, Section } from "../parts/page";
import { At, Meter, State, type Tone } from "../parts/state";
import { Table } from "../parts/table";
import { purposeWord } from "../words";
import { Security, epochState } from "./keys";

const macStates: Record<MacKeyState, [string, Tone]> = {
  [MacKeyState.UNSPECIFIED]: ["unknown", "quiet"], [MacKeyState.LOCKED]: ["not active yet", "busy"], [MacKeyState.ACTIVE]: ["active", "good"],
  [MacKeyState.RETIRED]: ["retired", "quiet"], [MacKeyState.BURNT]: ["burnt", "bad"],
};

// macState is the word and the tone for the state of a MAC key.
export function macState(k: MacKey): [string, Tone] {
  return macStates[k.state];
}

// useMacKeys follows the MAC keys of this party.
export function useMacKeys(on = true) {
  return useLive<MacKey[]>(on ? "mac keys" : undefined, async (signal, emit) => {
    emit((await tuplesService.listMacKeys({}, { signal })).keys);
  }, 5000);
}

export function PartyKeys() {
  const { session, status } = useWorld();
  const name = session.process.name;
  const epochs = useLive<Epoch[]>("own epochs", async (signal, emit) => {
    emit((await keygenService.listEpochs({}, { signal })).epochs);
  }, 5000);
  const macs = useMacKeys();
  const threshold = useLive<ThresholdKey[]>("threshold keys", async (signal, emit) => {
    emit((await thresholdService.listKeys({}, { signal })).keys);
  }, 5000);
  const context = status.value?.multikeyParams;
  const multi = useLive<ListPublishedResponse>(context ? "published" : undefined, async (signal, emit) => {
    emit(await registryService.listPublished({}, { signal }));
  }, 30_000);
  const links = status.value?.links ?? [];
  const partyOf = (index: number) => (index < 0 ? "left the roster" : index === status.value?.party ? name : (links.find((l) => l.party === index)?.name ?? `party ${index}`));
  const rows = [...(epochs.value ?? [])].reverse();
  const active = rows.filter((e) => epochState(e)[0] === "active");
  const burnt = (macs.value ?? []).filter((k) => k.state === MacKeyState.BURNT);
  const spent = (threshold.value ?? []).filter((k) => k.floodingLimit > 0n && k.flooded * 10n >= k.floodingLimit * 9n);
  const say: [Tone, string] = !epochs.value ? ["quiet", "Waiting for the keys."]
    : spent.length ? ["warn", `Epoch ${String(spent[0]!.epoch)} has few decryptions left.`]
    : rows.length === 0 ? ["quiet", "This party has no keys."]
    : active.length === 0 ? ["warn", "No epoch is active at this party."]
    : ["good", `${plural(active.length, "epoch is", "epochs are")} active at this party.`];
  return (
    <Page
      title="Keys" verdict={say[1]} tone={say[0]}
      aside={burnt.length ? `${plural(burnt.length, "MAC key is", "MAC keys are")} burnt.` : undefined}
      live={epochs}
      terminal={[`lodge keys list --party ${name}`, `lodge mac-keys list --party ${name}`, ...(threshold.value?.[0] ? [`lodge keys show ${String(threshold.value[0].epoch)}`] : []), ...(context ? [`lodge mk registry list --party ${name}`] : [])]}
    >
      <Section title="Epochs" note="newest first">
        {epochs.value && rows.length === 0 ? (
          <Empty command="lodge keys generate --purpose triples --block 128 --wait">Every kind of tuple needs keys. An operator makes the first epoch:</Empty>
        ) : (
          <Table
            caption="Epochs"
            rows={rows}
            id={(e) => String(e.epoch)}
            columns={[
              { head: "Epoch", cell: (e) => <b>{String(e.epoch)}</b> },
              { head: "For", cell: (e) => purposeWord(e.purpose) },
              { head: "Parameters", cell: (e) => e.params },
              { head: "State", cell: (e) => { const [text, tone] = epochState(e); return <State tone={tone}>{text}{e.successor > 0n && `, replaced by ${String(e.successor)}`}</State>; } },
              { head: "Key generation", cell: (e) => <Security text={e.keygenSecurity} /> },
              { head: "Block", num: true, cell: (e) => (e.dim > 0 ? String(e.dim) : "–") },
              { head: "Digest", cell: (e) => <code title={hex(e.digest)}>{hex(e.digest, 6)}</code> },
              { head: "Made", cell: (e) => <At at={unix(e.created)} /> },
              { head: "Reason", wide: true, cell: (e) => e.reason || "–" },
            ]}
          />
        )}
      </Section>
      <Section title="MAC keys" note="one per tenant, field and epoch; 64 failed checks retire a key">
        {macs.value?.length === 0 ? (
          <Empty command="lodge jobs submit --kind scalar --epoch 1 --count 10000">The first batch of a tenant and field makes its MAC key:</Empty>
        ) : (
          <MacKeyTable rows={macs.value ?? []} />
        )}
      </Section>
      <Section title="Threshold keys" note="any threshold + 1 holders decrypt">
        {threshold.value?.length === 0 ? (
          <Empty command="lodge keys generate --threshold 1 --holders p0,p1,p2 --params T11-4">This party holds no share of threshold keys. An operator makes them with:</Empty>
        ) : (
          <Table
            caption="Threshold keys"
            rows={threshold.value ?? []}
            id={(k) => String(k.epoch)}
            columns={[
              { head: "Epoch", cell: (k) => <b>{String(k.epoch)}</b> },
              { head: "State", cell: (k) => <State tone={k.state === "active" ? "good" : k.state === "draining" ? "busy" : "quiet"}>{k.state}</State> },
              { head: "Parameters", cell: (k) => k.params },
              { head: "Holders", wide: true, cell: (k) => (k.anyQuorum ? `any of ${list(k.holders.map(partyOf))}` : `${k.threshold + 1} of ${list(k.holders.map(partyOf))}`) },
              { head: "Decryptions left", cell: (k) => <DecryptionsLeft k={k} /> },
              { head: "Decrypted", num: true, cell: (k) => count(k.decrypted) },
              { head: "Masks", wide: true, cell: (k) => <Masks k={k} partyOf={partyOf} /> },
              { head: "Size", num: true, cell: (k) => bytes(k.keyBytes) },
            ]}
          />
        )}
      </Section>
      <Section title="Multi-key context" note={multi.value?.params ? `${multi.value.params}, reference string ${hex(multi.value.crsDigest, 6)}` : undefined}>
        {context === "" ? (
          <Empty>The roster of this cluster has no multi-key context, so nobody makes multi-key keys. A new cluster has one with <code>lodge init lodge-cluster --multikey M11-4-128</code>.</Empty>
        ) : multi.problem ? (
          <Empty>{sentence(multi.problem.what)}. {multi.problem.next && `${sentence(multi.problem.next)}.`}</Empty>
        ) : multi.value?.keys.length === 0 ? (
          <Empty command={`lodge mk keys generate --party ${name}`}>No party has published multi-key keys. Each party makes its own:</Empty>
        ) : (
          <Table
            caption="Multi-key keys"
            rows={multi.value?.keys ?? []}
            id={(k) => `${k.owner}/${String(k.version)}`}
            columns={[
              { head: "Owner", cell: (k) => <span class="name">{k.name}</span> },
              { head: "Version", num: true, cell: (k) => String(k.version) },
              { head: "State", cell: (k) => <State tone={k.state === "current" ? "good" : "quiet"}>{k.state}</State> },
              { head: "Here", cell: (k) => (k.present ? "keys and record" : <State tone="warn">only the record</State>) },
              { head: "Name", cell: (k) => <code title={hex(k.key)}>{hex(k.key, 8)}</code> },
              { head: "Owner check", cell: (k) => (k.weakOwner ? <State tone="warn">weak: make new keys</State> : "full") },
            ]}
          />
        )}
      </Section>
    </Page>
  );
}

// MacKeyTable lists MAC keys.
export function MacKeyTable(props: { rows: MacKey[] }) {
  return (
    <Table
      caption="MAC keys"
      rows={props.rows}
      id={(k) => k.id}
      columns={[
        { head: "Id", cell: (k) => <code>{k.id}</code> },
        { head: "Tenant", cell: (k) => k.tenant || "–" },
        { head: "Field", cell: (k) => k.field },
        { head: "Epoch", num: true, cell: (k) => String(k.epoch) },
        { head: "State", cell: (k) => { const [text, tone] = macState(k); return <State tone={tone}>{text}</State>; } },
        { head: "Failed checks", num: true, cell: (k) => (k.failedChecks > 0 ? <State tone={k.failedChecks > 32 ? "bad" : "warn"}>{k.failedChecks} of 64</State> : "0") },
        { head: "Made", cell: (k) => <At at={unix(k.created)} /> },
        { head: "Reason", wide: true, cell: (k) => k.reason || "–" },
      ]}
    />
  );
}

function DecryptionsLeft(props: { k: ThresholdKey }) {
  const { k } = props;
  if (k.floodingLimit === 0n) return <span class="soft">no limit with masks</span>;
  const left = k.floodingLimit - k.flooded;
  const power = Math.log2(Number(k.floodingLimit));
  const whole = Number.isInteger(power) ? `2^${power}` : count(k.floodingLimit);
  const share = Number(left) / Number(k.floodingLimit);
  return (
    <span class="stack">
      <span>{count(left)} of {Number.isInteger(power) ? <>2<sup>{power}</sup></> : whole}</span>
      <Meter label={`${count(left)} of ${whole} left`} parts={[{ share, kind: `fill ${share < 0.1 ? "bad" : "good"}` }]} />
    </span>
  );
}

function Masks(props: { k: ThresholdKey; partyOf: (index: number) => string }) {
  if (props.k.masks.length === 0) return <>–</>;
  return (
    <span class="stack">
      {props.k.masks.map((m) => (
        <span key={m.quorum.join() + m.form}>
          {m.quorum.map(props.partyOf).join("+")}: <b>{brief(Number(m.free))}</b> <span class="soft">{m.form === MaskForm.PAPER ? "paper" : "exact"}</span>
        </span>
      ))}
    </span>
  );
}
