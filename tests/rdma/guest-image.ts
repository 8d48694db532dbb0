/** What a guest boots: Debian's kernel, and an initial RAM disk with a shell, the modules it needs, and init.sh. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { provideIwarp } from './iwarp-module.ts'

/** Debian's packages for the emulator and the RAM disk, and what the guest uses of the host's file system. */
const PACKAGES = {
  'qemu-system-x86_64': 'qemu-system-x86',
  busybox: 'busybox-static',
  cpio: 'cpio',
  modprobe: 'kmod',
  ip: 'iproute2',
  rdma: 'iproute2',
} as const
const LIBRARIES = ['rdma-core', 'libibverbs1', 'librdmacm1', 'ibverbs-providers']
/** `rdma_rxe` needs `crc32_generic`, which nothing pulls in by itself. */
const MODULES =
  'crc32_generic rdma_rxe ib_uverbs 9p 9pnet_virtio virtio_pci virtio_net overlay veth unix sch_ingress cls_u32 act_gact'.split(
    ' ',
  )

const IWARP_MODULES = ['siw', 'rdma_ucm']

const INIT = fileURLToPath(new URL('../../../tests/rdma/guest/init.sh', import.meta.url))

export interface GuestImage {
  readonly kernel: string
  readonly initrd: string
}

/** Installs what is missing and makes an image, perhaps with iWARP; throws an error that says what cannot be had. */
export function prepareImage(isIwarp = false): GuestImage {
  installPackages()
  const cache = process.env.FASTSOCKETS_RDMA_CACHE || join(homedir(), '.cache', 'fastsockets-rdma')
  mkdirSync(cache, { recursive: true })
  const version = fetchKernel(cache)
  if (isIwarp) provideIwarp(cache, version)
  return {
    kernel: join(cache, 'kernel', 'boot', `vmlinuz-${version}`),
    initrd: isIwarp
      ? buildRamDisk(cache, version, 'initrd-iwarp', [...MODULES, ...IWARP_MODULES])
      : buildRamDisk(cache, version, 'initrd', MODULES),
  }
}

function installPackages(): void {
  const missing = Object.entries(PACKAGES).filter(([command]) => !isCommand(command))
  const isThere = LIBRARIES.every(isPackage)
  if (missing.length === 0 && isThere) return
  if (process.getuid?.() !== 0 || !isCommand('apt-get')) {
    throw new Error(`not installed: ${missing.map(([, name]) => name).join(', ') || LIBRARIES.join(', ')}`)
  }
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const names = [...new Set([...missing.map(([, name]) => name), ...LIBRARIES])]
  execFileSync('apt-get', ['update', '-qq'], { env, stdio: 'ignore' })
  execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...names], {
    env,
    stdio: 'ignore',
  })
}

/** The kernel is unpacked, not installed; returns its version. */
function fetchKernel(cache: string): string {
  const folder = join(cache, 'kernel')
  const modules = join(folder, 'lib', 'modules')
  if (!existsSync(join(folder, 'complete'))) {
    rmSync(folder, { recursive: true, force: true })
    const depends = execFileSync('apt-cache', ['depends', 'linux-image-amd64'], { encoding: 'utf8' })
    const name = /Depends: (linux-image-\S+)/.exec(depends)?.[1]
    if (name === undefined) throw new Error('apt knows no linux-image-amd64')
    execFileSync('apt-get', ['download', name], { cwd: cache, stdio: 'ignore' })
    const archive = readdirSync(cache).find(file => file.startsWith(`${name}_`))
    if (archive === undefined) throw new Error(`${name} was not downloaded`)
    execFileSync('dpkg', ['-x', archive, 'kernel'], { cwd: cache })
    rmSync(join(cache, archive))
    execFileSync('depmod', ['-b', folder, readdirSync(modules)[0] as string])
    mkdirSync(join(folder, 'complete'))
  }
  return readdirSync(modules)[0] as string
}

function buildRamDisk(cache: string, version: string, name: string, modules: readonly string[]): string {
  const root = join(cache, name)
  rmSync(root, { recursive: true, force: true })
  for (const folder of ['bin', 'modules']) mkdirSync(join(root, folder), { recursive: true })
  copyFileSync(which('busybox'), join(root, 'bin', 'busybox'))
  copyFileSync(INIT, join(root, 'init'))
  // In the order in which they are to be loaded.
  modulePaths(join(cache, 'kernel'), version, modules).forEach((path, i) => {
    copyFileSync(path, join(root, 'modules', `${String(i).padStart(3, '0')}-${basename(path)}`))
  })
  const initrd = join(cache, `${name}.gz`)
  execFileSync('sh', ['-c', `chmod +x init && find . | cpio -o -H newc --quiet | gzip -1 > '${initrd}'`], {
    cwd: root,
  })
  return initrd
}

function modulePaths(kernel: string, version: string, modules: readonly string[]): string[] {
  const paths = new Set<string>()
  for (const module of modules) {
    const show = execFileSync('modprobe', ['-d', kernel, '-S', version, '--show-depends', module], {
      encoding: 'utf8',
    })
    for (const [, path] of show.matchAll(/^insmod (\S+)/gm)) paths.add(path as string)
  }
  return [...paths]
}

function isCommand(name: string): boolean {
  return run('sh', ['-c', `command -v ${name}`]) !== undefined
}

function which(name: string): string {
  return execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim()
}

function isPackage(name: string): boolean {
  return run('dpkg-query', ['-s', name])?.includes('install ok installed') ?? false
}

function run(command: string, args: string[]): string | undefined {
  try {
    return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    return undefined
  }
}
