// Conduct: who cheated, what proves it, what keys it cost, and what is in quarantine.
import { useWorld } from "../app";
import { accusationsService, coordinatorService } from "../api";
import { bytes, list, plural, seconds, sentence, span, unix } from "../format";
import type { Accusation, Failure, Standing } from "../gen/lodge/accusations/v1/accusations_pb";
import type { Job } from "../gen/lodge/coordinator/v1/coordinator_pb";
import { JobState } from "../gen/lodge/job/v1/job_pb";
import { MacKeyState } from "../gen/lodge/tuples/v1/tuples_pb";
import { useLive } from "../live";
import { Command, Empty, Facts, Page, Section } from "../parts/page";
import { At, Name, State, type Tone } from "../parts/state";
import { Table } from "../parts/table";
import { jobWords, partyName } from "../words";
import { MacKeyTable, useMacKeys } from "./partykeys";

export function ConductPage() {
  const { session } = useWorld();
  return session.process.role === "party" ? <PartyConduct /> : <ClusterConduct />;
}

// pageLimit bounds how many pages of a list the page reads.
const pageLimit = 20;

function PartyConduct() {
  const { session, status } = useWorld();
  const name = session.process.name;
  const accused = useLive<{ accusations: Accusation[]; standing?: Standing }>("accusations", async (signal, emit) => {
    const accusations: Accusation[] = [];
    let after = "";
    let standing: Standing | undefined;
    for (let i = 0; i < pageLimit; i++) {
      const page = await accusationsService.listAccusations({ after, limit: 100 }, { signal });
      accusations.push(...page.accusations);
      standing = page.standing ?? standing;
      after = page.next;
      if (!after) break;
    }
    accusations.sort((a, b) => (unix(b.when) ?? 0) - (unix(a.when) ?? 0));
    emit({ accusations, standing });
  }, 3000);
  const failed = useLive<Failure[]>("failures", async (signal, emit) => {
    emit((await accusationsService.listFailures({ limit: 1000 }, { signal })).failures.reverse());
  }, 3000);
  const macs = useMacKeys();
  const standing = accused.value?.standing;
  const accusations = accused.value?.accusations ?? [];
  const burnt = (macs.value ?? []).filter((k) => k.state === MacKeyState.BURNT || k.failedChecks > 0);
  const quarantine = status.value?.store?.quarantine ?? "";
  const cheats = [...new Set(accusations.filter((a) => !a.pardon).map((a) => a.culprit))];
  const say: [Tone, string] = !accused.value ? ["quiet", "Waiting for the accusations."]
    : cheats.length ? ["bad", `${list(cheats)} cheated, and this party can prove it.`]
    : quarantine ? ["bad", "This party’s store is in quarantine."]
    : standing?.stop ? ["bad", "Generation has stopped: too many sessions failed and nobody could be identified."]
    : standing && standing.failures > 0 ? ["warn", `${plural(standing.failures, "session")} failed because an unidentified party cheated.`]
    : ["good", "No party has been seen to cheat."];
  return (
    <Page
      title="Conduct" verdict={say[1]} tone={say[0]} live={accused}
      aside={standing?.refusal ? sentence(standing.refusal) + "." : undefined}
      terminal={[`lodge accusations list --party ${name}`, ...(accusations[0] ? [`lodge accusations show ${accusations[0].id} --party ${name}`] : [])]}
    >
      {quarantine && (
        <Section title="Quarantine" class="accused">
          <p class="charge"><State tone="bad"><b>{sentence(quarantine)}</b></State></p>
          <p class="soft">The party neither stores nor delivers tuples until an operator ends the quarantine: <Command text="lodge store quarantine --config party.yaml" /></p>
        </Section>
      )}
      <Section title="Accusations" note="each is proved by evidence that anyone with the roster can verify">
        {accused.value && accusations.length === 0 ? (
          <Empty>Nothing to do. When a party cheats and can be identified, it is named here with the evidence.</Empty>
        ) : (
          accusations.map((a) => <Charge key={a.id} a={a} />)
        )}
      </Section>
      <Section title="Standing" note="what follows for the current roster">
        <StandingFacts standing={standing} />
      </Section>
      <Section title="Failures without a name" note="sessions that failed because an unidentified party cheated">
        {failed.value?.length === 0 ? (
          <Empty>None is recorded for this roster.</Empty>
        ) : (
          <Table
            caption="Failures without a named party"
            rows={failed.value ?? []}
            id={(f) => String(f.sequence)}
            columns={[
              { head: "Number", cell: (f) => String(f.sequence) },
              { head: "When", cell: (f) => <At at={unix(f.when)} /> },
              { head: "Session", cell: (f) => <code>{f.session}</code> },
              { head: "Check", cell: (f) => f.check },
              { head: "Reason", wide: true, cell: (f) => f.reason },
              { head: "May be at fault", wide: true, cell: (f) => list(f.suspects) || "–" },
              { head: "Counts", cell: (f) => (f.cleared ? <State tone="quiet">cleared</State> : <State tone="warn">yes</State>) },
            ]}
          />
        )}
      </Section>
      <Section title="MAC keys that failed checks or are burnt">
        {burnt.length === 0 ? <Empty>No MAC key of this party is burnt or failed a check.</Empty> : <MacKeyTable rows={burnt} />}
      </Section>
    </Page>
  );
}

// Charge is one accusation, with its evidence.
function Charge(props: { a: Accusation }) {
  const { a } = props;
  const name = useWorld().session.process.name;
  return (
    <article class="accused">
      <p class="charge">
        <State tone={a.pardon ? "quiet" : "bad"}>
          <b>{a.culprit}</b> {a.pardon ? "was accused and pardoned" : "cheated"}: {a.kind}
        </State>
        <span>{a.reason}</span>
      </p>
      <Facts
        items={[
          ["Check", a.check],
          ["Session", <code>{a.session}</code>],
          ["Recorded", <At at={unix(a.when)} />],
          ["Found by", a.from ? <>peer <Name>{a.from}</Name></> : <>this party, <Name>{name}</Name></>],
          ["Evidence", <>{bytes(a.size)}, <code>{a.id.slice(0, 12)}…</code></>],
          ["Peers that have it", list(a.told) || "none yet"],
          ["Effect", a.pardon ? <>pardoned by {a.pardon.by} <At at={unix(a.pardon.when)} />: {a.pardon.reason}</> : a.excludes ? "excluded from the roster" : "reported only"],
          ["Export it", <Command text={`lodge accusations export ${a.id} --party ${name} --out ${a.id.slice(0, 8)}.evidence`} />],
        ]}
      />
    </article>
  );
}

function StandingFacts(props: { standing?: Standing }) {
  const s = props.standing;
  if (!s) return null;
  return (
    <Facts
      items={[
        ["Sessions", s.refusal ? <State tone="bad">refused</State> : <State tone="good">may start</State>],
        ["Excluded", s.excluded.length ? <b>{list(s.excluded)}</b> : "nobody"],
        ["A proven cheat is", s.onProvenCheat === "exclude" ? "excluded" : "reported"],
        ["Failures that count", `${s.failures} of ${s.maxFailures} within ${span(seconds(s.within) ?? 0)}`],
        ["Last cleared", s.cleared ? <>by {s.cleared.by} <At at={unix(s.cleared.when)} />: {s.cleared.reason}</> : "never"],
        ...(s.stop ? ([["Stopped", <><At at={unix(s.stop.when)} /> after {plural(s.stop.failures, "failure")}; suspects {list(s.stop.suspects)}</>]] as [string, preact.JSX.Element][]) : []),
      ]}
    />
  );
}

// ClusterConduct is the page of the coordinator, which holds no evidence: it shows the jobs that parties failed.
function ClusterConduct() {
  const live = useLive<Job[]>("failed jobs", async (signal, emit) => {
    emit((await coordinatorService.listJobs({ states: [JobState.FAILED], limit: 200 }, { signal })).jobs);
  }, 3000);
  const jobs = (live.value ?? []).filter((j) => j.failure && ["blame", "abort", "peer_abort"].includes(j.failure.outcome));
  const named = jobs.filter((j) => j.failure?.blame);
  const names = [...new Set(named.map((j) => partyName(j, j.failure!.blame!.party)))];
  const say: [Tone, string] = !live.value ? ["quiet", "Waiting for the jobs."]
    : names.length ? ["bad", `${list(names)} cheated in ${plural(named.length, "job")}.`]
    : jobs.length ? ["warn", `${plural(jobs.length, "job")} failed a check, and nobody could be identified.`]
    : ["good", "No party has been seen to cheat."];
  const reporter = named[0] ? partyName(named[0], named[0].failure!.reporter) : "p0";
  return (
    <Page
      title="Conduct" verdict={say[1]} tone={say[0]} live={live}
      aside="Parties keep the evidence, and each decides for itself whom to exclude: see the same page of a party’s console."
      terminal={[`lodge accusations list --party ${reporter}`, "lodge jobs list --state failed"]}
    >
      <Section title="Jobs that failed a check">
        {live.value && jobs.length === 0 ? (
          <Empty>Nothing to do. When a party cheats in a job, it is named here.</Empty>
        ) : (
          <Table
            caption="Jobs that failed a check"
            rows={jobs}
            id={(j) => j.id}
            columns={[
              {
                head: "Who",
                cell: (j) => (j.failure!.blame ? <State tone="bad"><b>{partyName(j, j.failure!.blame.party)}</b></State>
                  : <State tone="warn">{j.failure!.suspects.length ? `one of ${list(j.failure!.suspects.map((s) => partyName(j, s)))}` : "unidentified"}</State>),
              },
              { head: "Check", cell: (j) => j.failure!.blame?.check || j.failure!.check || "–" },
              { head: "Reason", wide: true, cell: (j) => j.failure!.blame?.reason || j.failure!.reason },
              { head: "Round", cell: (j) => (j.failure!.round ? `${j.failure!.roundIndex}, ${j.failure!.round}` : "–") },
              { head: "Job", cell: (j) => <a href={`/jobs/${j.id}`}>{jobWords(j).what}</a> },
              { head: "When", cell: (j) => <At at={unix(j.ended)} /> },
            ]}
          />
        )}
      </Section>
    </Page>
  );
}
