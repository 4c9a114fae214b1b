package interop;

import dev.keyhold.v2alpha1.BatchCreateImportedApiKeysError;
import dev.keyhold.v2alpha1.BatchCreateImportedApiKeysRequest;
import dev.keyhold.v2alpha1.CreateImportedApiKeyRequest;
import dev.keyhold.v2alpha1.DeleteImportedApiKeyRequest;
import dev.keyhold.v2alpha1.KeyStatus;
import dev.keyhold.v2alpha1.RevocationReason;
import dev.keyhold.v2alpha1.SelfRevokeApiKeyRequest;
import java.util.List;

final class ImportedKeys {
  static void check(Keyhold keyhold, Tap.Step step) {
    var one = newImport();
    var imported = keyhold.imported().createImportedApiKey(one);
    step.ok("import", imported.getStatus() == KeyStatus.KEY_STATUS_ACTIVE, imported);
    var verdict = Keys.verify(keyhold, one.getRawKey());
    step.ok("verify the raw key", verdict.getIsValid() && verdict.getKeyId().equals(imported.getKeyId()), verdict);

    var other = newImport();
    var batch = keyhold.imported().batchCreateImportedApiKeys(
        BatchCreateImportedApiKeysRequest.newBuilder().addRequests(other).addRequests(one).build());
    step.ok("a batch imports what it can", batch.getSuccessCount() == 1 && batch.getFailureCount() == 1, batch);
    var exists = BatchCreateImportedApiKeysError.BATCH_CREATE_IMPORTED_API_KEYS_ERROR_ALREADY_EXISTS;
    step.ok("and reports the failed item", batch.getResults(1).getErrorCode() == exists, batch);

    var revoked = keyhold.self().selfRevokeApiKey(SelfRevokeApiKeyRequest.newBuilder()
        .setCredential(one.getRawKey())
        .setReason(RevocationReason.REVOCATION_REASON_SUPERSEDED)
        .build());
    var isSame = revoked.getKeyId().equals(imported.getKeyId());
    step.ok("a key revokes itself without a caller's credential", isSame, revoked);
    var results = Keys.verdicts(keyhold, one.getRawKey(), other.getRawKey(), "never imported");
    step.ok("a batch has a verdict on each", results.equals(List.of("REVOKED", "valid", "NOT_FOUND")), results);

    var deleted = batch.getResults(0).getImportedApiKey().getKeyId();
    keyhold.imported().deleteImportedApiKey(DeleteImportedApiKeyRequest.newBuilder().setKeyId(deleted).build());
    results = Keys.verdicts(keyhold, other.getRawKey());
    step.ok("delete", results.equals(List.of("NOT_FOUND")), results);
  }

  private static CreateImportedApiKeyRequest newImport() {
    return CreateImportedApiKeyRequest.newBuilder()
        .setRawKey(Keys.newName())
        .setName("java")
        .setActorId("java")
        .addScopes("read")
        .build();
  }
}
