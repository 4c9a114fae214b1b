import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { Client, credentials, type Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { type Answer, LOST, REQUEST_TIMEOUT } from "./answer.ts";

const { verifyApiKey, batchVerifyApiKeys } = ApiKeysService.method;

/** A single HTTP/2 session, which reconnects quickly. */
const OPTIONS = {
  "grpc.initial_reconnect_backoff_ms": 50,
  "grpc.max_reconnect_backoff_ms": 200,
  "grpc.use_local_subchannel_pool": 1,
};

/** Verifies over gRPC with grpc-js, which shares no code with the server. Returns responses in the JSON of the REST paths. */
export class GrpcClient {
  readonly #client: Client;

  constructor(port: number) {
    this.#client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), OPTIONS);
  }

  verify(credential: string): Promise<Answer> {
    return this.#call(verifyApiKey, { credential });
  }

  verifyBatch(texts: readonly string[]): Promise<Answer> {
    return this.#call(batchVerifyApiKeys, { requests: texts.map((credential) => ({ credential })) });
  }

  close(): void {
    this.#client.close();
  }

  #call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
  ): Promise<Answer> {
    return new Promise((resolve) => {
      this.#client.makeUnaryRequest(
        `/${method.parent.typeName}/${method.name}`,
        (message: MessageInitShape<I>) => Buffer.from(toBinary(method.input, create(method.input, message))),
        (bytes) =>
          toJson(method.output, fromBinary(method.output, bytes), {
            alwaysEmitImplicit: true,
            useProtoFieldName: true,
          }),
        request,
        { deadline: deadline() },
        (error, body) => resolve(error === null ? { status: 200, body } : failure(error)),
      );
    });
  }
}

function deadline(): Date {
  return new Date(Date.now() + REQUEST_TIMEOUT);
}

/** The client itself reports UNAVAILABLE when it has no connection, but without details. */
function failure({ code, details, metadata }: ServiceError): Answer {
  const isOfService = metadata.get("grpc-status-details-bin").length > 0;
  if (code === status.UNAVAILABLE && !isOfService) return LOST;
  if (code === status.UNAVAILABLE) return { status: 503, body: undefined, retryAfter: retryAfterOf(metadata) };
  if (code === status.DEADLINE_EXCEEDED || code === status.CANCELLED) return LOST;
  return { status: 500, body: { code: status[code], details } };
}

function retryAfterOf(metadata: Metadata): string | undefined {
  return metadata.get("retry-after")[0]?.toString();
}
