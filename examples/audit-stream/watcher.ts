// Receives the events of the audit log, each once. Reads KEYHOLD_URL, KEYHOLD_TOKEN and RESUME_TOKEN_FILE.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { type AuditEvent, Code, ConnectError, createKeyholdClient } from "@keyhold/client";

const { KEYHOLD_URL: baseUrl = "", KEYHOLD_TOKEN: token, RESUME_TOKEN_FILE: file = "resume-token" } = process.env;
const { audit } = createKeyholdClient({ baseUrl, token });

/** With other errors, the receiver connects again. */
const PERMANENT = [Code.InvalidArgument, Code.OutOfRange, Code.PermissionDenied, Code.Unauthenticated];

function processEvent({ seq, action, keyId }: AuditEvent): void {
  console.info(`${seq} ${action} ${keyId}`);
}

/** Receives until the stream fails. Without a token, begins with the first event of the log. */
async function receive(): Promise<void> {
  const call = new AbortController();
  // A heartbeat arrives every 15 s: after 30 s without one, the connection is lost.
  const timeout = setTimeout(() => call.abort(), 30_000);
  const resumeToken = existsSync(file) ? readFileSync(file, "utf8") : "";
  try {
    const responses = audit.watchAuditEvents({ startSeq: 0n, resumeToken }, { signal: call.signal });
    for await (const { auditEvent, resumeToken: next } of responses) {
      timeout.refresh();
      if (auditEvent === undefined) continue;
      processEvent(auditEvent);
      // Save this in your database, in the transaction that processes the event.
      writeFileSync(file, next);
    }
  } finally {
    clearTimeout(timeout);
  }
}

for (;;) {
  try {
    await receive();
  } catch (reason) {
    const error = ConnectError.from(reason);
    if (PERMANENT.includes(error.code)) throw error;
    console.error(error.message);
  }
  // At different times, so that not all receivers connect at once after the server has restarted.
  await delay(1_000 + Math.random() * 2_000);
}
