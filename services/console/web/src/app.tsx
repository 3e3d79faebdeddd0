// The frame of the console: sign-in, navigation, and the page of the current address.
import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { Failed, get, onSignedOut, post, problem, statusService, type Problem, type Process, type Session } from "./api";
import { span } from "./format";
import type { GetStatusResponse } from "./gen/lodge/status/v1/status_pb";
import { useLive, useNow, type Live } from "./live";
import { Empty, Trouble } from "./parts/page";
import { Left, Mark, State, type Tone } from "./parts/state";
import { AuditPage } from "./pages/audit";
import { ClusterPage } from "./pages/cluster";
import { ConductPage } from "./pages/conduct";
import { JobPage } from "./pages/job";
import { JobsPage } from "./pages/jobs";
import { KeysPage } from "./pages/keys";
import { NetworkPage } from "./pages/network";
import { ProcessPage } from "./pages/process";
import { StockPage } from "./pages/stock";
import { follow, go, usePlace } from "./router";
import { SignIn } from "./signin";
import { chooseTheme, theme, type Theme } from "./theme";
import mark from "./mark.svg";

// World is what every page knows: who is signed in, and the status of the process.
export interface World {
  session: Session;
  status: Live<GetStatusResponse>;
}

const WorldContext = createContext<World | undefined>(undefined);

// useWorld returns the session and the status; only pages call it.
export function useWorld(): World {
  return useContext(WorldContext)!;
}

// may reports whether the identity has a permission. A process's own identity needs none.
export function may(session: Session, permission: string): boolean {
  return session.role === "self" || session.permissions.includes(permission);
}

const pages = [
  { path: "/cluster", name: "Cluster", page: ClusterPage },
  { path: "/jobs", name: "Jobs", page: JobsPage },
  { path: "/stock", name: "Stock", page: StockPage },
  { path: "/keys", name: "Keys", page: KeysPage },
  { path: "/network", name: "Network", page: NetworkPage },
  { path: "/conduct", name: "Conduct", page: ConductPage },
  { path: "/audit", name: "Audit", page: AuditPage },
  { path: "/process", name: "This process", page: ProcessPage },
];

// Entrance is what the process tells every browser.
interface Entrance {
  signed_in: boolean;
  ways: string[];
  process: Process;
}

type Stage = { session?: Session; ways?: string[]; process?: Process; problem?: Problem };

// App signs in, and then shows the console.
export function App() {
  const [stage, setStage] = useState<Stage>();
  useEffect(() => {
    let timer: number;
    const load = async () => {
      try {
        const entrance = await get<Entrance>("/signin");
        setStage(entrance.signed_in ? { session: await get<Session>("/api/session") } : entrance);
      } catch (error) {
        if (error instanceof Failed && error.problem.code === "unauthenticated") {
          setStage({ ways: error.ways, process: error.process });
          return;
        }
        setStage((old) => ({ ...old, problem: problem(error) }));
        timer = window.setTimeout(load, 3000);
      }
    };
    onSignedOut(load);
    void load();
    return () => clearTimeout(timer);
  }, []);
  if (!stage) return null;
  if (stage.session) return <Console session={stage.session} />;
  if (stage.ways) return <SignIn ways={stage.ways} process={stage.process} />;
  return (
    <main class="signin">
      <Trouble problem={stage.problem!} />
    </main>
  );
}

function Console(props: { session: Session }) {
  const { session } = props;
  const place = usePlace();
  const status = useLive<GetStatusResponse>("status", async (signal, emit) => {
    for await (const message of statusService.watchStatus({}, { signal })) {
      if (message.status) emit(message.status);
    }
  });
  useEffect(() => {
    document.addEventListener("click", follow);
    return () => document.removeEventListener("click", follow);
  }, []);
  useEffect(() => {
    if (place.path === "/") go("/cluster" + location.search, true);
  }, [place.path]);
  useEffect(() => {
    scrollTo(0, 0);
    if (document.activeElement !== document.body) document.getElementById("title")?.focus({ preventScroll: true });
  }, [place.path]);
  const job = /^\/jobs\/([\w-]+)$/.exec(place.path);
  const found = pages.find((p) => p.path === place.path);
  const Shown = found?.page;
  return (
    <WorldContext.Provider value={{ session, status }}>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <div class="frame">
        <Rail session={session} status={status} path={place.path} />
        <main id="main" tabIndex={-1}>
          {job ? <JobPage id={job[1]!} key={job[1]} /> : Shown ? <Shown key={place.path} /> : place.path !== "/" && <Missing />}
        </main>
      </div>
    </WorldContext.Provider>
  );
}

function Missing() {
  return (
    <>
      <h1 tabIndex={-1} id="title">
        No such page
      </h1>
      <Empty>
        The console has no page at this address. Start at the <a href="/cluster">cluster</a>.
      </Empty>
    </>
  );
}

// navTone is the mark beside a page in the navigation: only trouble gets one.
function navTone(path: string, s: GetStatusResponse | undefined): Tone | undefined {
  if (!s) return undefined;
  if (path === "/cluster" && s.links.some((l) => !l.reachable && l.since)) return "bad";
  if (path === "/conduct" && (s.conduct?.excluded.length || s.conduct?.refusal || s.store?.quarantine)) return "bad";
  if (path === "/conduct" && s.conduct && s.conduct.failures > 0) return "warn";
  if (path === "/audit" && s.audit?.fault) return "bad";
  if (path === "/process" && (s.store?.fault || s.volumes.some((v) => v.low))) return "bad";
  return undefined;
}

function Rail(props: { session: Session; status: Live<GetStatusResponse>; path: string }) {
  const { session, status, path } = props;
  const own = session.process;
  return (
    <header class="rail">
      <a class="brand" href="/cluster">
        <img src={mark} alt="" width="26" height="26" />
        <span>
          <b>Lodge</b>
          <span class="where">
            {own.name}
            {own.role === "party" && <span> · party</span>}
          </span>
        </span>
      </a>
      <nav class="pages" aria-label="Pages">
        {pages.map((p) => {
          const tone = navTone(p.path, status.value);
          const on = path === p.path || (p.path === "/jobs" && path.startsWith("/jobs/"));
          const name = p.path === "/process" && own.role === "party" ? "This party" : p.name;
          return (
            <a key={p.path} href={p.path} aria-current={on ? "page" : undefined}>
              {name}
              {tone && (
                <span class={tone}>
                  <Mark tone={tone} />
                  <span class="unseen">needs attention</span>
                </span>
              )}
            </a>
          );
        })}
      </nav>
      <div class="rail-foot">
        <Pulse status={status} />
        <ThemeChoice />
        <p class="who">
          <b>{session.name}</b>
          <span>
            {session.tenants.length > 0 && `${session.tenants.length > 1 ? "tenants" : "tenant"} ${session.tenants.join(", ")} · `}
            {session.kind === "oidc" ? "OIDC" : session.kind} · <Left at={Date.parse(session.ends) / 1000} /> left
          </span>
        </p>
        <button type="button" onClick={() => void post("/signout").finally(() => location.assign("/"))}>
          Sign out
        </button>
      </div>
    </header>
  );
}

// Pulse says whether the page is current.
function Pulse(props: { status: Live<unknown> }) {
  const now = useNow();
  const { failing, value } = props.status;
  return (
    <p class="pulse" role="status">
      {failing !== undefined ? (
        <State tone="warn">reconnecting, {span(Math.max(1, Math.round(now - failing / 1000)))}</State>
      ) : value ? (
        <State tone="good">live</State>
      ) : (
        <State tone="quiet">connecting</State>
      )}
    </p>
  );
}

function ThemeChoice() {
  const [choice, set] = useState<Theme>(theme());
  return (
    <label class="theme">
      <span aria-hidden="true">Theme</span>
      <select
        aria-label="Theme"
        value={choice}
        onChange={(e) => {
          const next = e.currentTarget.value as Theme;
          chooseTheme(next);
          set(next);
        }}
      >
        <option value="system">System</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}
