// Jobs: what the cluster makes, what each job waits for, and how jobs ended.
import { useMemo } from "preact/hooks";
import { useWorld } from "../app";
import { coordinatorService } from "../api";
import { bytes, list, plural, span, unix } from "../format";
import { JobState } from "../gen/lodge/job/v1/job_pb";
import type { Job } from "../gen/lodge/coordinator/v1/coordinator_pb";
import { latest, usePast, useSeries } from "../history";
import { useLive, useNow, type Live } from "../live";
import { Chart } from "../parts/chart";
import { Choice, Empty, Page, Section } from "../parts/page";
import { At, Meter, State, type Tone } from "../parts/state";
import { Table } from "../parts/table";
import { Timeline } from "../parts/timeline";
import { usePlace, withQuery } from "../router";
import { watchRounds } from "../rounds";
import { blameWords, delay, ended, jobTook, jobWords, leftWords, made, partyName, stateWord, work } from "../words";

const filters: Record<string, { text: string; states: JobState[] }> = {
  "": { text: "All", states: [] },
  running: { text: "Running", states: [JobState.PREPARING, JobState.GENERATING, JobState.VERIFYING, JobState.STORING, JobState.ACTIVATING] },
  waiting: { text: "Waiting", states: [JobState.PENDING] },
  completed: { text: "Completed", states: [JobState.COMPLETED] },
  failed: { text: "Failed", states: [JobState.FAILED, JobState.TIMED_OUT] },
  cancelled: { text: "Cancelled", states: [JobState.CANCELLED] },
};

const windows: Record<string, number> = { "15 min": 900, "1 h": 3600, "6 h": 21600, "24 h": 86400 };

// useJobs follows the newest jobs.
function useJobs(states: JobState[], before: string): Live<{ jobs: Job[]; next: string }> {
  return useLive(`jobs ${states.join()} ${before}`, async (signal, emit) => {
    const answer = await coordinatorService.listJobs({ states, before, limit: 100 }, { signal });
    watchRounds(answer.jobs, Date.now() / 1000);
    emit({ jobs: answer.jobs, next: answer.next });
  }, 1500);
}

function verdict(jobs: Job[], now: number): { tone: Tone; text: string; more: string } {
  const running = jobs.filter((j) => !ended(j.state) && j.state !== JobState.PENDING);
  const waiting = jobs.filter((j) => j.state === JobState.PENDING);
  const failed = jobs.filter((j) => (j.state === JobState.FAILED || j.state === JobState.TIMED_OUT) && now - (unix(j.ended) ?? 0) < 3600);
  const more = [
    waiting.length ? `${running.length > 0 ? plural(waiting.length, "job waits", "jobs wait") : "Waiting"}: ${waiting[0]!.reason || "in the queue"}.` : "",
    failed.length ? `${plural(failed.length, "job")} failed in the last hour.` : "",
  ].filter(Boolean).join(" ");
  const slow = running.map((j) => delay(j, now)).sort((a, b) => (b?.waited ?? 0) - (a?.waited ?? 0))[0];
  if (slow && slow.waited > 10) {
    return { tone: "warn", more, text: `${list(slow.who)} ${slow.who.length > 1 ? "have" : "has"} kept the others waiting for ${span(Math.floor(slow.waited))} in round ${slow.round}.` };
  }
  if (running.length > 0) return { tone: "busy", text: `Making ${made(running)}.`, more };
  if (waiting.length > 0) return { tone: "warn", text: `No job runs; ${plural(waiting.length, "job waits", "jobs wait")}.`, more };
  const last = failed[0];
  if (last && jobs[0] === last) return { tone: "bad", text: `The last job failed: ${last.failure?.blame ? blameWords(last, last.failure.blame) : last.reason}.`, more: "" };
  return { tone: "good", text: "No job runs or waits.", more };
}

export function JobsPage() {
  const { session } = useWorld();
  return session.process.role === "party" ? <Sessions /> : <CoordinatorJobs />;
}

function CoordinatorJobs() {
  const place = usePlace();
  const now = useNow();
  const filter = filters[place.query.get("state") ?? ""] ? (place.query.get("state") ?? "") : "";
  const before = place.query.get("before") ?? "";
  const shown = place.query.get("window") ?? "15 min";
  const window = windows[shown] ?? 900;
  const all = useJobs([], "");
  const picked = useJobs(filters[filter]!.states, before);
  const jobs = all.value?.jobs ?? [];
  const running = jobs.filter((j) => !ended(j.state) && j.state !== JobState.PENDING);
  const recent = jobs.filter((j) => !ended(j.state) || (unix(j.ended) ?? 0) > now - window).slice(0, 24);
  const first = Math.min(...recent.map((j) => unix(j.created) ?? now));
  const from = Math.max(now - window, Math.min(now - 60, first - (now - first) * 0.04));
  const say = all.value ? verdict(jobs, now) : { tone: "quiet" as Tone, text: "Waiting for the list of jobs.", more: "" };
  const states = filters[filter]!.states.map((s) => JobState[s].toLowerCase()).join(",");
  const terminal = [states ? `lodge jobs list --state ${states}` : "lodge jobs list"];
  if (running[0]) terminal.push(`lodge jobs watch ${running[0].id}`);
  return (
    <Page title="Jobs" verdict={say.text} tone={say.tone} aside={say.more} live={all} terminal={terminal}>
      {all.value && jobs.length === 0 && !filter && !before ? (
        <Empty command="lodge jobs submit --kind keys --block 128 --wait">The coordinator has no jobs yet. Make keys first; then a stock policy or a job makes tuples:</Empty>
      ) : (
        <>
          <Section
            title="Timeline"
            note={`${plural(recent.length, "job")}; a line per party while a job runs, hatched while it waits for others`}
            tools={<Choice label="Span of the timeline" options={Object.keys(windows).map((w) => ({ text: w, href: withQuery({ window: w === "15 min" ? undefined : w }), on: w === shown }))} />}
          >
            {recent.length > 0 ? (
              <Timeline jobs={recent} from={from} to={now} label={`${recent.length} jobs of the last ${span(window)}`} />
            ) : (
              <Empty>No job ran in the last {span(window)}. Choose a longer span, or look at the list below.</Empty>
            )}
          </Section>
          {running.length > 0 && (
            <Section title="Running">
              {running.map((job) => (
                <Running key={job.id} job={job} now={now} />
              ))}
            </Section>
          )}
          <Section
            title="All jobs"
            tools={<Choice label="State" options={Object.entries(filters).map(([name, f]) => ({ text: f.text, href: withQuery({ state: name, before: undefined }), on: name === filter }))} />}
          >
            {picked.value && picked.value.jobs.length === 0 ? (
              <Empty>No job is in this state{before ? " before this one" : ""}.</Empty>
            ) : (
              <JobTable jobs={picked.value?.jobs ?? []} now={now} />
            )}
            <p class="more">
              {before && <a href={withQuery({ before: undefined })}>Newest</a>}
              {picked.value?.next && <a href={withQuery({ before: picked.value.next })}>Older</a>}
            </p>
          </Section>
        </>
      )}
    </Page>
  );
}

// Running is one running job with the progress of its parties.
function Running(props: { job: Job; now: number }) {
  const { job, now } = props;
  const words = jobWords(job);
  const done = work(job, now);
  return (
    <article class="running">
      <h3>
        <a href={`/jobs/${job.id}`}>{words.what}</a> <span class="soft">{words.detail}</span>
      </h3>
      <p class="soft">
        {stateWord(job.state)[0]} for {span(Math.floor(jobTook(job, now) ?? 0))}
        {done && `, ${leftWords(done)}`}
        {job.reason && ` · ${job.reason}`}
      </p>
      {done && <Meter label={`${Math.floor(done.share * 100)} % finished`} parts={[{ share: done.share, kind: "fill" }]} />}
      <PartyTable job={job} now={now} />
    </article>
  );
}

// PartyTable shows the session of a job at each party.
export function PartyTable(props: { job: Job; now: number }) {
  const { job, now } = props;
  return (
    <Table
      caption={`Parties of ${jobWords(job).what}`}
      rows={job.parties}
      id={(p) => String(p.party)}
      tone={(p) => (p.reachable || ended(job.state) ? undefined : "row-bad")}
      columns={[
        { head: "Party", cell: (p) => <span class="name">{p.name || `party ${p.party}`}</span> },
        {
          head: "State",
          cell: (p) => {
            if (!p.reachable && !ended(job.state)) return <State tone="bad">unreachable</State>;
            const [text, tone] = stateWord(p.status?.state ?? JobState.UNSPECIFIED);
            return <State tone={tone}>{text}</State>;
          },
        },
        { head: "Round", cell: (p) => (p.status?.progress?.round ? <>{p.status.progress.roundIndex} <span class="soft">{p.status.progress.round}</span></> : "–") },
        {
          head: "Waits for", wide: true,
          cell: (p) => {
            const g = p.status?.progress;
            const since = unix(g?.since);
            if (ended(job.state) || !g) return "–";
            if (g.waitingFor.length === 0) return <span class="soft">computes</span>;
            return `${g.waitingFor.map((w) => partyName(job, w)).join(", ")}${since ? `, ${span(Math.max(0, Math.floor(now - since)))}` : ""}`;
          },
        },
        { head: "Work", num: true, cell: (p) => (p.status?.progress?.workTotal ? `${p.status.progress.workDone} / ${p.status.progress.workTotal}` : "–") },
        { head: "Sent", num: true, cell: (p) => (p.status?.progress ? bytes(p.status.progress.sentBytes) : "–") },
        { head: "Received", num: true, cell: (p) => (p.status?.progress ? bytes(p.status.progress.receivedBytes) : "–") },
        { head: "Peak memory", num: true, cell: (p) => (p.status?.peakRssBytes ? bytes(p.status.peakRssBytes) : "–") },
      ]}
    />
  );
}

function JobTable(props: { jobs: Job[]; now: number }) {
  return (
    <Table
      caption="Jobs"
      rows={props.jobs}
      id={(j) => j.id}
      columns={[
        { head: "Job", cell: (j) => <a href={`/jobs/${j.id}`}>{jobWords(j).what}</a> },
        { head: "Of", cell: (j) => <span class="soft">{jobWords(j).detail || "–"}</span> },
        { head: "State", cell: (j) => <State tone={stateWord(j.state)[1]}>{stateWord(j.state)[0]}</State> },
        { head: "Submitted", cell: (j) => <At at={unix(j.created)} /> },
        { head: "Took", num: true, cell: (j) => { const t = jobTook(j, props.now); return t === undefined ? "–" : span(t); } },
        { head: "Tenant", cell: (j) => j.request?.tenant || "–" },
        { head: "By", cell: (j) => j.submittedBy || "–" },
        { head: "Outcome", wide: true, cell: (j) => <Outcome job={j} /> },
      ]}
    />
  );
}

// Outcome says how a job ended, or why it waits.
export function Outcome(props: { job: Job }) {
  const { job } = props;
  if (job.failure?.blame) return <><b class="bad">{partyName(job, job.failure.blame.party)}</b> failed the check “{job.failure.blame.check}”</>;
  if (job.failure) return <>{job.failure.reason || job.reason}</>;
  if (job.batchId) return <span class="soft">batch {job.batchId}</span>;
  if (job.state === JobState.COMPLETED && job.epoch) return <a href="/keys">epoch {String(job.epoch)}</a>;
  return <>{job.reason || "–"}</>;
}

// Sessions is the page of a party, which runs sessions and does not know the jobs.
function Sessions() {
  const { status } = useWorld();
  const all = useSeries();
  const wanted = useMemo(() => all.filter((s) => s.name === "lodge_sessions_running" || s.name === "lodge_sessions_total"), [all]);
  const live = usePast(wanted, 3600);
  const past = live.value;
  const running = wanted.filter((s) => s.name === "lodge_sessions_running");
  const totals = wanted.filter((s) => s.name === "lodge_sessions_total");
  const n = status.value?.activeSessions ?? 0;
  return (
    <Page
      title="Jobs"
      verdict={n > 0 ? `This party runs ${plural(n, "session")}.` : "This party runs no session."}
      tone={n > 0 ? "busy" : "quiet"}
      aside="Jobs belong to the coordinator: its console shows them by party and round. A party knows only its own sessions."
      live={status}
      terminal={["lodge jobs list"]}
    >
      <Section title="Sessions of the last hour">
        {past && running.length > 0 ? (
          <Chart
            title="Running sessions"
            lines={running.map((s, i) => ({ label: s.labels.protocol ?? "", color: i, values: past.series[s.key] ?? [] }))}
            end={past.end}
            step={past.step}
            unit={(v) => String(Math.round(v * 10) / 10)}
          />
        ) : (
          <Empty command="lodge jobs submit --kind keys --block 128 --wait">No session has run at this party yet. An operator submits the first job to the coordinator:</Empty>
        )}
        {past && totals.length > 0 && (
          <Table
            caption="Sessions that ended"
            rows={totals}
            id={(s) => s.key}
            columns={[
              { head: "Protocol", cell: (s) => s.labels.protocol ?? "" },
              { head: "Outcome", cell: (s) => <State tone={s.labels.outcome === "ok" ? "good" : "bad"}>{s.labels.outcome ?? ""}</State> },
              { head: "Ended", num: true, cell: (s) => String(latest(past.series[s.key]) ?? 0) },
            ]}
          />
        )}
      </Section>
    </Page>
  );
}
