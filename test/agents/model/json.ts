/** Reads JSON of unknown shape. A field of something that is no object is undefined. */
export type Json = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null

export const fieldOf = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined)

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
