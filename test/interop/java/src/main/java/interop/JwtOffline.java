package interop;

import com.auth0.jwt.JWT;
import dev.keyhold.v2alpha1.GetJwksRequest;
import dev.keyhold.v2alpha1.TokenAlgorithm;
import interop.JwtLibraries.Verifier;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Verifies derived JWTs with the published keys only, with each library that supports the algorithm of the server. */
final class JwtOffline {
  static void check(Keyhold keyhold, Tap.Step step) throws Exception {
    var created = Keys.issue(keyhold);
    var keyId = created.getIssuedApiKey().getKeyId();
    var first = deriveJwt(keyhold, created.getSecret());
    var algorithm = JWT.decode(first).getAlgorithm();
    step.ok("the configured algorithm", algorithm.equals(System.getenv("KEYHOLD_SIGNING_ALGORITHM")), algorithm);
    var jwks = keyhold.url().resolve("/v2alpha1/derivedKeys/jwks.json").toURL();

    Map<String, Verifier> verifiers = new LinkedHashMap<>();
    for (var library : JwtLibraries.ALL) {
      var verifier = library.create(jwks, "keyhold");
      if (!library.algorithms().contains(algorithm)) {
        var error = verify(verifier, first);
        step.ok(library.name() + " does not support " + algorithm, library.unsupported().isInstance(error), error);
        continue;
      }
      var name = library.name() + ": " + algorithm;
      verifiers.put(name, verifier);
      var found = verify(verifier, first);
      step.ok(name + " verifies", keyId.equals(found), found);
      var forged = verify(verifier, tampered(first));
      step.ok(name + ", a tampered JWT is rejected", library.rejection().isInstance(forged), forged);
      var foreign = verify(library.create(jwks, "another"), first);
      step.ok(name + ", another issuer is rejected", library.rejection().isInstance(foreign), foreign);
    }
    checkRotation(keyhold, created.getSecret(), first, verifiers, step);
  }

  private static void checkRotation(
      Keyhold keyhold, String secret, String first, Map<String, Verifier> verifiers, Tap.Step step) throws Exception {
    rotateSigningKey();
    var second = deriveJwt(keyhold, secret);
    var kids = List.of(JWT.decode(first).getKeyId(), JWT.decode(second).getKeyId());
    step.ok("after a rotation of the signing key, a new JWT has another key", !kids.get(0).equals(kids.get(1)), kids);
    for (var each : verifiers.entrySet()) {
      var found = verify(each.getValue(), second);
      step.ok(each.getKey() + " verifies with the new key", found.equals(verify(each.getValue(), first)), found);
    }
    var published = keyhold.jwks().getJwks(GetJwksRequest.getDefaultInstance());
    var ids = published.getKeysList().stream().map(one -> one.getKid()).toList();
    step.ok("the set is the same over gRPC", ids.containsAll(kids), published);
  }

  /** Returns the claim `key_id`, or the exception. */
  private static Object verify(Verifier verifier, String token) {
    try {
      return verifier.keyIdOf(token);
    } catch (Exception error) {
      return error;
    }
  }

  private static String deriveJwt(Keyhold keyhold, String secret) {
    return Keys.derive(keyhold, secret, TokenAlgorithm.TOKEN_ALGORITHM_JWT);
  }

  private static void rotateSigningKey() throws IOException, InterruptedException {
    var process = new ProcessBuilder(System.getenv("KEYHOLD_ROTATE_SIGNING_KEY")).redirectErrorStream(true).start();
    var output = new String(process.getInputStream().readAllBytes());
    if (process.waitFor() != 0) throw new IOException(output);
  }

  /** Changes one character of the signature. */
  private static String tampered(String token) {
    int at = token.length() - 40;
    return token.substring(0, at) + (token.charAt(at) == 'A' ? 'B' : 'A') + token.substring(at + 1);
  }
}
