import { createTokenVerifier } from "@keyhold/client/verifier";

// The script of a page that verifies a JWT offline, whose size docs/clients.md states.
const verdict = await createTokenVerifier({ baseUrl: location.origin }).verify(location.hash.slice(1));
document.title = verdict.ok ? "valid" : "not valid";
