import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { callUnaryMethod, useTransport } from "@connectrpc/connect-query";
import { useState } from "react";
import { refreshSession } from "./query-client.ts";

/**
 * Returns a function that calls an RPC whose request or response has a secret. Unlike a mutation, nothing keeps either after the component
 * that uses it. The promise resolves to undefined if the call fails; `error` is then why.
 */
export function useSecretCall<I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>) {
  const transport = useTransport();
  const [isPending, setPending] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const call = async (request: MessageInitShape<I>): Promise<MessageShape<O> | undefined> => {
    setPending(true);
    setError(null);
    try {
      return await callUnaryMethod(transport, method, request);
    } catch (cause) {
      const failure = ConnectError.from(cause);
      if (failure.code === Code.Unauthenticated) void refreshSession();
      setError(failure);
      return undefined;
    } finally {
      setPending(false);
    }
  };
  return { call, isPending, error };
}
