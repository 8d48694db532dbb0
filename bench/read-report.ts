import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import { REPORT_SCHEMA, REPORT_VERSION, type Report } from './result.ts'

const ajv = new Ajv({ strict: true, strictRequired: false, allowUnionTypes: true })
const validate = ajv.compile<Report>(REPORT_SCHEMA)

/** Throws, with a message for people, if there is no report in the file. */
export function readReport(file: string): Report {
  let value: unknown
  try {
    value = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new Error(`${file} cannot be read as JSON: ${(error as Error).message}`)
  }
  return checkReport(value, file)
}

export function checkReport(value: unknown, name: string): Report {
  const version = (value as { version?: unknown } | null)?.version
  if (version !== undefined && version !== REPORT_VERSION) {
    throw new Error(
      `${name} is a report of version ${String(version)}; this program reads version ${REPORT_VERSION}`,
    )
  }
  const complaint = `${name} is no report of fastsockets bench`
  if (!validate(value)) {
    throw new Error(`${complaint}: ${ajv.errorsText(validate.errors, { dataVar: 'it' })}`)
  }
  // Rounds are compared one by one: none may be missing.
  const { rounds } = value.options
  const broken = value.results.find(result => result.rounds.length !== rounds)
  if (broken === undefined) return value
  const { suite, contestant, metric } = broken
  throw new Error(
    `${complaint}: it has ${rounds} rounds, but ${suite}, ${contestant}, ${metric} has ${broken.rounds.length}`,
  )
}
