import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { read } from "../../deploy/files.ts";
import { editedQuery, type GatewayKind, substitute } from "../gateway.ts";
import { pathOf } from "../programs.ts";

const file = "deploy/gateways/haproxy.cfg";
const script = "deploy/gateways/keyhold.lua";

/** HAProxy with its HTTP client in Lua. */
export const haproxy = haproxyWith(read(script));

/** Returns HAProxy with another Lua script. */
export function haproxyWith(lua: string): GatewayKind {
  return {
    name: "HAProxy",
    files: [file, script],
    servesHttp2: true,
    limits: {
      unreachable: [503],
      unexpected: 503,
      longIdentity: 503,
      statusOf: { 404: 404 },
      passesBody: true,
      passesUnlisted: false,
    },
    edited: editedQuery(),
    configure: async ({ folder, port, application, keyhold, token, edits = {} }) => {
      const internal = `abns@keyhold-${port}`;
      const place = join(folder, "keyhold.lua");
      await writeFile(place, substitute(lua, { "abns@keyhold": internal }));
      const config = substitute(read(file), {
        ...edits,
        "/etc/haproxy/keyhold.lua": place,
        "bind :8000": `bind 127.0.0.1:${port}`,
        "abns@keyhold": internal,
        "app:8080": application,
        "keyhold-1:4420": keyhold[0],
        "keyhold-2:4420": keyhold[1],
      });
      const written = join(folder, "haproxy.cfg");
      await writeFile(written, config);
      return { program: pathOf("haproxy"), args: ["-db", "-f", written], env: { GATEWAY_TOKEN: token } };
    },
  };
}
