import { callRecord } from "../../audit/call-record.ts";
import { localOperator, type Principal } from "../../domain/principal.ts";
import { processUser } from "../../lib/node-name.ts";

/** The setting that the triggers of the audit log read (`audit_call`, migration 0026). */
export const CALL_SETTING = "keyhold.call";

/** Returns the value of the setting for a statement that makes the changes of one call. */
export function callContext(principal: Principal, requestId?: string): string {
  return JSON.stringify(callRecord(principal, requestId));
}

/** Returns the same for a statement that stores the keys of several calls: by key id, who creates it. */
export function callsContext(principals: ReadonlyMap<string, Principal>): string {
  const calls = [...principals].map(([keyId, principal]) => [keyId, callRecord(principal)]);
  return JSON.stringify({ calls: Object.fromEntries(calls) });
}

/** The value for changes that no call makes: those of commands, and of a server itself. */
export const PROCESS_CALL = callContext(localOperator(processUser(), ""));
