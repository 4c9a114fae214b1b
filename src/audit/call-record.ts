import { callerName, type Principal } from "../domain/principal.ts";
import { nodeName } from "../lib/node-name.ts";
import type { CallRecord } from "./event.ts";

/** Characters; a header may have thousands. */
const MAX_USER_AGENT = 256;

const NODE = nodeName();

/** Returns who makes a call, and from where, for its event. Contains no secret. */
export function callRecord(principal: Principal, requestId?: string): CallRecord {
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

/** JSON in PostgreSQL contains neither NUL nor lone surrogates. */
function storable(text: string): string {
  return text.toWellFormed().replaceAll("\0", "");
}
