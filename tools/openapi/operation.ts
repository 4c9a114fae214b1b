import type { JsonObject } from "@bufbuild/protobuf";
import { rowOf } from "../../src/api/v2alpha1/rpcs.ts";
import { type Policy, scopesIncluding } from "../../src/domain/admin-scopes.ts";
import { type RestMethod, type RestRule, readRestRules } from "../../src/transport/rest/http-rule.ts";
import { clientCall } from "./client-call.ts";
import { codeSamples } from "./code-samples.ts";
import type { CommentOf } from "./comments.ts";
import type { Examples } from "./examples/example.ts";
import { examplesOf } from "./examples/examples.ts";
import { reasonsOf } from "./reasons.ts";
import { bodyOf, nameOfBinding, parametersOf, pathOf } from "./request.ts";
import { responsesOf } from "./responses.ts";
import type { Schemas } from "./schema.ts";

/** A path of the document with one HTTP method. */
export interface PathEntry {
  readonly path: string;
  readonly httpMethod: string;
  readonly operation: JsonObject;
}

/** The operations of an RPC, one for each of its bindings. */
export function operationsOf(method: RestMethod, schemas: Schemas, comment: CommentOf): PathEntry[] {
  return readRestRules(method).map((binding) => ({
    path: pathOf(binding),
    httpMethod: binding.httpMethod.toLowerCase(),
    operation: operation(method, `${method.parent.name}_${nameOfBinding(method, binding)}`, binding, schemas, comment),
  }));
}

function operation(
  method: RestMethod,
  operationId: string,
  binding: RestRule,
  schemas: Schemas,
  comment: CommentOf,
): JsonObject {
  const examples = examplesOf(operationId);
  const requestBody = bodyOf(method, binding, schemas, examples);
  const needsToken = rowOf(method)?.policy !== "public";
  return {
    operationId,
    tags: [method.parent.name],
    ...wording(method, comment),
    security: needsToken ? [{ bearer: [] }] : [],
    parameters: parametersOf(method, binding, schemas, examples),
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: responsesOf(method, schemas, reasonsOf(method, requestBody !== undefined), examples),
    "x-codeSamples": samplesOf(method, binding, examples, needsToken),
  };
}

/** Code samples of the first example. */
function samplesOf(method: RestMethod, binding: RestRule, examples: Examples, needsToken: boolean): JsonObject[] {
  const [example] = Object.values(examples);
  if (example === undefined) throw new Error(`${method}: no example`);
  const { httpMethod } = binding;
  const isStream = method.methodKind === "server_streaming";
  const request = { ...example, httpMethod, path: pathOf(binding), needsToken, isStream };
  return codeSamples(request, clientCall(method, binding, example, needsToken));
}

/** The first sentence of the comment, and all of it with what a caller needs. */
function wording(method: RestMethod, comment: CommentOf): JsonObject {
  const text = comment(method);
  const [summary = ""] = /^[^.]*/.exec(text) ?? [];
  const policy = rowOf(method)?.policy;
  return { summary, description: `${text}\n\n${needs(policy)}` };
}

function needs(policy: Policy | undefined): string {
  if (policy === undefined || policy === "public" || policy === "probe") return "Requires no credential.";
  if (policy === "authenticated") return "Requires any Keyhold scope.";
  const scopes = scopesIncluding(policy).map((scope) => `\`${scope}\``);
  return `Requires the scope ${scopes.join(" or ")}.`;
}
