package interop;

import keyhold.model.CreateIssuedApiKeyRequest;
import keyhold.model.DeriveTokenRequest;
import keyhold.model.ErrorReason;
import keyhold.model.IssuedApiKey;
import keyhold.model.KeyStatus;
import keyhold.model.RevocationReason;
import keyhold.model.RevokeApiKeyBody;
import keyhold.model.RotateIssuedApiKeyBody;
import keyhold.model.TokenAlgorithm;
import keyhold.model.UpdateIssuedApiKeyBody;
import java.util.List;
import java.util.Map;
import java.util.UUID;

final class LifeOfAKey {
  private LifeOfAKey() {}

  static void run(Keyhold keyhold, Tap.Steps ok) throws Exception {
    String actor = "java-" + UUID.randomUUID();
    var request = new CreateIssuedApiKeyRequest()
        .name("java").actorId(actor).scopes(List.of("read", "deploy")).ttl("90d").metadata(Map.of("env", "prod"));
    var created = keyhold.issued.createIssuedApiKey(request, null);
    String keyId = created.getIssuedApiKey().getKeyId();
    String secret = created.getSecret();
    ok.step("issue", secret != null && isStatus(created.getIssuedApiKey(), KeyStatus.KEY_STATUS_ACTIVE), created.getIssuedApiKey());

    IssuedApiKey got = keyhold.issued.getIssuedApiKey(keyId, null);
    ok.step("get", got.getActorId().equals(actor) && got.getMetadata().get("env").equals("prod")
        && got.getExpireTime().isAfter(got.getCreateTime()), got);

    String filter = "actor_id=\"" + actor + "\" AND status=KEY_STATUS_ACTIVE";
    var page = keyhold.issued.listIssuedApiKeys(10, null, filter, null, null).getIssuedApiKeys();
    ok.step("list with a filter", page.size() == 1 && page.get(0).getKeyId().equals(keyId), page);

    IssuedApiKey renamed =
        keyhold.issued.updateIssuedApiKey(keyId, "name", new UpdateIssuedApiKeyBody().name("renamed"), null);
    ok.step("an update of the name keeps scopes and metadata",
        renamed.getName().equals("renamed") && renamed.getScopes().equals(List.of("read", "deploy"))
            && renamed.getMetadata().size() == 1, renamed);

    var verdict = keyhold.verify(secret);
    ok.step("verify", verdict.getIsValid() && verdict.getKeyId().equals(keyId)
        && verdict.getScopes().equals(List.of("read", "deploy")), verdict);

    var claims = Map.<String, Object>of("job", "nightly");
    var derived = keyhold.keys.deriveToken(new DeriveTokenRequest().credential(secret)
        .algorithm(TokenAlgorithm.TOKEN_ALGORITHM_JWT).ttl("10m").scopes(List.of("read")).customClaims(claims), null).getToken();
    ok.step("derive a JWT", derived.getScopes().equals(List.of("read")) && claims.equals(derived.getClaims())
        && keyhold.verify(derived.getToken()).getCredentialType().equals("CREDENTIAL_TYPE_JWT"), derived);

    String macaroon = keyhold.keys.deriveToken(
        new DeriveTokenRequest().credential(secret).algorithm(TokenAlgorithm.TOKEN_ALGORITHM_MACAROON), null).getToken().getToken();
    var rotated = keyhold.issued.rotateIssuedApiKey(keyId, null, new RotateIssuedApiKeyBody().gracePeriod("1h"));
    String[] all = {secret, rotated.getSecret(), derived.getToken(), macaroon};
    ok.step("after a rotation with a grace period, both secrets and both tokens verify",
        keyhold.verdicts(all).equals(List.of("valid", "valid", "valid", "valid")), keyhold.verdicts(all));

    IssuedApiKey cleared =
        keyhold.issued.updateIssuedApiKey(keyId, "scopes", new UpdateIssuedApiKeyBody().scopes(List.of()), null);
    ok.step("scopes are cleared deliberately",
        cleared.getScopes().isEmpty() && cleared.getName().equals("renamed") && cleared.getMetadata().size() == 1, cleared);

    var revocation = new RevokeApiKeyBody().reason(RevocationReason.REVOCATION_REASON_KEY_COMPROMISE).revocationDescription("found in a log");
    keyhold.keys.revokeApiKey(keyId, null, revocation);
    IssuedApiKey revoked = keyhold.issued.getIssuedApiKey(keyId, null);
    ok.step("revoke with reason and description", isStatus(revoked, KeyStatus.KEY_STATUS_REVOKED)
        && revoked.getRevocationReason().equals(RevocationReason.REVOCATION_REASON_KEY_COMPROMISE.getValue())
        && revoked.getRevocationDescription().equals("found in a log"), revoked);
    ok.step("all are revoked at once", keyhold.verdicts(all).stream().allMatch("VERIFICATION_ERROR_REVOKED"::equals),
        keyhold.verdicts(all));

    var again = keyhold.refusal(() -> keyhold.keys.revokeApiKey(keyId, null, revocation));
    ok.step("a revoked key is not revoked again",
        again.getCode() == 409 && Keyhold.reason(again).equals(ErrorReason.API_KEY_ALREADY_REVOKED.getValue()), again);
  }

  private static boolean isStatus(IssuedApiKey key, KeyStatus status) {
    return status.getValue().equals(key.getStatus());
  }
}
