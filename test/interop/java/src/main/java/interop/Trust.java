package interop;

import java.io.FileInputStream;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

final class Trust {
  /** Trusts only the certificate in a PEM file, in all HTTP clients of the JVM. No-op without a file. */
  static void certificateOf(String file) throws GeneralSecurityException, IOException {
    if (file == null) return;
    var store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    try (var pem = new FileInputStream(file)) {
      store.setCertificateEntry("server", CertificateFactory.getInstance("X.509").generateCertificate(pem));
    }
    var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(store);
    var context = SSLContext.getInstance("TLS");
    context.init(null, trust.getTrustManagers(), null);
    SSLContext.setDefault(context);
  }
}
