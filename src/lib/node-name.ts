import { hostname } from "node:os";

/** Returns the name by which people know this process, such as `host:4711`. */
export function nodeName(): string {
  return `${hostname()}:${process.pid}`;
}

/** Returns the operating-system user of this process as a subject, such as `uid 1000`. */
export function processUser(): string {
  return `uid ${process.geteuid?.() ?? "unknown"}`;
}
