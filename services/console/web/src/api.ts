// Clients of the gRPC services of this process, through the gateway under /api/rpc.
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { AccusationsService } from "./gen/lodge/accusations/v1/accusations_pb";
import { CoordinatorService } from "./gen/lodge/coordinator/v1/coordinator_pb";
import { KeygenService } from "./gen/lodge/keygen/v1/keygen_pb";
import { RegistryService } from "./gen/lodge/multikey/v1/registry_pb";
import { ErrorDetailSchema, StatusService } from "./gen/lodge/status/v1/status_pb";
import { StockService } from "./gen/lodge/stock/v1/stock_pb";
import { ThresholdService } from "./gen/lodge/threshold/v1/threshold_pb";
import { TuplesService } from "./gen/lodge/tuples/v1/tuples_pb";

// Problem is an error with what to do next.
export interface Problem {
  code: string;
  what: string;
  next: string;
}

// Process is the process that serves the console.
export interface Process {
  role: "party" | "coordinator";
  name: string;
  version?: string;
}

// Session describes the identity that is signed in, and the process.
export interface Session {
  name: string;
  // "client", or "self" for the process's own identity, which needs no permissions.
  role: string;
  kind: "certificate" | "oidc" | "link";
  tenant: string;
  tenants: string[];
  permissions: string[];
  process: Process;
  ends: string;
  ways: string[];
  prometheus: boolean;
}

// Failed is the error of a request that is not an RPC.
export class Failed extends Error {
  constructor(readonly problem: Problem, readonly ways: string[] = [], readonly process?: Process) {
    super(problem.what);
  }
}

// problem turns an error of a request into text for people.
export function problem(error: unknown): Problem {
  if (error instanceof Failed) return error.problem;
  const failed = ConnectError.from(error);
  if (failed.cause instanceof Failed) return failed.cause.problem;
  const detail = failed.findDetails(ErrorDetailSchema)[0];
  if (detail) return { code: detail.code, what: detail.what, next: detail.next };
  if (error instanceof TypeError || failed.code === Code.Unknown) return unreachable;
  const code = Code[failed.code].replace(/[A-Z]/g, (c, i: number) => (i ? "_" : "") + c.toLowerCase());
  return { code, what: failed.rawMessage, next: "" };
}

const unreachable: Problem = {
  code: "unreachable",
  what: "the process does not respond",
  next: "this page retries by itself; check that the process runs",
};

let signedOut = () => {};

// onSignedOut sets what happens when the server has ended the session.
export function onSignedOut(then: () => void) {
  signedOut = then;
}

// call sends a request. The console itself rejects a request with a reason in JSON, unlike the services behind it.
async function call(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, init);
  if (!response.ok) {
    const refused = await refusal(response.clone());
    if (response.status === 401) signedOut();
    if (refused) throw refused;
  }
  return response;
}

// refusal reads the reason of the console; undefined if the response has none.
async function refusal(response: Response): Promise<Failed | undefined> {
  try {
    const body: { code?: string; reason?: string; next?: string; ways?: string[]; process?: Process } = await response.json();
    if (body.reason === undefined) return undefined;
    return new Failed({ code: body.code ?? "", what: body.reason, next: body.next ?? "" }, body.ways, body.process);
  } catch {
    return undefined;
  }
}

const transport = createConnectTransport({ baseUrl: "/api/rpc", fetch: call });

export const statusService = createClient(StatusService, transport);
export const coordinatorService = createClient(CoordinatorService, transport);
export const stockService = createClient(StockService, transport);
export const tuplesService = createClient(TuplesService, transport);
export const keygenService = createClient(KeygenService, transport);
export const thresholdService = createClient(ThresholdService, transport);
export const registryService = createClient(RegistryService, transport);
export const accusationsService = createClient(AccusationsService, transport);

// get requests JSON that is not an RPC.
export async function get<T>(address: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(address, { signal, headers: { accept: "application/json" } });
  if (response.ok) return (await response.json()) as T;
  if (response.status === 401 && address !== "/api/session") signedOut();
  throw (await refusal(response)) ?? new Failed({ code: `http ${response.status}`, what: "the process does not respond as expected", next: "" });
}

// post makes a request that signs in or out.
export async function post(address: string): Promise<void> {
  const response = await fetch(address, { method: "POST" });
  if (response.ok) return;
  throw (await refusal(response)) ?? new Failed({ code: `http ${response.status}`, what: "the process does not respond as expected", next: "" });
}
