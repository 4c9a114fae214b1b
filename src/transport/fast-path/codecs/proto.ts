import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Rpc } from "../../../api/rpc.ts";
import { invalidArgument } from "../../../domain/errors.ts";
import { memoize } from "../../../lib/memoize.ts";
import { fieldBound } from "../../field-count.ts";
import { BODY } from "../../rest/strict-json.ts";
import type { Codec, Response } from "../route.ts";

/** The messages of an RPC in Protobuf's binary form. Frozen responses are encoded once. */
export function protoCodec({ method: { input, output }, maxRequestBytes }: Rpc): Codec {
  const requireFewFields = fieldBound(input, maxRequestBytes);
  return {
    read(bytes) {
      requireFewFields(bytes);
      try {
        return fromBinary(input, bytes);
      } catch {
        // The library's error quotes what the caller sent, which may be a secret.
        throw malformed();
      }
    },
    write: memoize((response: Response) => toBinary(output, create(output, response))),
  };
}

/** The error for a body that is no message of the RPC. */
export function malformed(): Error {
  return invalidArgument(BODY, "is not a well-formed request of this RPC");
}
