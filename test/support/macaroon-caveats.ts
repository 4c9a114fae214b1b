import macaroons from "macaroon";
import { formatMacaroon, parseMacaroon } from "../../src/token/macaroon/text.ts";
import { encodeV2 } from "../../src/token/macaroon/v2.ts";

/** Returns the token with caveats that its holder, who has no root key, adds with a macaroon library. */
export function withCaveats(token: string, added: readonly string[]): string {
  const macaroon = parseMacaroon(token);
  const holder = macaroons.importMacaroon(encodeV2(macaroon));
  for (const condition of added) holder.addFirstPartyCaveat(condition);
  const caveats = holder.caveats.map(({ identifier }) => ({ identifier, thirdParty: undefined }));
  return formatMacaroon({ ...macaroon, caveats, signature: holder.signature });
}
