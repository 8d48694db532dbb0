/** Makes the store that the settings choose. */
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { readTrustedFile } from '../../nic/trusted-file.ts'
import { EtcdGateway } from '../store/etcd-gateway.ts'
import { EtcdStore } from '../store/etcd-store.ts'
import { memoryJournal } from '../store/journal.ts'
import { LevelJournal } from '../store/level-journal.ts'
import { LocalStore } from '../store/local-store.ts'
import type { Store, StoreObserver } from '../store/store.ts'
import { reasonOfFile, SettingsError } from './settings.ts'
import { PEM_SIZE_MAX, type Settings } from './settings-schema.ts'

/** Throws a `SettingsError` if a file of the settings cannot be read, or has invalid content. */
export function makeStore(settings: Settings, observer: StoreObserver): Store {
  const { kind, path, history, onDamage: onCorrupt } = settings.store
  if (kind === 'etcd') {
    const gateway = new EtcdGateway(readEtcdOptions(settings.etcd))
    return new EtcdStore({ gateway, prefix: settings.etcd.prefix, observer, history })
  }
  const journal = kind === 'memory' ? memoryJournal : new LevelJournal(path)
  return new LocalStore({ journal, observer, history, onCorrupt })
}

function readEtcdOptions({ endpoints, ca, certificate, key, user, passwordFile }: Settings['etcd']) {
  const password = readText('etcd.passwordFile', passwordFile, true)
  const files = {
    ...optional('ca', readText('etcd.ca', ca)),
    ...optional('cert', readText('etcd.certificate', certificate)),
    ...optional('key', readText('etcd.key', key, true)),
  }
  checkTls(files)
  return {
    endpoints: endpoints as string[],
    ...optional('ca', files.ca),
    ...optional('certificate', files.cert),
    ...optional('key', files.key),
    ...optional('user', user === '' ? undefined : user),
    ...optional('password', password?.trimEnd()),
  }
}

function checkTls(files: SecureContextOptions): void {
  if (Object.keys(files).length === 0) return
  try {
    createSecureContext(files)
  } catch (error) {
    throw new SettingsError(`etcd.ca, etcd.certificate or etcd.key: ${(error as NodeJS.ErrnoException).code}`)
  }
}

function optional<K extends string>(name: K, value: string | undefined): { [P in K]?: string } {
  return value === undefined ? {} : ({ [name]: value } as { [P in K]?: string })
}

function readText(setting: string, path: string, isSecret = false): string | undefined {
  if (path === '') return undefined
  try {
    return readTrustedFile(path, { sizeMax: PEM_SIZE_MAX, isSecret }).toString()
  } catch (error) {
    throw new SettingsError(`${setting}: ${reasonOfFile(error)}`)
  }
}
