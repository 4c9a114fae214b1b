package interop;

/**
 * A client that openapi-generator made of docs/openapi.json, over REST, and prints TAP.
 *
 * <p>KEYHOLD_URL is the server, KEYHOLD_TOKEN an admin token.
 */
final class Main {
  private Main() {}

  public static void main(String[] args) {
    String url = System.getenv("KEYHOLD_URL");
    String token = System.getenv("KEYHOLD_TOKEN");
    var keyhold = new Keyhold(url, token);
    var tap = new Tap();
    tap.topic("first key", ok -> FirstKey.run(Library.connect(url, token), ok));
    tap.topic("life of a key", ok -> LifeOfAKey.run(keyhold, ok));
    tap.topic("imported keys", ok -> ImportedKeys.run(keyhold, ok));
    tap.topic("errors", ok -> Errors.run(keyhold, ok));
    tap.topic("health and keys", ok -> Others.health(keyhold, ok));
    tap.topic("later releases", Others::laterReleases);
    System.exit(tap.end());
  }
}
