// `npm run coverage:charts`: the suites that drive the implementation through its charts, with every actor watched.
import { defineConfig } from 'vitest/config'
import base from './vitest.config.js'

export default defineConfig({
  ...base,
  test: {
    ...base.test,
    projects: undefined,
    include: ['test/model/paths/*.test.ts', 'test/model/{registry,pure,lanes}.test.ts', 'test/race/*.test.ts'],
    setupFiles: ['test/support/property-settings.ts', 'test/support/record-charts.ts'],
  },
})
