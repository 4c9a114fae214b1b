import { create, createRegistry, type JsonValue, type Registry, toJson } from "@bufbuild/protobuf";
import { type Any, AnySchema, anyPack } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { ERROR_DOMAIN } from "../../api/errors.ts";
import { Refusal } from "./refusal.ts";
import { STATUSES } from "./status.ts";

/** The body of an error (AIP-193). */
export interface ErrorBody {
  readonly error: {
    /** The HTTP status. */
    readonly code: number;
    readonly message: string;
    /** The name in google.rpc.Code. */
    readonly status: string;
    readonly details: readonly JsonValue[];
  };
}

/** An error as REST tells it. A detail whose type `registry` does not know is left out: an error must not fail. */
export function toErrorBody(error: ConnectError | Refusal, registry: Registry): ErrorBody {
  if (error instanceof Refusal) {
    const { code, http, message } = error.row;
    const detail = { desc: ErrorInfoSchema, value: { reason: error.reason, domain: ERROR_DOMAIN } };
    return { error: { code: http, message, status: STATUSES[code].name, details: detailsToJson([detail], registry) } };
  }
  const { http, name } = STATUSES[error.code];
  return {
    error: { code: http, message: error.rawMessage, status: name, details: detailsToJson(error.details, registry) },
  };
}

type Detail = ConnectError["details"][number];

function detailsToJson(details: readonly Detail[], registry: Registry): readonly JsonValue[] {
  return details.flatMap((detail) => {
    try {
      return [detailToJson(detail, registry)];
    } catch {
      return [];
    }
  });
}

function detailToJson(detail: Detail, registry: Registry): JsonValue {
  const isForeign = "desc" in detail && registry.getMessage(detail.desc.typeName) === undefined;
  const json = toJson(AnySchema, packDetail(detail), {
    registry: isForeign ? createRegistry(detail.desc) : registry,
    useProtoFieldName: true,
    alwaysEmitImplicit: true,
  });
  // Type first, as people read it.
  return { "@type": null, ...Object(json) };
}

/** A detail is a message on its way out, or bytes where it came in from elsewhere. */
function packDetail(detail: Detail): Any {
  if ("desc" in detail) return anyPack(detail.desc, create(detail.desc, detail.value));
  return create(AnySchema, { typeUrl: `type.googleapis.com/${detail.type}`, value: detail.value });
}
