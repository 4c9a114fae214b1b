/** Untyped JSON of a response. */
// biome-ignore lint/suspicious/noExplicitAny: each caller reads the members that it expects
export type Json = any;

export type Headers = Readonly<Record<string, string>>;

export const PATHS = {
  issued: "/v2alpha1/admin/issuedApiKeys",
  imported: "/v2alpha1/admin/importedApiKeys",
  batchImport: "/v2alpha1/admin/importedApiKeys:batchCreate",
  keys: "/v2alpha1/admin/apiKeys",
  verify: "/v2alpha1/admin/apiKeys:verify",
  batchVerify: "/v2alpha1/admin/apiKeys:batchVerify",
  derive: "/v2alpha1/admin/apiKeys:derive",
  jwks: "/v2alpha1/derivedKeys/jwks.json",
} as const;

/** Sends JSON and resolves to the JSON of the response. Rejects unless its status is 200. */
export function post(url: string, body: unknown, headers: Headers = {}, signal?: AbortSignal): Promise<Json> {
  return send("POST", url, body, headers, signal);
}

export function patch(url: string, body: unknown): Promise<Json> {
  return send("PATCH", url, body, {});
}

async function send(method: string, url: string, body: unknown, headers: Headers, signal?: AbortSignal): Promise<Json> {
  return answerOf(
    await fetch(url, {
      method,
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
      ...(signal !== undefined && { signal }),
    }),
  );
}

export async function get(url: string): Promise<Json> {
  return answerOf(await fetch(url));
}

async function answerOf(response: Response): Promise<Json> {
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.url} answered ${response.status}: ${text}`);
  return JSON.parse(text);
}

/** Runs work for each number below `count`, at most `atOnce` concurrently. Resolves to the results in order. */
export async function times<T>(count: number, work: (index: number) => Promise<T>, atOnce = 32): Promise<T[]> {
  const results = new Array<T>(count);
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const index = next++;
      results[index] = await work(index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker));
  return results;
}
