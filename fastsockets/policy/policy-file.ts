/** Reads a policy file. Only programs with a policy load this file, the parser and the validator. */
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import type { ValidateFunction } from 'ajv'
import { readTrustedFile } from '../../nic/trusted-file.ts'
import { suggestion } from '../host/environment.ts'
import { uidOfName } from '../host/user-names.ts'
import { Policy } from './policy.ts'
import { PolicyError, type PolicyProblem } from './policy-error.ts'
import {
  POLICY_SCHEMA,
  PORT_DEMAND,
  type PolicyDocument,
  RULES_MAX,
  type RuleDocument,
  USER_DEMAND,
  USER_NAME_PATTERN,
  USERS_MAX,
} from './policy-schema.ts'
import { Rule } from './rule.ts'

/** A larger file is a mistake. */
const POLICY_SIZE_MAX = 1024 * 1024
const VERSION_LENGTH = 12

const QUOTE = "quote a pattern that begins with * or @: '*.test.js'"

/** Tests check our own schema: checking it against JSON Schema's meta-schema would take three times as long as to compile it. */
const SCHEMA_OPTIONS = { allErrors: true, allowUnionTypes: true, meta: false, validateSchema: false } as const

const require = createRequire(import.meta.url)

/** Throws a `PolicyError` that names every faulty line and rule. */
export function readPolicyFile(path: string): Policy {
  let text: string
  try {
    text = readTrustedFile(path, { sizeMax: POLICY_SIZE_MAX }).toString()
  } catch (error) {
    throw new PolicyError(path, [{ line: 0, rule: undefined, text: (error as Error).message }])
  }
  return parsePolicy(text, path)
}

export function parsePolicy(text: string, path: string): Policy {
  const { parseDocument, LineCounter, isMap, visit } = require('yaml') as typeof import('yaml')
  const counter = new LineCounter()
  const document = parseDocument(text, { lineCounter: counter, uniqueKeys: true, logLevel: 'error' })
  const unreadable: PolicyProblem[] = document.errors.map(error => {
    const text = error.message.split('\n')[0]?.replace(/ at line .*$/, '') ?? error.code
    const hint = /cannot start with/.test(text) ? `: ${QUOTE}` : ''
    return { line: error.linePos?.[0].line ?? 0, rule: undefined, text: `${text}${hint}` }
  })
  // Aliases are refused: a few lines of nested ones can expand to gigabytes.
  visit(document, {
    Alias: (_key, { source, range }) => {
      const line = counter.linePos(range?.[0] ?? 0).line
      unreadable.push({ line, rule: undefined, text: `*${source}: a policy may not have aliases; ${QUOTE}` })
    },
  })
  if (unreadable.length > 0) throw new PolicyError(path, unreadable, text)

  /** The line of the node at `keys`, or of `key` within it. */
  const lineOf = (keys: readonly (string | number)[], key?: string): number => {
    const node = document.getIn(keys, true) as { range?: [number, number, number] } | undefined
    const pair =
      isMap(node) && key !== undefined ? node.items.find(item => String(item.key) === key) : undefined
    const at = (pair?.key as { range?: [number, number, number] } | undefined)?.range ?? node?.range
    return at === undefined ? 1 : counter.linePos(at[0]).line
  }

  const value = (document.toJS() ?? {}) as PolicyDocument
  const problems = validate(value).map(({ keys, key, text }) => ({
    line: lineOf(keys, key),
    rule: keys[0] === 'rules' && typeof keys[1] === 'number' ? keys[1] + 1 : undefined,
    text,
  }))
  const rules: Rule[] = []
  for (const [index, rule] of rulesOf(value).entries()) {
    // The schema has already found a fault in this rule: further checks could not trust it.
    if (problems.some(problem => problem.rule === index + 1)) continue
    const line = lineOf(['rules', index])
    try {
      rules.push(new Rule(rule, index + 1, line))
    } catch (error) {
      problems.push({ line, rule: index + 1, text: (error as Error).message })
    }
  }
  const users: number[] = []
  for (const [index, user] of usersOf(value).entries()) {
    const uid = typeof user === 'number' ? user : uidOfName(user)
    if (uid !== undefined) users.push(uid)
    else {
      const unknown = `${user} is not in /etc/passwd: write the number of the user`
      problems.push({ line: lineOf(['users', index]), rule: undefined, text: unknown })
    }
  }
  problems.sort((a, b) => a.line - b.line)
  if (problems.length > 0) throw new PolicyError(path, problems, text)
  const { default: use = 'fast', drivers, zcopy = false, start, datagrams, keyFile, rendezvous } = value
  const version = createHash('sha256').update(text).digest('hex').slice(0, VERSION_LENGTH)
  return new Policy({
    source: path,
    version,
    default: use,
    users,
    drivers,
    zcopy,
    start,
    datagrams,
    keyFile,
    rendezvous,
    rules,
  })
}

/** The users of a document that may be invalid otherwise. */
function usersOf(value: unknown): readonly (number | string)[] {
  const { users } = (value ?? {}) as PolicyDocument
  if (!Array.isArray(users)) return []
  return users
    .slice(0, USERS_MAX)
    .filter(user => typeof user === 'number' || new RegExp(USER_NAME_PATTERN).test(String(user)))
}

/** The rules, even if the rest of the document is invalid. */
function rulesOf(value: unknown): readonly RuleDocument[] {
  const { rules } = (value ?? {}) as PolicyDocument
  return Array.isArray(rules) ? rules.slice(0, RULES_MAX) : []
}

interface Finding {
  readonly keys: readonly (string | number)[]
  readonly key?: string
  readonly text: string
}

const RULE_KEYS = POLICY_SCHEMA.properties.rules.items.properties

let check: ValidateFunction | undefined

function compileSchema(): ValidateFunction {
  const { Ajv } = require('ajv') as typeof import('ajv')
  return new Ajv(SCHEMA_OPTIONS).compile(POLICY_SCHEMA)
}

function validate(value: unknown): Finding[] {
  check ??= compileSchema()
  if (check(value)) return []
  // What fails each form of `anyOf`, a port or a user, keeps only the error of `anyOf` itself.
  const errors = (check.errors ?? []).filter(
    ({ instancePath, keyword }) => keyword === 'anyOf' || !/\/port$|^\/users\/\d+$/.test(instancePath),
  )
  return errors.map(({ instancePath, keyword, params, message }) => {
    const keys = instancePath
      .split('/')
      .slice(1)
      .map(part => (/^\d+$/.test(part) ? Number(part) : part))
    const name = [...keys].reverse().find(key => typeof key === 'string')
    if (keyword === 'anyOf')
      return { keys, text: name === 'users' ? `users ${USER_DEMAND}` : `port ${PORT_DEMAND}` }
    if (keyword === 'additionalProperties') {
      const key = String(params.additionalProperty)
      const known = Object.keys(keys.length === 0 ? POLICY_SCHEMA.properties : RULE_KEYS)
      return { keys, key, text: `unknown key ${JSON.stringify(key)}${suggestion(key, known)}` }
    }
    const allowed = keyword === 'enum' ? `: ${(params.allowedValues as string[]).join(', ')}` : ''
    const isRule = name === 'rules' && keys.length > 1
    const subject = name === undefined || isRule ? '' : `${name} `
    return { keys, text: `${subject}${message ?? keyword}${allowed}` }
  })
}
