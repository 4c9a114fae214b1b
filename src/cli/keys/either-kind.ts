import { Code, ConnectError } from "@connectrpc/connect";

/** What of two answers is there: that for an issued key, or else that for an imported one. */
export async function ofEitherKind<T>(issued: () => Promise<T>, imported: () => Promise<T>): Promise<T> {
  try {
    return await issued();
  } catch (error) {
    if (!(error instanceof ConnectError) || error.code !== Code.NotFound) throw error;
  }
  return imported();
}
