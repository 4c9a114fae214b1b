/** Disables Keyhold's limits on its own callers, for suites that call in loops from one address. */
export const WITHOUT_OWN_LIMITS = {
  KEYHOLD_PUBLIC_RATE: "off",
  KEYHOLD_FAILURE_RATE: "off",
  KEYHOLD_VERIFICATION_FAILURE_RATE: "off",
  KEYHOLD_CALLER_VERIFICATION_FAILURE_RATE: "off",
  KEYHOLD_CHANGE_RATE: "off",
  KEYHOLD_IMPORT_RATE: "off",
};
