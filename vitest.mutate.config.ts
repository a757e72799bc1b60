// `npm run mutate`: the tests that could notice a change in what Stryker changes, without those that start programs.
import { defineConfig } from 'vitest/config'
import base from './vitest.config.js'

const { projects: _, ...test } = base.test ?? {}

export default defineConfig({
  ...base,
  test: {
    ...test,
    include: ['test/unit/{async-tasks,machines,host,command-tasks}/**/*.test.ts', 'test/{model,race}/**/*.test.ts'],
    // It reads the charts as text, and Stryker has written into that.
    exclude: ['test/unit/machines/as-text.test.ts'],
  },
})
