package interop;

import com.fasterxml.jackson.core.JsonProcessingException;
import keyhold.ApiClient;

/** What differs between the libraries of openapi-generator: here `native`, the HTTP client of the JDK and Jackson. */
final class Library {
  private Library() {}

  static ApiClient connect(String url, String token) {
    ApiClient client = new ApiClient();
    client.updateBaseUri(url);
    client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + token));
    return client;
  }

  static <T> T read(String json, Class<T> type) throws JsonProcessingException {
    return ApiClient.createDefaultObjectMapper().readValue(json, type);
  }
}
