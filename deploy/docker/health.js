// The health check of the image, which has no curl. In JavaScript, so that it starts at once.
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";

const { KEYHOLD_PORT, KEYHOLD_TLS_CERT_FILE } = process.env;
const request = KEYHOLD_TLS_CERT_FILE ? requestHttps : requestHttp;

// The certificate names the service, not this address, and the connection does not leave the container.
const options = { host: "127.0.0.1", port: KEYHOLD_PORT || 4420, path: "/health/ready", rejectUnauthorized: false };

// An error that nobody listens for is written down and ends the process with status 1. The engine bounds the time.
request(options, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).end();
