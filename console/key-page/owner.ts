import { type ApiKey, KeyKind, KeyStatus } from "../../gen/keyhold/v2alpha1/api_key_pb.js";
import type { KeyPageSession } from "../../gen/keyhold/v2alpha1/key_pages_pb.js";
import { useCaller, useCan } from "../session/permissions.ts";

/** Returns what the owner may do. */
export function useKeyPageSession(): KeyPageSession {
  const { keyPageSession } = useCaller();
  if (keyPageSession === undefined) throw new Error("the session is not one of the key page");
  return keyPageSession;
}

export type KeyAction = "rotate" | "endGrace" | "revoke";

const ACTIONS = ["rotate", "endGrace", "revoke"] as const satisfies readonly KeyAction[];

/** Returns the changes of a key that its state, its scopes and the session allow. The server decides in any case. */
export function useKeyActions({ status, kind, scopes, previousSecrets }: ApiKey): readonly KeyAction[] {
  const can = useCan();
  const { allowedScopes } = useKeyPageSession();
  const isAlive = status === KeyStatus.ACTIVE || status === KeyStatus.DISABLED;
  const isManaged = !scopes.some((scope) => scope.startsWith("keyhold:"));
  const isRotatable = isAlive && isManaged && scopes.every((scope) => allowedScopes.includes(scope));
  const allowed: Readonly<Record<KeyAction, boolean>> = {
    rotate: isRotatable && kind === KeyKind.ISSUED && can("IssuedApiKeysService/RotateIssuedApiKey"),
    endGrace: isRotatable && previousSecrets.length > 0 && can("IssuedApiKeysService/EndGracePeriod"),
    revoke: status !== KeyStatus.REVOKED && isManaged && can("ApiKeysService/RevokeApiKey"),
  };
  return ACTIONS.filter((action) => allowed[action]);
}
