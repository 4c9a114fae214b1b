/** `@keyhold/client/express` */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type AdmissionOptions, type AdmittedCredential, createAdmission } from "./admission.ts";
import type { Verifier } from "./verdict.ts";

export type { AdmissionOptions, AdmittedCredential };

declare global {
  namespace Express {
    interface Request {
      /** The verified credential of the caller, set by `requireCredential`. */
      keyhold?: AdmittedCredential;
    }
  }
}

type Request = IncomingMessage & { keyhold?: AdmittedCredential };

/**
 * Returns Express (or Connect-style) middleware that rejects requests without a valid credential with these scopes.
 *
 * @example app.use("/reports", requireCredential(verifier, { requiredScopes: ["reports.read"] }))
 */
export function requireCredential<R extends Request = Request>(verifier: Verifier, options?: AdmissionOptions<R>) {
  const admit = createAdmission(verifier, options);
  return (request: R, response: ServerResponse, next: (error?: unknown) => void): void => {
    admit(request).then((admission) => {
      if (admission.admitted) {
        request.keyhold = admission.credential;
        for (const [name, value] of Object.entries(admission.headers)) response.setHeader(name, value);
        return next();
      }
      const { status, headers, body } = admission;
      response.writeHead(status, { ...headers, "content-type": "application/json; charset=utf-8" });
      response.end(JSON.stringify(body));
    }, next);
  };
}
