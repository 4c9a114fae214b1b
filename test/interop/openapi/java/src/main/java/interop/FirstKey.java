package interop;

import keyhold.ApiClient;
import keyhold.api.ApiKeysServiceApi;
import keyhold.api.IssuedApiKeysServiceApi;
import keyhold.model.CreateIssuedApiKeyRequest;
import keyhold.model.VerifyApiKeyRequest;
import java.util.List;

/** The lines of docs/clients.md. */
final class FirstKey {
  private FirstKey() {}

  static void run(ApiClient client, Tap.Steps ok) throws Exception {
    var create = new CreateIssuedApiKeyRequest().name("deploy bot").actorId("team_42").scopes(List.of("read"));
    var issued = new IssuedApiKeysServiceApi(client).createIssuedApiKey(create, null);
    var verify = new VerifyApiKeyRequest().credential(issued.getSecret());
    var verdict = new ApiKeysServiceApi(client).verifyApiKey(verify, null, null);
    ok.step("the secret is valid", verdict.getIsValid(), verdict);
  }
}
