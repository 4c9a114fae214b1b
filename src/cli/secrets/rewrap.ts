import { rewrapSigningKeys } from "../../signing/signing.ts";
import { withResources } from "../command.ts";

/** By the root secrets as they are now. What is wrapped anew is told to all servers, which must know the current one. How many were. */
export function rewrapUnderCurrent(): Promise<number> {
  return withResources(({ signing }) => rewrapSigningKeys(signing));
}

export function rewrapped(count: number): string {
  return `Signing keys wrapped under it: ${count}.\n\`keyhold secrets list\` shows what the retired ones are still needed for.`;
}
