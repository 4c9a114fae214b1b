/** Loaded into a server by `NODE_OPTIONS=--import`: throws or rejects on a signal. */

/** Like the bytes that some errors of Node contain; a log must not contain it. */
const RAW_PACKET = "authorization: Bearer kh_v1_not_for_the_log";

function provoked(): Error {
  return Object.assign(new TypeError("provoked"), { rawPacket: RAW_PACKET });
}

process.on("SIGUSR2", () => {
  throw provoked();
});
process.on("SIGHUP", () => void Promise.reject(provoked()));
