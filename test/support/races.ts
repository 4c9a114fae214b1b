import { afterAll, beforeAll } from "vitest";
import { type Suite, useService } from "./conformance.ts";
import { type Answer, type RestClient, restClient } from "./rest.ts";
import { startTestServer, type TestServer } from "./server.ts";

export interface TwoServers {
  readonly suite: Suite;
  /** The number of servers by name; every race is run with each. */
  readonly sides: readonly (readonly [string, (index: number) => RestClient])[];
}

/** Starts two servers on one database for a test file. */
export function useTwoServers(): TwoServers {
  const suite = useService();
  let second: TestServer | undefined;
  beforeAll(async () => {
    second = await startTestServer({ KEYHOLD_DATABASE_URL: suite.server.databaseUrl });
  });
  afterAll(() => second?.close());
  const ofSecond: RestClient = (...request) => restClient({ url: second?.url ?? "" })(...request);
  return {
    suite,
    sides: [
      ["one server", () => suite.rest],
      ["two servers", (index) => (index % 2 === 0 ? suite.rest : ofSecond)],
    ],
  };
}

/** Sends `count` requests concurrently. */
export function atOnce<T>(count: number, send: (index: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => send(index)));
}

/** Returns the count of each response: `200`, or the status with the reason of the error, such as `409 API_KEY_REVOKED`. */
export function tally(answers: readonly Answer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const answer of answers) counts[outcome(answer)] = (counts[outcome(answer)] ?? 0) + 1;
  return counts;
}

export function outcome({ status, body }: Answer): string {
  return status === 200 ? "200" : `${status} ${body?.error?.details?.[0]?.reason}`;
}
