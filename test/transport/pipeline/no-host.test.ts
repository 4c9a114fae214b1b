import { describe, expect, test } from "vitest";
import { http1Answers } from "../../hostile/answers.ts";
import { converse } from "../../hostile/http1.ts";
import { useGuardedService } from "../../support/guarded.ts";

/** Without credentials every Host is checked, and a missing one is not allowed. */
const suite = useGuardedService();

const PATHS = [
  "/keyhold.v2alpha1.ApiKeysService/VerifyApiKey",
  "/v2alpha1/admin/apiKeys:verify",
  "/keyhold.v2alpha1.DerivedKeysService/GetJwks",
];

async function ask(text: string): Promise<number[]> {
  const { received } = await converse(Number(new URL(suite.server.url).port), [Buffer.from(text)]);
  return http1Answers(received).map(({ status }) => status);
}

describe.for(PATHS)("%s without a Host", (path) => {
  const body = path.endsWith("GetJwks") ? "{}" : '{"credential":"a"}';
  const head = (version: string) =>
    `POST ${path} HTTP/${version}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`;

  test("is answered over HTTP/1.0 and refused over HTTP/1.1", async () => {
    const caller = `Authorization: Bearer ${suite.token("keyhold:verify")}\r\n`;
    expect(await ask(`${head("1.0")}${caller}\r\n${body}`)).toEqual([200]);
    expect(await ask(`${head("1.1")}${caller}\r\n${body}`)).toEqual([400]);
  });

  test("is refused over HTTP/0.9, which has no headers", async () => {
    const first = "GET /health/alive HTTP/1.1\r\nHost: localhost\r\n\r\n";
    expect(await ask(`${first}POST ${path}\r\n\r\n`)).toEqual([200, 400]);
  });
});
