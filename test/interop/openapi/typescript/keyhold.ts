import createClient, { type Client } from "openapi-fetch";
import type { paths as PlainPaths } from "./generated/plain.ts";
import type { components, paths } from "./generated/schema.ts";

export type Schemas = components["schemas"];

const { KEYHOLD_URL: baseUrl = "", KEYHOLD_TOKEN: token } = process.env;
const headers = { authorization: `Bearer ${token}` };

/** With enums, by `openapi-typescript --enum`. */
export const keyhold: Client<paths> = createClient<paths>({ baseUrl, headers });

/** With unions of strings, by `openapi-typescript` without options. */
export const plain: Client<PlainPaths> = createClient<PlainPaths>({ baseUrl, headers });

export const stranger: Client<paths> = createClient<paths>({ baseUrl, headers: { authorization: "Bearer unknown" } });

interface Answer<T> {
  readonly data?: T | undefined;
  readonly error?: Schemas["ErrorResponse"] | undefined;
  readonly response: Response;
}

/** Returns the typed body of a response. */
export async function answered<T>(call: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await call;
  if (data === undefined) throw new Error(`${response.status}: ${JSON.stringify(error)}`);
  return data;
}

/** Returns the typed error of a call. */
export async function refused(call: Promise<Answer<unknown>>): Promise<Schemas["ErrorStatus"]> {
  const { error, response } = await call;
  if (error?.error.code !== response.status) throw new Error(`${response.status}: ${JSON.stringify(error)}`);
  return error.error;
}

export function reasonOf({ details }: Schemas["ErrorStatus"]): string | undefined {
  return details.find(({ reason }) => reason !== undefined)?.reason;
}

export async function verify(credential: string): Promise<Schemas["VerifyApiKeyResponse"]> {
  return answered(keyhold.POST("/v2alpha1/admin/apiKeys:verify", { body: { credential } }));
}

/** Returns the verdicts on all of them, from one batch. */
export async function verdicts(credentials: readonly string[]): Promise<string> {
  const requests = credentials.map((credential) => ({ credential }));
  const { results } = await answered(keyhold.POST("/v2alpha1/admin/apiKeys:batchVerify", { body: { requests } }));
  return results.map((one) => (one.is_valid ? "valid" : one.error_code)).join(" ");
}
