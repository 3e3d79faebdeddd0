// One job: its parties, rounds and estimate, and the evidence if it failed.
import { may, useWorld } from "../app";
import { coordinatorService } from "../api";
import { bytes, count, hex, list, seconds, sentence, span, unix } from "../format";
import type { Job } from "../gen/lodge/coordinator/v1/coordinator_pb";
import { EstimateBasis, type EstimateJobResponse } from "../gen/lodge/coordinator/v1/coordinator_pb";
import { JobState, Kind } from "../gen/lodge/job/v1/job_pb";
import { useLive, useNow } from "../live";
import { Empty, Facts, Page, Section } from "../parts/page";
import { At, Meter, Name, State } from "../parts/state";
import { Timeline } from "../parts/timeline";
import { watchRounds } from "../rounds";
import { blameWords, ended, jobTook, jobWords, leftWords, partyName, stateWord, work } from "../words";
import { PartyTable } from "./jobs";

export function JobPage(props: { id: string }) {
  const { session } = useWorld();
  const now = useNow();
  const own = session.process.role === "coordinator";
  const live = useLive<Job>(own ? `job ${props.id}` : undefined, async (signal, emit) => {
    for await (const { job } of coordinatorService.watchJob({ id: props.id }, { signal })) {
      if (!job) continue;
      watchRounds([job], Date.now() / 1000);
      emit(job);
    }
  }, 5000);
  const job = live.value;
  const terminal = [`lodge jobs show ${props.id}`, `lodge jobs watch ${props.id}`];
  if (!own) {
    return (
      <Page title="Job" verdict="Jobs belong to the coordinator." tone="quiet" terminal={terminal}>
        <Empty>Open this address in the coordinator’s console.</Empty>
      </Page>
    );
  }
  if (!job) {
    const missing = live.problem?.code === "not_found";
    return (
      <Page title="Job" verdict={missing ? "The coordinator does not know this job." : "Waiting for the job."} tone="quiet" live={live} terminal={terminal}>
        {missing && <Empty>It may have been forgotten, or belong to another tenant. <a href="/jobs">All jobs</a></Empty>}
      </Page>
    );
  }
  const words = jobWords(job);
  const [state, tone] = stateWord(job.state);
  const done = ended(job.state) ? undefined : work(job, now);
  const took = jobTook(job, now);
  const from = unix(job.created) ?? now;
  const to = unix(job.ended) ?? now;
  const margin = Math.max(2, (to - from) * 0.03);
  const about = ended(job.state) ? `${state}${took === undefined ? "" : ` after ${span(took)}`}` : done ? leftWords(done) : state;
  return (
    <Page title="Job" verdict={`${sentence(words.what)}: ${about}.`} tone={tone} aside={[ended(job.state) ? "" : sentence(job.reason || state), words.detail].filter(Boolean).join(" · ")} live={live} terminal={terminal}>
      {done && <Meter label={`${Math.floor(done.share * 100)} % finished`} parts={[{ share: done.share, kind: "fill" }]} />}
      {job.failure && <Failed job={job} />}
      <Section title="Timeline" note="by party and round; the page names the rounds that it has seen">
        <Timeline jobs={[job]} tall from={from - margin} to={to + margin} label={`Timeline of ${words.what}`} />
      </Section>
      <Section title="Parties">
        {job.parties.length > 0 ? <PartyTable job={job} now={now} /> : <Empty>No party has started this job yet{job.reason ? `: ${job.reason}` : ""}.</Empty>}
      </Section>
      <div class="pair">
        <Section title="Facts">
          <Facts
            items={[
              ["Id", <code>{job.id}</code>],
              ["Submitted", <><At at={unix(job.created)} /> by {job.submittedBy || "–"}</>],
              ["Started", <At at={unix(job.started)} />],
              ["Ended", <At at={unix(job.ended)} />],
              ["Attempt", String(job.ordinal)],
              ["Tenant", job.request?.tenant || "none"],
              ["Epoch", job.epoch || job.request?.epoch ? <a href="/keys">{String(job.epoch || job.request?.epoch)}</a> : "–"],
              ["Batch", job.batchId ? <code>{job.batchId}</code> : "–"],
              ["Digest", job.digest.length ? <code title={hex(job.digest)}>{hex(job.digest, 12)}…</code> : "–"],
            ]}
          />
        </Section>
        <Estimate job={job} />
      </div>
    </Page>
  );
}

// Failed says who is to blame, for what, and where the evidence is.
function Failed(props: { job: Job }) {
  const { job } = props;
  const f = job.failure!;
  const suspects = f.suspects.map((s) => partyName(job, s));
  return (
    <Section title="Failure" class="accused">
      {f.blame ? (
        <p class="charge">
          <State tone="bad">
            <b>{blameWords(job, f.blame)}</b>
          </State>
          <span>{f.blame.reason || f.reason}</span>
        </p>
      ) : (
        <p class="charge">
          <State tone="bad">{f.reason || job.reason}</State>
        </p>
      )}
      <Facts
        items={[
          ["Outcome", f.outcome],
          ["Round", f.round ? `${f.roundIndex}, ${f.round}` : "before the first"],
          ["Check", f.check || f.blame?.check || "–"],
          ["Reported by", <Name>{partyName(job, f.reporter)}</Name>],
          ["May be at fault", f.blame ? partyName(job, f.blame.party) : suspects.length ? list(suspects) : "not identified"],
          ["Evidence", f.blame ? <>at every party: <code>lodge accusations list --party {partyName(job, f.reporter)}</code></> : "none: nobody could be identified for certain"],
        ]}
      />
    </Section>
  );
}

const estimable = [Kind.SCALAR, Kind.MATRIX, Kind.CONVOLUTION, Kind.SQUARE, Kind.RANDOM, Kind.BIT, Kind.INVERSE, Kind.INPUT, Kind.MASKS];

// Estimate compares what the job should cost with what it has cost so far. It needs the permission to submit.
function Estimate(props: { job: Job }) {
  const { job } = props;
  const { session } = useWorld();
  const now = useNow();
  const can = may(session, "submit") && !!job.request && estimable.includes(job.request.kind) && job.state !== JobState.UNSPECIFIED;
  const live = useLive<EstimateJobResponse>(can ? `estimate ${job.id}` : undefined, async (signal, emit) => {
    emit(await coordinatorService.estimateJob({ job: job.request }, { signal }));
  }, 60_000);
  const e = live.value;
  if (!can || !e) return null;
  const took = jobTook(job, now);
  const sent = Math.max(0, ...job.parties.map((p) => Number(p.status?.progress?.sentBytes ?? 0n)));
  const peak = Math.max(0, ...job.parties.map((p) => Number(p.status?.peakRssBytes ?? 0n)));
  const basis = e.basis === EstimateBasis.HISTORY ? `the median of ${e.samples} earlier jobs` : "a model: the order of magnitude";
  return (
    <Section title="Estimate" note={basis}>
      <Facts
        items={[
          ["Duration", `${span(seconds(e.duration) ?? 0)}${took === undefined ? "" : `; so far ${span(took)}`}`],
          ["Sent by a party", `${e.sentBytes ? bytes(e.sentBytes) : "unknown"}${sent ? `; so far ${bytes(sent)}` : ""}`],
          ["Memory of a party", `${bytes(e.memoryBytes)}${peak ? `; peak so far ${bytes(peak)}` : ""}`],
          ["Tuples", `${count(e.tuples)}, ${bytes(e.tupleBytes)} each`],
        ]}
      />
    </Section>
  );
}
