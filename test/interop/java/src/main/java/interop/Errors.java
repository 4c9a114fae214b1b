package interop;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.rpc.BadRequest;
import com.google.rpc.BadRequest.FieldViolation;
import com.google.rpc.ErrorInfo;
import dev.keyhold.v2alpha1.BatchCreateImportedApiKeysRequest;
import dev.keyhold.v2alpha1.CreateImportedApiKeyRequest;
import dev.keyhold.v2alpha1.CreateIssuedApiKeyRequest;
import dev.keyhold.v2alpha1.GetIssuedApiKeyRequest;
import dev.keyhold.v2alpha1.GetJwksRequest;
import dev.keyhold.v2alpha1.Jwks;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.ClientCalls;
import java.util.List;

final class Errors {
  private static final String UNKNOWN = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";

  /** The machine-readable part of an error. */
  record Details(Status.Code code, String message, ErrorInfo info, List<FieldViolation> violations) {
    boolean is(Status.Code wanted, String reason) {
      return code == wanted && info.getReason().equals(reason) && info.getDomain().equals("keyhold");
    }
  }

  /** Returns the error of a call that must fail. */
  static Details of(Runnable call) {
    try {
      call.run();
    } catch (StatusRuntimeException error) {
      var status = StatusProto.fromThrowable(error);
      var info = ErrorInfo.getDefaultInstance();
      var invalid = BadRequest.getDefaultInstance();
      for (var detail : status.getDetailsList()) {
        if (detail.is(ErrorInfo.class)) info = unpack(detail, ErrorInfo.class);
        if (detail.is(BadRequest.class)) invalid = unpack(detail, BadRequest.class);
      }
      return new Details(error.getStatus().getCode(), status.getMessage(), info, invalid.getFieldViolationsList());
    }
    throw new AssertionError("the call succeeded");
  }

  private static <T extends Message> T unpack(Any detail, Class<T> type) {
    try {
      return detail.unpack(type);
    } catch (InvalidProtocolBufferException error) {
      throw new AssertionError(error);
    }
  }

  static void check(Keyhold keyhold, Tap.Step step) {
    var unknown = GetIssuedApiKeyRequest.newBuilder().setKeyId(UNKNOWN).build();
    var error = of(() -> keyhold.issued().getIssuedApiKey(unknown));
    step.ok("an unknown key: ErrorInfo", error.is(Status.Code.NOT_FOUND, "API_KEY_NOT_FOUND"), error);
    step.ok("an unknown key: its metadata", error.info().getMetadataOrDefault("key_id", "").equals(UNKNOWN), error);

    var invalid = CreateIssuedApiKeyRequest.newBuilder().setName("java").setTtl("soon").build();
    error = of(() -> keyhold.issued().createIssuedApiKey(invalid));
    step.ok("bad input: ErrorInfo", error.is(Status.Code.INVALID_ARGUMENT, "INVALID_ARGUMENT"), error);
    var fields = error.violations().stream().map(one -> one.getField() + " " + one.getReason()).toList();
    var wanted = List.of("actor_id FIELD_REQUIRED", "ttl INVALID_FORMAT");
    step.ok("bad input: BadRequest has each field with its reason", fields.equals(wanted), fields);

    var batch = BatchCreateImportedApiKeysRequest.newBuilder();
    for (var index = 0; index < 1000; index++) batch.addRequests(CreateImportedApiKeyRequest.getDefaultInstance());
    error = of(() -> keyhold.imported().batchCreateImportedApiKeys(batch.build()));
    step.ok("1,000 failed items: ErrorInfo", error.is(Status.Code.INVALID_ARGUMENT, "INVALID_ARGUMENT"), error);

    error = of(() -> keyhold.unauthenticated().verifyApiKey(Keys.requestFor("x")));
    step.ok("without a token", error.is(Status.Code.UNAUTHENTICATED, "CALLER_UNAUTHENTICATED"), error);
    checkUnknownMethods(keyhold, step);
  }

  private static void checkUnknownMethods(Keyhold keyhold, Tap.Step step) {
    for (var name : List.of("keyhold.v2alpha1.ApiKeysService/NoSuchMethod", "no.such.Service/NoSuchMethod")) {
      var method = MethodDescriptor.<GetJwksRequest, Jwks>newBuilder()
          .setType(MethodDescriptor.MethodType.UNARY)
          .setFullMethodName(name)
          .setRequestMarshaller(ProtoUtils.marshaller(GetJwksRequest.getDefaultInstance()))
          .setResponseMarshaller(ProtoUtils.marshaller(Jwks.getDefaultInstance()))
          .build();
      var options = keyhold.keys().getCallOptions();
      var request = GetJwksRequest.getDefaultInstance();
      var error = of(() -> ClientCalls.blockingUnaryCall(keyhold.channel(), method, options, request));
      step.ok(name + " is UNIMPLEMENTED", error.code() == Status.Code.UNIMPLEMENTED, error);
    }
  }
}
