/**
 * `npm run test:udp`: unmodified packages that speak UDP (udp-packages.ts), from npm, in a folder that is removed at the end.
 * Exit code: 0 all pairs saw the same, 1 not.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { faultsOf, PACKAGES } from './udp-packages.ts'

const folder = mkdtempSync(join(tmpdir(), 'udp-packages-'))
try {
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  const wanted = Object.entries(PACKAGES).map(([name, { version }]) => `${name}@${version}`)
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--omit=optional', '--save-exact']
  execFileSync('npm', ['install', ...options, ...wanted], { cwd: folder, stdio: 'inherit' })
  for (const name of Object.keys(PACKAGES)) {
    const faults = await faultsOf(name, folder)
    console.log(`${faults.length === 0 ? 'ok  ' : 'FAIL'} ${name}`)
    for (const fault of faults) console.log(`     ${fault}`)
    if (faults.length > 0) process.exitCode = 1
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
