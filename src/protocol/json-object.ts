import { z } from 'zod'
import { lazily } from './lazily.js'

/** An object that is passed on unchanged. `z.record` is not used, because it would drop a field with the name `__proto__`. */
export const jsonObject = lazily(() =>
  z.custom<Record<string, unknown>>(
    (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    'an object',
  ),
)
