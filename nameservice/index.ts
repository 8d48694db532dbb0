/** Names of endpoints. See nameservice/README.md. */
export { formatInetName, type InetName, parseInetName } from './inet-name.ts'
