import { resolve } from "node:path";
import type { Cores } from "../harness/pinning.ts";
import { type ServerProcess, startServer } from "../harness/server.ts";
import type { Stage } from "../harness/stage.ts";

export interface BaselineOptions {
  /** What it answers with, as the service did. */
  readonly answer?: unknown;
  readonly databaseUrl?: string;
  /** By default the core of the servers. */
  readonly cores?: Cores;
}

export type BaselineName = "bare" | "verify" | "select" | "insert" | "grpc-echo" | "http2";

/** Starts a program of this folder. */
export function startBaseline(stage: Stage, name: BaselineName, options: BaselineOptions = {}): Promise<ServerProcess> {
  const { answer = {}, databaseUrl = "", cores = "server" } = options;
  return startServer(stage, {
    command: [process.execPath, resolve(import.meta.dirname, `${name}.ts`)],
    environment: { ANSWER: JSON.stringify(answer), DATABASE_URL: databaseUrl },
    portVariable: "PORT",
    readyPath: name === "grpc-echo" || name === "http2" ? null : "/",
    cores,
  });
}
