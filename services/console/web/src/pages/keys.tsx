// Keys: epochs at all parties and their replacements, and the keys that one party holds.
import { useWorld } from "../app";
import { coordinatorService } from "../api";
import { list, plural, unix } from "../format";
import { RotationState, type ClusterEpoch } from "../gen/lodge/coordinator/v1/coordinator_pb";
import { EpochState, RosterStanding, type Epoch } from "../gen/lodge/keygen/v1/keygen_pb";
import { Purpose } from "../gen/lodge/job/v1/job_pb";
import { useLive } from "../live";
import { Empty, Page, Section } from "../parts/page";
import { At, State, type Tone } from "../parts/state";
import { Table } from "../parts/table";
import { purposeWord } from "../words";
import { PartyKeys } from "./partykeys";

export function KeysPage() {
  const { session } = useWorld();
  return session.process.role === "party" ? <PartyKeys /> : <ClusterKeys />;
}

const states: Record<EpochState, [string, Tone]> = {
  [EpochState.UNSPECIFIED]: ["unknown", "quiet"], [EpochState.LOCKED]: ["not active yet", "busy"], [EpochState.ACTIVE]: ["active", "good"],
  [EpochState.DRAINING]: ["draining", "busy"], [EpochState.RETIRED]: ["retired", "quiet"],
};

// epochState is the word and the tone for the state of an epoch.
export function epochState(e: Epoch | undefined): [string, Tone] {
  if (!e) return ["missing", "warn"];
  const [text, tone] = states[e.state];
  if (e.state === EpochState.ACTIVE && e.standing === RosterStanding.SAME_PARTIES) return ["active for stock only", "warn"];
  if (e.state !== EpochState.RETIRED && e.standing === RosterStanding.OTHER) return ["of another roster", "warn"];
  return [text, tone];
}

const rotations: Record<RotationState, [string, Tone]> = {
  [RotationState.UNSPECIFIED]: ["unknown", "quiet"], [RotationState.MAKING]: ["making the successor", "busy"],
  [RotationState.MOVING]: ["moving policies", "busy"], [RotationState.COMPLETED]: ["replaced", "good"], [RotationState.FAILED]: ["rotation failed", "bad"],
};

// epochOf returns the description of an epoch that the first party with it gives.
const epochOf = (c: ClusterEpoch): Epoch | undefined => c.parties.find((p) => p.epoch)?.epoch;

// agreed is the state that all parties report, or undefined if they differ.
function agreed(c: ClusterEpoch): [string, Tone] | undefined {
  const all = new Map(c.parties.map((p) => epochState(p.epoch)).map((s) => [s[0], s]));
  return all.size === 1 ? [...all.values()][0] : undefined;
}

function verdict(epochs: ClusterEpoch[], away: string[]): { tone: Tone; text: string; more: string } {
  const active = epochs.filter((c) => agreed(c)?.[0] === "active");
  const passive = active.filter((c) => epochOf(c)?.keygenSecurity === "passive");
  const broken = epochs.filter((c) => c.rotation?.state === RotationState.FAILED);
  const rotating = epochs.filter((c) => c.rotation?.state === RotationState.MAKING || c.rotation?.state === RotationState.MOVING);
  const differing = epochs.filter((c) => !agreed(c));
  const more = [
    rotating.length ? `Epoch ${list(rotating.map((c) => String(c.epoch)))} is being replaced.` : "",
    passive.length ? `Key generation was proved except for ${passive.length > 1 ? "epochs" : "epoch"} ${list(passive.map((c) => String(c.epoch)))}, which trust${passive.length > 1 ? "" : "s"} all parties.` : "",
  ].filter(Boolean).join(" ");
  if (broken.length > 0) return { tone: "bad", text: `The replacement of epoch ${String(broken[0]!.epoch)} failed: ${broken[0]!.rotation!.reason}.`, more };
  if (away.length > 0) return { tone: "warn", text: `${list(away)} cannot be asked about ${away.length > 1 ? "their" : "its"} keys.`, more };
  if (differing.length > 0) return { tone: "warn", text: `The parties disagree about epoch ${list(differing.map((c) => String(c.epoch)))}.`, more };
  if (epochs.length === 0) return { tone: "quiet", text: "The cluster has no keys.", more: "" };
  if (active.length === 0) return { tone: "warn", text: "No epoch is active: nothing can be made.", more };
  return { tone: rotating.length ? "busy" : "good", text: `${plural(active.length, "epoch is", "epochs are")} active at every party.`, more };
}

function ClusterKeys() {
  const live = useLive<{ epochs: ClusterEpoch[]; away: string[] }>("epochs", async (signal, emit) => {
    const { epochs, away } = await coordinatorService.listEpochs({}, { signal });
    emit({ epochs, away });
  }, 5000);
  const epochs = [...(live.value?.epochs ?? [])].reverse();
  const say = live.value ? verdict(epochs, live.value.away) : { tone: "quiet" as Tone, text: "Waiting for the epochs.", more: "" };
  const shared = epochs.find((c) => epochOf(c)?.purpose === Purpose.THRESHOLD);
  const names = epochs[0]?.parties.map((p) => p.name) ?? [];
  return (
    <Page title="Keys" verdict={say.text} tone={say.tone} aside={say.more} live={live} terminal={["lodge keys list", ...(shared ? [`lodge keys show ${String(shared.epoch)}`] : [])]}>
      <Section title="Epochs" note="newest first">
        {live.value && epochs.length === 0 ? (
          <Empty command="lodge keys generate --purpose triples --block 128 --wait">Every kind of tuple needs keys. Make the first epoch:</Empty>
        ) : (
          <Table
            caption="Epochs"
            rows={epochs}
            id={(c) => String(c.epoch)}
            columns={[
              { head: "Epoch", cell: (c) => <b>{String(c.epoch)}</b> },
              { head: "For", cell: (c) => { const e = epochOf(c); return e ? purposeWord(e.purpose) : "–"; } },
              { head: "Parameters", cell: (c) => epochOf(c)?.params ?? "–" },
              { head: "Key generation", cell: (c) => <Security text={epochOf(c)?.keygenSecurity ?? ""} /> },
              { head: "Block", num: true, cell: (c) => { const e = epochOf(c); return e && e.dim > 0 ? String(e.dim) : "–"; } },
              {
                head: "State", wide: true,
                cell: (c) => {
                  const same = agreed(c);
                  if (same) return <State tone={same[1]}>{same[0]}{c.parties.length === names.length && <span class="soft"> at all parties</span>}</State>;
                  return (
                    <span class="stack">
                      {c.parties.map((p) => { const [text, tone] = epochState(p.epoch); return <State key={p.party} tone={tone}>{p.name}: {text}</State>; })}
                    </span>
                  );
                },
              },
              {
                head: "Replacement", wide: true,
                cell: (c) => {
                  const r = c.rotation;
                  if (!r) return "–";
                  const [text, tone] = rotations[r.state];
                  return (
                    <State tone={tone}>
                      {r.state === RotationState.COMPLETED ? `replaced by ${String(r.successor)}` : text}
                      {r.jobId && r.state === RotationState.MAKING && <> in <a href={`/jobs/${r.jobId}`}>a job</a></>}
                      {r.reason && `: ${r.reason}`}
                    </State>
                  );
                },
              },
              { head: "Made", cell: (c) => <At at={unix(epochOf(c)?.created)} /> },
            ]}
          />
        )}
      </Section>
      <Section title="At one party">
        <Empty>MAC keys, threshold keys with their remaining decryptions, and multi-key contexts belong to each party: its console shows them on this page.</Empty>
      </Section>
    </Page>
  );
}

// Security says how the generation of keys is secured.
export function Security(props: { text: string }) {
  if (props.text === "proved") return <State tone="good">proved</State>;
  if (props.text === "passive") return <State tone="warn">passive</State>;
  return <>{props.text || "–"}</>;
}
