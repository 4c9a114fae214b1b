/**
 * Cases of h2spec that plain `node:http2` fails, with the reason. `runH2spec` checks that it fails each of them. h2spec tests RFC 7540,
 * which RFC 9113 has replaced.
 */
export const KNOWN_FAILURES: Readonly<Record<string, string>> = {
  "http2/5.1/8":
    "nghttp2 drops the state of a closed stream and ignores DATA for it, which may have been sent before the reset arrived",
  "http2/5.1/9":
    "nghttp2 drops the state of a closed stream and ignores HEADERS for it, which may have been sent before the reset arrived",
  "http2/5.1/11":
    "nghttp2 drops the state of a closed stream and ignores DATA for it; they count against the connection's window",
  "http2/5.1/12": "nghttp2 drops the state of a closed stream and ignores HEADERS for it",
  "http2/5.1.1/2":
    "nghttp2 cannot tell a stream identifier that was never used from one that is closed, and ignores both if a higher one was used",
  "http2/5.3.1/2": "RFC 9113 §5.3.2 deprecates priorities, and nghttp2 ignores PRIORITY, also of a stream on itself",
  "http2/6.3/1": "RFC 9113 §5.3.2 deprecates priorities, and nghttp2 ignores PRIORITY, also on stream 0",
  "http2/6.7/2":
    "Node closes a connection with PROTOCOL_ERROR at a PING acknowledgement that it did not ask for, where the RFC asks for no answer",
  "http2/6.9.1/3":
    "nghttp2 makes a connection error of the stream error FLOW_CONTROL_ERROR, as RFC 9113 §5.4.1 lets an endpoint do",
};
