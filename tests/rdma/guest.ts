/** A virtual machine that runs one shell script and ends; what it prints is passed on, line by line. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { GuestImage } from './guest-image.ts'

const SCRIPTS = fileURLToPath(new URL('../../../tests/rdma/guest/', import.meta.url))
const MEMORY_MIB = 2048
/** A boot takes some 15 s. */
const BOOT_MS_MAX = 120_000

/** The script's exit code; or the emulator did not boot at all, or did not come to the script's end. */
export type GuestEnd = number | 'not booted' | 'cut off'

export interface GuestRun {
  /** Before each line of its output. */
  readonly prefix: string
  /** In tests/rdma/guest/. */
  readonly script: string
  readonly environment: Readonly<Record<string, string>>
  /** Options of QEMU for the network. */
  readonly network: readonly string[]
  readonly timeoutMs: number
}

export function runGuest(image: GuestImage, run: GuestRun): Promise<GuestEnd> {
  // Beside the image.
  const folder = mkdtempSync(join(dirname(image.initrd), 'run-'))
  const script = join(folder, 'run.sh')
  writeFileSync(script, scriptText(run))
  return new Promise(resolve => {
    const guest = spawn('qemu-system-x86_64', qemuArguments(image, run, script), {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let end: GuestEnd = 'not booted'
    const kill = (): unknown => guest.kill('SIGKILL')
    // The caller may be interrupted.
    const abandon = (): void => {
      kill()
      rmSync(folder, { recursive: true, force: true })
    }
    process.once('exit', abandon)
    let timer = setTimeout(kill, BOOT_MS_MAX)
    createInterface({ input: guest.stdout }).on('line', raw => {
      const line = plainText(raw)
      const exit = /^GUEST_EXIT (\d+)/.exec(line)
      if (exit !== null) {
        end = Number(exit[1])
      } else if (line.endsWith('GUEST_UP')) {
        end = 'cut off'
        clearTimeout(timer)
        timer = setTimeout(kill, run.timeoutMs)
      } else if (!isNoise(line)) {
        console.log(`${run.prefix}${line}`)
      }
    })
    guest.on('error', error => console.log(`${run.prefix}${error.message}`))
    guest.on('close', () => {
      clearTimeout(timer)
      process.off('exit', abandon)
      rmSync(folder, { recursive: true, force: true })
      resolve(end)
    })
  })
}

function scriptText({ script, environment }: GuestRun): string {
  const exports = Object.entries(environment).map(([name, value]) => `export ${name}='${value}'`)
  return [...exports, `NODE='${process.execPath}'`, readFileSync(join(SCRIPTS, script), 'utf8')].join('\n')
}

function qemuArguments(image: GuestImage, run: GuestRun, script: string): string[] {
  return [
    // KVM hangs on some hosts that have it. One processor: with a second one programs of the guest spin while they wait, which
    // takes twice the processor time of the host.
    ...['-accel', 'tcg', '-cpu', 'max', '-smp', '1', '-m', `${MEMORY_MIB}`],
    ...['-nographic', '-no-reboot', '-kernel', image.kernel, '-initrd', image.initrd],
    ...['-append', `console=ttyS0 panic=-1 quiet fastsockets=${script}`],
    ...['-virtfs', 'local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap'],
    ...(run.network.length === 0 ? ['-net', 'none'] : run.network),
  ]
}

/** Without what the firmware says to a terminal. */
function plainText(line: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminals are controlled by them.
  return line.replace(/\x1b(\[[?\d;]*[A-Za-z]|c)/g, '').replace(/\r/g, '')
}

function isNoise(line: string): boolean {
  return line.trim() === '' || /^(SeaBIOS|Booting from ROM|iPXE|Press Ctrl-B|\[ *\d+\.\d+\] )/.test(line)
}
