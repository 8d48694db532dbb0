/**
 * tap has every process that a test starts report what it loads, by a loader that takes longer to start than the process
 * itself and warns on a new Node. Nothing here reads the reports: processes of tests start as they would elsewhere.
 */
import processOnSpawn from 'process-on-spawn'

processOnSpawn.removeAllListeners()

/** For npm: Node 20 parses all certificates of this file at every start, which more than doubles the CPU time of one. */
export const extraCertificates = process.env.NODE_EXTRA_CA_CERTS
delete process.env.NODE_EXTRA_CA_CERTS
