package example;

import dev.keyhold.v2alpha1.ApiKeysServiceGrpc.ApiKeysServiceBlockingStub;
import dev.keyhold.v2alpha1.VerificationError;
import dev.keyhold.v2alpha1.VerifyApiKeyRequest;
import dev.keyhold.v2alpha1.VerifyApiKeyResponse;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.springframework.web.filter.OncePerRequestFilter;

/** Admits requests with a valid credential that has all scopes, and rejects all others as RFC 6750 describes. */
public class KeyholdFilter extends OncePerRequestFilter {
  /** Request attribute: the VerifyApiKeyResponse with key, actor, scopes and metadata. */
  public static final String CREDENTIAL = "keyhold.credential";

  /** Seconds to wait for a verdict. Without a deadline, a stalled connection would hold the request forever. */
  private static final long DEADLINE = 2;

  private final ApiKeysServiceBlockingStub keys;
  private final List<String> scopes;

  public KeyholdFilter(ApiKeysServiceBlockingStub keys, List<String> scopes) {
    this.keys = keys;
    this.scopes = scopes;
  }

  @Override
  protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
      throws ServletException, IOException {
    var credentials = credentialsOf(request);
    if (credentials.isEmpty()) {
      challenge(response, 401, "");
    } else if (credentials.size() > 1) {
      challenge(response, 400, ", error=\"invalid_request\"");
    } else {
      var verdict = verify(credentials.get(0));
      switch (statusOf(verdict)) {
        case 200 -> {
          request.setAttribute(CREDENTIAL, verdict);
          chain.doFilter(request, response);
        }
        case 401 -> challenge(response, 401, ", error=\"invalid_token\"");
        case 403 -> {
          var scope = String.join(" ", scopes);
          challenge(response, 403, ", error=\"insufficient_scope\", scope=\"" + scope + "\"");
        }
        default -> {
          response.setHeader("Retry-After", "1");
          response.sendError(503);
        }
      }
    }
  }

  /** Returns the verdict, or VERIFICATION_ERROR_INTERNAL if there is none. */
  private VerifyApiKeyResponse verify(String credential) {
    var request = VerifyApiKeyRequest.newBuilder().setCredential(credential).build();
    try {
      return keys.withDeadlineAfter(DEADLINE, TimeUnit.SECONDS).verifyApiKey(request);
    } catch (StatusRuntimeException error) {
      // The credential is too long.
      if (error.getStatus().getCode() == Status.Code.INVALID_ARGUMENT)
        return invalid(VerificationError.VERIFICATION_ERROR_INVALID_FORMAT);
      logger.error("the call to Keyhold failed: " + error.getStatus());
      return invalid(VerificationError.VERIFICATION_ERROR_INTERNAL);
    }
  }

  private static VerifyApiKeyResponse invalid(VerificationError code) {
    return VerifyApiKeyResponse.newBuilder().setErrorCode(code).build();
  }

  /** The status of the call is OK for every verdict, and Keyhold does not check scopes. */
  private int statusOf(VerifyApiKeyResponse verdict) {
    if (verdict.getIsValid()) return verdict.getScopesList().containsAll(scopes) ? 200 : 403;
    return switch (verdict.getErrorCode()) {
      case VERIFICATION_ERROR_INVALID_FORMAT,
          VERIFICATION_ERROR_SIGNATURE_INVALID,
          VERIFICATION_ERROR_NOT_FOUND,
          VERIFICATION_ERROR_EXPIRED,
          VERIFICATION_ERROR_REVOKED -> 401;
      // No verdict, or an error code of a later release.
      default -> 503;
    };
  }

  private static List<String> credentialsOf(HttpServletRequest request) {
    var credentials = new ArrayList<String>();
    for (var header : Collections.list(request.getHeaders("Authorization"))) {
      if (header.regionMatches(true, 0, "Bearer ", 0, 7)) credentials.add(header.substring(7).trim());
    }
    for (var header : Collections.list(request.getHeaders("X-API-Key"))) credentials.add(header.trim());
    credentials.removeIf(String::isEmpty);
    return credentials;
  }

  private static void challenge(HttpServletResponse response, int status, String parameters) throws IOException {
    response.setHeader("WWW-Authenticate", "Bearer realm=\"api\"" + parameters);
    response.sendError(status);
  }
}
