package interop;

/**
 * A client of Keyhold over grpc-java, which prints TAP.
 *
 * <p>KEYHOLD_URL is the server, KEYHOLD_TOKEN an admin token, KEYHOLD_CA_FILE (for an https URL) the trusted
 * certificate, KEYHOLD_SIGNING_ALGORITHM the algorithm of its JWTs, and KEYHOLD_ROTATE_SIGNING_KEY a program that
 * rotates its signing key.
 */
final class Main {
  public static void main(String[] args) throws Exception {
    Trust.certificateOf(System.getenv("KEYHOLD_CA_FILE"));
    var tap = new Tap();
    try (var keyhold = Keyhold.connect(System.getenv("KEYHOLD_URL"), System.getenv("KEYHOLD_TOKEN"))) {
      tap.topic("life of a key", step -> LifeOfAKey.check(keyhold, step));
      tap.topic("errors", step -> Errors.check(keyhold, step));
      tap.topic("deadlines", step -> Deadlines.check(keyhold, step));
      tap.topic("health", step -> Health.check(keyhold, step));
      tap.topic("JWT offline", step -> JwtOffline.check(keyhold, step));
      tap.topic("introspection", step -> Introspection.check(keyhold, step));
    }
    System.exit(tap.end());
  }
}
