/** What programs find of RDMA devices that start when something is wrong with these, or when there are others. */
import { execFile, execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { plainEnvironment } from '../support/child.ts'

const REPORT = fileURLToPath(new URL('./programs/device-report.js', import.meta.url))
const CLI = fileURLToPath(new URL('../../fastsockets/cli/main.js', import.meta.url))

export interface DeviceReport {
  readonly device?: string
  readonly end?: { state: string; code: string; message: string; status: number }
  /** The command that took the device away came to its end. */
  readonly commandEnded?: boolean
  readonly availability: { usable: boolean; code?: string; reason?: string }
}

/** What a program reports that starts after `preparation`, in a mount namespace of its own. */
export async function run<T>(
  preparation: string,
  program: string[],
  env: NodeJS.ProcessEnv = {},
): Promise<T> {
  const script = `${preparation} "$0" "$@"`
  const command = ['--mount', 'sh', '-c', script, process.execPath, ...program]
  const { stdout } = await promisify(execFile)('unshare', command, { env: { ...plainEnvironment(), ...env } })
  return JSON.parse(stdout) as T
}

export async function report(
  preparation: string,
  env: NodeJS.ProcessEnv = {},
  command?: string,
): Promise<DeviceReport> {
  return await run(preparation, [REPORT, ...(command === undefined ? [] : [command])], env)
}

/** A further device, over an interface of its own. */
export function addDevice(name: string, link: string, type = 'rxe'): void {
  const commands = [
    `ip link add ${link} type veth peer name ${link}-peer`,
    `ip addr add 10.79.${link.slice(-1)}.1/24 dev ${link}`,
    `ip link set ${link}-peer up`,
    `ip link set ${link} up`,
    `rdma link add ${name} type ${type} netdev ${link}`,
  ]
  execFileSync('sh', ['-ec', commands.join('\n')])
}

export interface DoctorReport {
  readonly isFast: boolean
  readonly checks: readonly { name: string; state: string; detail: string; hint?: string }[]
}

/** What `fastsockets doctor` says that starts after `preparation`, in a mount namespace of its own. */
export function doctor(preparation = 'exec'): Promise<{ code: number; report: DoctorReport }> {
  const options = { env: plainEnvironment() }
  const command = [
    '--mount',
    'sh',
    '-c',
    `${preparation} "$0" "$@"`,
    process.execPath,
    CLI,
    'doctor',
    '--json',
  ]
  return new Promise(resolve => {
    const child = execFile('unshare', command, options, (_error, stdout) => {
      resolve({ code: child.exitCode as number, report: JSON.parse(stdout) as DoctorReport })
    })
  })
}
