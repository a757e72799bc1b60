// `npm run mutate`: runs the unit tests of one folder. `scripts/mutate.ts` passes them in MUTATE_TESTS.
import { defineConfig } from 'vitest/config'
import base, { setupFiles } from '../vitest.config.js'

const { projects: _, coverage: __, ...test } = base.test ?? {}

const include = process.env['MUTATE_TESTS']?.split(',') ?? []
const isolated = ['**/*.isolated.test.ts']
const isIsolated = process.env['MUTATE_ISOLATE'] === '1'

export default defineConfig({
  ...base,
  test: {
    ...test,
    include,
    setupFiles,
    exclude: isIsolated ? [] : isolated,
    isolate: isIsolated,
    testTimeout: 20_000,
  },
})
