// `npm run coverage:charts`: runs the suites that drive the implementation through its state machines, and watches every actor.
import { defineConfig } from 'vitest/config'
import base, { testTimeout } from '../vitest.config.js'

const { projects: _, ...test } = base.test ?? {}

export default defineConfig({
  ...base,
  test: {
    ...test,
    testTimeout,
    include: [
      'test/model/paths/*.test.ts',
      'test/model/{registry,pure,lanes}.test.ts',
      'test/race/*.test.ts',
      // A host suspends a turn between two awaits of its own, which no race of events does.
      'test/unit/host/suspended-turns.test.ts',
    ],
    setupFiles: ['test/support/property-settings.ts', 'scripts/record-charts.ts'],
  },
})
