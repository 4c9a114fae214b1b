import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { read } from "../../deploy/files.ts";
import { editedQuery, type GatewayKind, substitute } from "../gateway.ts";
import { pathOf } from "../programs.ts";
import type { Fields } from "../situations.ts";

const file = "deploy/gateways/nginx.conf";

/** nginx with `auth_request`: the file in `http {}` of a minimal configuration. */
function kindOf(name: string, program: "nginx" | "nginx of Debian"): GatewayKind {
  return {
    name,
    files: [file],
    // Without TLS, its older versions cannot serve both versions of HTTP on one port.
    servesHttp2: name === "nginx",
    limits: {
      unreachable: [503],
      // It writes its own Connection. Before 1.23, a variable has only the first field of a name.
      ...(name !== "nginx" && { ignoresHops: ([first]: Fields) => first?.[1] === "keep-alive" }),
      unexpected: 503,
      longIdentity: 503,
      passesLimits: true,
      passesBody: false,
      passesUnlisted: true,
    },
    edited: editedQuery(),
    configure: async ({ folder, port, application, keyhold, token, edits = {} }) => {
      const secret = join(folder, "keyhold-gateway.conf");
      await writeFile(secret, `proxy_set_header X-Keyhold-Authorization "Bearer ${token}";`, { mode: 0o600 });
      const site = substitute(read(file), {
        ...edits,
        "listen 8000": `listen 127.0.0.1:${port}`,
        "app:8080": application,
        "keyhold-1:4420": keyhold[0],
        "keyhold-2:4420": keyhold[1],
        "/run/secrets/keyhold-gateway.conf": secret,
      });
      return { program: pathOf(program), args: await writeNginx(folder, name === "nginx" ? "http2 on;" : "", site) };
    },
  };
}

/** Writes a configuration with this content of `http {}`, and returns the arguments of nginx. */
export async function writeNginx(folder: string, more: string, site: string): Promise<string[]> {
  await writeFile(join(folder, "site.conf"), site);
  await writeFile(join(folder, "nginx.conf"), mainFile(folder, more));
  return ["-p", folder, "-e", "/dev/stderr", "-c", join(folder, "nginx.conf")];
}

function mainFile(folder: string, more: string): string {
  // As root its workers would run as `nobody`, who cannot write here.
  const user = process.getuid?.() === 0 ? "user root;" : "";
  const places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (kind) => `${kind}_temp_path ${join(folder, kind)};`,
  );
  return `${user} daemon off; worker_processes 2; error_log /dev/stderr; pid ${join(folder, "nginx.pid")};
    events {} http { access_log ${join(folder, "access.log")}; ${places.join(" ")} ${more} include site.conf; }`;
}

export const nginx = kindOf("nginx", "nginx");
export const nginxOfDebian = kindOf("nginx of Debian", "nginx of Debian");
