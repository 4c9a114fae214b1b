import { create, createRegistry, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import type { Rpc } from "../../api/rpc.ts";
import { invalidArgument } from "../../errors.ts";
import { onceFrozen } from "../../lib/once-frozen.ts";
import { fieldBound } from "../field-count.ts";
import { compileJsonReader } from "../json/reader.ts";
import { compileJsonWriter } from "../json/writer.ts";
import { BODY } from "../rest/json-text.ts";
import type { Response } from "./route.ts";

/** The messages of an RPC as bytes. */
export interface Codec {
  /** What follows the slash, or the plus, in the content type. */
  readonly name: "json" | "proto";
  /** Throws `INVALID_ARGUMENT`. */
  read(bytes: Uint8Array): Message;
  write(response: Response): string | Uint8Array;
}

/** JSON by the same rules, and with the same errors, as on the REST paths. */
export function jsonCodec({ method: { input, output } }: Rpc): Codec {
  return {
    name: "json",
    read: compileJsonReader(input),
    write: compileJsonWriter(output, { registry: createRegistry() }),
  };
}

export function protoCodec({ method: { input, output } }: Rpc): Codec {
  const requireFewFields = fieldBound(input);
  return {
    name: "proto",
    read(bytes) {
      requireFewFields(bytes);
      try {
        return fromBinary(input, bytes);
      } catch {
        // The error of Protobuf-ES quotes what the caller sent, which may be a secret.
        throw malformed();
      }
    },
    write: onceFrozen((response: Response) => toBinary(output, create(output, response))),
  };
}

export function malformed(): Error {
  return invalidArgument(BODY, "is not a well-formed request of this RPC");
}
