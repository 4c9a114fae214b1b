import { rewrapSigningKeys } from "../../signing/signing.ts";
import { withFoundation } from "../command.ts";

/** By the root secrets as they are now. What is wrapped anew is told to all servers, which must know the current one. */
export function rewrapUnderCurrent(): Promise<void> {
  return withFoundation(async ({ signing }) => {
    console.log(`Signing keys wrapped under it: ${await rewrapSigningKeys(signing)}.`);
    console.log("`keyhold secrets list` shows what the retired ones are still needed for.");
  });
}
