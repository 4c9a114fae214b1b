/** The current time of filters in tests, in milliseconds. */
export const NOW = Date.parse("2026-01-31T12:00:00Z");
