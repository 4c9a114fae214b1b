package interop;

import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.InvalidProtocolBufferException;
import dev.keyhold.v2alpha1.ApiKeysServiceGrpc;
import io.grpc.reflection.v1.ServerReflectionGrpc;
import io.grpc.reflection.v1.ServerReflectionRequest;
import io.grpc.reflection.v1.ServerReflectionResponse;
import io.grpc.reflection.v1.ServiceResponse;
import io.grpc.stub.StreamObserver;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

final class Reflection {
  static void check(Keyhold keyhold, Tap.Step step) throws Exception {
    var service = ApiKeysServiceGrpc.SERVICE_NAME;
    var list = ask(keyhold, ServerReflectionRequest.newBuilder().setListServices("*").build());
    var names = list.getListServicesResponse().getServiceList().stream().map(ServiceResponse::getName).toList();
    step.ok("lists the services", names.contains(service), names);

    var found = ask(keyhold, ServerReflectionRequest.newBuilder().setFileContainingSymbol(service).build());
    var file = parse(found);
    var services = file.getServiceList().stream().map(one -> file.getPackage() + "." + one.getName()).toList();
    step.ok("returns the file of a service", services.equals(List.of(service)), file);
    var javaPackage = file.getOptions().getJavaPackage();
    step.ok("with its package for Java", javaPackage.equals(ApiKeysServiceGrpc.class.getPackageName()), javaPackage);
  }

  private static FileDescriptorProto parse(ServerReflectionResponse response) throws InvalidProtocolBufferException {
    return FileDescriptorProto.parseFrom(response.getFileDescriptorResponse().getFileDescriptorProto(0));
  }

  /** Returns the response to one request. */
  private static ServerReflectionResponse ask(Keyhold keyhold, ServerReflectionRequest request) throws Exception {
    var answer = new CompletableFuture<ServerReflectionResponse>();
    var stub = ServerReflectionGrpc.newStub(keyhold.channel()).withDeadlineAfter(20, TimeUnit.SECONDS);
    var requests = stub.serverReflectionInfo(new StreamObserver<>() {
      private ServerReflectionResponse last;

      @Override
      public void onNext(ServerReflectionResponse response) {
        last = response;
      }

      @Override
      public void onError(Throwable error) {
        answer.completeExceptionally(error);
      }

      @Override
      public void onCompleted() {
        answer.complete(last);
      }
    });
    requests.onNext(request);
    requests.onCompleted();
    return answer.get();
  }
}
