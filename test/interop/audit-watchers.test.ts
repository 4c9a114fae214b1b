import { expect, inject, test } from "vitest";
import { useKeysCommand } from "../cli/keys/keys-command.ts";
import { checkWatcher } from "./audit-watchers.ts";

const command = useKeysCommand();

const SCRIPT = `exec "${process.execPath}" --input-type=module -e '
const { KEYHOLD_URL, KEYHOLD_TOKEN } = process.env;
for (;;) {
  try {
    const headers = { authorization: "Bearer " + KEYHOLD_TOKEN };
    const response = await fetch(KEYHOLD_URL + "/v2alpha1/admin/auditEvents:watch?start_seq=0", { headers });
    let text = "";
    for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
      const lines = (text + part).split("\\n");
      text = lines.pop();
      for (const line of lines) {
        const { audit_event: event } = line.startsWith("data: ") ? JSON.parse(line.slice(6)) : {};
        if (event) console.log(event.seq, event.action, event.key_id);
      }
    }
  } catch {}
  await new Promise((resolve) => setTimeout(resolve, 100));
}'`;

test("a receiver that begins anew after a lost connection fails every check of its events", async () => {
  const env = { KEYHOLD_URL: command.suite.server.url, KEYHOLD_TOKEN: command.token };
  const checks = await checkWatcher("receiver", SCRIPT, inject("testDir"), { env }, 2_000);
  expect(checks.filter(({ holds }) => !holds).map(({ name }) => name)).toEqual([
    "receiver: each event once over connections that end",
    "receiver: each event once after the server was unreachable",
    "receiver: each event once after the receiver was killed",
    "receiver: each event once after a connection became silent",
    "receiver: each event once before its token is revoked",
    "receiver: exits when its token is revoked",
  ]);
});
