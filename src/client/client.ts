import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { ActorsService } from "../../gen/keyhold/v2alpha1/actors_pb.js";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { AuditService } from "../../gen/keyhold/v2alpha1/audit_pb.js";
import { CallersService } from "../../gen/keyhold/v2alpha1/callers_pb.js";
import { DerivedKeysService } from "../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { HmacKeysService } from "../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import { ImportedApiKeysService } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { KeyPagesService } from "../../gen/keyhold/v2alpha1/key_pages_pb.js";
import { SelfServiceService } from "../../gen/keyhold/v2alpha1/self_service_pb.js";
import { UsageService } from "../../gen/keyhold/v2alpha1/usage_pb.js";
import { WebhookEndpointsService } from "../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { withRequestIds } from "./request-ids.ts";
import { type RetryOptions, withRetries } from "./retries.ts";
import { withStream } from "./streams.ts";
import { type TokenSource, withToken } from "./token.ts";
import { type Fetch, fetchTransport } from "./transport.ts";

export interface KeyholdClientOptions {
  /** The server's address, such as `https://keys.example.com`. Not needed with `transport`. */
  readonly baseUrl?: string;
  /** The caller's bearer token, or a function that returns one for each call. */
  readonly token?: TokenSource;
  /** Timeout of a call including its retries, in milliseconds; 10 s by default, 0 for none. A call may override it. */
  readonly timeoutMs?: number;
  /** Retry policy; `false` disables retries. */
  readonly retry?: RetryOptions | false;
  /** Replaces `globalThis.fetch`. */
  readonly fetch?: Fetch;
  /** Replaces `baseUrl` and `fetch`: another Connect transport, such as that of `@connectrpc/connect-node` for gRPC. */
  readonly transport?: Transport;
  /**
   * Whether the calls of `verifyApiKey` share one stream of `StreamVerify`: for services that verify thousands of credentials per second.
   * Requires a `transport` that streams in both directions; `fetch` cannot. False by default.
   */
  readonly stream?: boolean;
}

/** A Connect client for each service of Keyhold. */
export interface KeyholdClient {
  readonly issuedApiKeys: Client<typeof IssuedApiKeysService>;
  readonly importedApiKeys: Client<typeof ImportedApiKeysService>;
  readonly hmacKeys: Client<typeof HmacKeysService>;
  readonly apiKeys: Client<typeof ApiKeysService>;
  readonly selfService: Client<typeof SelfServiceService>;
  readonly derivedKeys: Client<typeof DerivedKeysService>;
  readonly audit: Client<typeof AuditService>;
  readonly usage: Client<typeof UsageService>;
  readonly actors: Client<typeof ActorsService>;
  readonly webhookEndpoints: Client<typeof WebhookEndpointsService>;
  readonly keyPages: Client<typeof KeyPagesService>;
  readonly callers: Client<typeof CallersService>;
}

/**
 * Creates a client of a Keyhold server. Calls that create or import get a `request_id` (AIP-155); idempotent calls are retried on
 * UNAVAILABLE and on connection loss (`RetryOptions`). Calls reject with a `ConnectError`; `errorReason` and `fieldViolations` return its
 * details.
 *
 * @example
 * const keyhold = createKeyholdClient({ baseUrl: "https://keys.example.com", token });
 * const { isValid } = await keyhold.apiKeys.verifyApiKey({ credential });
 * @throws `TypeError` if `baseUrl` is not an http or https URL, and for `stream` without a `transport`.
 */
export function createKeyholdClient(options: KeyholdClientOptions): KeyholdClient {
  const transport = transportOf(options);
  return {
    issuedApiKeys: createClient(IssuedApiKeysService, transport),
    importedApiKeys: createClient(ImportedApiKeysService, transport),
    hmacKeys: createClient(HmacKeysService, transport),
    apiKeys: createClient(ApiKeysService, transport),
    selfService: createClient(SelfServiceService, transport),
    derivedKeys: createClient(DerivedKeysService, transport),
    audit: createClient(AuditService, transport),
    usage: createClient(UsageService, transport),
    actors: createClient(ActorsService, transport),
    webhookEndpoints: createClient(WebhookEndpointsService, transport),
    keyPages: createClient(KeyPagesService, transport),
    callers: createClient(CallersService, transport),
  };
}

function transportOf(options: KeyholdClientOptions): Transport {
  const { baseUrl, token, timeoutMs = 10_000, retry, fetch, transport, stream = false } = options;
  if (stream && transport === undefined)
    throw new TypeError(
      "stream: requires a transport over HTTP/2, such as createGrpcTransport of @connectrpc/connect-node",
    );
  const base = transport ?? fetchTransport(baseUrl, fetch);
  const authorized = token === undefined ? base : withToken(base, token);
  const streamed = stream ? withStream(authorized) : authorized;
  return withRequestIds(withRetries(streamed, timeoutMs, retry === false ? { maxAttempts: 1 } : retry));
}
