import { decodeFormText } from "../lib/form-encoding.ts";
import { decodeUtf8 } from "../lib/utf8.ts";
import { unauthenticated } from "./rejected-credential.ts";

/** Returns the credential in the header `Authorization` of a call. Throws `CALLER_UNAUTHENTICATED` if there is none. */
export type CredentialOf = (authorization: string | undefined) => string;

const BEARER = /^bearer +([^\s,]+)$/i;
const BASIC = /^basic +([A-Za-z0-9+/]+={0,2})$/i;
const CREDENTIAL = /^[^\s,]+$/;

/** RFC 6750 §2.1; the scheme in any case (RFC 9110 §11.1). */
export const bearerOf: CredentialOf = (authorization) => credentialIn(authorization, BEARER, "Bearer <admin token>");

/** Accepts the scheme Basic too, with any user name: the admin token, as the password, identifies the caller. */
export const bearerOrPasswordOf: CredentialOf = (authorization) => {
  const form = "Bearer <admin token>, or Basic with the admin token as the password";
  if (authorization === undefined || !BASIC.test(authorization)) return credentialIn(authorization, BEARER, form);
  const password = passwordIn(credentialIn(authorization, BASIC, form));
  if (password === undefined || !CREDENTIAL.test(password)) throw malformed(form);
  return password;
};

function credentialIn(authorization: string | undefined, scheme: RegExp, form: string): string {
  if (authorization === undefined) {
    throw unauthenticated(`the Authorization header is missing; it must have the form ${form}`, { reason: "MISSING" });
  }
  const [, credential] = scheme.exec(authorization) ?? [];
  if (credential === undefined) throw malformed(form);
  return credential;
}

function malformed(form: string): Error {
  return unauthenticated(`the Authorization header must have the form ${form}`, { reason: "MALFORMED" });
}

/** Returns the password in Base64 (RFC 7617 §2), which OAuth clients encode like a form value before (RFC 6749 §2.3.1). */
function passwordIn(base64: string): string | undefined {
  const text = decodeUtf8(Buffer.from(base64, "base64"));
  const colon = text?.indexOf(":") ?? -1;
  return text === undefined || colon < 0 ? undefined : decodeFormText(text.slice(colon + 1));
}
