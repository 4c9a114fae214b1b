import { resolve } from "node:path";
import type { Fixture } from "../harness/fixture.ts";
import type { Cores } from "../harness/pinning.ts";
import { type ServerProcess, startServer } from "../harness/server.ts";

export interface BaselineOptions {
  /** The response, which is the service's own. */
  readonly answer?: unknown;
  readonly databaseUrl?: string;
  /** Default: the core of the servers. */
  readonly cores?: Cores;
}

export type BaselineName = "bare" | "verify" | "select" | "insert" | "update" | "sign" | "grpc-echo" | "http2";

/** Starts a baseline program of this folder. */
export function startBaseline(
  fixture: Fixture,
  name: BaselineName,
  options: BaselineOptions = {},
): Promise<ServerProcess> {
  const { answer = {}, databaseUrl = "", cores = "server" } = options;
  return startServer(fixture, {
    command: [process.execPath, resolve(import.meta.dirname, `${name}.ts`)],
    environment: { ANSWER: JSON.stringify(answer), DATABASE_URL: databaseUrl },
    portVariable: "PORT",
    readyPath: name === "grpc-echo" || name === "http2" ? null : "/",
    cores,
  });
}
