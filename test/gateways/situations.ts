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

type Row = readonly [name: string, sent: Situation["sent"], status: Situation["status"], challenge?: string];

const bearer = (credential: string): Fields => [["Authorization", `Bearer ${credential}`]];
const apiKey = (credential: string): Fields => [["X-Api-Key", credential]];

/** Requests without an upgrade. A gateway's own status or other limit is in its `limits`. */
const ROWS: readonly Row[] = [
  ["valid", ({ valid }) => ({ headers: bearer(valid) }), 200],
  ["no credential", () => ({}), 401],
  ["unknown", ({ unknown }) => ({ headers: bearer(unknown) }), 401, "invalid_token"],
  ["no key at all", () => ({ headers: bearer("x") }), 401, "invalid_token"],
  ["revoked", ({ revoked }) => ({ headers: bearer(revoked) }), 401, "invalid_token"],
  ["expired", ({ expired }) => ({ headers: bearer(expired) }), 401, "invalid_token"],
  ["missing scope", ({ withoutScope }) => ({ headers: bearer(withoutScope) }), 403, "insufficient_scope"],
  ["a token for another audience", ({ billing }) => ({ headers: bearer(billing) }), 403],
  [
    "a token for another audience, which the query names",
    ({ billing }) => ({ target: "/?audience=billing", headers: bearer(billing) }),
    403,
  ],
  ["right address", ({ restricted }) => ({ headers: bearer(restricted) }), 200],
  ["wrong address", ({ restricted }) => ({ headers: bearer(restricted), from: "127.0.0.3" }), 403],
  [
    "wrong address with spoofed X-Forwarded-For",
    ({ restricted }) => ({
      headers: [...bearer(restricted), ["X-Forwarded-For", "127.0.0.2"], ["Forwarded", "for=127.0.0.2"]],
      from: "127.0.0.3",
    }),
    403,
  ],
  ["two Authorization headers", ({ valid, other }) => ({ headers: [...bearer(valid), ...bearer(other)] }), 400],
  [
    "Authorization twice, the second one without a key",
    ({ valid }) => ({ headers: [...bearer(valid), ...bearer("x")] }),
    400,
  ],
  [
    "two credentials in one header",
    ({ valid, other }) => ({ headers: [["Authorization", `Bearer ${valid}, Bearer ${other}`]] }),
    400,
  ],
  [
    "the same credential in two Authorization headers",
    ({ valid }) => ({ headers: [...bearer(valid), ...bearer(valid)] }),
    400,
  ],
  ["two X-Api-Key headers", ({ valid }) => ({ headers: [...apiKey(valid), ...apiKey(valid)] }), 400],
  ["the same credential in two headers", ({ valid }) => ({ headers: [...bearer(valid), ...apiKey(valid)] }), 200],
  ["bearer in lower case", ({ valid }) => ({ headers: [["authorization", `bearer  ${valid}`]] }), 200],
  ["Bearer without a credential", () => ({ headers: [["Authorization", "Bearer"]] }), 400],
  ["a credential that is not ASCII", () => ({ headers: bearer("\u00ff") }), 400],
  ["another scheme", () => ({ headers: [["Authorization", "Basic eDp5"]] }), 401],
  [
    "another scheme beside X-Api-Key",
    ({ valid }) => ({ headers: [["Authorization", "Basic eDp5"], ...apiKey(valid)] }),
    200,
  ],
  ["X-Api-Key", ({ valid }) => ({ headers: [["X-Api-Key", valid]] }), 200],
  [
    "two credentials in two headers",
    ({ valid, other }) => ({ headers: [...bearer(valid), ["X-Api-Key", other]] }),
    400,
  ],
  [
    "POST with a body",
    ({ valid }) => ({ method: "POST", target: "/orders?page=2", headers: bearer(valid), body: "a body" }),
    200,
  ],
  [
    "POST with a body and a revoked key",
    ({ revoked }) => ({ method: "POST", headers: bearer(revoked), body: "a body" }),
    401,
  ],
  ["HEAD", ({ valid }) => ({ method: "HEAD", headers: bearer(valid) }), 200],
  ["HEAD with a revoked key", ({ revoked }) => ({ method: "HEAD", headers: bearer(revoked) }), 401],
  ["OPTIONS without a credential", () => ({ method: "OPTIONS" }), 401],
  ...["required_scopes=", "required_scopes=write", "required_scopes", "audience=x", "%3Frequired_scopes=write"].map(
    (query): Row => [
      `missing scope with ?${query}`,
      ({ withoutScope }) => ({ target: `/?${query}`, headers: bearer(withoutScope) }),
      403,
    ],
  ),
  ...["required_scopes=admin&audience=x", "required_scopes=read", "required_scopes=", "required_scopes=%zz"].map(
    (query): Row => [
      `valid with ?${query}`,
      ({ valid }) => ({ target: `/list?${query}`, headers: bearer(valid) }),
      200,
    ],
  ),
  [
    "missing scope with headers that name others",
    ({ withoutScope }) => ({
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
    403,
  ],
];

export const SITUATIONS = ROWS.map(
  ([name, sent, status, challenge]): Situation => ({ name, sent, status, ...(challenge && { challenge }) }),
);

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
  ..."/ // /./ /../ /%2e%2e/ /.%2e/x /;x /x;/../ /x/..;/ /%00 /x%0a /x\\..\\y /x%2f..%2fy".split(" "),
  ..."/_keyhold //_keyhold /./_keyhold /%5fkeyhold /x/../_keyhold /_keyhold;x /_keyhold/".split(" "),
  ..."/_KEYHOLD /_keyhold?required_scopes= /@keyhold_refused /%40keyhold_refused".split(" "),
  ..."/v2alpha1/forwardAuth //v2alpha1/forwardAuth /v2alpha1/forwardAuth?required_scopes=".split(" "),
  ..."/v2alpha1/./forwardAuth /v2alpha1/introspect /v2alpha1/admin/apiKeys:verify".split(" "),
  ..."/v2alpha1/admin/issuedApiKeys /health/ready /metrics /v2alpha1/derivedKeys/jwks.json".split(" "),
  ..."/openapi.json /.well-known/x /balancer-manager /server-status /config/".split(" "),
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
