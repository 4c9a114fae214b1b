import { useQueryClient } from "@tanstack/react-query";

/** Returns a function that reads again what the page shows, after a change. */
export function useRefresh(): () => void {
  const queries = useQueryClient();
  return () => void queries.invalidateQueries();
}
