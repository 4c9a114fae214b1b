import { Code, ConnectError } from "@connectrpc/connect";
import { KeyholdError } from "../../domain/errors.ts";

/** Returns the result for an issued key or, if there is none, for an imported key. Throws `API_KEY_NOT_FOUND` if there is neither. */
export async function ofEitherKind<T>(keyId: string, issued: () => Promise<T>, imported: () => Promise<T>): Promise<T> {
  try {
    return await issued().catch(async (error: unknown) =>
      isNotFound(error) ? await imported() : Promise.reject(error),
    );
  } catch (error) {
    if (!isNotFound(error)) throw error;
    throw new KeyholdError("API_KEY_NOT_FOUND", `there is no key ${keyId}`, { metadata: { key_id: keyId } });
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof ConnectError && error.code === Code.NotFound;
}
