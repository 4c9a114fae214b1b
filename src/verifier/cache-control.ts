/** Returns how long a response is fresh in a private cache, in milliseconds, by `Cache-Control` and `Age` (RFC 9111 §4.2.1); undefined if unspecified. */
export function freshnessLifetime(headers: Headers): number | undefined {
  const directives = (headers.get("cache-control") ?? "").toLowerCase().split(",");
  const named = new Map(directives.map((directive) => split(directive.trim())));
  if (named.has("no-store") || named.has("no-cache")) return 0;
  const maxAge = seconds(named.get("max-age"));
  return maxAge === undefined ? undefined : Math.max(0, maxAge - (seconds(headers.get("age")) ?? 0)) * 1000;
}

function split(directive: string): [string, string] {
  const [name = "", value = ""] = directive.split("=");
  return [name.trim(), value.trim()];
}

function seconds(text: string | null | undefined): number | undefined {
  return /^\d{1,9}$/.test(text ?? "") ? Number(text) : undefined;
}
