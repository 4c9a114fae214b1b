package interop;

import dev.keyhold.v2alpha1.BatchVerifyApiKeysRequest;
import dev.keyhold.v2alpha1.CreateIssuedApiKeyRequest;
import dev.keyhold.v2alpha1.CreateIssuedApiKeyResponse;
import dev.keyhold.v2alpha1.DeriveTokenRequest;
import dev.keyhold.v2alpha1.TokenAlgorithm;
import dev.keyhold.v2alpha1.VerifyApiKeyRequest;
import dev.keyhold.v2alpha1.VerifyApiKeyResponse;
import java.util.List;
import java.util.UUID;

/** Calls that several topics make. */
final class Keys {
  /** Creates a key of a unique actor, with the scopes read and deploy. */
  static CreateIssuedApiKeyResponse issue(Keyhold keyhold) {
    return keyhold.issued().createIssuedApiKey(CreateIssuedApiKeyRequest.newBuilder()
        .setName("java")
        .setActorId("java-" + UUID.randomUUID())
        .addAllScopes(List.of("read", "deploy"))
        .putMetadata("env", "prod")
        .build());
  }

  static String derive(Keyhold keyhold, String credential, TokenAlgorithm algorithm) {
    var request = DeriveTokenRequest.newBuilder().setCredential(credential).setAlgorithm(algorithm).build();
    return keyhold.keys().deriveToken(request).getToken().getToken();
  }

  static VerifyApiKeyResponse verify(Keyhold keyhold, String credential) {
    return keyhold.keys().verifyApiKey(requestFor(credential));
  }

  /** Returns `valid`, or the error code without its prefix, for each credential, from one batch. */
  static List<String> verdicts(Keyhold keyhold, String... credentials) {
    var requests = List.of(credentials).stream().map(Keys::requestFor).toList();
    var batch = BatchVerifyApiKeysRequest.newBuilder().addAllRequests(requests).build();
    var response = keyhold.keys().batchVerifyApiKeys(batch);
    return response.getResultsList().stream().map(Keys::verdict).toList();
  }

  static String verdict(VerifyApiKeyResponse response) {
    return response.getIsValid() ? "valid" : response.getErrorCode().name().replace("VERIFICATION_ERROR_", "");
  }

  static VerifyApiKeyRequest requestFor(String credential) {
    return VerifyApiKeyRequest.newBuilder().setCredential(credential).build();
  }
}
