import type { CallRecord } from "../../audit/event.ts";
import { callerName, localOperator, type Principal } from "../../domain/principal.ts";
import { nodeName, processUser } from "../../lib/node-name.ts";

/** The setting that the triggers of the audit log read (`audit_call`, migration 0026). */
export const CALL_SETTING = "keyhold.call";

/** Characters; a header may have thousands. */
const MAX_USER_AGENT = 256;

const NODE = nodeName();

/** Returns who makes a change, and from where, for its event. Contains no secret. */
function callRecord(principal: Principal, requestId?: string): CallRecord {
  const { method, subject, keyId, issuer, rpc, peerAddress, clientAddress, userAgent, callId } = principal;
  return {
    ...{ caller: callerName(principal), method, subject, node: NODE },
    ...(keyId !== undefined && { key_id: keyId }),
    ...(issuer !== undefined && { issuer }),
    ...(rpc !== "" && { rpc }),
    ...(peerAddress !== "" && { peer_ip: peerAddress }),
    ...(clientAddress !== "" && { client_ip: clientAddress }),
    ...(userAgent !== "" && { user_agent: storable(userAgent.slice(0, MAX_USER_AGENT)) }),
    ...(callId !== "" && { call_id: callId }),
    ...(requestId !== undefined && { request_id: requestId }),
  };
}

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

/** JSON in PostgreSQL contains neither NUL nor lone surrogates. */
function storable(text: string): string {
  return text.toWellFormed().replaceAll("\0", "");
}
