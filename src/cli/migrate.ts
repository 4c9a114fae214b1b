import { withFoundation } from "./command.ts";

export function migrate(): Promise<void> {
  return withFoundation(async ({ migrated }) => {
    console.log(migrated.length === 0 ? "The schema is up to date." : `Applied ${migrated.join(", ")}.`);
  });
}
