/** What may stand in a policy file, what it then means, and how its faults are named. */
import { Ajv } from 'ajv'
import t from 'tap'
import { matchesGlob } from '../../../fastsockets/policy/glob.ts'
import { PolicyError } from '../../../fastsockets/policy/policy-error.ts'
import { parsePolicy } from '../../../fastsockets/policy/policy-file.ts'
import { POLICY_SCHEMA } from '../../../fastsockets/policy/policy-schema.ts'

/** `line rule text` of everything that is wrong. */
function faultsOf(text: string): string[] {
  try {
    parsePolicy(text, 'policy.yaml')
    return []
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    return error.problems.map(({ line, rule, text }) => `${line} ${rule ?? '-'} ${text}`)
  }
}

t.test('the schema is one, which no program checks at its start', async t => {
  const ajv = new Ajv({ strict: true, allowUnionTypes: true })
  t.ok(ajv.validateSchema(POLICY_SCHEMA), ajv.errorsText())
})

t.test('zcopy is off unless the policy says true', async t => {
  t.equal(parsePolicy('default: fast\n', 'policy.yaml').zcopy, false)
  t.equal(parsePolicy('zcopy: false\n', 'policy.yaml').zcopy, false)
  t.equal(parsePolicy('zcopy: true\n', 'policy.yaml').zcopy, true)
  for (const wrong of ['off', '1', 'null', '[true]']) {
    t.throws(() => parsePolicy(`zcopy: ${wrong}\n`, 'policy.yaml'), {
      code: 'ERR_FASTSOCKETS_POLICY',
      message: /policy.yaml:1: zcopy must be boolean/,
    })
  }
})

t.test('the first rule that matches decides, and is named by its line', async t => {
  const policy = parsePolicy(
    `default: tcp
users: [1000, 1001]
drivers: [shm]
rules:
  - program: /srv/app/**
    role: client
    address: 10.0.0.0/8
    port: 5432
    use: require
  # a comment
  - { port: 8000-8099, use: fast }
  - address: "fd00::/8"
    use: fast
`,
    'policy.yaml',
  )
  const app = '/srv/app/bin/server.js'
  t.strictSame(policy.decide(app, 'client', '10.1.2.3', 5432), {
    use: 'require',
    because: 'rule 1 of policy.yaml, line 5',
    rule: 1,
    isForAddress: true,
  })
  t.strictSame(policy.decide(app, 'server', '10.1.2.3', 8050), {
    use: 'fast',
    because: 'rule 2 of policy.yaml, line 11',
    rule: 2,
    isForAddress: false,
  })
  t.equal(policy.decide(app, 'client', 'fd12::1', 1).because, 'rule 3 of policy.yaml, line 12')
  t.strictSame(policy.decide(app, 'client', '11.1.2.3', 5432), {
    use: 'tcp',
    because: 'the default of policy.yaml',
    rule: 0,
    isForAddress: false,
  })
  t.equal(policy.decide('/srv/other.js', 'client', '10.1.2.3', 5432).use, 'tcp', 'another program')
  t.equal(policy.decide(app, 'server', '10.1.2.3', 5432).use, 'tcp', 'another role')
  t.equal(policy.decide(app, 'client', undefined, 5432).use, 'tcp', 'an address that is not known')
  t.equal(policy.decide(app, 'client', '10.1.2.3', 8100).use, 'tcp', 'a port behind the range')
  t.ok(policy.allowsUser(1001) && policy.allowsUser(process.getuid?.() as number))
  t.notOk(policy.allowsUser(1002))
  t.ok(policy.allowsDriver('shm'))
  t.notOk(policy.allowsDriver('loopback'))
})

t.test('unix sockets have rules by path', async t => {
  const policy = parsePolicy(
    `default: require
rules:
  - { port: 1-65535, use: tcp }
  - { address: 0.0.0.0/0, use: tcp }
  - { path: /run/app/*.sock, role: server, use: fast }
  - { path: "@app*", use: fast }
  - { program: /srv/app.js, use: tcp }
`,
    'p',
  )
  for (const [program, role, name, because] of [
    ['/a', 'server', '/run/app/a.sock', 'rule 3 of p, line 5'],
    ['/a', 'client', '/run/app/a.sock', 'the default of p'],
    ['/a', 'server', '/run/app/deep/a.sock', 'the default of p'],
    ['/a', 'client', '@app-1', 'rule 4 of p, line 6'],
    ['/srv/app.js', 'client', '/tmp/x', 'rule 5 of p, line 7'],
  ] as const) {
    t.equal(policy.decidePath(program, role, name).because, because, `${program} ${role} ${name}`)
  }
  const paths = parsePolicy('rules: [{ path: "**", use: tcp }]', 'p')
  t.equal(paths.decide('/a', 'client', '127.0.0.1', 80).use, 'fast', 'a rule by path is not about ports')
  t.strictSame(faultsOf('rules:\n  - { use: tcp, path: /run/x, port: 80 }\n'), [
    '2 1 path is for unix sockets, which have neither address nor port: make two rules of it',
  ])
})

t.test('an empty file asks for nothing', async t => {
  for (const text of ['', '# only a comment\n', '{}']) {
    const policy = parsePolicy(text, 'p')
    t.equal(policy.decide('/a', 'client', '127.0.0.1', 1).use, 'fast', JSON.stringify(text))
    t.ok(policy.allowsDriver('loopback'))
  }
})

t.test('everything that is wrong is named, with its line and its rule', async t => {
  const faults = faultsOf(`default: quick
user: [1]
rules:
  - use: fast
    prot: 80
  - port: 80
  - port: 99999
    use: tcp
  - port: 90-80
    use: tcp
  - address: 10.0.0.0/33
    use: tcp
`)
  t.strictSame(
    faults.sort(),
    [
      '1 - default must be equal to one of the allowed values: fast, tcp, require',
      '2 - unknown key "user": did you mean users?',
      '5 1 unknown key "prot": did you mean port?',
      "6 2 must have required property 'use'",
      '7 3 port must be within 1..65535, or a range such as 8000-8099',
      '9 4 port must be within 1..65535, or a range such as 8000-8099, not "90-80"',
      '11 5 address must be an address or a prefix such as 10.0.0.0/8, not "10.0.0.0/33"',
    ].sort(),
  )
})

t.test('a document that is something else altogether is named, too', async t => {
  for (const text of ['7', '[1]', 'rules: 7', 'rules: { use: tcp }', 'rules: [7, { use: tcp, port: 90-80 }]'])
    t.ok(faultsOf(text).length > 0, text)
})

t.test('what the schema cannot see is named as well', async t => {
  t.strictSame(faultsOf('rules:\n  - { use: tcp, port: 90-80 }\n  - { use: tcp, address: 10.0.0.0/33 }\n'), [
    '2 1 port must be within 1..65535, or a range such as 8000-8099, not "90-80"',
    '3 2 address must be an address or a prefix such as 10.0.0.0/8, not "10.0.0.0/33"',
  ])
  for (const address of ['localhost', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0.0/x', '::/129', '10.0.0']) {
    t.equal(faultsOf(`rules: [{ use: tcp, address: "${address}" }]`).length, 1, address)
  }
})

t.test('what is no YAML, or not one document of it, is named with its line', async t => {
  t.match(faultsOf('default: fast\nrules: [\n'), [/^3 - /])
  t.match(faultsOf('default: fast\ndefault: tcp\n'), [/^2 - Map keys must be unique/])
  t.match(faultsOf('- 1\n'), [/^1 - must be object/])
})

t.test('a file that multiplies itself is refused, as any other that is wrong', async t => {
  t.strictSame(faultsOf('default: &a fast\nrules:\n  - { use: *a }\n  - { use: *b }\n'), [
    "3 - *a: a policy may not have aliases; quote a pattern that begins with * or @: '*.test.js'",
    "4 - *b: a policy may not have aliases; quote a pattern that begins with * or @: '*.test.js'",
  ])
})

t.test('a key that has not its form is named', async t => {
  t.strictSame(faultsOf('rules: { port: 1 }\nusers: 5\n').sort(), [
    '1 - rules must be array',
    '2 - users must be array',
  ])
})

t.test('patterns for programs', async t => {
  for (const [path, pattern, isMatch] of [
    ['/srv/app/server.js', 'server.js', true],
    ['/srv/app/server.js', '*.js', true],
    ['/srv/app/server.js', 'server', false],
    ['/srv/app/server.js', '/srv/*/server.js', true],
    ['/srv/app/bin/server.js', '/srv/*/server.js', false],
    ['/srv/app/bin/server.js', '/srv/**/server.js', true],
    ['/srv/server.js', '/srv/**/server.js', true],
    ['/srv/server.js', '/srv/**', true],
    ['/srv/serverXjs', '/srv/server.js', false],
    ['/srv/a+b(1).js', '/srv/a+b(1).j?', true],
  ] as const) {
    t.equal(matchesGlob(path, pattern), isMatch, `${path} ${pattern}`)
  }
})
