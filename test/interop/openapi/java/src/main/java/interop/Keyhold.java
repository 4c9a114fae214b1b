package interop;

import keyhold.ApiClient;
import keyhold.ApiException;
import keyhold.api.ApiKeysServiceApi;
import keyhold.api.DerivedKeysServiceApi;
import keyhold.api.HealthApi;
import keyhold.api.ImportedApiKeysServiceApi;
import keyhold.api.IssuedApiKeysServiceApi;
import keyhold.api.SelfServiceServiceApi;
import keyhold.model.BatchVerifyApiKeysRequest;
import keyhold.model.ErrorDetail;
import keyhold.model.ErrorStatus;
import keyhold.model.ErrorResponse;
import keyhold.model.VerifyApiKeyRequest;
import keyhold.model.VerifyApiKeyResponse;
import java.util.List;
import java.util.stream.Stream;

/** The generated clients, with the URL and the token of a server. */
final class Keyhold {
  final IssuedApiKeysServiceApi issued;
  final ImportedApiKeysServiceApi imported;
  final ApiKeysServiceApi keys;
  final SelfServiceServiceApi self;
  final DerivedKeysServiceApi derived;
  final HealthApi health;

  Keyhold(String url, String token) {
    ApiClient client = Library.connect(url, token);
    issued = new IssuedApiKeysServiceApi(client);
    imported = new ImportedApiKeysServiceApi(client);
    keys = new ApiKeysServiceApi(client);
    self = new SelfServiceServiceApi(client);
    derived = new DerivedKeysServiceApi(client);
    health = new HealthApi(client);
  }

  VerifyApiKeyResponse verify(String credential) throws ApiException {
    return keys.verifyApiKey(new VerifyApiKeyRequest().credential(credential), null, null);
  }

  /** Returns the verdicts on all of them, from one batch. */
  List<String> verdicts(String... credentials) throws ApiException {
    List<VerifyApiKeyRequest> requests =
        Stream.of(credentials).map(one -> new VerifyApiKeyRequest().credential(one)).toList();
    return keys.batchVerifyApiKeys(new BatchVerifyApiKeysRequest().requests(requests), null, null).getResults().stream()
        .map(one -> one.getIsValid() ? "valid" : one.getErrorCode())
        .toList();
  }

  interface Call {
    void run() throws ApiException;
  }

  /** Returns the typed error of a call. */
  ErrorStatus refusal(Call call) throws Exception {
    try {
      call.run();
    } catch (ApiException error) {
      ErrorStatus status = Library.read(error.getResponseBody(), ErrorResponse.class).getError();
      if (status.getCode() != error.getCode()) throw new IllegalStateException(error);
      return status;
    }
    throw new IllegalStateException("the call succeeded");
  }

  static String reason(ErrorStatus error) {
    return error.getDetails().stream().map(ErrorDetail::getReason).filter(one -> one != null).findFirst().orElse("");
  }
}
