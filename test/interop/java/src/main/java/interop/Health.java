package interop;

import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.health.v1.HealthGrpc.HealthBlockingStub;
import io.grpc.stub.MetadataUtils;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

final class Health {
  static void check(Keyhold keyhold, Tap.Step step) {
    var health = HealthGrpc.newBlockingStub(keyhold.channel());
    var checked = health.check(HealthCheckRequest.getDefaultInstance()).getStatus();
    step.ok("Check: the server is healthy", checked == ServingStatus.SERVING, checked);
    var unknown = HealthCheckRequest.newBuilder().setService("no.such.Service").build();
    var error = Errors.of(() -> health.check(unknown));
    step.ok("Check: an unknown service is NOT_FOUND", error.code() == Status.Code.NOT_FOUND, error);

    checkWatch("the client's deadline", health.withDeadlineAfter(3, TimeUnit.SECONDS), step);
    // Without a timer in the client, the status is that of the server.
    var timeout = MetadataUtils.newAttachHeadersInterceptor(Keyhold.header("grpc-timeout", "3S"));
    checkWatch("the server's deadline", health.withInterceptors(timeout), step);
  }

  private static void checkWatch(String name, HealthBlockingStub health, Tap.Step step) {
    List<ServingStatus> statuses = new ArrayList<>();
    try {
      health.watch(HealthCheckRequest.getDefaultInstance()).forEachRemaining(one -> statuses.add(one.getStatus()));
      step.ok("Watch ends at " + name, false, "it ended with OK");
    } catch (StatusRuntimeException error) {
      step.ok("Watch sends the first status before " + name, statuses.equals(List.of(ServingStatus.SERVING)), statuses);
      step.ok("Watch ends at " + name, error.getStatus().getCode() == Status.Code.DEADLINE_EXCEEDED, error);
    }
  }
}
