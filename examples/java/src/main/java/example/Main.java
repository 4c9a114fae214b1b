package example;

import dev.keyhold.v2alpha1.ApiKeysServiceGrpc;
import dev.keyhold.v2alpha1.CreateIssuedApiKeyRequest;
import dev.keyhold.v2alpha1.DeriveTokenRequest;
import dev.keyhold.v2alpha1.IssuedApiKeysServiceGrpc;
import dev.keyhold.v2alpha1.RevocationReason;
import dev.keyhold.v2alpha1.RevokeApiKeyRequest;
import dev.keyhold.v2alpha1.TokenAlgorithm;
import dev.keyhold.v2alpha1.VerifyApiKeyRequest;
import io.grpc.ChannelCredentials;
import io.grpc.ClientInterceptor;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.Metadata;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.MetadataUtils;
import java.net.URI;
import java.util.concurrent.TimeUnit;

/** The life cycle of a key over gRPC. Reads KEYHOLD_URL and KEYHOLD_TOKEN. */
public final class Main {
  public static void main(String[] args) throws InterruptedException {
    var url = URI.create(System.getenv("KEYHOLD_URL"));
    var token = bearer(System.getenv("KEYHOLD_TOKEN"));

    var channel = Grpc.newChannelBuilder(url.getAuthority(), credentials(url)).build();
    var issuedKeys = IssuedApiKeysServiceGrpc.newBlockingStub(channel).withInterceptors(token);
    var keys = ApiKeysServiceGrpc.newBlockingStub(channel).withInterceptors(token);
    var create = CreateIssuedApiKeyRequest.newBuilder().setName("deploy bot").setActorId("team_42").addScopes("read");
    var issued = issuedKeys.withDeadlineAfter(10, TimeUnit.SECONDS).createIssuedApiKey(create.build());
    System.out.println("issued " + issued.getIssuedApiKey().getKeyId());
    var verify = VerifyApiKeyRequest.newBuilder().setCredential(issued.getSecret());
    var verdict = keys.withDeadlineAfter(10, TimeUnit.SECONDS).verifyApiKey(verify.build());
    System.out.println("the secret is valid: " + verdict.getIsValid());

    var derive = DeriveTokenRequest.newBuilder()
        .setCredential(issued.getSecret())
        .setAlgorithm(TokenAlgorithm.TOKEN_ALGORITHM_JWT);
    var jwt = keys.withDeadlineAfter(10, TimeUnit.SECONDS).deriveToken(derive.build()).getToken().getToken();
    verify.setCredential(jwt);
    verdict = keys.withDeadlineAfter(10, TimeUnit.SECONDS).verifyApiKey(verify.build());
    System.out.println("the JWT is valid: " + verdict.getIsValid());

    var revoke = RevokeApiKeyRequest.newBuilder()
        .setKeyId(issued.getIssuedApiKey().getKeyId())
        .setReason(RevocationReason.REVOCATION_REASON_SUPERSEDED);
    keys.withDeadlineAfter(10, TimeUnit.SECONDS).revokeApiKey(revoke.build());
    verdict = keys.withDeadlineAfter(10, TimeUnit.SECONDS).verifyApiKey(verify.build());
    System.out.println("after the revocation: " + verdict.getErrorCode());
    channel.shutdown().awaitTermination(10, TimeUnit.SECONDS);
  }

  private static ChannelCredentials credentials(URI url) {
    return url.getScheme().equals("http") ? InsecureChannelCredentials.create() : TlsChannelCredentials.create();
  }

  /** Sends the token with every call. */
  private static ClientInterceptor bearer(String token) {
    var headers = new Metadata();
    headers.put(Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER), "Bearer " + token);
    return MetadataUtils.newAttachHeadersInterceptor(headers);
  }
}
