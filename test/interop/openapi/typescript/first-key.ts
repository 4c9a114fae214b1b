import createClient from "openapi-fetch";
import type { paths } from "./generated/schema.ts";
import type { Step } from "./tap.ts";

/** The lines of docs/clients.md. */
export async function firstKey(baseUrl: string, token: string, ok: Step): Promise<void> {
  const keyhold = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });
  const body = { name: "deploy bot", actor_id: "team_42", scopes: ["read"] };
  const { data: issued, error } = await keyhold.POST("/v2alpha1/admin/issuedApiKeys", { body });
  if (issued?.secret === undefined) throw new Error(error?.error.message);
  const credential = { credential: issued.secret };
  const { data: verdict } = await keyhold.POST("/v2alpha1/admin/apiKeys:verify", { body: credential });
  ok("the secret is valid", verdict?.is_valid === true, verdict);
}
