/**
 * `siw`, the kernel's software iWARP device. Debian's kernel comes without it, so it is made of Debian's source of that kernel, once:
 * a download of 140 MB, and a minute.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = 'drivers/infiniband/sw/siw'
/** What comes before it in the archive, and it. */
const DEPTH = 1 + FOLDER.split('/').length

/** Puts the module among those of the kernel in `cache`; throws if it cannot be had. */
export function provideIwarp(cache: string, version: string): void {
  const kernel = join(cache, 'kernel')
  if (isModule(kernel, version)) return
  if (process.getuid?.() !== 0) throw new Error('the kernel has no module siw')
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const packages = [`linux-headers-${version}`, 'make', 'xz-utils']
  execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], {
    env,
    stdio: 'ignore',
  })
  const folder = join(cache, 'siw')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  fetchSource(folder, version)
  execFileSync(
    'make',
    ['-C', `/usr/src/linux-headers-${version}`, `M=${folder}`, 'CONFIG_RDMA_SIW=m', 'modules'],
    {
      stdio: 'ignore',
    },
  )
  const updates = join(kernel, 'lib', 'modules', version, 'updates')
  mkdirSync(updates, { recursive: true })
  execFileSync('strip', ['--strip-debug', '-o', join(updates, 'siw.ko'), join(folder, 'siw.ko')])
  rmSync(folder, { recursive: true })
  execFileSync('depmod', ['-b', kernel, version])
}

function isModule(kernel: string, version: string): boolean {
  try {
    execFileSync('modprobe', ['-d', kernel, '-S', version, '--show-depends', 'siw'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

function fetchSource(folder: string, version: string): void {
  const name = `linux-source-${/^\d+\.\d+/.exec(version)?.[0]}`
  execFileSync('apt-get', ['download', name], { cwd: folder, stdio: 'ignore' })
  const archive = readdirSync(folder).find(file => file.startsWith(`${name}_`))
  if (archive === undefined) throw new Error(`${name} was not downloaded`)
  const unpack = `dpkg --fsys-tarfile '${archive}' | tar -xO ./usr/src/${name}.tar.xz | tar -xJ --strip-components=${DEPTH} ${name}/${FOLDER}`
  execFileSync('sh', ['-c', unpack], { cwd: folder })
  rmSync(join(folder, archive))
}
