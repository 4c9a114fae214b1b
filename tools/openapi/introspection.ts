import type { JsonObject } from "@bufbuild/protobuf";
import { createTimeOf } from "../../src/domain/key.ts";
import { codeSamples } from "./code-samples.ts";
import { SAMPLES } from "./examples/samples.ts";
import { headerRefs, json, OTHER_ERROR, object, REQUEST_ID } from "./responses.ts";
import { openEnum, refTo } from "./schema.ts";

/** Token introspection (src/transport/gateways/introspect.ts). */
const TAG = "Introspection";

export const INTROSPECTION_TAGS = [{ name: TAG, description: "Verification by the standard of OAuth 2.0, RFC 7662." }];

const ERRORS = [
  ...["invalid_request", "invalid_client", "insufficient_scope", "temporarily_unavailable", "server_error"],
];

const text = (description: string): JsonObject => ({ type: "string", description });
const time = (description: string): JsonObject => ({ type: "integer", format: "int64", description });

export const INTROSPECTION_SCHEMAS: JsonObject = {
  IntrospectionRequest: {
    type: "object",
    description: "Other parameters are ignored, and so are those without a value.",
    properties: {
      token: text("Any credential: an issued secret, an imported raw key, or a derived token."),
      token_type_hint: text("Ignored."),
      client_ip: text(
        "Address of the client that presented the token. A key with ip_restriction is inactive without it.",
      ),
      required_scopes: text("Scopes that the token must have, separated by spaces."),
      audience: text("The service to which the token was presented. Absent: any; compare `aud`."),
    },
    required: ["token"],
  },
  IntrospectionResponse: {
    type: "object",
    description: "Members without a value are absent. If `active` is false, all others are.",
    properties: {
      active: { type: "boolean", description: "Whether the token is valid: check it in every response." },
      scope: text("The scopes of the token, separated by spaces."),
      client_id: text("Identifier of the key."),
      sub: text("The actor: the owner of the key."),
      token_type: text("`Bearer`"),
      exp: time("When the token expires, in seconds since the epoch. Absent: never."),
      iat: time("When the token was created, in seconds since the epoch."),
      iss: text("The issuer."),
      jti: text("Identifier of a derived token; otherwise that of the key."),
      aud: { type: "array", items: { type: "string" }, description: "The audience of a derived token that has one." },
    },
    required: ["active"],
  },
  OAuthError: object({
    error: openEnum("The error, for programs", ERRORS),
    error_description: text("For people."),
  }),
};

const inSeconds = (milliseconds: number) => Math.floor(milliseconds / 1000);

const ACTIVE = {
  active: true,
  scope: "deploy read",
  client_id: SAMPLES.issuedKeyId,
  sub: "team_42",
  token_type: "Bearer",
  exp: inSeconds(Date.parse("2027-02-20T09:30:00.123Z")),
  iat: inSeconds(createTimeOf(SAMPLES.issuedKeyId)),
  iss: "keyhold",
  jti: SAMPLES.issuedKeyId,
};

const NO_TOKEN = { error: "invalid_request", error_description: "token: is required" };

const REQUESTS: JsonObject = {
  active: { summary: "A valid credential", value: { token: SAMPLES.secret } },
  inactive: { summary: "A revoked one", value: { token: SAMPLES.revokedSecret } },
  "no token": { summary: "A request without a token", value: { token_type_hint: "access_token" } },
};

const DESCRIPTION = `Verifies a credential like \`:verify\`, in the form of RFC 7662.

Requires the scope \`keyhold:verify\` or \`keyhold:admin\`, by a bearer token, or by HTTP Basic with the token as the password.`;

/** The errors in the form of OAuth (RFC 6749 §5.2), which is not that of the other paths. */
const FAILURES: JsonObject = {
  400: failure("`invalid_request`: a parameter is missing, repeated or malformed.", [], {
    "no token": { value: NO_TOKEN },
  }),
  401: failure("`invalid_client`: the caller has no valid credential.", ["WWW-Authenticate"]),
  403: failure("`insufficient_scope`: the caller lacks the scope.", ["WWW-Authenticate"]),
  413: failure("`invalid_request`: the form is larger than 16 KiB."),
  415: failure("`invalid_request`: the body is not a form in UTF-8, or is compressed."),
  429: failure("`temporarily_unavailable`: too many calls with rejected credentials.", ["Retry-After"]),
  500: failure("`server_error`: an error of the server, which it has logged."),
  503: failure("`temporarily_unavailable`: nothing is known of the token.", ["Retry-After"]),
};

const PATH = "/v2alpha1/introspect";

export const INTROSPECTION_PATHS: JsonObject = {
  [PATH]: {
    post: {
      operationId: "Introspection_Introspect",
      tags: [TAG],
      summary: "Says whether a credential is valid, by RFC 7662",
      description: DESCRIPTION,
      security: [{ bearer: [] }, { basic: [] }],
      parameters: ["X-Request-Id", "Cache-Control"].map((name) => ({ $ref: `#/components/parameters/${name}` })),
      requestBody: {
        required: true,
        content: { "application/x-www-form-urlencoded": { schema: refTo("IntrospectionRequest"), examples: REQUESTS } },
      },
      responses: {
        200: {
          description: "Success.",
          headers: REQUEST_ID,
          content: json(refTo("IntrospectionResponse"), {
            active: { value: ACTIVE },
            inactive: { value: { active: false } },
          }),
        },
        ...FAILURES,
        default: OTHER_ERROR,
      },
      "x-codeSamples": codeSamples({
        httpMethod: "POST",
        path: PATH,
        needsToken: true,
        form: { token: SAMPLES.secret },
      }),
    },
  },
};

function failure(description: string, headers: readonly string[] = [], examples: JsonObject = {}): JsonObject {
  const all = { ...REQUEST_ID, ...headerRefs(headers) };
  return { description, headers: all, content: json(refTo("OAuthError"), examples) };
}
