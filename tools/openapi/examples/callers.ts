import { permittedRpcs } from "../../../src/api/v2alpha1/rpcs.ts";
import { ADMIN_SCOPE } from "../../../src/domain/admin-scopes.ts";
import { UNRESTRICTED } from "../../../src/domain/principal.ts";
import type { Examples } from "./example.ts";
import { SAMPLES } from "./samples.ts";

const scopes = [ADMIN_SCOPE];

export const callerExamples: Readonly<Record<string, Examples>> = {
  CallersService_WhoAmI: {
    admin: {
      summary: "An admin token with every right",
      status: 200,
      response: {
        ...{ subject: SAMPLES.creatorKeyId, auth_method: "AUTH_METHOD_ADMIN_TOKEN", scopes },
        ...{ actor_restricted: false, restricted_to_actor_ids: [] },
        permitted_rpcs: [...permittedRpcs({ scopes, restrictions: UNRESTRICTED })],
      },
    },
  },
};
