/** `keyhold/fastify` */
import type { FastifyReply, FastifyRequest } from "fastify";
import { type AdmissionOptions, admit } from "./admission.ts";
import type { VerifiedCredential, Verifier } from "./verdict.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Who calls, behind `requireCredential`. */
    keyhold?: VerifiedCredential;
  }
}

/** An `onRequest` hook, of one route or of all, that lets in only who has a good credential with these scopes. */
export function requireCredential(verifier: Verifier, options?: AdmissionOptions) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const admission = await admit(request.headers, verifier, options);
    if (!admission.admitted) return reply.code(admission.status).headers(admission.headers).send(admission.body);
    request.keyhold = admission.credential;
    return undefined;
  };
}
