// Health check of the image, which has no curl. JavaScript starts faster than TypeScript.
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";

const { KEYHOLD_PORT, KEYHOLD_TLS_CERT_FILE } = process.env;
const request = KEYHOLD_TLS_CERT_FILE ? requestHttps : requestHttp;

// The certificate names the service, not this address, and the connection does not leave the container.
const options = { host: "127.0.0.1", port: KEYHOLD_PORT || 4420, path: "/health/ready", rejectUnauthorized: false };

// An unhandled error is printed and ends the process with status 1. The container engine enforces the timeout.
request(options, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).end();
