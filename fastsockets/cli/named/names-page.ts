/** The page of the name-service daemon: names, leases and watchers, once a second. */
import type { DaemonPage, DaemonView } from '../../../nameservice/named.ts'
import { EVENTS_PATH, eventText, PageHandler, pageFiles } from '../ui/page-handler.ts'
import type { NamesSnapshot } from '../ui/snapshot-types.ts'

const INTERVAL_MS = 1000
const WORDS = {
  title: 'Fast Sockets: names',
  script: 'names',
  waiting: 'Waiting for the first answer of the daemon.',
  command: 'fastsockets names ls',
}

export function makeNamesPage(view: () => DaemonView): DaemonPage {
  const files = pageFiles(WORDS, ['format', 'table', 'live'])
  const snapshot = (): string => {
    const shown: NamesSnapshot = { atMs: Date.now(), ...view() }
    return eventText('snapshot', shown)
  }
  const page = new PageHandler({ files, printer: 'fastsockets names page', greeting: () => [snapshot()] })
  const timer = setInterval(() => page.listenerCount > 0 && page.send(snapshot()), INTERVAL_MS).unref()
  return {
    paths: new Set([...Object.keys(files), EVENTS_PATH]),
    addressOn: port => page.addressOn(port),
    handle: (request, response) => page.handle(request, response),
    close: () => {
      clearInterval(timer)
      page.close()
    },
  }
}
