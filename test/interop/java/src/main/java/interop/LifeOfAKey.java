package interop;

import com.google.protobuf.FieldMask;
import dev.keyhold.v2alpha1.IssuedApiKey;
import dev.keyhold.v2alpha1.KeyStatus;
import dev.keyhold.v2alpha1.RevocationReason;
import dev.keyhold.v2alpha1.RevokeApiKeyRequest;
import dev.keyhold.v2alpha1.TokenAlgorithm;
import dev.keyhold.v2alpha1.UpdateIssuedApiKeyRequest;
import io.grpc.Status;
import java.util.Collections;
import java.util.List;

/** Calls with each kind of field; the client in Go makes all calls. */
final class LifeOfAKey {
  static void check(Keyhold keyhold, Tap.Step step) {
    var created = Keys.issue(keyhold);
    var key = created.getIssuedApiKey();
    var secret = created.getSecret();
    var isActive = key.getStatus() == KeyStatus.KEY_STATUS_ACTIVE && key.hasCreateTime();
    step.ok("issue", !secret.isEmpty() && isActive, key);

    var updated = keyhold.issued().updateIssuedApiKey(UpdateIssuedApiKeyRequest.newBuilder()
        .setIssuedApiKey(IssuedApiKey.newBuilder().setKeyId(key.getKeyId()).setName("renamed"))
        .setUpdateMask(FieldMask.newBuilder().addPaths("name"))
        .build());
    var isKept = updated.getMetadataOrThrow("env").equals("prod");
    step.ok("update with a mask", updated.getName().equals("renamed") && isKept, updated);
    var modify = UpdateIssuedApiKeyRequest.newBuilder().setIssuedApiKey(updated.toBuilder().setName("modified"));
    updated = keyhold.issued().updateIssuedApiKey(modify.build());
    step.ok("get, modify, update without a mask", updated.getName().equals("modified"), updated);

    var verdict = Keys.verify(keyhold, secret);
    step.ok("verify", verdict.getIsValid() && verdict.getScopesList().equals(List.of("read", "deploy")), verdict);
    var jwt = Keys.derive(keyhold, secret, TokenAlgorithm.TOKEN_ALGORITHM_JWT);
    var macaroon = Keys.derive(keyhold, secret, TokenAlgorithm.TOKEN_ALGORITHM_MACAROON);
    var results = Keys.verdicts(keyhold, secret, jwt, macaroon);
    step.ok("the secret and both tokens verify, in one batch", results.equals(Collections.nCopies(3, "valid")), results);

    var reason = RevocationReason.REVOCATION_REASON_KEY_COMPROMISE;
    var revoke = RevokeApiKeyRequest.newBuilder().setKeyId(key.getKeyId()).setReason(reason).build();
    var revoked = keyhold.keys().revokeApiKey(revoke);
    step.ok("revoke with a reason", revoked.getRevocationReason() == reason && revoked.hasRevokeTime(), revoked);
    results = Keys.verdicts(keyhold, secret, jwt, macaroon);
    step.ok("all are revoked at once", results.equals(Collections.nCopies(3, "REVOKED")), results);
    var error = Errors.of(() -> keyhold.keys().revokeApiKey(revoke));
    var isRevoked = error.is(Status.Code.FAILED_PRECONDITION, "API_KEY_ALREADY_REVOKED");
    step.ok("a revoked key cannot be revoked again", isRevoked, error);
  }
}
