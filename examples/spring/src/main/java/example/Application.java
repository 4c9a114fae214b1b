package example;

import dev.keyhold.v2alpha1.VerifyApiKeyResponse;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestAttribute;
import org.springframework.web.bind.annotation.RestController;

/** A web service that is protected by Keyhold. Reads KEYHOLD_URL, KEYHOLD_TOKEN (scope keyhold:verify) and PORT. */
@SpringBootApplication
@RestController
public class Application {
  public static void main(String[] args) {
    SpringApplication.run(Application.class, args);
  }

  @GetMapping("/books")
  Map<String, String> books(@RequestAttribute(KeyholdFilter.CREDENTIAL) VerifyApiKeyResponse credential) {
    return Map.of("reader", credential.getActorId());
  }
}
