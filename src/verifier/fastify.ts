/** `keyhold/fastify` */
import type { FastifyReply, FastifyRequest } from "fastify";
import { type AdmissionOptions, type AdmittedCredential, admissionBy } from "./admission.ts";
import type { Verifier } from "./verdict.ts";

export type { AdmissionOptions, AdmittedCredential };

declare module "fastify" {
  interface FastifyRequest {
    /** Who calls, behind `requireCredential`. */
    keyhold?: AdmittedCredential;
  }
}

/** An `onRequest` hook, of one route or of all, that lets in only who has a good credential with these scopes. */
export function requireCredential(verifier: Verifier, options?: AdmissionOptions<FastifyRequest>) {
  const admit = admissionBy(verifier, options);
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const admission = await admit(request);
    if (!admission.admitted) return reply.code(admission.status).headers(admission.headers).send(admission.body);
    request.keyhold = admission.credential;
    return undefined;
  };
}
