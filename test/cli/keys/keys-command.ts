import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { beforeAll, expect, onTestFinished } from "vitest";
import { type Suite, useService } from "../../support/conformance.ts";
import { type Ended, runKeyhold } from "../../support/keyhold.ts";
import { type Json, type RestClient, restClient } from "../../support/rest.ts";
import { ROOT_SECRET } from "../../support/server.ts";

/** A server that requires an admin token, and `keyhold keys` with one. Available within tests only. */
export interface KeysCommand {
  readonly suite: Suite;
  /** The admin token. */
  readonly token: string;
  keys(args: readonly string[], input?: string, environment?: Record<string, string>): Promise<Ended>;
  /** Runs any command as a client of the server. */
  keyhold(args: readonly string[], input?: string, environment?: Record<string, string>): Promise<Ended>;
  /** Runs `keyhold keys`, by default with the server itself, and follows what it prints. */
  follow(args: readonly string[], url?: string): Followed;
  /** Runs `keyhold admin token` on the database of the server. */
  adminToken(...args: string[]): Promise<Ended>;
  /** Returns the JSON of a command that must succeed. */
  answerOf(args: readonly string[], input?: string): Promise<Json>;
  /** Returns a client with the admin token. */
  rest(): RestClient;
}

export interface Followed {
  readonly printed: { stdout: string; stderr: string };
  /** Resolves when stderr has this text. */
  noted(text: RegExp): Promise<void>;
  interrupt(): void;
  /** Resolves to the exit status. */
  readonly ended: Promise<number>;
}

const MAIN = resolve(import.meta.dirname, "../../../src/cli/keyhold.js");

export function useKeysCommand(settings: Record<string, string> = {}): KeysCommand {
  const suite = useService({ KEYHOLD_AUTH: "admin-token", ...settings });
  const adminToken: KeysCommand["adminToken"] = (...args) => {
    const environment = { KEYHOLD_DATABASE_URL: suite.server.databaseUrl, KEYHOLD_ROOT_SECRET: ROOT_SECRET };
    return runKeyhold(["admin", "token", ...args], environment);
  };
  let token: string;
  beforeAll(async () => {
    const { stdout } = await adminToken("create", "--name", "for tests", "--json");
    const { secret, issued_api_key } = JSON.parse(stdout);
    expect(issued_api_key.scopes).toEqual(["keyhold:admin"]);
    token = secret;
  });
  const keyhold: KeysCommand["keyhold"] = (args, input, environment = {}) =>
    runKeyhold(
      args,
      { KEYHOLD_URL: suite.server.url, KEYHOLD_TOKEN: token, ...environment },
      input === undefined ? {} : { input },
    );
  const keys: KeysCommand["keys"] = (args, ...rest) => keyhold(["keys", ...args], ...rest);
  const follow: KeysCommand["follow"] = (args, url = suite.server.url) => {
    const env = { KEYHOLD_URL: url, KEYHOLD_TOKEN: token };
    const child = spawn(process.execPath, [MAIN, "keys", ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    const printed = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const)
      child[name].setEncoding("utf8").on("data", (part) => {
        printed[name] += part;
      });
    return {
      printed,
      noted: (text) => expect.poll(() => printed.stderr, { timeout: 30_000 }).toMatch(text),
      interrupt: () => void child.kill("SIGINT"),
      ended: once(child, "close").then(([code]) => code as number),
    };
  };
  return {
    suite,
    follow,
    get token() {
      return token;
    },
    keys,
    keyhold,
    adminToken,
    answerOf: async (args, input) => {
      const { code, stdout, stderr } = await keys([...args, "--json"], input);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      return JSON.parse(stdout);
    },
    rest: () => restClient(suite.server, { authorization: `Bearer ${token}` }),
  };
}
