import { globSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseAllDocuments } from "yaml";
import type { Json } from "../support/rest.ts";

/** What stands in deploy/, to be held against the project as it is. `npm run check:deploy` asks the programs that it is written for. */

export const root = resolve(import.meta.dirname, "../..");
export const read = (file: string) => readFileSync(join(root, file), "utf8");

/** From the root of the project, without the secrets that somebody may have made. */
export const files = globSync("deploy/**/*", { cwd: root, exclude: ["deploy/compose/secrets"] }).filter((file) =>
  statSync(join(root, file)).isFile(),
);

/** Those that can be parsed as they stand: the templates of the chart are none yet. */
export const yamlFiles = files.filter((file) => /\.ya?ml$/.test(file) && !file.includes("/templates/"));

/** The documents of a text in YAML. */
export function parseAll(text: string): Json[] {
  return parseAllDocuments(text, { merge: true }).map((document) => {
    const [trouble] = [...document.errors, ...document.warnings];
    if (trouble !== undefined) throw trouble;
    return document.toJS();
  });
}

/** The one document of a file. */
export function parse(file: string): Json {
  const [document, ...more] = parseAll(read(file));
  if (document === undefined || more.length > 0) throw new Error(`${file} is not one document`);
  return document;
}

export const dockerfile = read("deploy/docker/Dockerfile");
export const nginx = read("deploy/nginx/keyhold.conf");
export const compose = parse("deploy/compose/compose.yaml");
export const envoy = parse("deploy/envoy/envoy.yaml").static_resources;

/** Of Envoy: the filter that knows the routes and writes the log. */
export const connectionManager: Json = envoy.listeners[0].filter_chains[0].filters[0].typed_config;
export const envoyRoutes: Json[] = connectionManager.route_config.virtual_hosts[0].routes;
