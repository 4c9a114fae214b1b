import type { CacheMode } from "../../verify/reader.ts";
import type { Call } from "../rpc.ts";

/** Returns the cache mode requested by `Cache-Control` (RFC 9111 §5.2.1), as a header or gRPC metadata. Ignores other directives. */
export function cacheModeOf(call: Call): CacheMode {
  const header = call.header("cache-control");
  if (header === undefined) return "default";
  const directives = header.toLowerCase().split(",").map(nameOf);
  if (directives.includes("no-store")) return "no-store";
  return directives.includes("no-cache") ? "no-cache" : "default";
}

function nameOf(directive: string): string {
  const [name = ""] = directive.split("=");
  return name.trim();
}
