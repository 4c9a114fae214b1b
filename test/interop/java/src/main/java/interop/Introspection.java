package interop;

import dev.keyhold.v2alpha1.RevokeApiKeyRequest;
import dev.keyhold.v2alpha1.TokenAlgorithm;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.springframework.security.oauth2.core.OAuth2AuthenticatedPrincipal;
import org.springframework.security.oauth2.server.resource.introspection.BadOpaqueTokenException;
import org.springframework.security.oauth2.server.resource.introspection.OAuth2IntrospectionException;
import org.springframework.security.oauth2.server.resource.introspection.OpaqueTokenIntrospector;
import org.springframework.security.oauth2.server.resource.introspection.SpringOpaqueTokenIntrospector;

/** Introspects credentials as a resource server with Spring Security does (RFC 7662). */
final class Introspection {
  static void check(Keyhold keyhold, Tap.Step step) {
    var introspector = introspector(keyhold, System.getenv("KEYHOLD_TOKEN"));
    var created = Keys.issue(keyhold);
    var key = created.getIssuedApiKey();
    var secret = created.getSecret();
    Map<String, String> credentials = new LinkedHashMap<>();
    credentials.put("secret", secret);
    credentials.put("JWT", Keys.derive(keyhold, secret, TokenAlgorithm.TOKEN_ALGORITHM_JWT));
    credentials.put("macaroon", Keys.derive(keyhold, secret, TokenAlgorithm.TOKEN_ALGORITHM_MACAROON));
    credentials.forEach((kind, credential) -> {
      var principal = introspector.introspect(credential);
      var attributes = principal.getAttributes();
      step.ok("a " + kind + " is active, of its actor", principal.getName().equals(key.getActorId()), attributes);
      step.ok("a " + kind + " names its key", key.getKeyId().equals(attributes.get("client_id")), attributes);
      var authorities = principal.getAuthorities().stream().map(one -> one.getAuthority()).toList();
      step.ok("a " + kind + " has its scopes", authorities.containsAll(List.of("SCOPE_read", "SCOPE_deploy")), authorities);
      var isComplete = attributes.get("iat") != null && (attributes.get("exp") != null) == !kind.equals("secret");
      step.ok("a " + kind + " has its times", isComplete, attributes);
    });
    var unknown = introspect(introspector, "unknown");
    step.ok("an unknown token is refused", unknown instanceof BadOpaqueTokenException, unknown);

    keyhold.keys().revokeApiKey(RevokeApiKeyRequest.newBuilder().setKeyId(key.getKeyId()).build());
    var found = credentials.values().stream().map(one -> introspect(introspector, one)).toList();
    var areRefused = found.stream().allMatch(BadOpaqueTokenException.class::isInstance);
    step.ok("after the revocation of the key all are refused", areRefused, found);
    var stranger = introspect(introspector(keyhold, secret), "unknown");
    var isError = stranger instanceof OAuth2IntrospectionException && !(stranger instanceof BadOpaqueTokenException);
    step.ok("a caller with another secret gets no answer", isError, stranger);
  }

  private static OpaqueTokenIntrospector introspector(Keyhold keyhold, String token) {
    var uri = keyhold.url().resolve("/v2alpha1/introspect").toString();
    return SpringOpaqueTokenIntrospector.withIntrospectionUri(uri).clientId("my-service").clientSecret(token).build();
  }

  /** Returns the principal, or the exception. */
  private static Object introspect(OpaqueTokenIntrospector introspector, String token) {
    try {
      OAuth2AuthenticatedPrincipal principal = introspector.introspect(token);
      return principal.getAttributes();
    } catch (OAuth2IntrospectionException error) {
      return error;
    }
  }
}
