/** Exit statuses for scripts. `keyhold --help` and the README have the same table. */
export const EXIT_STATUS = {
  done: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  denied: 4,
  conflict: 5,
  unavailable: 6,
  invalidCredential: 7,
  partial: 8,
  /** 128 + SIGINT, as in a shell. */
  interrupted: 130,
} as const;

export const EXIT_STATUS_HELP = `
Exit status:
  0    success
  1    failure
  2    invalid usage, configuration or input
  3    key not found
  4    caller not authenticated or not permitted
  5    conflict with the state of the key, or key already exists
  6    server or database unreachable
  7    credential not valid
  8    some rows of an import failed
  130  interrupted`;
