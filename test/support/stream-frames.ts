import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  ApiKeysService,
  type StreamVerifyRequestSchema,
  type StreamVerifyResponse,
} from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { frame } from "./wire.ts";

const { input, output } = ApiKeysService.method.streamVerify;

/** Returns the frame of a request of `StreamVerify`. */
export function requestFrame(message: MessageInitShape<typeof StreamVerifyRequestSchema>): Buffer {
  return frame(toBinary(input, create(input, message)));
}

/** Returns the answers in the frames of a response. */
export function answersIn(bytes: Buffer): StreamVerifyResponse[] {
  const answers: StreamVerifyResponse[] = [];
  for (let start = 0; start + 5 <= bytes.length; ) {
    const end = start + 5 + bytes.readUInt32BE(start + 1);
    answers.push(fromBinary(output, bytes.subarray(start + 5, end)));
    start = end;
  }
  return answers;
}
