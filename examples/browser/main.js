// The page has no token. Its backend (backend.ts) makes the calls that need one, for the user who is signed in.
import { createKeyholdClient, RevocationReason } from "@keyhold/client";
import { createTokenVerifier } from "@keyhold/client/verifier";

// Not awaited here: the page responds to its user at once.
const settings = post("settings");
const [createButton, revokeForm, log] = ["create", "revoke", "log"].map((id) => document.getElementById(id));

createButton.onclick = async () => {
  const { baseUrl } = await settings;
  const { secret, keyId } = await post("keys");
  show("issued", keyId);
  const { isValid } = await post("verifications", { credential: secret });
  show("the secret is valid:", isValid);
  const { token } = await post("tokens", { credential: secret });
  // Offline: the browser fetches the public keys of Keyhold.
  const verdict = await createTokenVerifier({ baseUrl }).verify(token);
  show("the JWT is valid:", verdict.ok);
  revokeForm.secret.value = secret;
};

// Whoever has a key may revoke it: the page calls Keyhold itself, without a token.
revokeForm.onsubmit = async (event) => {
  event.preventDefault();
  const credential = revokeForm.secret.value;
  const { baseUrl } = await settings;
  const keyhold = createKeyholdClient({ baseUrl });
  await keyhold.selfService.selfRevokeApiKey({ credential, reason: RevocationReason.KEY_COMPROMISE });
  const { errorCode } = await post("verifications", { credential });
  show("after the revocation:", errorCode);
};

async function post(path, body = {}) {
  const headers = { "content-type": "application/json" };
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path}: HTTP ${response.status}`);
  return response.json();
}

function show(...words) {
  log.append(`${words.join(" ")}\n`);
}
