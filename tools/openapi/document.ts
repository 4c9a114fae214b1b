import type { DescMethod, DescService, JsonObject } from "@bufbuild/protobuf";
import { SERVICES } from "../../src/api/v2alpha1/rpcs.ts";
import { readVersion } from "../../src/server/version.ts";
import type { RestMethod } from "../../src/transport/rest/http-rule.ts";
import { SAMPLE_SERVER } from "./code-samples.ts";
import type { CommentOf } from "./comments.ts";
import { COMMON_EXAMPLES } from "./examples/common.ts";
import { INTROSPECTION_PATHS, INTROSPECTION_SCHEMAS, INTROSPECTION_TAGS } from "./introspection.ts";
import { operationsOf, type PathEntry } from "./operation.ts";
import { PLAIN_PATHS, PLAIN_SCHEMAS, PLAIN_TAGS } from "./plain.ts";
import { HEADER_PARAMETERS } from "./request.ts";
import { errorSchemas, HEADERS } from "./responses.ts";
import { Schemas } from "./schema.ts";

const DESCRIPTION = `Issues, imports, verifies, rotates and revokes API keys, and derives tokens from them.

Responses use snake_case. Requests may also use lowerCamelCase. A request with an unknown field, an unknown enum name, a wrong type, or
one field under both names is rejected: the schemas of requests do not say so, because code generators would turn them into maps. A body
has at most 1 MiB, for \`:batchCreate\` 4 MiB.

Clients must ignore unknown fields in responses, and accept unknown values where a schema has \`x-extensible-enum\`.

The same calls are available over gRPC, gRPC-Web and Connect. Not in this document: \`StreamVerify\`, which needs a stream of gRPC or Connect,
\`/v2alpha1/forwardAuth\`, which gateways ask in the method of their client, if \`KEYHOLD_GATEWAYS\` switches it on, and the
tree of the audit log below \`/v2alpha1/audit/\`, which has the form of C2SP tlog-tiles.`;

const BEARER = `An admin token, or an access token of the configured OIDC issuer, with the scope that the operation names. A server
without \`KEYHOLD_AUTH\`, which accepts calls only from its own machine, requires none.`;

/** The OpenAPI 3.1 document of the REST paths. */
export function openApiDocument(comment: CommentOf): JsonObject {
  const schemas = new Schemas(comment);
  const entries = SERVICES.flatMap(restMethodsOf).flatMap((method) => operationsOf(method, schemas, comment));
  const errors = errorSchemas(schemas);
  return {
    openapi: "3.1.0",
    info: {
      title: "Keyhold",
      // The paths have the version of the API. Generators need a semantic one.
      version: readVersion(),
      description: DESCRIPTION,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [
      { url: "/", description: "The server that serves this document" },
      { url: SAMPLE_SERVER, description: "A server with the default settings" },
    ],
    tags: [
      ...SERVICES.map((service) => ({ name: service.name, description: comment(service) })),
      ...INTROSPECTION_TAGS,
      ...PLAIN_TAGS,
    ],
    paths: { ...pathsOf(entries), ...INTROSPECTION_PATHS, ...PLAIN_PATHS },
    components: {
      schemas: { ...schemas.components, ...errors, ...INTROSPECTION_SCHEMAS, ...PLAIN_SCHEMAS },
      parameters: HEADER_PARAMETERS,
      headers: HEADERS,
      examples: COMMON_EXAMPLES,
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: BEARER },
        basic: {
          type: "http",
          scheme: "basic",
          description: "Any user name, and the token of `bearer` as the password.",
        },
      },
    },
  };
}

function restMethodsOf({ methods }: DescService): RestMethod[] {
  return methods.filter((method: DescMethod): method is RestMethod =>
    ["unary", "server_streaming"].includes(method.methodKind),
  );
}

function pathsOf(entries: readonly PathEntry[]): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const { path, httpMethod, operation } of entries) {
    paths[path] = { ...paths[path], [httpMethod]: operation };
  }
  return paths;
}
