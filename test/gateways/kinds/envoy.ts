import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { read } from "../../deploy/files.ts";
import { type Command, editedQuery, type GatewayKind, type GatewaySettings, substitute } from "../gateway.ts";
import { pathOf } from "../programs.ts";
import type { Fields } from "../situations.ts";

/** It removes the headers of the client that Connection names, unless they are its own, before it decides about anything. */
const ignoresHops = (fields: Fields) =>
  !fields.some(([name, value]) => name === "Upgrade" || /x-forwarded/i.test(value));

/** Envoy with ext_authz over gRPC. */
export const envoy: GatewayKind = {
  ...common("deploy/gateways/envoy.yaml"),
  name: "Envoy",
  edited: editedQuery("required_scopes: read", "", ", audience: billing"),
  limits: { unreachable: [503], ignoresHops, passesBody: true, passesUnlisted: false },
};

/** Envoy that asks the forward-auth endpoint. */
export const envoyOverHttp: GatewayKind = {
  ...common("deploy/gateways/envoy-http.yaml"),
  name: "Envoy over HTTP",
  edited: editedQuery(";required_scopes=read", ";", ";audience=billing"),
  limits: {
    // It sends another character in place of one that is not UTF-8, so that the credential is an unknown one.
    situations: { "a credential that is not ASCII": 401 },
    unreachable: [503],
    ignoresHops,
    passesBody: true,
    passesUnlisted: false,
    // A status above 499 is a failure of the server for it.
    ...{ statusOf: { 500: 503 }, withoutHeaders: [503] },
    // Its time limit is that of all attempts together.
    asksOnce: true,
  },
  asks: "/v2alpha1/forwardAuth;required_scopes=read/orders?a=b",
};

function common(file: string): Pick<GatewayKind, "files" | "servesHttp2" | "configure"> {
  return { files: [file], servesHttp2: true, configure: (settings) => configure(read(file), settings) };
}

async function configure(
  file: string,
  { folder, port, application, keyhold, token, edits = {} }: GatewaySettings,
): Promise<Command> {
  const config = substitute(file, {
    ...edits,
    "address: 0.0.0.0, port_value: 8000": `address: 127.0.0.1, port_value: ${port}`,
    "address: app, port_value: 8080": addressOf(application),
    "address: keyhold-1, port_value: 4420": addressOf(keyhold[0]),
    "address: keyhold-2, port_value: 4420": addressOf(keyhold[1]),
  });
  const written = join(folder, "envoy.yaml");
  await writeFile(written, config);
  // Hot restart uses shared memory under a name that another Envoy of the machine may have.
  const args = ["-c", written, "--disable-hot-restart", "--concurrency", "2", "--log-level", "warning"];
  return { program: pathOf("envoy"), args, env: { GATEWAY_TOKEN: token } };
}

function addressOf(address: string): string {
  const [host = "", port = ""] = address.split(":");
  return `address: ${host}, port_value: ${port}`;
}
