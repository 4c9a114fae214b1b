/** Loaded into a server by `NODE_OPTIONS=--import`: what nobody catches happens at a signal. */

/** Stands in the place of the bytes that some of Node's errors hold; a log must not have it. */
const RAW_PACKET = "authorization: Bearer kh_v1_not_for_the_log";

function provoked(): Error {
  return Object.assign(new TypeError("provoked"), { rawPacket: RAW_PACKET });
}

process.on("SIGUSR2", () => {
  throw provoked();
});
process.on("SIGHUP", () => void Promise.reject(provoked()));
