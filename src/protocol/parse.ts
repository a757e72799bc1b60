/** Validates input. The error names the invalid field, its value, and the expected value in one sentence. */
import type { z } from 'zod'
import { InvalidInputError } from '../errors.js'
import { cutText } from '../data/cut-text.js'
import { KNOWN_FIELD } from './strict-object.js'

/**
 * Parses a value by a schema.
 * @param name the name of the value in errors
 * @throws INVALID_INPUT for the first invalid field
 */
export function parseInput<T extends z.ZodType>(schema: T, value: unknown, name: string): z.output<T> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const { field, received, expected } = describeIssue(result.error, value, name)
  throw new InvalidInputError(field, received, expected)
}

/** Describes the first issue of a zod error: the field, the received value and the expected one. */
export function describeIssue(
  error: z.ZodError,
  value: unknown,
  name: string,
): { field: string; received: unknown; expected: string } {
  const issue = mainIssue(error.issues)
  if (issue === undefined) return { field: name, received: value, expected: 'another value' }
  const path = issue.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0] ?? ''] : issue.path
  const field = path.reduce<string>(
    (all, key) => (typeof key === 'number' ? `${all}[${key}]` : `${all}.${String(key)}`),
    name,
  )
  const received = path.reduce<unknown>((from, key) => (from as Record<PropertyKey, unknown> | undefined)?.[key], value)
  return { field, received, expected: expectation(issue) }
}

/**
 * Selects the issue to report. A misspelt field is also reported as missing by zod, so the unknown name comes first. In a union, only an
 * alternative of the same type as the value is of interest. If there is exactly one, its issue is reported.
 */
function mainIssue(issues: readonly z.core.$ZodIssue[]): z.core.$ZodIssue | undefined {
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0]
  if (issue?.code !== 'invalid_union') return issue
  const [near, ...others] = issue.errors.map(mainIssue).filter((inner) => inner !== undefined && !isOtherType(inner))
  return near === undefined || others.length > 0 ? issue : { ...near, path: [...issue.path, ...near.path] }
}

const isOtherType = ({ code, path }: z.core.$ZodIssue): boolean => code === 'invalid_type' && path.length === 0

function expectation(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      // zod names this type for a value that may be anything except undefined.
      if (issue.expected === 'nonoptional') return 'a value'
      return `${/^[aeiou]/.test(issue.expected) ? 'an' : 'a'} ${issue.expected}`
    case 'unrecognized_keys':
      return issue.message.startsWith(KNOWN_FIELD) ? issue.message : KNOWN_FIELD
    case 'invalid_value':
      return valuesText(issue.values)
    case 'invalid_union':
      return unionText(issue.errors.flatMap(([first]) => first ?? [])) ?? issue.message
    case 'too_small':
      return issue.origin === 'string'
        ? `at least ${String(issue.minimum)} character(s)`
        : `${issue.inclusive === false ? 'more than' : 'at least'} ${String(issue.minimum)}`
    case 'too_big':
      return `at most ${String(issue.maximum)}${issue.origin === 'string' ? ' characters' : ''}`
    default:
      return issue.message.replace(/^Invalid input: expected /, '')
  }
}

/** The maximum length of a list of values in an error, in characters. */
const VALUES_CHARS = 1000

function valuesText(values: readonly unknown[]): string {
  const text = values.map((value) => (typeof value === 'bigint' ? `${value}n` : JSON.stringify(value))).join(', ')
  return `one of ${text.length <= VALUES_CHARS ? text : `${cutText(text, VALUES_CHARS)}... (${values.length} values)`}`
}

/** Returns what the alternatives of a union expect; undefined when there are none. */
function unionText(issues: readonly z.core.$ZodIssue[]): string | undefined {
  if (issues.length === 0) return undefined
  const values = issues.flatMap((issue) => (issue.code === 'invalid_value' ? [...issue.values] : []))
  if (issues.every(({ code }) => code === 'invalid_value')) return valuesText(values)
  return cutText([...new Set(issues.map(expectation))].join(' or '), VALUES_CHARS)
}
