import type { Fragment, Sql } from "postgres";
import type { EndpointSecrets } from "../../webhooks/endpoint.ts";

/** The wrapped secrets of an endpoint. */
export interface SecretsRow {
  readonly endpointId: string;
  readonly wrapped: Uint8Array;
  readonly wrapKeyId: string;
  readonly oldWrapped: Uint8Array | null;
  readonly oldWrapKeyId: string | null;
}

/** The old secret is null after its grace period. */
export function secretColumns(sql: Sql): Fragment {
  return sql`wrapped_secret AS wrapped, wrap_key_id,
    CASE WHEN old_secret_expire_time > now() THEN old_wrapped_secret END AS old_wrapped, old_wrap_key_id`;
}

export function secretsOf({ endpointId, wrapped, wrapKeyId, oldWrapped, oldWrapKeyId }: SecretsRow): EndpointSecrets {
  const oldSecret =
    oldWrapped === null || oldWrapKeyId === null ? null : { wrapped: oldWrapped, wrapKeyId: oldWrapKeyId };
  return { endpointId, secret: { wrapped, wrapKeyId }, oldSecret };
}
