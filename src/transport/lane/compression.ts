import { type Compression, compressionNegotiate } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";

/** As in Connect's handler, which takes the requests that are compressed themselves. */
const AVAILABLE = [compressionGzip, compressionBrotli];

/** Bytes below which compressing costs more than it saves, by Connect's own rule. */
export const MIN_COMPRESSED_BYTES = 1024;

/** How an answer may be compressed for a caller that says what it accepts; null: not at all. */
export function acceptedCompression(accepted: string | undefined): Compression | null {
  if (accepted === undefined || accepted === "identity") return null;
  return compressionNegotiate(AVAILABLE, null, accepted, "accept-encoding").response;
}
