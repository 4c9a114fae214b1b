import { createServer, type RequestListener, type Server } from "node:http";
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose";
import { Provider } from "oidc-provider";
import { ADMIN_SCOPES } from "../../src/domain/admin-scopes.ts";
import { listenLocally } from "./listen.ts";

const ALG = "ES256";
/** The client that may request tokens. */
export const CLIENT = { id: "operator", secret: "the secret of the operator, for tests" };

/** The clients of the console, public and confidential. As native applications, their redirect URIs may have any port (RFC 8252 §7.3). */
export const CONSOLE = { id: "console", confidentialId: "console-with-secret", secret: "the secret of the console" };

/** The login at the issuer of a person whose access tokens fit in no cookie. */
export const VERBOSE_LOGIN = "verbose";

/** A real OpenID Connect issuer on a loopback port: `oidc-provider` with the client credentials grant. People sign in with any login and password. */
export interface OidcIssuer {
  readonly issuer: string;
  /** The audience of its access tokens. */
  readonly audience: string;
  /** Requests an access token (RFC 9068) by client credentials; it is valid for an hour. */
  token(scopes: readonly string[]): Promise<string>;
  /** Signs claims with the issuer's own key, for tokens that the issuer itself would not create. */
  sign(claims: JWTPayload): Promise<string>;
  /** Replaces the signing key at once; the old one is no longer published. */
  rotateKeys(): Promise<void>;
  /** Stops listening. */
  close(): Promise<void>;
}

interface SigningKey {
  readonly kid: string;
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
}

export interface IssuerOptions {
  readonly port?: number;
  /** Seconds for which access tokens are valid. */
  readonly ttl?: number;
}

/** Grants any scope; the token also has the scopes as `realm_access.roles`, like tokens of Keycloak. */
export async function startOidcIssuer({ port = 0, ttl = 3600 }: IssuerOptions = {}): Promise<OidcIssuer> {
  let key = await generateKey(1);
  let handler: RequestListener | undefined;
  let generation = 1;
  const server = createServer((request, response) => handler?.(request, response));
  const issuer = `http://127.0.0.1:${await listenLocally(server, port)}`;
  const audience = "https://keyhold.test";
  handler = createProvider(issuer, audience, key.jwk, ttl);
  return {
    issuer,
    audience,
    token: (scopes) => requestToken(issuer, audience, scopes),
    sign: (claims) =>
      new SignJWT(claims).setProtectedHeader({ alg: ALG, kid: key.kid, typ: "at+jwt" }).sign(key.privateKey),
    rotateKeys: async () => {
      generation += 1;
      key = await generateKey(generation);
      handler = createProvider(issuer, audience, key.jwk, ttl);
    },
    close: () => closeServer(server),
  };
}

async function generateKey(generation: number): Promise<SigningKey> {
  const { privateKey } = await generateKeyPair(ALG, { extractable: true });
  const kid = `key-${generation}`;
  return { kid, privateKey, jwk: { ...(await exportJWK(privateKey)), kid, alg: ALG, use: "sig" } };
}

function consoleClient(client_id: string, client: object) {
  return {
    client_id,
    ...client,
    application_type: "native",
    grant_types: ["authorization_code"],
    response_types: ["code"],
    redirect_uris: ["http://127.0.0.1/console/oidc/callback", "https://keyhold.test/console/oidc/callback"],
    post_logout_redirect_uris: ["http://127.0.0.1/console"],
  };
}

function createProvider(issuer: string, audience: string, jwk: JWK, ttl: number): RequestListener {
  const provider = new Provider(issuer, {
    jwks: { keys: [jwk] },
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        grant_types: ["client_credentials"],
        response_types: [],
        redirect_uris: [],
      },
      consoleClient(CONSOLE.id, { token_endpoint_auth_method: "none" }),
      consoleClient(CONSOLE.confidentialId, { client_secret: CONSOLE.secret }),
    ],
    scopes: ["openid", ...ADMIN_SCOPES],
    findAccount: (_: unknown, accountId: string) => ({ accountId, claims: async () => ({ sub: accountId }) }),
    clientDefaults: { id_token_signed_response_alg: ALG },
    enabledJWA: { idTokenSigningAlgValues: [ALG] },
    extraTokenClaims: (_: unknown, token: { scope?: string; accountId?: string }) => ({
      realm_access: { roles: token.scope?.split(" ") ?? [] },
      ...(token.accountId === VERBOSE_LOGIN && { groups: "x".repeat(4096) }),
    }),
    ttl: { ClientCredentials: 3600, AccessToken: ttl, IdToken: 3600, Grant: 3600, Session: 3600, Interaction: 3600 },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (context: { oidc: { params: { scope?: string } } }) => ({
          audience,
          scope: context.oidc.params.scope ?? ADMIN_SCOPES.join(" "),
          accessTokenFormat: "jwt",
          accessTokenTTL: ttl,
          jwt: { sign: { alg: ALG } },
        }),
      },
    },
  });
  return provider.callback();
}

async function requestToken(issuer: string, audience: string, scopes: readonly string[]): Promise<string> {
  const credentials = [CLIENT.id, CLIENT.secret].map(encodeURIComponent).join(":");
  const response = await fetch(`${issuer}/token`, {
    method: "POST",
    headers: { authorization: `Basic ${btoa(credentials)}` },
    body: new URLSearchParams({ grant_type: "client_credentials", resource: audience, scope: scopes.join(" ") }),
  });
  const body: unknown = await response.json();
  const token = new Map(Object.entries(Object(body))).get("access_token");
  if (typeof token !== "string") throw new Error(`the issuer gave no token: ${JSON.stringify(body)}`);
  return token;
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.close((error) => (error === undefined ? resolve() : reject(error)));
    server.closeAllConnections();
  });
}

/** Returns the settings of a server whose console people sign in to at this issuer, to read keys. */
export function consoleSettings({ issuer, audience }: Pick<OidcIssuer, "issuer" | "audience">): Record<string, string> {
  return {
    KEYHOLD_AUTH: "admin-token,oidc",
    KEYHOLD_OIDC_ISSUER: issuer,
    KEYHOLD_OIDC_AUDIENCE: audience,
    KEYHOLD_CONSOLE_OIDC_CLIENT_ID: CONSOLE.id,
    KEYHOLD_CONSOLE_OIDC_SCOPES: "keyhold:keys.read",
  };
}
