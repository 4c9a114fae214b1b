import { onTestFinished, test } from "vitest";
import { createTestDatabase } from "../support/postgres.ts";
import { expectStop } from "./expect-stop.ts";

test("a server whose database does not answer stops on SIGTERM", async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  await expectStop(database.url, "freeze");
});
