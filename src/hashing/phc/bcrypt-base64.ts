const BCRYPT = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const STANDARD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Encodes bytes in the base64 of bcrypt, which has another order of digits and no padding. */
export function encodeBcryptBase64(bytes: Uint8Array): string {
  return translate(Buffer.from(bytes).toString("base64").replace(/=+$/, ""), STANDARD, BCRYPT);
}

/** Decodes the base64 of bcrypt. Unused bits at the end are ignored, as bcrypt does. */
export function decodeBcryptBase64(text: string): Uint8Array {
  return Buffer.from(translate(text, BCRYPT, STANDARD), "base64");
}

function translate(text: string, from: string, to: string): string {
  return Array.from(text, (digit) => to[from.indexOf(digit)]).join("");
}
