import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { read } from "../../deploy/files.ts";
import { editedQuery, type GatewayKind, substitute } from "../gateway.ts";
import { pathOf } from "../programs.ts";

const file = "deploy/gateways/Caddyfile";

/** Caddy with `forward_auth`. */
export const caddy: GatewayKind = {
  name: "Caddy",
  files: [file],
  servesHttp2: true,
  limits: { unreachable: [502, 503, 504], passesBody: true, passesUnlisted: false },
  edited: [
    ...editedQuery(),
    ...["lb_retries 2", "lb_try_duration 5s", "fail_duration 1s", "dial_timeout 1s", "response_header_timeout 3s"].map(
      (line) => ({ name: `without ${line}`, edits: { [line]: "" }, allows: /^$/ }),
    ),
  ],
  configure: async ({ folder, port, application, keyhold, token, edits = {} }) => {
    const secret = join(folder, "keyhold-gateway-token");
    await writeFile(secret, `${token}\n`, { mode: 0o600 });
    const site = substitute(read(file), {
      ...edits,
      ":8000 {": `http://127.0.0.1:${port} {`,
      "app:8080": application,
      "keyhold-1:4420": keyhold[0],
      "keyhold-2:4420": keyhold[1],
      "/run/secrets/keyhold-gateway-token": secret,
    });
    const config = join(folder, "Caddyfile");
    // The port of its administration API is fixed, and other tests run Caddy too.
    await writeFile(config, `{\n\tadmin off\n\tpersist_config off\n\tservers {\n\t\tprotocols h1 h2c\n\t}\n}\n${site}`);
    const env = { XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
    return { program: pathOf("caddy"), args: ["run", "--config", config, "--adapter", "caddyfile"], env };
  },
};
