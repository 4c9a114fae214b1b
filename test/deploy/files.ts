import { globSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseAllDocuments } from "yaml";
import type { Json } from "../support/rest.ts";

/** The files of deploy/, which tests compare with the project. `npm run check:deploy` runs the programs they are written for. */

export const root = resolve(import.meta.dirname, "../..");
export const read = (file: string) => readFileSync(join(root, file), "utf8");

/** Paths from the root of the project, without local secrets. */
export const files = globSync("deploy/**/*", { cwd: root, exclude: ["deploy/compose/secrets"] }).filter((file) =>
  statSync(join(root, file)).isFile(),
);

/** YAML files without the templates of the chart, which are not YAML yet. */
export const yamlFiles = files.filter((file) => /\.ya?ml$/.test(file) && !file.includes("/templates/"));

/** Returns the documents of a YAML text. */
export function parseAll(text: string): Json[] {
  return parseAllDocuments(text, { merge: true }).map((document) => {
    const [trouble] = [...document.errors, ...document.warnings];
    if (trouble !== undefined) throw trouble;
    return document.toJS();
  });
}

/** Returns the only document of a file. */
export function parse(file: string): Json {
  const [document, ...more] = parseAll(read(file));
  if (document === undefined || more.length > 0) throw new Error(`${file} is not one document`);
  return document;
}

export const dockerfile = read("deploy/docker/Dockerfile");
export const nginx = read("deploy/nginx/keyhold.conf");
export const compose = parse("deploy/compose/compose.yaml");
export const envoy = parse("deploy/envoy/envoy.yaml").static_resources;

/** Envoy's filter with the routes and the access log. */
export const connectionManager: Json = envoy.listeners[0].filter_chains[0].filters[0].typed_config;
export const envoyRoutes: Json[] = connectionManager.route_config.virtual_hosts[0].routes;
