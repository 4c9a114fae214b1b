import { actorExamples } from "./actors.ts";
import { auditExamples } from "./audit.ts";
import { callerExamples } from "./callers.ts";
import type { Examples } from "./example.ts";
import { hmacKeyExamples } from "./hmac-keys.ts";
import { importedExamples } from "./imported.ts";
import { issuedExamples } from "./issued.ts";
import { keyPageExamples } from "./key-pages.ts";
import { keyExamples } from "./keys.ts";
import { usageExamples } from "./usage.ts";
import { webhookExamples } from "./webhooks.ts";

const all: Readonly<Record<string, Examples>> = {
  ...issuedExamples,
  ...importedExamples,
  ...hmacKeyExamples,
  ...keyExamples,
  ...auditExamples,
  ...usageExamples,
  ...actorExamples,
  ...webhookExamples,
  ...callerExamples,
  ...keyPageExamples,
};

/** The examples of an operation. Throws `Error` if it has none. */
export function examplesOf(operationId: string): Examples {
  const examples = all[operationId];
  if (examples === undefined) throw new Error(`${operationId} has no examples`);
  return examples;
}
