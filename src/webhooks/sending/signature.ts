import { Webhook } from "standardwebhooks";

/** Returns the headers of Standard Webhooks, with one signature for each secret. `now`: milliseconds since the Unix epoch. */
export function signatureHeaders(
  { id, body, secrets }: { readonly id: string; readonly body: string; readonly secrets: readonly Uint8Array[] },
  now: number,
): Record<string, string> {
  const sign = (secret: Uint8Array) => new Webhook(secret, { format: "raw" }).sign(id, new Date(now), body);
  return {
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(now / 1000)),
    "webhook-signature": secrets.map(sign).join(" "),
  };
}
