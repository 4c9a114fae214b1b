/** What a command ends with, for scripts. The same table stands in `keyhold --help` and in the README. */
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
  /** 128 and the number of SIGINT, as a shell counts. */
  interrupted: 130,
} as const;

export const EXIT_STATUS_HELP = `
Exit status:
  0    done
  1    failed
  2    wrong usage, configuration or input
  3    there is no such key
  4    the caller is not known or not permitted
  5    the state of the key does not allow it, or it exists already
  6    the server, or its database, cannot be reached
  7    the credential is not valid
  8    some rows of an import failed
  130  interrupted`;
