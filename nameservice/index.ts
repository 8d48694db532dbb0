/** The name service, for programs that use it. See nameservice/README.md. */
export type { EntryPage } from './client/answers.ts'
export { NameError, type NameErrorCode } from './client/errors.ts'
export type { Lookup } from './client/lookups.ts'
export type {
  CallOptions,
  LookUpAnswer,
  NameApi,
  RegisterAnswer,
  RegisterOptions,
} from './client/name-api.ts'
export {
  type LookupOptions,
  NameClient,
  type NameClientOptions,
  type NameEvent,
  type WatchOptions,
} from './client/name-client.ts'
export type {
  NewRegistration,
  Registration,
  RegistrationOptions,
  RegistrationState,
} from './client/registration.ts'
export {
  AUTHORITIES_SIZE_MAX,
  CA_FILE_VARIABLE,
  TOKEN_FILE_VARIABLE,
  TOKEN_SIZE_MAX,
} from './client/target.ts'
export { formatInetName, type InetName, parseInetName } from './inet-name.ts'
export { kindOf, NAME_LENGTH_MAX, type NameKind } from './name.ts'
export { PROBLEM_URN, type Problem, type ProblemCode } from './problem.ts'
export type { Change, DeletedName, DriverAddress, Entry, Lease, NameRecord, NewRecord } from './record.ts'
export { ADDRESS_VARIABLE, defaultSocketPath, findSocketPath, isDaemonExpected } from './socket-path.ts'
