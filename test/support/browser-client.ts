import { expect } from "vitest";

/** The part of a browser that follows no redirect by itself and keeps cookies, which servers of one host share whatever their ports. */
export class BrowserClient {
  readonly cookies = new Map<string, string>();

  async fetch(url: string | URL, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (this.cookies.size > 0) headers.set("cookie", [...this.cookies].map((pair) => pair.join("=")).join("; "));
    const response = await fetch(url, { ...init, headers, redirect: "manual" });
    for (const field of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(field) ?? [];
      if (value === "") this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return response;
  }
}

/** Returns where a response redirects. */
export function locationOf(response: Response, base?: string | URL): string {
  expect(response.status).toBeGreaterThanOrEqual(300);
  expect(response.status).toBeLessThan(400);
  return new URL(response.headers.get("location") ?? "", base).href;
}

/** Signs in at the issuer of `oidc-issuer.ts`, and consents or cancels. Returns the URL to which the issuer returns the person. */
export async function signInAtIssuer(
  browser: BrowserClient,
  authorizationUrl: string,
  { login = "ada", cancels = false } = {},
): Promise<string> {
  let url = authorizationUrl;
  let response = await browser.fetch(url);
  for (let steps = 0; steps < 20; steps++) {
    if (response.status !== 200) {
      url = locationOf(response, url);
      if (!url.startsWith(new URL(authorizationUrl).origin)) return url;
      response = await browser.fetch(url);
      continue;
    }
    const html = await response.text();
    const [, action = ""] = /<form [^>]*action="([^"]+)"/.exec(html) ?? [];
    const [, prompt = ""] = /name="prompt" value="(\w+)"/.exec(html) ?? [];
    url = new URL(cancels ? `${action}/abort` : action, url).href;
    const body = new URLSearchParams({ prompt, login, password: "any" });
    response = await browser.fetch(url, cancels ? {} : { method: "POST", body });
  }
  throw new Error("the issuer did not end the sign-in");
}
