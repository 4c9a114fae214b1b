import { once } from "node:events";
import { createServer } from "node:net";
import { invalidArgument, type KeyholdError } from "../domain/errors.ts";

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Returns why the server cannot listen on an address; null if it can. The port is released at once; port 0 is always free. */
export async function listenFailure({ host, port }: Address): Promise<NodeJS.ErrnoException | null> {
  const server = createServer().listen({ host, port });
  try {
    await once(server, "listening");
    return null;
  } catch (error) {
    return error as NodeJS.ErrnoException;
  } finally {
    server.close();
  }
}

/** Rejects with the error of `cannotListen` if the server cannot listen on an address. */
export async function requireFree(prefix: string, address: Address): Promise<void> {
  const failure = await listenFailure(address);
  if (failure !== null) throw cannotListen(prefix, address, failure);
}

/** Error codes that concern the host, not the port. */
const OF_HOST: readonly unknown[] = ["EADDRNOTAVAIL", "ENOTFOUND", "EAI_AGAIN", "EINVAL"];

/** Returns the error of an address on which the server cannot listen. It names `<prefix>_PORT` or `<prefix>_HOST`. */
export function cannotListen(prefix: string, { host, port }: Address, error: NodeJS.ErrnoException): KeyholdError {
  if (error.code === "EADDRINUSE") return invalidArgument(`${prefix}_PORT`, `${port} is already in use on ${host}`);
  const variable = OF_HOST.includes(error.code) ? `${prefix}_HOST` : `${prefix}_PORT`;
  return invalidArgument(variable, `cannot listen on ${host}:${port} (${error.code ?? error.message})`);
}
