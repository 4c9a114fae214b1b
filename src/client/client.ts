import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { DerivedKeysService } from "../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { ImportedApiKeysService } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { SelfServiceService } from "../../gen/keyhold/v2alpha1/self_service_pb.js";
import { withRequestIds } from "./request-ids.ts";
import { type RetryOptions, withRetries } from "./retries.ts";
import { type TokenSource, withToken } from "./token.ts";
import { type Fetch, fetchTransport } from "./transport.ts";

export interface KeyholdClientOptions {
  /** Where the server is, such as `https://keys.example.com`. Not needed with `transport`. */
  readonly baseUrl?: string;
  /** The bearer token of the caller, or what makes one for each call. */
  readonly token?: TokenSource;
  /** Milliseconds that a call may take with all its repeats; 10 s if absent, 0 for no limit. A call may have its own. */
  readonly timeoutMs?: number;
  /** `false`: nothing is repeated. */
  readonly retry?: RetryOptions | false;
  /** Sends the requests, if `globalThis.fetch` is not to. */
  readonly fetch?: Fetch;
  /** In place of `baseUrl` and `fetch`: another transport of Connect, such as that of `@connectrpc/connect-node` for gRPC. */
  readonly transport?: Transport;
}

/** The services of Keyhold as clients of Connect: `await client.apiKeys.verifyApiKey({ credential })`. */
export interface KeyholdClient {
  readonly issuedApiKeys: Client<typeof IssuedApiKeysService>;
  readonly importedApiKeys: Client<typeof ImportedApiKeysService>;
  readonly apiKeys: Client<typeof ApiKeysService>;
  readonly selfService: Client<typeof SelfServiceService>;
  readonly derivedKeys: Client<typeof DerivedKeysService>;
}

/**
 * A client of one server, or of several behind one address. Calls that create or import get a `request_id` (AIP-155), and calls that
 * may be repeated without harm are, when the server cannot answer for a moment (`RetryOptions`). Calls reject with a `ConnectError`;
 * `errorReason` and `fieldViolations` say more of it. Throws `TypeError` if `baseUrl` is not an http or https URL.
 */
export function createKeyholdClient(options: KeyholdClientOptions): KeyholdClient {
  const transport = transportOf(options);
  return {
    issuedApiKeys: createClient(IssuedApiKeysService, transport),
    importedApiKeys: createClient(ImportedApiKeysService, transport),
    apiKeys: createClient(ApiKeysService, transport),
    selfService: createClient(SelfServiceService, transport),
    derivedKeys: createClient(DerivedKeysService, transport),
  };
}

function transportOf({ baseUrl, token, timeoutMs = 10_000, retry, fetch, transport }: KeyholdClientOptions): Transport {
  const base = transport ?? fetchTransport(baseUrl, fetch);
  const authorized = token === undefined ? base : withToken(base, token);
  return withRequestIds(withRetries(authorized, timeoutMs, retry === false ? { maxAttempts: 1 } : retry));
}
