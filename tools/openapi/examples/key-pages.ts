import type { JsonObject } from "@bufbuild/protobuf";
import type { Examples } from "./example.ts";
import { invalidArgument, SAMPLES } from "./samples.ts";

const body: JsonObject = {
  actor_id: "team_42",
  permissions: ["KEY_PAGE_PERMISSION_CREATE", "KEY_PAGE_PERMISSION_ROTATE", "KEY_PAGE_PERMISSION_REVOKE"],
  allowed_scopes: ["deploy", "read"],
  max_ttl: "90d",
  return_url: "https://app.example.com/settings",
};

export const keyPageExamples: Readonly<Record<string, Examples>> = {
  KeyPagesService_CreateKeyPageSession: {
    create: {
      summary: "An owner who may create, rotate and revoke",
      body,
      status: 200,
      response: {
        session_id: SAMPLES.keyPageSessionId,
        url: SAMPLES.keyPageUrl,
        url_expire_time: "2026-11-22T09:40:00.123Z",
      },
    },
    reserved: {
      summary: "A scope over Keyhold",
      body: { ...body, allowed_scopes: ["keyhold:admin"] },
      status: 400,
      response: invalidArgument(
        "allowed_scopes[0]",
        "must not be a scope over Keyhold: the owner of keys gets no rights over the service",
        "VALUE_NOT_ALLOWED",
      ),
    },
  },
};
