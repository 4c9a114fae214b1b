import { violationsOf } from "../error-alert.tsx";

/** The fields of the form by the first segment of the path that the server names. */
const FIELDS: Readonly<Record<string, string>> = {
  name: "name",
  actor_id: "actorId",
  scopes: "scopes",
  ttl: "ttl",
  expire_time: "ttl",
  metadata: "metadata",
  ip_restriction: "allowedCidrs",
  restricted_to_actor_ids: "restrictedToActorIds",
};

/** Returns what the server rejects, by field of the form. */
export function fieldErrors(error: Error | null): Record<string, string> {
  return Object.fromEntries(
    violationsOf(error).flatMap(({ field, description }) => {
      const [segment = ""] = field.replace(/^(?:issued|imported)_api_key\./, "").split(/[.[]/);
      const name = FIELDS[segment];
      return name === undefined ? [] : [[name, description]];
    }),
  );
}
