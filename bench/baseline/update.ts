/** A Fastify route that updates one row with one prepared UPDATE and returns it, by the driver of the service: one commit per request. */
import Fastify from "fastify";
import { keySchema, listen, openDatabase } from "./fastify.ts";

interface Row {
  create_time: Date;
  update_time: Date;
}

const sql = openDatabase();
const fastify = Fastify();
fastify.patch<{ Params: { key_id: string }; Body: { name: string } }>(
  "/keys/:key_id",
  { schema: keySchema },
  async ({ params, body }) => {
    const [row] = await sql<Row[]>`
      UPDATE changed_keys SET name = ${body.name}, update_time = ${new Date()} WHERE key_id = ${params.key_id} RETURNING *`;
    if (row === undefined) throw new Error("no such key");
    const { create_time, update_time, ...key } = row;
    const times = { create_time: create_time.toISOString(), update_time: update_time.toISOString() };
    return { ...key, ...times, status: "KEY_STATUS_ACTIVE" };
  },
);
await listen(fastify);
