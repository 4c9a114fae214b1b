import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  HeaderValueOption_HeaderAppendAction as AppendAction,
  type CheckResponseSchema,
} from "../../../gen/envoy/service/auth/v3/ext_authz_pb.js";
import { GATEWAY_CODES, type GatewayDecision } from "../gateways/decision.ts";
import { type GatewayIdentity, type HeaderField, IDENTITY_PREFIX } from "../gateways/identity-headers.ts";

export type CheckAnswer = MessageInitShape<typeof CheckResponseSchema>;

/**
 * Returns the answer to Envoy. `fields` are those of the client, names and values in turn. Envoy sets headers first and then removes some,
 * so those that are set, in place of any that the client sent, are not among the removed ones.
 */
export function answerTo(decision: GatewayDecision, fields: readonly string[]): CheckAnswer {
  if (decision.status !== 200) return deny(decision);
  const spoofed = spoofedIn(fields);
  const isOurs = (name: string) => decision.headers.some(([ours]) => ours === name);
  return new Pass(decision, spoofed.length === 0 ? NONE : spoofed.filter((name) => !isOurs(name)));
}

/** The answer that passes a request. Its fields are made on use: with an encoded answer none is. */
class Pass {
  readonly #decision: GatewayDecision;
  readonly #headersToRemove: string[];

  constructor(decision: GatewayDecision, headersToRemove: string[]) {
    this.#decision = decision;
    this.#headersToRemove = headersToRemove;
  }

  /** Headers that are removed depend on the request, and states of limits on the call. */
  get answers() {
    const { answers, limitHeaders = NO_HEADERS } = this.#decision;
    return this.#headersToRemove.length === 0 && limitHeaders.length === 0 ? answers : undefined;
  }

  get status() {
    return { code: GATEWAY_CODES[this.#decision.status] };
  }

  get httpResponse() {
    const headers = this.#decision.headers.filter(([name]) => name.startsWith(IDENTITY_PREFIX)).map(option);
    const responseHeadersToAdd = (this.#decision.limitHeaders ?? NO_HEADERS).map(option);
    const value = { headers, headersToRemove: this.#headersToRemove, responseHeadersToAdd };
    return { case: "okResponse" as const, value };
  }

  get dynamicMetadata() {
    const { identity } = this.#decision;
    return identity && metadataOf(identity);
  }
}

const NO_HEADERS: readonly HeaderField[] = [];

/** `x-keyhold-…` in every spelling that CGI or WSGI give the same name. */
const SPOOFED = /^x[^a-z0-9]keyhold[^a-z0-9]/;

const NONE: string[] = [];

/** Returns the names of headers that an application may take for ours. Envoy cannot remove them by a pattern. */
function spoofedIn(fields: readonly string[]): string[] {
  let names: Set<string> | undefined;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (!SPOOFED.test(name)) continue;
    names ??= new Set();
    names.add(name);
  }
  return names === undefined ? NONE : [...names];
}

function deny({ status, headers, body }: GatewayDecision): CheckAnswer {
  const value = { status: { code: status }, headers: headers.map(option), body };
  return { status: { code: GATEWAY_CODES[status] }, httpResponse: { case: "deniedResponse", value } };
}

/** Replaces a header of the client, also by an empty value. */
function option([key, value]: HeaderField) {
  return { header: { key, value }, appendAction: AppendAction.OVERWRITE_IF_EXISTS_OR_ADD, keepEmptyValue: true };
}

/** For other filters and the access log of Envoy. */
function metadataOf({ keyId, actorId, scopes, metadata }: GatewayIdentity) {
  return { key_id: keyId, actor_id: actorId, scopes: [...scopes], metadata: { ...metadata } };
}
