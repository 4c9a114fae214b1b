/** `@keyhold/client/fastify` */
import type { FastifyReply, FastifyRequest } from "fastify";
import { type AdmissionOptions, type AdmittedCredential, createAdmission } from "./admission.ts";
import type { Verifier } from "./verdict.ts";

export type { AdmissionOptions, AdmittedCredential };

declare module "fastify" {
  interface FastifyRequest {
    /** The verified credential of the caller, set by `requireCredential`. */
    keyhold?: AdmittedCredential;
  }
}

/**
 * Returns an `onRequest` hook, for a route or a server, that rejects requests without a valid credential with these scopes.
 *
 * @example server.addHook("onRequest", requireCredential(verifier, { requiredScopes: ["reports.read"] }))
 */
export function requireCredential(verifier: Verifier, options?: AdmissionOptions<FastifyRequest>) {
  const admit = createAdmission(verifier, options);
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const admission = await admit(request);
    if (!admission.admitted) return reply.code(admission.status).headers(admission.headers).send(admission.body);
    request.keyhold = admission.credential;
    reply.headers(admission.headers);
    return undefined;
  };
}
