package interop;

import keyhold.model.BatchCreateImportedApiKeysError;
import keyhold.model.BatchCreateImportedApiKeysRequest;
import keyhold.model.CreateImportedApiKeyRequest;
import keyhold.model.RevocationReason;
import keyhold.model.RevokeImportedApiKeyBody;
import keyhold.model.SelfRevokeApiKeyRequest;
import keyhold.model.UpdateImportedApiKeyBody;
import java.util.List;
import java.util.UUID;

final class ImportedKeys {
  private ImportedKeys() {}

  static void run(Keyhold keyhold, Tap.Steps ok) throws Exception {
    String actor = "java-" + UUID.randomUUID();
    String first = "legacy-java-" + UUID.randomUUID();
    String second = "legacy-java-" + UUID.randomUUID();

    var imported = keyhold.imported.createImportedApiKey(request(actor, first), null);
    ok.step("import", imported.getStatus().equals("KEY_STATUS_ACTIVE") && keyhold.verify(first).getIsValid(), imported);
    var got = keyhold.imported.getImportedApiKey(imported.getKeyId(), null);
    ok.step("get", got.equals(imported), got);

    var batch = new BatchCreateImportedApiKeysRequest().requests(List.of(request(actor, second), request(actor, first)));
    var results = keyhold.imported.batchCreateImportedApiKeys(batch, null);
    ok.step("a batch imports what it can", results.getSuccessCount() == 1 && results.getFailureCount() == 1
        && BatchCreateImportedApiKeysError.BATCH_CREATE_IMPORTED_API_KEYS_ERROR_ALREADY_EXISTS.getValue().equals(results.getResults().get(1).getErrorCode()), results);
    String other = results.getResults().get(0).getImportedApiKey().getKeyId();

    var page = keyhold.imported.listImportedApiKeys(null, null, "actor_id=\"" + actor + "\"", null, null).getImportedApiKeys();
    ok.step("list", page.size() == 2, page);
    var renamed = keyhold.imported.updateImportedApiKey(other, "name", new UpdateImportedApiKeyBody().name("renamed"), null);
    ok.step("an update of the name keeps the scopes",
        renamed.getName().equals("renamed") && renamed.getScopes().equals(List.of("read")), renamed);

    var self = keyhold.self.selfRevokeApiKey(
        new SelfRevokeApiKeyRequest().credential(first).reason(RevocationReason.REVOCATION_REASON_SUPERSEDED), null);
    ok.step("a key revokes itself", self.getKeyId().equals(imported.getKeyId()), self);
    var revocation = new RevokeImportedApiKeyBody().reason(RevocationReason.REVOCATION_REASON_AFFILIATION_CHANGED).revocationDescription("left");
    keyhold.keys.revokeImportedApiKey(other, null, revocation);
    var revoked = keyhold.imported.getImportedApiKey(other, null);
    ok.step("revoke with reason and description",
        revoked.getRevocationReason().equals("REVOCATION_REASON_AFFILIATION_CHANGED")
            && revoked.getRevocationDescription().equals("left"), revoked);

    keyhold.imported.deleteImportedApiKey(other, null);
    var gone = keyhold.refusal(() -> keyhold.imported.getImportedApiKey(other, null));
    ok.step("delete", gone.getCode() == 404 && Keyhold.reason(gone).equals("API_KEY_NOT_FOUND"), gone);
  }

  private static CreateImportedApiKeyRequest request(String actor, String rawKey) {
    return new CreateImportedApiKeyRequest().rawKey(rawKey).name("java").actorId(actor).scopes(List.of("read"));
  }
}
