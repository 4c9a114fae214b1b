import { callerName, type Principal } from "../domain/principal.ts";
import { networkOf } from "../lib/network.ts";

/** What a credential is presented for. A `VerifyApiKeyRequest` is one. */
export interface Presentation {
  /** Address of the client that presented the credential. A key that is restricted to addresses is rejected without it. */
  readonly clientIp?: string | undefined;
  /** Scopes that the credential must have, all of them. */
  readonly requiredScopes: readonly string[];
  /** The service that it was presented to. Undefined: a token that has an audience is rejected; null: any audience is accepted. */
  readonly audience?: string | null | undefined;
}

/** Nothing is known of where it is presented. */
export const NOTHING: Presentation = { requiredScopes: [] };

/** A credential that is exchanged for a token: any audience, and from no address. */
export const FOR_DERIVATION: Presentation = { requiredScopes: [], audience: null };

/** Returns the name of who presents a credential: a network, by the word of this caller. */
export function sourceOf({ clientIp }: Presentation, caller: Principal | undefined): string {
  const name = caller === undefined ? "" : callerName(caller);
  return `${name} ${networkOf(clientIp ?? caller?.clientAddress ?? "")}`;
}
