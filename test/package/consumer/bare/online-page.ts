import { createKeyholdClient } from "@keyhold/client";

// The script of a page that verifies a credential, whose size docs/clients.md states.
const keyhold = createKeyholdClient({ baseUrl: location.origin });
const { isValid } = await keyhold.apiKeys.verifyApiKey({ credential: location.hash.slice(1) });
document.title = isValid ? "valid" : "not valid";
