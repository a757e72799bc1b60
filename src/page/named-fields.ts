/** Objects with arbitrary field names, such as the arguments of a tool. */
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'

export const isRecord = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Refuses a field named `__proto__`, because later parsers would drop it silently. */
export const fieldsSchema = lazily(() =>
  z.custom<Record<string, unknown>>(isRecord, 'an object').superRefine((fields, context) => {
    if (!Object.hasOwn(fields, '__proto__')) return
    context.addIssue({
      code: 'custom',
      path: ['__proto__'],
      message: 'another name, because a field with this name would be lost',
    })
  }),
)
