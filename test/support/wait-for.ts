import { vi } from 'vitest'

/** `vi.waitFor` with a limit for what hangs. Its own limit of 1 s is too short for a busy machine. */
export const waitFor = <T>(check: () => T | Promise<T>): Promise<T> => vi.waitFor(check, { timeout: 60_000 })
