// Writes better-auth.csv, with the API key plugin itself, and the raw keys of the table.
//
// cd "$(mktemp -d)" && npm install --legacy-peer-deps better-auth@1.7.5 @better-auth/api-key@1.7.5
// cp <this file> . && node make-better-auth.mjs <this folder>
import { writeFileSync } from "node:fs";
import { apiKey } from "@better-auth/api-key";
import { betterAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";

const tables = { user: [], session: [], account: [], verification: [], apikey: [] };
const auth = betterAuth({
  secret: "a-secret-of-no-installation-0123456789",
  baseURL: "http://127.0.0.1:3000",
  database: memoryAdapter(tables),
  emailAndPassword: { enabled: true },
  plugins: [apiKey({ keyExpiration: { maxExpiresIn: 3650 } })],
});

const keys = [];
for (let index = 0; index < 8; index++) {
  const owner = index % 7;
  if (tables.user[owner] === undefined) {
    await auth.api.signUpEmail({ body: { email: `u${owner}@example.com`, password: "password-of-nobody", name: "U" } });
  }
  const expiresIn = index % 4 === 0 ? null : 3600 * 24 * 3600;
  const body = { userId: tables.user[owner].id, name: `better-auth ${index + 1}`, prefix: "ba_", expiresIn };
  keys.push((await auth.api.createApiKey({ body })).key);
}

const columns = Object.keys(tables.apikey[0]);
const text = (value) =>
  value === null || value === undefined ? "" : value instanceof Date ? value.toISOString() : String(value);
const cell = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
const rows = tables.apikey.map((row) => columns.map((column) => cell(text(row[column]))).join(","));
const folder = process.argv[2] ?? ".";
writeFileSync(`${folder}/better-auth.csv`, `${[columns.join(","), ...rows].join("\n")}\n`);
writeFileSync(`${folder}/better-auth.keys`, `${keys.join("\n")}\n`);
