package interop;

import keyhold.model.BatchCreateImportedApiKeysRequest;
import keyhold.model.CreateImportedApiKeyRequest;
import keyhold.model.CreateIssuedApiKeyRequest;
import keyhold.model.ErrorDetail;
import keyhold.model.FieldViolationReason;
import java.util.List;
import java.util.Objects;
import java.util.UUID;

final class Errors {
  private Errors() {}

  static void run(Keyhold keyhold, Tap.Steps ok) throws Exception {
    var invalid = keyhold.refusal(
        () -> keyhold.issued.createIssuedApiKey(new CreateIssuedApiKeyRequest().name("java").actorId(""), null));
    var violations = invalid.getDetails().stream().map(ErrorDetail::getFieldViolations).filter(Objects::nonNull)
        .flatMap(List::stream).toList();
    ok.step("an invalid field is named", Keyhold.reason(invalid).equals("INVALID_ARGUMENT")
        && violations.size() == 1 && violations.get(0).getField().equals("actor_id")
        && violations.get(0).getReason().equals(FieldViolationReason.FIELD_REQUIRED.getValue()), invalid);

    var known = new CreateImportedApiKeyRequest().rawKey("legacy-java-" + UUID.randomUUID()).name("java").actorId("java");
    keyhold.imported.createImportedApiKey(known, null);
    var none = keyhold.refusal(() -> keyhold.imported.batchCreateImportedApiKeys(
        new BatchCreateImportedApiKeysRequest().requests(List.of(known)), null));
    var results = none.getDetails().stream().map(ErrorDetail::getResults).filter(Objects::nonNull)
        .flatMap(List::stream).toList();
    ok.step("a batch without a success has its results in the error", none.getCode() == 409 && results.size() == 1
        && results.get(0).getErrorCode().endsWith("_ALREADY_EXISTS"), none);

    var stranger = new Keyhold(System.getenv("KEYHOLD_URL"), "unknown");
    var rejected = stranger.refusal(() -> stranger.issued.listIssuedApiKeys(null, null, null, null, null));
    ok.step("without a valid token", rejected.getCode() == 401
        && Keyhold.reason(rejected).equals("CALLER_UNAUTHENTICATED"), rejected);
  }
}
