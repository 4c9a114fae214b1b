package example;

import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.annotation.AuthenticationPrincipal;
import org.springframework.security.oauth2.jwt.Jwt;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A resource server that verifies derived JWTs offline. Reads KEYHOLD_URL, of a server that signs with ES256, and PORT. */
@SpringBootApplication
@RestController
public class Application {
  public static void main(String[] args) {
    SpringApplication.run(Application.class, args);
  }

  /** Spring Security turns each scope of the JWT into an authority. */
  @Bean
  SecurityFilterChain protect(HttpSecurity http) throws Exception {
    return http
        .authorizeHttpRequests(requests -> requests
            .requestMatchers("/books/**").hasAuthority("SCOPE_read")
            .anyRequest().denyAll())
        .oauth2ResourceServer(server -> server.jwt(Customizer.withDefaults()))
        .build();
  }

  @GetMapping("/books")
  Map<String, String> books(@AuthenticationPrincipal Jwt jwt) {
    return Map.of("reader", jwt.getSubject());
  }
}
