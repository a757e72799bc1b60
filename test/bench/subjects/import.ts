/** How long an import takes in a new process, in ms. */
import { entryUrl } from '../package.js'
import type { Subject } from '../subject.js'

const timed = (load: () => Promise<unknown>): Subject => ({
  run: async () => {
    const start = performance.now()
    await load()
    return performance.now() - start
  },
})

export function packageImport(_params: unknown, checkout: string): Subject {
  const url = entryUrl(checkout, '.')
  return timed(() => import(url))
}

export const dependencyImports = (): Subject =>
  timed(() => Promise.all([import('xstate'), import('rxjs'), import('zod')]))
