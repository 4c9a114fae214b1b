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
import java.util.regex.Pattern;
import org.springframework.web.filter.OncePerRequestFilter;

/** Admits requests with a valid credential that has all scopes, and rejects all others as RFC 6750 describes. */
public class KeyholdFilter extends OncePerRequestFilter {
  /** Request attribute: the VerifyApiKeyResponse with key, actor, scopes and metadata. */
  public static final String CREDENTIAL = "keyhold.credential";

  /** Seconds to wait for a verdict. Without a deadline, a stalled connection would hold the request forever. */
  private static final long DEADLINE = 2;

  /** Visible ASCII without the comma, which joins two values of a header. */
  private static final Pattern VALID = Pattern.compile("[!-+\\--~]+");

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
    } else if (credentials.size() > 1 || !VALID.matcher(credentials.get(0)).matches()) {
      challenge(response, 400, ", error=\"invalid_request\"");
    } else {
      var verdict = verify(credentials.get(0), request.getRemoteAddr());
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
  private VerifyApiKeyResponse verify(String credential, String clientIp) {
    var request = VerifyApiKeyRequest.newBuilder().setCredential(credential).setClientIp(clientIp).build();
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
    return verdict.getErrorCode() == VerificationError.VERIFICATION_ERROR_INTERNAL ? 503 : 401;
  }

  /** Returns the credentials in Authorization and X-API-Key. The same one in both counts once, but not in two fields of one name. */
  private static List<String> credentialsOf(HttpServletRequest request) {
    var authorizations = Collections.list(request.getHeaders("Authorization"));
    var apiKeys = Collections.list(request.getHeaders("X-API-Key"));
    var credentials = new ArrayList<String>(apiKeys);
    credentials.removeIf(String::isEmpty);
    for (var header : authorizations) {
      if (header.regionMatches(true, 0, "Bearer ", 0, 7) || header.equalsIgnoreCase("Bearer"))
        credentials.add(header.substring(6).trim());
    }
    if (authorizations.size() > 1 || apiKeys.size() > 1) return List.of("", "");
    return credentials.stream().distinct().toList();
  }

  private static void challenge(HttpServletResponse response, int status, String parameters) throws IOException {
    response.setHeader("WWW-Authenticate", "Bearer realm=\"api\"" + parameters);
    response.sendError(status);
  }
}
