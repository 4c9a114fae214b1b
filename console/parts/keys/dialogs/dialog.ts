import type { ApiKey } from "../../../../gen/keyhold/v2alpha1/api_key_pb.js";

/** A dialog about a key, which is in the document only while it is open. */
export interface KeyDialog {
  readonly apiKey: ApiKey;
  readonly onClose: () => void;
}
