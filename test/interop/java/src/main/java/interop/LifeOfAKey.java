package interop;

import com.google.protobuf.FieldMask;
import dev.keyhold.v2alpha1.CredentialType;
import dev.keyhold.v2alpha1.GetIssuedApiKeyRequest;
import dev.keyhold.v2alpha1.IssuedApiKey;
import dev.keyhold.v2alpha1.KeyStatus;
import dev.keyhold.v2alpha1.RevocationReason;
import dev.keyhold.v2alpha1.RevokeApiKeyRequest;
import dev.keyhold.v2alpha1.RotateIssuedApiKeyRequest;
import dev.keyhold.v2alpha1.TokenAlgorithm;
import dev.keyhold.v2alpha1.UpdateIssuedApiKeyRequest;
import io.grpc.Status;
import java.util.Collections;
import java.util.List;
import java.util.stream.Stream;

final class LifeOfAKey {
  static void check(Keyhold keyhold, Tap.Step step) {
    var created = Keys.issue(keyhold);
    var key = created.getIssuedApiKey();
    var secret = created.getSecret();
    step.ok("issue", !secret.isEmpty() && key.getStatus() == KeyStatus.KEY_STATUS_ACTIVE, key);
    checkChanges(keyhold, key, step);

    var verdict = Keys.verify(keyhold, secret);
    step.ok("verify", verdict.getIsValid() && verdict.getKeyId().equals(key.getKeyId()), verdict);
    step.ok("verify: owner", verdict.getActorId().equals(key.getActorId()), verdict);
    step.ok("verify: scopes", verdict.getScopesList().equals(List.of("read", "deploy")), verdict);

    var jwt = Keys.derive(keyhold, secret, TokenAlgorithm.TOKEN_ALGORITHM_JWT);
    step.ok("derive a JWT", Keys.verify(keyhold, jwt).getCredentialType() == CredentialType.CREDENTIAL_TYPE_JWT);
    var macaroon = Keys.derive(keyhold, secret, TokenAlgorithm.TOKEN_ALGORITHM_MACAROON);
    var kind = Keys.verify(keyhold, macaroon).getCredentialType();
    step.ok("derive a macaroon", kind == CredentialType.CREDENTIAL_TYPE_MACAROON, kind);

    var rotate = RotateIssuedApiKeyRequest.newBuilder().setKeyId(key.getKeyId()).setGracePeriod("1h").build();
    var rotated = keyhold.issued().rotateIssuedApiKey(rotate);
    var rotatedKey = rotated.getIssuedApiKey();
    step.ok("rotate", !rotated.getSecret().equals(secret) && rotatedKey.getKeyId().equals(key.getKeyId()), rotatedKey);
    var everything = new String[] {secret, rotated.getSecret(), jwt, macaroon};
    var results = Keys.verdicts(keyhold, everything);
    step.ok("both secrets and both tokens verify in the grace period, in one batch", isAll(results, "valid"), results);
    checkRevocation(keyhold, key.getKeyId(), everything, step);
  }

  private static void checkChanges(Keyhold keyhold, IssuedApiKey key, Tap.Step step) {
    var got = keyhold.issued().getIssuedApiKey(GetIssuedApiKeyRequest.newBuilder().setKeyId(key.getKeyId()).build());
    step.ok("get", got.equals(key), got);
    step.ok("get: metadata and times", got.getMetadataOrThrow("env").equals("prod") && got.hasCreateTime(), got);

    var updated = keyhold.issued().updateIssuedApiKey(UpdateIssuedApiKeyRequest.newBuilder()
        .setIssuedApiKey(IssuedApiKey.newBuilder().setKeyId(key.getKeyId()).setName("renamed"))
        .setUpdateMask(FieldMask.newBuilder().addPaths("name"))
        .build());
    step.ok("update with a mask", updated.getName().equals("renamed") && updated.getScopesCount() == 2, updated);

    var modify = UpdateIssuedApiKeyRequest.newBuilder().setIssuedApiKey(updated.toBuilder().setName("modified"));
    updated = keyhold.issued().updateIssuedApiKey(modify.build());
    step.ok("get, modify, update without a mask", updated.getName().equals("modified"), updated);
  }

  private static void checkRevocation(Keyhold keyhold, String keyId, String[] credentials, Tap.Step step) {
    var reason = RevocationReason.REVOCATION_REASON_KEY_COMPROMISE;
    var revoke = RevokeApiKeyRequest.newBuilder().setKeyId(keyId).setReason(reason).build();
    var revoked = keyhold.keys().revokeApiKey(revoke);
    step.ok("revoke with a reason", revoked.getRevocationReason() == reason && revoked.hasRevokeTime(), revoked);
    var results = Keys.verdicts(keyhold, credentials);
    step.ok("both secrets and both tokens are revoked at once", isAll(results, "REVOKED"), results);
    var alone = Stream.of(credentials).map(one -> Keys.verdict(Keys.verify(keyhold, one))).toList();
    step.ok("single verdicts are the same", isAll(alone, "REVOKED"), alone);
    var error = Errors.of(() -> keyhold.keys().revokeApiKey(revoke));
    var isRevoked = error.is(Status.Code.FAILED_PRECONDITION, "API_KEY_ALREADY_REVOKED");
    step.ok("a revoked key cannot be revoked again", isRevoked, error);
  }

  private static boolean isAll(List<String> results, String wanted) {
    return results.equals(Collections.nCopies(4, wanted));
  }
}
