package interop;

import keyhold.ApiClient;
import keyhold.JSON;

/** What differs between the libraries of openapi-generator: here `okhttp-gson`, its default. */
final class Library {
  private Library() {}

  static ApiClient connect(String url, String token) {
    ApiClient client = new ApiClient();
    client.setBasePath(url);
    client.setBearerToken(token);
    return client;
  }

  static <T> T read(String json, Class<T> type) {
    return JSON.deserialize(json, type);
  }
}
