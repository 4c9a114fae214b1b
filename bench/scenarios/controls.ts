import { type Fixture, once } from "../harness/fixture.ts";
import type { Scenario } from "../harness/scenario.ts";
import { grpcLoad, verifyCall } from "../load/grpc-load.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { PATHS, patch, post, times } from "../subject/client.ts";
import { KEY } from "../subject/fill.ts";
import { warmService } from "./warm-service.ts";

/** Number of tokens of each kind that the load cycles through, all cached. */
const TOKENS = 1000;

const [SCOPE] = KEY.scopes;

/** Where the tokens of keys with controls are presented. */
const PRESENTATION = { client_ip: "203.0.113.7", required_scopes: [SCOPE], audience: "documents" } as const;

/** Address lists as of a customer with some offices: the address is in the last block. */
const ALLOWED = ["192.0.2.0/24", "198.51.100.16/28", "2001:db8::/32", "203.0.113.0/24"];

/** Derived JWTs of keys without any control, and of keys with an address list, derived for an audience. All were verified. */
const tokens = once(async (fixture: Fixture) => {
  const { url } = await warmService(fixture);
  const [plain, controlled] = [
    await issueTokens(url, {}),
    await issueTokens(url, { audience: [PRESENTATION.audience] }),
  ];
  // A key that is restricted to addresses derives no tokens.
  await times(TOKENS, (index) => {
    const restriction = { ip_restriction: { allowed_cidrs: ALLOWED } };
    return patch(`${url}${PATHS.issued}/${controlled[index]?.keyId}?update_mask=ip_restriction`, restriction);
  });
  await verifyEach(url, plain, {});
  await verifyEach(url, controlled, PRESENTATION);
  return { url, plain: plain.map(({ token }) => token), controlled: controlled.map(({ token }) => token) };
});

interface Token {
  readonly keyId: string;
  readonly token: string;
}

function issueTokens(url: string, derivation: { readonly audience?: readonly string[] }): Promise<Token[]> {
  return times(TOKENS, async () => {
    const { secret, issued_api_key } = await post(url + PATHS.issued, KEY);
    const request = { credential: secret, algorithm: "TOKEN_ALGORITHM_JWT", ttl: "24h", ...derivation };
    const { token } = await post(url + PATHS.derive, request);
    return { keyId: issued_api_key.key_id, token: token.token };
  });
}

async function verifyEach(url: string, tokens: readonly Token[], presentation: object): Promise<void> {
  await times(tokens.length, async (index) => {
    const verdict = await post(url + PATHS.verify, { credential: tokens[index]?.token, ...presentation });
    if (!verdict.is_valid) throw new Error(`not valid: ${JSON.stringify(verdict)}`);
  });
}

const shared = {
  group: "verify",
  against: "the same of a key without any control",
  unit: "requests/s",
  judged: "ratio",
} as const;

/** The cost of an address list, required scopes and an audience. */
export const controlsScenarios: readonly Scenario[] = [
  {
    ...shared,
    name: "verify-controls",
    work: "verify, cached, derived JWT, with addresses, required scopes and audience, REST HTTP/1.1",
    prepare: async (fixture) => {
      const { url, plain, controlled } = await tokens(fixture);
      const load = { url: url + PATHS.verify, headers: JSON_HEADERS, connections: CONNECTIONS };
      const bodies = (of: readonly string[], presentation: object) =>
        jsonBodies(
          fixture,
          of.map((credential) => ({ credential, ...presentation })),
        );
      return {
        subject: httpLoad(fixture, { ...load, bodies: await bodies(controlled, PRESENTATION) }),
        baseline: httpLoad(fixture, { ...load, bodies: await bodies(plain, {}) }),
      };
    },
  },
  {
    ...shared,
    name: "verify-controls-grpc",
    work: "verify, cached, derived JWT, with addresses, required scopes and audience, gRPC",
    prepare: async (fixture) => {
      const { url, plain, controlled } = await tokens(fixture);
      const { client_ip: clientIp, required_scopes, audience } = PRESENTATION;
      const presentation = { clientIp, requiredScopes: [...required_scopes], audience };
      return {
        subject: await grpcLoad(fixture, url, verifyCall(controlled[0] ?? "", presentation)),
        baseline: await grpcLoad(fixture, url, verifyCall(plain[0] ?? "")),
      };
    },
  },
];
