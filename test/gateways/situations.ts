import type { Sent } from "./client.ts";
import type { Keys } from "./servers.ts";

export type Fields = readonly (readonly [name: string, value: string])[];

/** One request of a client, with the answer by Keyhold's statuses (docs/gateways.md). */
export interface Situation {
  readonly name: string;
  /** The request, with this credential. */
  readonly sent: (keys: Keys) => Sent;
  /** Status for the client; 200 also means that the request reached the application. */
  readonly status: 200 | 400 | 401 | 403;
  /** A part of `WWW-Authenticate`. */
  readonly challenge?: string;
}

const bearer = (credential: string): Fields => [["Authorization", `Bearer ${credential}`]];
const apiKey = (credential: string): Fields => [["X-Api-Key", credential]];

/** Requests without an upgrade. A gateway's own status or other limit is in its `limits`. */
export const SITUATIONS: readonly Situation[] = [
  { name: "valid", sent: ({ valid }) => ({ headers: bearer(valid) }), status: 200 },
  { name: "no credential", sent: () => ({}), status: 401 },
  { name: "unknown", sent: ({ unknown }) => ({ headers: bearer(unknown) }), status: 401, challenge: "invalid_token" },
  { name: "no key at all", sent: () => ({ headers: bearer("x") }), status: 401, challenge: "invalid_token" },
  { name: "revoked", sent: ({ revoked }) => ({ headers: bearer(revoked) }), status: 401, challenge: "invalid_token" },
  { name: "expired", sent: ({ expired }) => ({ headers: bearer(expired) }), status: 401, challenge: "invalid_token" },
  {
    name: "missing scope",
    sent: ({ withoutScope }) => ({ headers: bearer(withoutScope) }),
    status: 403,
    challenge: "insufficient_scope",
  },
  { name: "a token for another audience", sent: ({ billing }) => ({ headers: bearer(billing) }), status: 403 },
  {
    name: "a token for another audience, which the query names",
    sent: ({ billing }) => ({ target: "/?audience=billing", headers: bearer(billing) }),
    status: 403,
  },
  { name: "right address", sent: ({ restricted }) => ({ headers: bearer(restricted) }), status: 200 },
  {
    name: "wrong address",
    sent: ({ restricted }) => ({ headers: bearer(restricted), from: "127.0.0.3" }),
    status: 403,
  },
  {
    name: "wrong address with spoofed X-Forwarded-For",
    sent: ({ restricted }) => ({
      headers: [...bearer(restricted), ["X-Forwarded-For", "127.0.0.2"], ["Forwarded", "for=127.0.0.2"]],
      from: "127.0.0.3",
    }),
    status: 403,
  },
  {
    name: "two Authorization headers",
    sent: ({ valid, other }) => ({ headers: [...bearer(valid), ...bearer(other)] }),
    status: 400,
  },
  {
    name: "Authorization twice, the second one without a key",
    sent: ({ valid }) => ({ headers: [...bearer(valid), ...bearer("x")] }),
    status: 400,
  },
  {
    name: "two credentials in one header",
    sent: ({ valid, other }) => ({ headers: [["Authorization", `Bearer ${valid}, Bearer ${other}`]] }),
    status: 400,
  },
  {
    name: "the same credential in two Authorization headers",
    sent: ({ valid }) => ({ headers: [...bearer(valid), ...bearer(valid)] }),
    status: 400,
  },
  {
    name: "two X-Api-Key headers",
    sent: ({ valid }) => ({ headers: [...apiKey(valid), ...apiKey(valid)] }),
    status: 400,
  },
  {
    name: "the same credential in two headers",
    sent: ({ valid }) => ({ headers: [...bearer(valid), ...apiKey(valid)] }),
    status: 200,
  },
  {
    name: "bearer in lower case",
    sent: ({ valid }) => ({ headers: [["authorization", `bearer  ${valid}`]] }),
    status: 200,
  },
  { name: "Bearer without a credential", sent: () => ({ headers: [["Authorization", "Bearer"]] }), status: 400 },
  { name: "a credential that is not ASCII", sent: () => ({ headers: bearer("\u00ff") }), status: 400 },
  { name: "another scheme", sent: () => ({ headers: [["Authorization", "Basic eDp5"]] }), status: 401 },
  {
    name: "another scheme beside X-Api-Key",
    sent: ({ valid }) => ({ headers: [["Authorization", "Basic eDp5"], ...apiKey(valid)] }),
    status: 200,
  },
  { name: "X-Api-Key", sent: ({ valid }) => ({ headers: [["X-Api-Key", valid]] }), status: 200 },
  {
    name: "two credentials in two headers",
    sent: ({ valid, other }) => ({ headers: [...bearer(valid), ["X-Api-Key", other]] }),
    status: 400,
  },
  {
    name: "POST with a body",
    sent: ({ valid }) => ({ method: "POST", target: "/orders?page=2", headers: bearer(valid), body: "a body" }),
    status: 200,
  },
  {
    name: "POST with a body and a revoked key",
    sent: ({ revoked }) => ({ method: "POST", headers: bearer(revoked), body: "a body" }),
    status: 401,
  },
  { name: "HEAD", sent: ({ valid }) => ({ method: "HEAD", headers: bearer(valid) }), status: 200 },
  {
    name: "HEAD with a revoked key",
    sent: ({ revoked }) => ({ method: "HEAD", headers: bearer(revoked) }),
    status: 401,
  },
  { name: "OPTIONS without a credential", sent: () => ({ method: "OPTIONS" }), status: 401 },
  ...["required_scopes=", "required_scopes=write", "required_scopes", "audience=x", "%3Frequired_scopes=write"].map(
    (query): Situation => ({
      name: `missing scope with ?${query}`,
      sent: ({ withoutScope }) => ({ target: `/?${query}`, headers: bearer(withoutScope) }),
      status: 403,
    }),
  ),
  ...["required_scopes=admin&audience=x", "required_scopes=read", "required_scopes=", "required_scopes=%zz"].map(
    (query): Situation => ({
      name: `valid with ?${query}`,
      sent: ({ valid }) => ({ target: `/list?${query}`, headers: bearer(valid) }),
      status: 200,
    }),
  ),
  {
    name: "missing scope with headers that name others",
    sent: ({ withoutScope }) => ({
      headers: [
        ...bearer(withoutScope),
        ["X-Keyhold-Required-Scopes", "write"],
        ["Required-Scopes", "write"],
        ["X-Original-URI", "/?required_scopes=write"],
        ["X-Forwarded-Uri", "/?required_scopes=write"],
        ["X-Original-Method", "OPTIONS"],
        ["X-Forwarded-Method", "OPTIONS"],
        ["X-HTTP-Method-Override", "OPTIONS"],
      ],
    }),
    status: 403,
  },
];

/** What only depends on the headers of a request to an application that needs the scope `read`. */
export const OF_HEADERS = SITUATIONS.filter(({ sent }) => {
  const keys = new Proxy({} as Keys, { get: (_, name) => String(name) });
  return !Object.keys(sent(keys)).some((field) => ["method", "target", "body"].includes(field));
});

/**
 * Status of services that verify credentials themselves, where it is not that of gateways: they do not tell whoever has found a key that it
 * is valid elsewhere.
 */
export const SERVICE_STATUSES: Readonly<Record<string, number>> = {
  ...{ "wrong address": 401, "wrong address with spoofed X-Forwarded-For": 401 },
  "a token for another audience": 401,
};

/** Paths that a client may hope are not protected, or are Keyhold's. Each is sent without a credential, and with a valid one. */
export const PATHS: readonly string[] = [
  ...[
    "/",
    "//",
    "/./",
    "/../",
    "/%2e%2e/",
    "/.%2e/x",
    "/;x",
    "/x;/../",
    "/x/..;/",
    "/%00",
    "/x%0a",
    "/x\\..\\y",
    "/x%2f..%2fy",
  ],
  ...[
    "/_keyhold",
    "//_keyhold",
    "/./_keyhold",
    "/%5fkeyhold",
    "/x/../_keyhold",
    "/_keyhold;x",
    "/_keyhold/",
    "/_KEYHOLD",
  ],
  ...["/_keyhold?required_scopes=", "/@keyhold_refused", "/%40keyhold_refused"],
  ...[
    "/v2alpha1/forwardAuth",
    "//v2alpha1/forwardAuth",
    "/v2alpha1/forwardAuth?required_scopes=",
    "/v2alpha1/./forwardAuth",
  ],
  ...[
    "/v2alpha1/introspect",
    "/v2alpha1/admin/apiKeys:verify",
    "/v2alpha1/admin/issuedApiKeys",
    "/health/ready",
    "/metrics",
  ],
  ...[
    "/v2alpha1/derivedKeys/jwks.json",
    "/openapi.json",
    "/.well-known/x",
    "/balancer-manager",
    "/server-status",
    "/config/",
  ],
];

/** Headers of clients that a proxy may mistake for Keyhold's, by the name that an application reads. */
export const SPOOFED: Fields = [
  ["X-Keyhold-Key-Id", "spoofed"],
  ["x-keyhold-actor-id", "spoofed"],
  ["X-KEYHOLD-SCOPES", "spoofed"],
  ["X_Keyhold_Key_Id", "spoofed"],
  ["X.Keyhold.Actor.Id", "spoofed"],
  ["X-Keyhold_Scopes", "spoofed"],
  ["X_Keyhold-Actor.Id", "spoofed"],
  ["X-Keyhold-Authorization", "Bearer spoofed"],
  ["X_Keyhold_Authorization", "Bearer spoofed"],
];

const hops = (...values: readonly string[]): Fields => values.map((value) => ["Connection", value]);

/** Requests to remove other headers (RFC 9110 §7.6.1). */
export const HOP_BY_HOP: readonly Fields[] = [
  hops("close, X-Keyhold-Key-Id, X-Keyhold-Actor-Id, X-Keyhold-Scopes, X-Keyhold-Authorization, X-Forwarded-For"),
  hops("keep-alive, X-Keyhold-Actor-Id"),
  hops("x-keyhold-scopes"),
  hops("keep-alive,\tX-KEYHOLD-KEY-ID\t,"),
  hops("keep-alive", "X-Keyhold-Actor-Id"),
  hops("X-Keyhold-Actor-Id", "keep-alive"),
  [...hops("Upgrade, X-Keyhold-Actor-Id"), ["Upgrade", "websocket"]],
  hops("close, X-Forwarded-For"),
  hops("closed"),
];

/** Fields about the connection that change nothing. */
export const OWN_HOPS: readonly Fields[] = [
  ...["close", "Keep-Alive", "keep-alive,close", " , close,", "upgrade"].map((value) => hops(value)),
  hops("keep-alive", "TE"),
  [...hops("TE, close"), ["TE", "trailers"]],
  [["Proxy-Connection", "keep-alive, X-Keyhold-Actor-Id"]],
  [["Keep-Alive", "X-Keyhold-Actor-Id"]],
  [["TE", "X-Keyhold-Actor-Id"]],
];

/** A name that no configuration lists, such as a metadata key of a later release. */
export const UNLISTED: Fields = [["X-Keyhold-Future", "spoofed"]];
