package interop;

import dev.keyhold.v2alpha1.ApiKeysServiceGrpc;
import dev.keyhold.v2alpha1.ApiKeysServiceGrpc.ApiKeysServiceBlockingStub;
import dev.keyhold.v2alpha1.DerivedKeysServiceGrpc;
import dev.keyhold.v2alpha1.DerivedKeysServiceGrpc.DerivedKeysServiceBlockingStub;
import dev.keyhold.v2alpha1.ImportedApiKeysServiceGrpc;
import dev.keyhold.v2alpha1.ImportedApiKeysServiceGrpc.ImportedApiKeysServiceBlockingStub;
import dev.keyhold.v2alpha1.IssuedApiKeysServiceGrpc;
import dev.keyhold.v2alpha1.IssuedApiKeysServiceGrpc.IssuedApiKeysServiceBlockingStub;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.MetadataUtils;
import java.io.File;
import java.io.IOException;
import java.net.URI;

/** A stub for each service, with the admin token or without. */
record Keyhold(
    URI url,
    ManagedChannel channel,
    IssuedApiKeysServiceBlockingStub issued,
    ImportedApiKeysServiceBlockingStub imported,
    ApiKeysServiceBlockingStub keys,
    DerivedKeysServiceBlockingStub jwks,
    ApiKeysServiceBlockingStub unauthenticated)
    implements AutoCloseable {

  static Keyhold connect(String url, String token) throws IOException {
    var channel = channelTo(URI.create(url)).build();
    var admin = MetadataUtils.newAttachHeadersInterceptor(header("authorization", "Bearer " + token));
    return new Keyhold(
        URI.create(url),
        channel,
        IssuedApiKeysServiceGrpc.newBlockingStub(channel).withInterceptors(admin),
        ImportedApiKeysServiceGrpc.newBlockingStub(channel).withInterceptors(admin),
        ApiKeysServiceGrpc.newBlockingStub(channel).withInterceptors(admin),
        DerivedKeysServiceGrpc.newBlockingStub(channel),
        ApiKeysServiceGrpc.newBlockingStub(channel));
  }

  static ManagedChannelBuilder<?> channelTo(URI url) throws IOException {
    return Grpc.newChannelBuilder(url.getAuthority(), credentialsOf(url));
  }

  private static ChannelCredentials credentialsOf(URI url) throws IOException {
    if (url.getScheme().equals("http")) return InsecureChannelCredentials.create();
    return TlsChannelCredentials.newBuilder().trustManager(new File(System.getenv("KEYHOLD_CA_FILE"))).build();
  }

  static Metadata header(String name, String value) {
    var headers = new Metadata();
    headers.put(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER), value);
    return headers;
  }

  @Override
  public void close() {
    channel.shutdownNow();
  }
}
