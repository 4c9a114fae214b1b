import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { read } from "../../deploy/files.ts";
import { freePort } from "../../support/free-port.ts";
import { editedQuery, type GatewayKind, substitute } from "../gateway.ts";
import { pathOf } from "../programs.ts";

const file = "deploy/gateways/traefik.yaml";

/** Traefik with `forwardAuth`. */
export const traefik: GatewayKind = {
  name: "Traefik",
  files: [file],
  servesHttp2: true,
  limits: {
    unreachable: [502, 503, 504],
    asksOnce: true,
    ignoresHops: () => true,
    passesBody: true,
    passesUnlisted: false,
  },
  edited: editedQuery(),
  configure: async ({ folder, port, application, keyhold, token, edits = {} }) => {
    const api = `127.0.0.1:${await freePort()}`;
    const internal = `127.0.0.1:${await freePort()}`;
    const site = substitute(read(file), {
      ...edits,
      "http://127.0.0.1:8001": `http://${internal}`,
      "app:8080": application,
      "keyhold-1:4420": keyhold[0],
      "keyhold-2:4420": keyhold[1],
    });
    const dynamic = join(folder, "keyhold.yaml");
    await writeFile(dynamic, site);
    const args = [
      `--entryPoints.web.address=127.0.0.1:${port}`,
      `--entryPoints.keyhold.address=${internal}`,
      "--entryPoints.keyhold.forwardedHeaders.trustedIPs=127.0.0.1/32",
      // Inotify has a limit for all programs of the machine.
      ...[`--providers.file.filename=${dynamic}`, "--providers.file.watch=false"],
      ...[`--entryPoints.traefik.address=${api}`, "--api.insecure=true", "--api.dashboard=false"],
      ...["--global.checkNewVersion=false", "--global.sendAnonymousUsage=false"],
    ];
    const readyUrl = `http://${api}/api/http/routers/application@file`;
    return { program: pathOf("traefik"), args, env: { GATEWAY_TOKEN: token }, readyUrl };
  },
};
