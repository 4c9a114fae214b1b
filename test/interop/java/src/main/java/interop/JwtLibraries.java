package interop;

import com.auth0.jwk.InvalidPublicKeyException;
import com.auth0.jwk.UrlJwkProvider;
import com.auth0.jwt.JWT;
import com.auth0.jwt.algorithms.Algorithm;
import com.auth0.jwt.exceptions.JWTVerificationException;
import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.crypto.Ed25519Verifier;
import com.nimbusds.jose.jwk.JWKSet;
import com.nimbusds.jose.jwk.source.JWKSourceBuilder;
import com.nimbusds.jose.proc.BadJOSEException;
import com.nimbusds.jose.proc.BadJWSException;
import com.nimbusds.jose.proc.JWSVerificationKeySelector;
import com.nimbusds.jose.proc.SecurityContext;
import com.nimbusds.jwt.JWTClaimsSet;
import com.nimbusds.jwt.SignedJWT;
import com.nimbusds.jwt.proc.DefaultJWTClaimsVerifier;
import com.nimbusds.jwt.proc.DefaultJWTProcessor;
import io.jsonwebtoken.JwtException;
import io.jsonwebtoken.Jwts;
import io.jsonwebtoken.security.Jwks;
import java.net.URL;
import java.security.interfaces.ECPublicKey;
import java.util.List;
import java.util.Set;
import org.jose4j.jwk.HttpsJwks;
import org.jose4j.jwt.consumer.InvalidJwtException;
import org.jose4j.jwt.consumer.JwtConsumerBuilder;
import org.jose4j.keys.resolvers.HttpsJwksVerificationKeyResolver;
import org.springframework.security.oauth2.jose.jws.SignatureAlgorithm;
import org.springframework.security.oauth2.jwt.BadJwtException;
import org.springframework.security.oauth2.jwt.JwtValidators;
import org.springframework.security.oauth2.jwt.NimbusJwtDecoder;

/** Libraries as their documentation describes: they check signature, times and issuer with the public keys at a URL. */
final class JwtLibraries {
  interface Verifier {
    /** Returns the claim `key_id`. Throws if the library rejects the token or does not support its algorithm. */
    Object keyIdOf(String token) throws Exception;
  }

  private interface Factory {
    Verifier create(URL jwks, String issuer);
  }

  /**
   * A library, the algorithms of Keyhold that it supports (the table in docs/clients.md), its exception for a token that
   * it rejects, and the one for a token with an algorithm that it does not support.
   */
  record Library(
      String name,
      Set<String> algorithms,
      Class<? extends Exception> rejection,
      Class<? extends Exception> unsupported,
      Factory factory) {
    Library(String name, Set<String> algorithms, Class<? extends Exception> rejection, Factory factory) {
      this(name, algorithms, rejection, rejection, factory);
    }

    Verifier create(URL jwks, String issuer) {
      return factory.create(jwks, issuer);
    }
  }

  static final List<Library> ALL = List.of(
      new Library(
          "nimbus-jose-jwt, DefaultJWTProcessor", Set.of("ES256"),
          BadJOSEException.class, JwtLibraries::nimbusProcessor),
      new Library(
          "nimbus-jose-jwt, Ed25519Verifier with tink", Set.of("EdDSA"),
          BadJOSEException.class, ClassCastException.class, JwtLibraries::nimbusEd25519),
      new Library(
          "Spring Security, NimbusJwtDecoder", Set.of("ES256"),
          BadJwtException.class, JwtLibraries::springSecurity),
      new Library(
          "jjwt", Set.of("EdDSA", "ES256"),
          JwtException.class, JwtLibraries::jjwt),
      new Library(
          "java-jwt with jwks-rsa", Set.of("ES256"),
          JWTVerificationException.class, InvalidPublicKeyException.class, JwtLibraries::javaJwt),
      new Library(
          "jose4j", Set.of("EdDSA", "ES256"),
          InvalidJwtException.class, JwtLibraries::jose4j));

  /** The processor of nimbus-jose-jwt, which many frameworks use. */
  private static Verifier nimbusProcessor(URL jwks, String issuer) {
    var processor = new DefaultJWTProcessor<SecurityContext>();
    var algorithms = Set.of(JWSAlgorithm.ES256, JWSAlgorithm.EdDSA);
    processor.setJWSKeySelector(new JWSVerificationKeySelector<>(algorithms, JWKSourceBuilder.create(jwks).build()));
    processor.setJWTClaimsSetVerifier(claimsVerifier(issuer));
    return token -> processor.process(token, null).getClaim("key_id");
  }

  /** The verifier of nimbus-jose-jwt for Ed25519, which needs tink. It is given its key by hand. */
  private static Verifier nimbusEd25519(URL jwks, String issuer) {
    return token -> {
      var jwt = SignedJWT.parse(token);
      var key = JWKSet.load(jwks).getKeyByKeyId(jwt.getHeader().getKeyID());
      if (!jwt.verify(new Ed25519Verifier(key.toOctetKeyPair()))) throw new BadJWSException("invalid signature");
      claimsVerifier(issuer).verify(jwt.getJWTClaimsSet(), null);
      return jwt.getJWTClaimsSet().getClaim("key_id");
    };
  }

  private static DefaultJWTClaimsVerifier<SecurityContext> claimsVerifier(String issuer) {
    var exact = new JWTClaimsSet.Builder().issuer(issuer).build();
    return new DefaultJWTClaimsVerifier<>(exact, Set.of("exp", "iat", "jti"));
  }

  /** The decoder of Spring Security, with every algorithm that it knows. */
  private static Verifier springSecurity(URL jwks, String issuer) {
    var every = List.of(SignatureAlgorithm.values());
    var decoder = NimbusJwtDecoder.withJwkSetUri(jwks.toString()).jwsAlgorithms(set -> set.addAll(every)).build();
    decoder.setJwtValidator(JwtValidators.createDefaultWithIssuer(issuer));
    return token -> decoder.decode(token).getClaim("key_id");
  }

  private static Verifier jjwt(URL jwks, String issuer) {
    return token -> {
      try (var body = jwks.openStream()) {
        var keys = Jwks.setParser().build().parse(body).getKeys();
        var parser = Jwts.parser().requireIssuer(issuer).keyLocator(header -> keys.stream()
            .filter(key -> key.getId().equals(header.get("kid"))).findFirst().orElseThrow().toKey());
        return parser.build().parseSignedClaims(token).getPayload().get("key_id");
      }
    };
  }

  private static Verifier javaJwt(URL jwks, String issuer) {
    var provider = new UrlJwkProvider(jwks);
    return token -> {
      var key = provider.get(JWT.decode(token).getKeyId()).getPublicKey();
      var algorithm = Algorithm.ECDSA256((ECPublicKey) key, null);
      return JWT.require(algorithm).withIssuer(issuer).build().verify(token).getClaim("key_id").asString();
    };
  }

  private static Verifier jose4j(URL jwks, String issuer) {
    var consumer = new JwtConsumerBuilder()
        .setVerificationKeyResolver(new HttpsJwksVerificationKeyResolver(new HttpsJwks(jwks.toString())))
        .setExpectedIssuer(issuer)
        .setRequireExpirationTime()
        .build();
    return token -> consumer.processToClaims(token).getClaimValue("key_id");
  }
}
