/** Returns a command for a shell that verifies a credential. No secret is an argument, which other users of the machine could read. */
export function verifyCommand(credential: string, needsToken: boolean): string {
  return [
    "curl -sS -K - <<END",
    `url = "${location.origin}/v2alpha1/admin/apiKeys:verify"`,
    'header = "Content-Type: application/json"',
    ...(needsToken ? ['header = "Authorization: Bearer $KEYHOLD_TOKEN"'] : []),
    `data = "{\\"credential\\": \\"${credential}\\"}"`,
    "END",
  ].join("\n");
}

/** Returns a program that verifies the credential of a caller. */
export function verifierProgram(needsToken: boolean): string {
  return [
    'import { createKeyholdClient } from "@keyhold/client";',
    "",
    "const keyhold = createKeyholdClient({",
    `  baseUrl: "${location.origin}",`,
    ...(needsToken ? ["  token: process.env.KEYHOLD_TOKEN,"] : []),
    "});",
    "const { isValid, actorId } = await keyhold.apiKeys.verifyApiKey({ credential });",
  ].join("\n");
}
