import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { read } from "../../deploy/files.ts";
import { freePort } from "../../support/free-port.ts";
import { type GatewayKind, substitute } from "../gateway.ts";
import { pathOf } from "../programs.ts";

const file = "deploy/gateways/apache.conf";

/** Where Debian installs modules. */
const MODULES = "/usr/lib/apache2/modules";

/** Those that the file names, and those that they require or that Debian always loads. */
const LOADED = [
  ...["mpm_event", "authn_core", "authz_core", "authz_host", "env"],
  ...["http2", "slotmem_shm", "proxy", "oauth2", "headers", "rewrite", "setenvif"],
  ...["proxy_http", "proxy_balancer", "lbmethod_byrequests"],
];

/** Apache with mod_oauth2, which asks the introspection endpoint instead of the forward-auth endpoint. */
export const apache: GatewayKind = {
  name: "Apache",
  files: [file],
  servesHttp2: true,
  limits: {
    unreachable: [401],
    asksOnce: true,
    passesBody: false,
    passesUnlisted: false,
    refusesSpoofed: 401,
    // mod_oauth2 answers 401 whatever the cause.
    statusOf: { 400: 401, 403: 401, 429: 401, 503: 401 },
    situations: {
      // It reads only Authorization, and cannot send the address of the client.
      "X-Api-Key": 401,
      "another scheme beside X-Api-Key": 401,
      "two credentials in two headers": 200,
      "right address": 401,
      // It does not compare the audience.
      "a token for another audience": 200,
      "a token for another audience, which the query names": 200,
    },
  },
  edited: [
    {
      name: "without a scope",
      edits: { " && reqenv('CLAIM_scope') =~ m#(^|\\s)read(\\s|$)#": "" },
      allows: /^missing scope(?! with headers)/,
    },
  ],
  configure: async ({ folder, port, application, keyhold, token, edits = {} }) => {
    const internal = `127.0.0.1:${await freePort()}`;
    const site = substitute(read(file), {
      ...edits,
      "Listen 8000": `Listen 127.0.0.1:${port}`,
      "*:8000": `127.0.0.1:${port}`,
      "127.0.0.1:8001": internal,
      "app:8080": application,
      "keyhold-1:4420": keyhold[0],
      "keyhold-2:4420": keyhold[1],
    });
    await writeFile(join(folder, "keyhold.conf"), site);
    await writeFile(join(folder, "apache.conf"), mainFile(folder));
    const args = ["-d", folder, "-f", join(folder, "apache.conf"), "-D", "FOREGROUND"];
    return { program: pathOf("apache2"), args, env: { GATEWAY_TOKEN: token } };
  },
};

function mainFile(folder: string): string {
  const modules = LOADED.map((name) => `LoadModule ${name}_module ${MODULES}/mod_${name}.so`);
  return [
    ...modules,
    "ServerName localhost",
    "Protocols h2c http/1.1",
    `PidFile ${join(folder, "apache.pid")}`,
    `DefaultRuntimeDir ${folder}`,
    "ErrorLog /dev/stderr",
    // The name under which its workers run if it is started as root.
    ...(process.getuid?.() === 0 ? ["User www-data", "Group www-data"] : []),
    `Include ${join(folder, "keyhold.conf")}`,
  ].join("\n");
}
