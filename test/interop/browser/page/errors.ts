import { Code } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema } from "../../../../gen/google/rpc/error_details_pb.js";
import { ApiKeysService } from "../../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { Ok } from "../checks.ts";
import { type Clients, clientsOf, codeOf, type ProtocolName, refusal, type Settings } from "./clients.ts";

const UNKNOWN = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";

/** Reads the details and headers of errors, which a page sees only if the server exposes them. */
export async function errorDetails(clients: Clients, name: ProtocolName, settings: Settings, ok: Ok): Promise<void> {
  const missing = await refusal(clients.issued.getIssuedApiKey({ keyId: UNKNOWN }));
  const [info] = missing.findDetails(ErrorInfoSchema);
  ok("an unknown key", missing.code === Code.NotFound && info?.reason === "API_KEY_NOT_FOUND", missing);
  ok("an unknown key: its metadata", info?.metadata.key_id === UNKNOWN, info);
  const bad = await refusal(clients.issued.createIssuedApiKey({ name: "browser" }));
  const [request] = bad.findDetails(BadRequestSchema);
  const fields = request?.fieldViolations.map(({ field }) => field).join();
  ok("bad input names the field", bad.code === Code.InvalidArgument && fields === "actor_id", [codeOf(bad), fields]);
  const stranger = clientsOf(name, { ...settings, token: "" });
  const denied = await refusal(stranger.keys.verifyApiKey({ credential: "x" }));
  const challenge = denied.metadata.get("www-authenticate") ?? "";
  ok("without a token", denied.code === Code.Unauthenticated && challenge.includes("Bearer"), [denied, challenge]);
}

/** Calls a method that the server does not have. */
export async function unknownMethod({ transport }: Clients, ok: Ok): Promise<void> {
  const nothing = { ...ApiKeysService.method.verifyApiKey, name: "VerifyNothing" };
  const error = await refusal(transport.unary(nothing, undefined, undefined, undefined, {}));
  ok("an unknown method is UNIMPLEMENTED", error.code === Code.Unimplemented, error);
}
