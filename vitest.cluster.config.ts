// `npm run test:cluster`: many machines, as processes on a real Redis. One file at a time, so that they do not fight over the machine.
import { defineConfig } from 'vitest/config'
import { sourceAliases } from './test/support/source-aliases.js'

export default defineConfig({
  resolve: { alias: sourceAliases() },
  test: {
    include: ['test/cluster/**/*.test.ts'],
    dangerouslyIgnoreUnhandledErrors: false,
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 60_000,
  },
})
