import { adminTokens, oidcTokens, type VerifyToken } from "../auth/authenticators.ts";
import type { CallLimits } from "../auth/call-limits.ts";
import { type Authenticate, createGuard, type Guard } from "../auth/guard.ts";
import { type KeyPageSessionsOptions, keyPageSessions } from "../auth/key-page-sessions.ts";
import { classify } from "../credential/kinds.ts";
import { clientAddressBehind } from "../lib/client-address.ts";
import type { Config } from "./config/config.ts";
import type { Resources } from "./resources.ts";

export async function configuredGuard(
  { auth, oidc, trustedProxies }: Config,
  { keys, shapes }: Resources,
  verifyToken: VerifyToken,
  limits: CallLimits,
  ofKeyPages: Pick<KeyPageSessionsOptions, "open" | "verifyVersion">,
): Promise<Guard> {
  const isAdminToken = (credential: string) => classify(credential, shapes).type === "ISSUED_API_KEY";
  const authenticators: Authenticate[] = [];
  for (const method of auth) {
    if (method === "admin-token") authenticators.push(adminTokens(isAdminToken, verifyToken));
    if (method === "oidc" && oidc !== null) {
      // Loaded only when configured, because it needs a tenth of the memory of the rest of the server.
      const { createOidcVerifier } = await import("../token/oidc/verifier.ts");
      authenticators.push(oidcTokens(createOidcVerifier({ ...oidc, clock: keys.clock })));
    }
  }
  const allowUnauthenticated = auth.length === 0 || auth.includes("none");
  const clientAddressOf = clientAddressBehind(trustedProxies);
  const sessions = keyPageSessions({ ...ofKeyPages, allowUnauthenticated, clock: keys.clock });
  return createGuard({ authenticators, keyPageSessions: sessions, allowUnauthenticated, clientAddressOf, limits });
}
