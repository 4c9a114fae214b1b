/** `keyhold/express` */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type AdmissionOptions, admit } from "./admission.ts";
import type { VerifiedCredential, Verifier } from "./verdict.ts";

declare global {
  namespace Express {
    interface Request {
      /** Who calls, behind `requireCredential`. */
      keyhold?: VerifiedCredential;
    }
  }
}

/** Middleware of Express, and of whatever else takes it, that lets in only who has a good credential with these scopes. */
export function requireCredential(verifier: Verifier, options?: AdmissionOptions) {
  return (
    request: IncomingMessage & { keyhold?: VerifiedCredential },
    response: ServerResponse,
    next: (error?: unknown) => void,
  ): void => {
    admit(request.headers, verifier, options).then((admission) => {
      if (!admission.admitted) return void send(response, admission.status, admission.headers, admission.body);
      request.keyhold = admission.credential;
      next();
    }, next);
  };
}

function send(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: unknown,
): void {
  response.writeHead(status, { ...headers, "content-type": "application/json; charset=utf-8" });
  response.end(JSON.stringify(body));
}
