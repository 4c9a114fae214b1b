package example;

import dev.keyhold.v2alpha1.ApiKeysServiceGrpc;
import dev.keyhold.v2alpha1.ApiKeysServiceGrpc.ApiKeysServiceBlockingStub;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.MetadataUtils;
import java.net.URI;
import java.util.List;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The connection to Keyhold, and which routes need which scopes. */
@Configuration
class KeyholdConfiguration {
  /** One registration for each group of routes with the same scopes. */
  @Bean
  FilterRegistrationBean<KeyholdFilter> protectBooks(ApiKeysServiceBlockingStub keys) {
    var registration = new FilterRegistrationBean<>(new KeyholdFilter(keys, List.of("read")));
    registration.addUrlPatterns("/books/*");
    return registration;
  }

  @Bean
  ApiKeysServiceBlockingStub apiKeys(ManagedChannel keyhold, @Value("${keyhold.token}") String token) {
    var headers = new Metadata();
    headers.put(Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER), "Bearer " + token);
    var authorization = MetadataUtils.newAttachHeadersInterceptor(headers);
    return ApiKeysServiceGrpc.newBlockingStub(keyhold).withInterceptors(authorization);
  }

  @Bean(destroyMethod = "shutdownNow")
  ManagedChannel keyhold(@Value("${keyhold.url}") URI url) {
    ChannelCredentials credentials =
        url.getScheme().equals("http") ? InsecureChannelCredentials.create() : TlsChannelCredentials.create();
    return Grpc.newChannelBuilder(url.getAuthority(), credentials).build();
  }
}
