import { RECURSION_LIMIT } from "./rest/request-decoder.ts";

/** The form of JSON over Connect and gRPC, which is that of the REST paths too (contract §2). */
export const JSON_OPTIONS = {
  useProtoFieldName: true,
  alwaysEmitImplicit: true,
  ignoreUnknownFields: false,
  recursionLimit: RECURSION_LIMIT,
};
