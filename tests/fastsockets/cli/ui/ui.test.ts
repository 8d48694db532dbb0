/** The pages of `fastsockets ui` and of the name-service daemon: which requests the servers refuse, and what a real Chromium shows. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium, type Page } from 'playwright-core'
import t, { type Test } from 'tap'
import type { Snapshot } from '../../../../fastsockets/cli/ui/snapshot-types.ts'
import { CHECKOUT } from '../../../docs/application.ts'
import { Child, plainEnvironment } from '../../../support/child.ts'
import { Named } from '../../../support/named.ts'
import { freePort } from '../../../support/ports.ts'
import { program, relinked } from '../../../support/relinked.ts'
import { skipHere } from '../../../support/skip.ts'
import { eventually, withWatchdog } from '../../../support/until.ts'

const CLI = fileURLToPath(new URL('../../../../fastsockets/cli/main.js', import.meta.url))
const CHROMIUM = '/usr/bin/chromium'

interface Ui {
  readonly process: ChildProcess
  /** With the token. */
  readonly address: string
  readonly port: number
}

async function startUi(t: Test, ...args: string[]): Promise<Ui> {
  const child = spawn(process.execPath, [CLI, 'ui', ...args], {
    env: plainEnvironment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => void child.kill('SIGKILL'))
  const [line] = await withWatchdog('the address', once(createInterface({ input: child.stdout }), 'line'))
  const address = String(line)
  return { process: child, address, port: Number(new URL(address).port) }
}

/** Status and headers of an answer. */
function ask(
  port: number,
  path: string,
  headers: http.OutgoingHttpHeaders = {},
  method = 'GET',
): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port, path, method, headers, agent: false }, answer => {
      answer.resume()
      resolve(answer)
    })
    request.on('error', reject).end()
  })
}

function otherLast(text: string): string {
  return text.slice(0, -1) + (text.endsWith('x') ? 'y' : 'x')
}

t.test('only who has the token, and only its own pages, see anything', async t => {
  const { port, address } = await startUi(t)
  const { pathname, search } = new URL(address)
  const admitted = await ask(port, pathname + search)
  t.equal(admitted.statusCode, 303)
  const [cookie = ''] = admitted.headers['set-cookie'] ?? []
  t.match(cookie, /; HttpOnly; SameSite=Strict; Path=\/$/)
  const known = { cookie: cookie.split(';')[0] }
  const page = await ask(port, '/', known)
  t.equal(page.statusCode, 200)
  t.match(page.headers['content-security-policy'], /^default-src 'none'; script-src 'self';/)
  t.equal(page.headers['cache-control'], 'no-store')

  const status = async (path: string, headers: http.OutgoingHttpHeaders, method?: string) =>
    (await ask(port, path, headers, method)).statusCode
  for (const path of ['/', '/events', '/main.js', '/page.css', '/nowhere'])
    t.equal(await status(path, {}), 401, path)
  t.equal(await status('/?token=wrong', {}), 401)
  t.equal(await status('/', { cookie: otherLast(known.cookie ?? '') }), 401)
  t.equal(await status('/', { ...known, host: `attacker.example:${port}` }), 421, 'DNS rebinding')
  t.equal(await status(`/${search}`, { host: `attacker.example:${port}` }), 421)
  t.equal(await status('/events', { ...known, origin: 'http://attacker.example' }), 403)
  t.equal(await status('/', { ...known, 'sec-fetch-site': 'cross-site' }), 403)
  t.equal(await status('/', { ...known, 'sec-fetch-site': 'same-site' }), 403, 'another port of this host')
  t.equal(await status('/', known, 'POST'), 405)
  t.equal(await status('/../ui-command.ts', known), 404)
  t.equal(await status('//', {}), 400, 'no address, of a caller without the token')
  t.equal(await status('/', { ...known, host: `localhost:${port}` }), 200)

  const listening = readFileSync('/proc/net/tcp', 'utf8')
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  t.ok(listening.includes(`0100007F:${hex} 00000000:0000 0A`), 'it listens on 127.0.0.1')
  t.notOk(listening.includes(`00000000:${hex} 00000000:0000 0A`), 'and on no other address')
})

t.test('the page of the daemon: for administrators of this host, over loopback', async t => {
  const tcp = await freePort()
  const named = await Named.start(t, { args: ['--tcp-listen', `127.0.0.1:${tcp}`, '--store-kind', 'memory'] })
  const { json } = await named.ask('GET', '/v1/page')
  const { pathname, search, port } = new URL(String(json.address))
  t.equal(Number(port), tcp)
  const status = async (path: string, headers: http.OutgoingHttpHeaders = {}) =>
    (await ask(tcp, path, headers)).statusCode
  t.equal(await status('/v1/page'), 403, 'who comes over TCP does not get the address')
  const admitted = await ask(tcp, pathname + search)
  t.equal(admitted.statusCode, 303)
  const known = { cookie: admitted.headers['set-cookie']?.[0]?.split(';')[0] }
  t.match((await ask(tcp, '/', known)).headers['content-security-policy'], /^default-src 'none';/)
  for (const path of ['/', '/events', '/names.js']) t.equal(await status(path), 401, path)
  t.equal(await status('/', { ...known, host: `attacker.example:${tcp}` }), 421, 'DNS rebinding')
  t.equal(await status('/events', { ...known, origin: 'http://attacker.example' }), 403)
  t.equal(await status('/events', { ...known, 'sec-fetch-site': 'cross-site' }), 403)
  t.equal(await status('/v1/names'), 200, 'the interface is where it was')
  t.equal((await named.ask('GET', '/')).status, 404, 'no page over the unix socket')
  const silent = await Named.start(t, { args: ['--store-kind', 'memory'] })
  t.match((await silent.ask('GET', '/v1/page')).json, { type: 'urn:fastsockets:problem:no-such-resource' })
})

t.test('it ends with Ctrl-C, and says why it cannot begin', async t => {
  const ui = await startUi(t)
  ui.process.kill('SIGINT')
  t.strictSame(await withWatchdog('its end', once(ui.process, 'exit')), [0, null])
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [CLI, 'ui', ...args], { env: plainEnvironment(), encoding: 'utf8' })
  const other = await startUi(t)
  t.match(run('--port', String(other.port)), { status: 1, stderr: /EADDRINUSE/ })
  t.equal(run('--port', '65536').status, 2)
  t.match(run('--replay', '/nowhere.jsonl'), { status: 1, stderr: /ENOENT/ })
  const folder = t.testdir({ 'wrong.jsonl': '{"atMs":1}\n' })
  t.match(run('--replay', join(folder, 'wrong.jsonl')), {
    status: 1,
    stderr: /wrong\.jsonl:1 is no snapshot/,
  })
})

/** As many relinked clients of one server as there may be on a busy host. */
function crowd(atMs: number, clients: number): Snapshot {
  const programOf = (pid: number, name: string, port?: number): Snapshot['programs'][number] => ({
    id: String(pid),
    pid,
    program: `/srv/${name}`,
    uid: 0,
    isRelinked: true,
    startMs: atMs,
    listeners:
      port === undefined ? [] : [{ local: `127.0.0.1:${port}`, acceptedFast: clients, acceptedTcp: 0 }],
    socketCount: 1,
    opened: 1,
    inRate: pid,
    outRate: pid,
    messages: 1,
  })
  const pids = Array.from({ length: clients }, (_, i) => 1000 + i)
  return {
    atMs,
    uid: 0,
    programs: [programOf(1, 'server.js', 80), ...pids.map(pid => programOf(pid, `client-${pid % 3}.js`))],
    edges: pids.map(pid => ({
      from: String(pid),
      to: '1',
      place: '127.0.0.1:80',
      wire: 'shm',
      count: 1,
      bytesIn: pid,
      bytesOut: pid,
      inRate: pid,
      outRate: 0,
    })),
    isCut: false,
    reasons: [{ code: 'STRANGER', text: 'what <b>happened</b>', remedy: 'what to do', count: 1 }],
    policy: ['no policy'],
    names: {
      names: [{ name: 'services/printer', endpoint: 'e1', lease: 'l1', revision: 7 }],
      leases: [],
      isCut: false,
    },
    totals: { atMs, fast: clients, slow: 0, byteRate: 1e6, messageRate: 1000 },
  }
}

/** A shop in containers, for the pictures of the guide. */
function shop(atMs: number): Snapshot {
  const part = (pid: number, name: string, local: string, rate: number): Snapshot['programs'][number] => ({
    id: String(pid),
    pid,
    program: `/srv/shop/${name}`,
    uid: 1000,
    isRelinked: name !== 'mailer.py',
    startMs: atMs - 3_600_000,
    listeners: local === '' ? [] : [{ local, acceptedFast: 24, acceptedTcp: 0 }],
    socketCount: 24,
    opened: 96,
    inRate: rate,
    outRate: 4 * rate,
    messages: 1e6,
  })
  const line = (
    from: number,
    to: number,
    place: string,
    rate: number,
    count = 8,
    more: Partial<Snapshot['edges'][number]> = {},
  ): Snapshot['edges'][number] => ({
    from: String(from),
    to: String(to),
    place,
    wire: 'shm',
    count,
    bytesIn: 4000 * rate,
    bytesOut: 1000 * rate,
    inRate: 4 * rate,
    outRate: rate,
    ...more,
  })
  const wave = Math.sin(atMs / 40)
  return {
    ...crowd(atMs, 1),
    programs: [
      part(2101, 'gateway.js', '127.0.0.1:8080', 2e6),
      part(2102, 'orders.js', '127.0.0.1:7001', 9e5),
      part(2103, 'stock.js', '127.0.0.1:7002', 6e5),
      part(2104, 'billing.js', '127.0.0.1:7003', 3e5),
      part(2105, 'mailer.py', '', 1e3),
    ],
    edges: [
      line(2101, 2102, '127.0.0.1:7001', 9e5, 16),
      line(2101, 2103, '127.0.0.1:7002', 6e5),
      line(2102, 2103, '127.0.0.1:7002', 2e5),
      line(2102, 2104, '127.0.0.1:7003', 3e5, 4),
      line(2105, 2104, '127.0.0.1:7003', 1e3, 1, { wire: 'tcp', reason: 'NOT_RELINKED' }),
    ],
    totals: { atMs, fast: 36, slow: 1, byteRate: 8e6 + 1e6 * wave, messageRate: 42_000 + 6000 * wave },
  }
}

const PICTURE_SIZE_MAX = 150_000

/** Width and height (PNG, section 11.2.1). */
function sizeOf(png: Buffer): [width: number, height: number] {
  return [png.readUInt32BE(16), png.readUInt32BE(20)]
}

/** What axe-core, WCAG 2.2 AA and its best practices, finds wrong: rule and place. */
async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8'))
  return await page.evaluate(
    "axe.run().then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => id + ' at ' + target)))",
  )
}

t.test('in Chromium', { timeout: 240_000 }, async t => {
  if (!existsSync(CHROMIUM)) return skipHere(t, `the page in a browser (there is no ${CHROMIUM})`)
  const browser: Browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu'],
  })
  t.teardown(() => browser.close())
  const open = async (t: Test, address: string): Promise<{ page: Page; errors: string[] }> => {
    const page = await browser.newPage()
    page.setDefaultTimeout(60_000)
    t.teardown(() => page.close())
    const errors: string[] = []
    page.on('pageerror', error => errors.push(error.message))
    page.on('console', message => message.type() === 'error' && errors.push(message.text()))
    await page.goto(address)
    return { page, errors }
  }

  await t.test('it shows what runs, as it comes and goes', async t => {
    const server = new Child(t, program('server'), ['echo'], relinked())
    const { port } = await server.receive<{ port: number }>()
    const client = new Child(t, program('client'), [String(port)], relinked())
    await client.receive()
    const record = join(t.testdir(), 'record.jsonl')
    const ui = await startUi(t, '--record', record)
    const { page, errors } = await open(t, ui.address)
    t.equal(page.url(), `http://127.0.0.1:${ui.port}/`, 'the token leaves the address')
    const row = page.locator('#connections tbody tr', { hasText: `client.js [${client.pid}]` })
    await row.waitFor()
    t.match(
      await row.innerText(),
      new RegExp(`server\\.js \\[${server.pid}\\]\\s+127.0.0.1:${port}\\s+shm\\s+1\\s`),
    )
    const box = page.getByRole('button', { name: new RegExp(`server\\.js process ${server.pid}`) })
    await box.focus()
    await page.keyboard.press('Enter')
    t.equal(await box.getAttribute('aria-pressed'), 'true', 'by keyboard')
    t.equal(await page.locator('#connections tbody tr').count(), 1, 'the connections of that program')

    const late = new Child(t, program('client'), [String(port)])
    await late.receive()
    const slow = page.locator('#connections tbody tr', { hasText: 'ACCEPTED' })
    await slow.waitFor()
    t.match(await slow.innerText(), new RegExp(`\\[${late.pid}\\]`), 'a new one over TCP')
    t.match(await page.locator('#reasons').innerText(), /ACCEPTED/)
    await client.kill()
    await row.waitFor({ state: 'detached' })
    t.strictSame(errors, [])

    const before = await page.locator('#state').innerText()
    ui.process.kill('SIGTERM')
    await page.locator('#state.lost').waitFor()
    t.match(await page.locator('#state').innerText(), /^Nothing new since/)
    t.match(before, /^as of /)
    t.equal(statSync(record).mode & 0o777, 0o600)
    const again = await startUi(t, '--replay', record)
    const replayed = await open(t, again.address)
    await replayed.page
      .locator('#connections tbody tr', { hasText: `[${server.pid}]` })
      .first()
      .waitFor()
  })

  await t.test('500 processes: a bounded page, that sorts and filters', async t => {
    const file = join(t.testdir(), 'crowd.jsonl')
    writeFileSync(file, `${JSON.stringify(crowd(1000, 20))}\n${JSON.stringify(crowd(2000, 500))}\n`)
    const ui = await startUi(t, '--replay', file)
    const { page, errors } = await open(t, ui.address)
    await page.getByText('All processes of a program are one box').waitFor()
    t.equal(await page.locator('#graph .program').count(), 4, 'one box for each program')
    t.equal(await page.locator('#graph path').count(), 3)
    t.equal(await page.locator('#connections tbody tr').count(), 200)
    await page.getByText('300 more: narrow them down above.').waitFor()
    const firstClient = () => page.locator('#connections tbody tr').first().locator('td').first().innerText()
    t.match(await firstClient(), /\[1499\]/, 'the busiest first')
    await page.locator('#connections').getByRole('button', { name: 'sent' }).click()
    await page.locator('#connections').getByRole('button', { name: 'sent' }).click()
    t.match(await firstClient(), /\[1000\]/)
    t.equal(await page.locator('#connections th[aria-sort=ascending]').innerText(), 'sent')
    await page.locator('#connections-filter').fill('[1234]')
    t.equal(await page.locator('#connections tbody tr').count(), 1)
    t.match(await page.locator('#reasons').innerText(), /what <b>happened<\/b>/, 'text stays text')
    t.match(await page.locator('#names').innerText(), /services\/printer/)
    t.strictSame(await violationsOf(page), [])
    await page.emulateMedia({ colorScheme: 'dark' })
    const dark = await page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    await page.emulateMedia({ colorScheme: 'light' })
    const light = await page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    t.not(dark, light)
    t.strictSame(errors, [])
  })

  await t.test('names, leases and watchers of the daemon, as they come and go', async t => {
    const args = ['--tcp-listen', `127.0.0.1:${await freePort()}`, '--store-kind', 'memory']
    const named = await Named.start(t, { args })
    const lease = await named.grant()
    await named.register('services/printer', lease)
    const watching = named.client().watch$('services/').subscribe()
    t.teardown(() => watching.unsubscribe())
    const { page, errors } = await open(t, await named.client().api.pageAddress())
    await page.locator('#names tbody tr', { hasText: 'services/printer' }).waitFor()
    await page.locator('#leases tbody tr', { hasText: lease }).waitFor()
    await page.locator('#watchers tbody tr', { hasText: 'services/*' }).waitFor()
    t.strictSame(await violationsOf(page), [])
    await named.ask('DELETE', `/v1/leases/${lease}`)
    await page.getByText('No name is registered.').waitFor()
    t.strictSame(errors, [])
    named.signal('SIGTERM')
    await page.locator('#state.lost').waitFor()
  })

  await t.test('the pictures of the guide', async t => {
    const file = join(t.testdir(), 'shop.jsonl')
    const all = Array.from({ length: 600 }, (_, index) => shop(1_700_000_000_000 + index))
    writeFileSync(file, all.map(snapshot => `${JSON.stringify(snapshot)}\n`).join(''))
    const { page } = await open(t, (await startUi(t, '--replay', file)).address)
    await page.setViewportSize({ width: 1100, height: 720 })
    await page.locator('#connections tbody tr', { hasText: 'mailer.py' }).waitFor()
    const points = "document.querySelector('polyline').points.length"
    await eventually('the whole file', async () => (await page.evaluate(points)) === all.length)
    t.equal(await page.locator('#graph .program').count(), 5)
    t.equal(await page.locator('#graph path.slow').count(), 1)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      t.strictSame(await violationsOf(page), [], colorScheme)
      const made = await page.screenshot()
      const kept = join(CHECKOUT, `docs/pictures/ui-${colorScheme}.png`)
      if (process.env.UPDATE_PICTURES !== undefined) writeFileSync(kept, made)
      const picture = readFileSync(kept)
      t.strictSame(sizeOf(picture), sizeOf(made), `${kept} is as large as the page`)
      t.ok(picture.length < PICTURE_SIZE_MAX, `${picture.length} bytes`)
    }
  })

  await t.test('it runs no script from elsewhere', async t => {
    const file = join(t.testdir(), 'one.jsonl')
    writeFileSync(file, `${JSON.stringify(crowd(1000, 1))}\n`)
    const ui = await startUi(t, '--replay', file)
    const { page } = await open(t, ui.address)
    await page.locator('#connections').waitFor()
    const other = http
      .createServer((_request, response) => response.end('window.stranger = 1'))
      .listen(0, '127.0.0.1')
    t.teardown(() => other.close())
    await once(other, 'listening')
    const { port } = other.address() as { port: number }
    const refused = await page.evaluate(`new Promise(resolve => {
      document.addEventListener('securitypolicyviolation', event => resolve(event.effectiveDirective), { once: true })
      const script = document.createElement('script')
      script.src = 'http://127.0.0.1:${port}/'
      document.head.append(script)
    })`)
    t.equal(refused, 'script-src-elem')
    const inline = await page.evaluate(`new Promise(resolve => {
      document.addEventListener('securitypolicyviolation', event => resolve(event.blockedURI), { once: true })
      const script = document.createElement('script')
      script.textContent = 'window.stranger = 1'
      document.head.append(script)
    })`)
    t.equal(inline, 'inline')
    t.equal(await page.evaluate('window.stranger'), undefined)
  })
})
