package interop;

import io.grpc.Status;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import java.util.concurrent.TimeUnit;

final class Deadlines {
  static void check(Keyhold keyhold, Tap.Step step) throws IOException {
    var call = Keys.requestFor("x");
    var error = Errors.of(() -> keyhold.keys().withDeadlineAfter(0, TimeUnit.SECONDS).verifyApiKey(call));
    step.ok("a deadline that has passed: DEADLINE_EXCEEDED", error.code() == Status.Code.DEADLINE_EXCEEDED, error);
    var verdict = keyhold.keys().withDeadlineAfter(20, TimeUnit.SECONDS).verifyApiKey(call);
    step.ok("a later deadline does not change the response", Keys.verdict(verdict).equals("NOT_FOUND"), verdict);

    // A port that accepts connections and never answers.
    try (var silent = new ServerSocket(0);
        var stalled = Keyhold.connect(URI.create("http://127.0.0.1:" + silent.getLocalPort()).toString(), "")) {
      error = Errors.of(() -> stalled.keys().withDeadlineAfter(300, TimeUnit.MILLISECONDS).verifyApiKey(call));
      step.ok("a server that does not answer: DEADLINE_EXCEEDED", error.code() == Status.Code.DEADLINE_EXCEEDED, error);
    }
  }
}
